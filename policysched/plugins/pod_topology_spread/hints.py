"""Queueing hints of PodTopologySpread: which changes can help a pod that the plugin rejected.

A change can help if it is about a pod that a constraint counts, or a node with all labels of the constraints. An update
of the waiting pod can help if it changes whether the pod is counted, or which taints it tolerates.

Source: plugins/podtopologyspread/plugin.go (isSchedulableAfterPodChange, isSchedulableAfterNodeChange), v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from policysched.framework import Action, Change, Cluster, Hint, HintIndex, Resource
from policysched.model.objects import Node, Pod
from policysched.model.selection.selectors import EVERYTHING, SelectorError
from policysched.plugins.hint_parts import index_keys_of_change, nodes_of, pods_of
from policysched.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    Constraint,
    ConstraintError,
    Defaults,
    own_constraints,
)
from policysched.state.placed.pods import pod_id
from policysched.state.placed.selector_index import index_keys_of_selector

Constraints = Sequence[Constraint]


def spread_hints(defaults: Defaults) -> tuple[Hint, ...]:
    """Return the queueing hints of PodTopologySpread."""

    def pod_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
        old, new = pods_of(change)
        if any(one is not None and not _concerns(one, pod) for one in (old, new)):
            return False
        constraints = _hard_constraints(defaults, pod, cluster)
        return constraints is None or _pod_matters(old, new, pod, constraints)

    def node_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
        constraints = _hard_constraints(defaults, pod, cluster)
        return constraints is None or _node_matters(*nodes_of(change), constraints)

    updates = Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
    nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
    return (
        Hint(Resource.ASSIGNED_POD, Action.ADD | updates | Action.DELETE, pod_helps, INDEX),
        Hint(Resource.PENDING_POD, updates, pod_helps),
        Hint(Resource.NODE, nodes, node_helps),
    )


def _filed_under(pod: Pod) -> Iterator[Hashable]:
    """Yield a waiting pod's index keys: keys of the pods that its constraints count, or its namespace."""
    try:
        selectors = [one.selector for one in own_constraints(pod, DO_NOT_SCHEDULE)] or [EVERYTHING]
    except SelectorError:
        selectors = [EVERYTHING]
    namespace = (pod.metadata.namespace,)
    return (
        index_key for selector in dict.fromkeys(selectors) for index_key in index_keys_of_selector(selector, namespace)
    )


INDEX: Final = HintIndex(_filed_under, index_keys_of_change)
"""Index of waiting pods by the pods that their constraints count, for the hint for placed pods."""


def _hard_constraints(defaults: Defaults, pod: Pod, cluster: Cluster) -> Constraints | None:
    """Return a pod's hard constraints; None if a constraint is invalid, so that every change may help."""
    try:
        return defaults.constraints_of(pod, DO_NOT_SCHEDULE, cluster)
    except ConstraintError:
        return None


def _concerns(changed: Pod, waiting: Pod) -> bool:
    """Return whether a waiting pod's constraints may count a changed pod, or whether both are the same pod."""
    if pod_id(changed) == pod_id(waiting):
        return True
    has_place = bool(changed.spec.node_name or changed.status.nominated_node_name)
    return has_place and changed.metadata.namespace == waiting.metadata.namespace


def _pod_matters(old: Pod | None, new: Pod | None, waiting: Pod, constraints: Constraints) -> bool:
    if old is None or new is None:
        pod = new or old
        return pod is not None and any(one.counts(pod.metadata.labels) for one in constraints)
    tolerates_anew = pod_id(new) == pod_id(waiting) and old.spec.tolerations != new.spec.tolerations
    if tolerates_anew and any(one.honors_taints for one in constraints):
        return True
    return any(one.counts(old.metadata.labels) != one.counts(new.metadata.labels) for one in constraints)


def _node_matters(old: Node | None, new: Node | None, constraints: Constraints) -> bool:
    had, has = old is not None and _has_labels(old, constraints), new is not None and _has_labels(new, constraints)
    if old is None or new is None:
        return had or has
    if had != has:
        return True
    return has and (_values(old, constraints) != _values(new, constraints) or old.spec.taints != new.spec.taints)


def _has_labels(node: Node, constraints: Constraints) -> bool:
    return all(one.topology_key in node.metadata.labels for one in constraints)


def _values(node: Node, constraints: Constraints) -> list[str | None]:
    labels: Mapping[str, str] = node.metadata.labels
    return [labels.get(one.topology_key) for one in constraints]
