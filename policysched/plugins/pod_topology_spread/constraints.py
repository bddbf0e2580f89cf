"""Compiled spread constraints of a pod: from its spec, or default constraints of the configuration.

The constraints of one action are compiled at a time, because an invalid selector fails only the extension point that
needs it.

Source: plugins/podtopologyspread/common.go, plugin.go (getConstraints), plugins/helper/spread.go, v1.36, v1.37 and
v1.38.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import ChangedRow, ChangedRows, Cluster
from policysched.model.objects import Pod, TopologySpreadConstraint, workload_owner
from policysched.model.selection.selectors import (
    LabelMatcher,
    SelectorCompiler,
    SelectorError,
    match_labels,
)
from policysched.state.object_tables import Workloads
from policysched.state.placed.counter import PodCounter
from policysched.state.placed.pods import PlacedPod
from policysched.state.placed.selector_index import index_keys_of_selector
from policysched.state.placed.signature_labels import SignatureLabels

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
HONOR: Final = "Honor"
ARRAYS_PER_CONSTRAINT: Final = 2
"""Number of arrays, with one element per node, in the state of one constraint."""
_ADJECTIVES: Final = {DO_NOT_SCHEDULE: "hard", SCHEDULE_ANYWAY: "soft"}


class ConstraintError(ValueError):
    """Raised if a spread constraint has an invalid selector."""


class Constraint(NamedTuple):
    """A compiled spread constraint."""

    max_skew: int
    topology_key: str
    selector: LabelMatcher
    min_domains: int
    honors_affinity: bool
    """Whether only nodes that match the pod's nodeSelector and node affinity are included (nodeAffinityPolicy)."""
    honors_taints: bool
    """Whether only nodes whose taints the pod tolerates are included (nodeTaintsPolicy)."""

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Return whether the constraint counts pods with these labels."""
        return self.selector.matches(labels)

    def counter(
        self, namespace: str, cluster: Cluster, beside: Iterable[Constraint] = (), *, empty_counts: bool = False
    ) -> PodCounter:
        """Return a counter of the placed pods that the constraint counts on each node.

        Args:
            namespace: The namespace of the counted pods.
            cluster: The cluster.
            beside: All constraints that are counted together.
            empty_counts: Whether an empty selector counts all pods of the namespace, instead of none.
        """
        if self.selector.selects_nothing or (self.selector.selects_everything and not empty_counts):
            return cluster.counters.of((Constraint, None), lambda _: 0, among=())
        selector = self.selector

        def weigh(placed: PlacedPod) -> int:
            metadata = placed.pod.metadata
            stays = metadata.deletion_timestamp is None
            return int(stays and metadata.namespace == namespace and selector.matches(metadata.labels))

        def weigh_all(labels: SignatureLabels) -> NDArray[np.bool_]:
            counting = labels.present()
            labels.in_namespace(counting, namespace)
            labels.staying(counting)
            labels.select(counting, selector, (one.selector for one in beside))
            return counting

        key: Hashable = (Constraint, namespace, selector)
        among = index_keys_of_selector(selector, (namespace,))
        return cluster.counters.of(key, weigh, among=among, weigh_all=weigh_all)

    def more_on(self, changed: ChangedRow, namespace: str) -> int:
        """Return by how much the number of counted pods on a simulated node changes.

        A what-if counts terminating pods, and in all releases pods of an empty selector: kube-scheduler subtracts pods
        that it did not count before.

        Source: plugins/podtopologyspread/filtering.go (updateWithPod).
        """
        return changed.more(*self._what_if_weights(namespace))

    def more_elsewhere(self, changed: ChangedRow, namespace: str) -> Iterator[tuple[int, int]]:
        """Yield other nodes whose number of counted pods changes in the simulation of a node, each with the change."""
        _, weigh = self._what_if_weights(namespace)
        for placed, sign in changed.elsewhere:
            yield placed.row, sign * weigh(placed)

    def more_on_rows(self, changed: ChangedRows, namespace: str) -> NDArray[np.int64]:
        """Return for each simulated node by how much its number of counted pods changes.

        Shapes: (R,).
        """
        return changed.weighed(*self._what_if_weights(namespace))

    def _what_if_weights(self, namespace: str) -> tuple[Hashable, Callable[[PlacedPod], int]]:
        return (Constraint, namespace, self.selector), lambda placed: int(self.selects(placed, namespace))

    def selects(self, placed: PlacedPod, namespace: str) -> bool:
        """Return whether a pod is in a namespace and matches the selector."""
        metadata = placed.pod.metadata
        return metadata.namespace == namespace and self.selector.matches(metadata.labels)


@dataclass(frozen=True, slots=True)
class Defaults:
    """The spread constraints for pods without spread constraints of their own."""

    constraints: tuple[TopologySpreadConstraint, ...]
    are_the_systems: bool = False
    """Whether the constraints are kube-scheduler's built-in defaults (defaultingType System)."""

    def constraints_of(self, pod: Pod, action: str, cluster: Cluster) -> tuple[Constraint, ...]:
        """Return the compiled constraints that apply to a pod, with a given `whenUnsatisfiable`.

        Raises:
            ConstraintError: a selector is invalid.
        """
        own = pod.spec.topology_spread_constraints
        where = (
            "obtaining pod's {} topology spread constraints"
            if own
            else "setting default {} topology spread constraints"
        )
        try:
            made = _compiled(own or self.constraints, pod.metadata.labels, action)
        except SelectorError as error:
            raise ConstraintError(f"{where.format(_ADJECTIVES[action])}: {error}") from error
        return made if own or not made else self._like_its_workload(made, pod, cluster)

    def _like_its_workload(self, made: tuple[Constraint, ...], pod: Pod, cluster: Cluster) -> tuple[Constraint, ...]:
        selector = default_selector(pod, cluster.workloads)
        if selector.selects_everything:
            return ()
        return tuple(one._replace(selector=selector) for one in made)


def own_constraints(pod: Pod, action: str) -> tuple[Constraint, ...]:
    """Return the compiled constraints of a pod's spec, with a given `whenUnsatisfiable`.

    Raises:
        SelectorError: a selector is invalid.
    """
    return _compiled(pod.spec.topology_spread_constraints, pod.metadata.labels, action)


def _compiled(
    constraints: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str
) -> tuple[Constraint, ...]:
    compiler = SelectorCompiler()
    made: list[Constraint] = []
    for one in constraints:
        if one.when_unsatisfiable != action:
            continue
        selector = compiler(one.label_selector)
        if one.match_label_keys:
            same = {key: labels[key] for key in one.match_label_keys if key in labels}
            selector = selector.narrowed(same) if same else selector
        honors_affinity = one.node_affinity_policy in (None, HONOR)
        min_domains = 1 if one.min_domains is None else one.min_domains
        honors_taints = one.node_taints_policy == HONOR
        made.append(Constraint(one.max_skew, one.topology_key, selector, min_domains, honors_affinity, honors_taints))
    return tuple(made)


SYSTEM_DEFAULTS: Final = Defaults(
    (
        TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
        TopologySpreadConstraint(
            topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5
        ),
    ),
    are_the_systems=True,
)
"""The default constraints if the plugin arguments have none."""


def default_selector(pod: Pod, workloads: Workloads) -> LabelMatcher:
    """Return the combined selector of a pod's services and controllers; empty if the pod has none.

    Cost: O(services of the namespace).
    """
    labels: dict[str, str] = {}
    own = pod.metadata.labels
    for selector in workloads.services(pod.metadata.namespace):
        if selector.items() <= own.items():
            labels |= selector
    owner = workload_owner(pod)
    demanded = None if owner is None else workloads.demands(owner[0], pod.metadata.namespace, owner[1])
    if demanded is None:
        return match_labels(labels)
    if isinstance(demanded, LabelMatcher):
        return match_labels(labels).joined(demanded)
    return match_labels(labels | dict(demanded))
