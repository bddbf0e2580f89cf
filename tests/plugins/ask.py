"""Plugins asked as the engine asks them, with answers by node name."""

from __future__ import annotations

from typing import Any

import numpy as np

from policysched.framework import (
    SKIP,
    Action,
    Change,
    Cluster,
    FilterPlugin,
    HintIndex,
    Narrow,
    Nothing,
    Resource,
    Rows,
    ScorePlugin,
    Status,
)
from policysched.model.objects import Pod


def filtered(plugin: FilterPlugin[Any], pod: Pod, cluster: Cluster) -> dict[str, Status] | Status | Nothing:
    """Rejections by node, the status that rejected the pod as a whole, or SKIP."""
    state = plugin.prepare_filter(pod, cluster)
    if isinstance(state, Status | Nothing):
        return state
    if isinstance(state, Narrow):
        state = state.state
    codes = plugin.filter(state, slice(0, cluster.nodes.size))
    assert codes.dtype == np.int32
    return {
        name: plugin.reason(state, int(codes[row]))
        for name, row in cluster.nodes.row_of.items()
        if codes[row] and cluster.nodes.present.data[row]
    }


def rejected(plugin: FilterPlugin[Any], pod: Pod, cluster: Cluster) -> set[str]:
    """The nodes that are rejected, none for a pod that is skipped."""
    answer = filtered(plugin, pod, cluster)
    assert not isinstance(answer, Status), answer
    return set() if isinstance(answer, Nothing) else set(answer)


def raw_scores(plugin: ScorePlugin[Any], pod: Pod, cluster: Cluster, rows: Rows | None = None) -> Any:
    """Scores as an array over the rows, before normalisation."""
    state = plugin.prepare_score(pod, cluster)
    assert state is not SKIP
    scores = plugin.score(state, slice(0, cluster.nodes.size) if rows is None else rows)
    assert scores.dtype == np.int64
    return scores


def scored(plugin: ScorePlugin[Any], pod: Pod, cluster: Cluster) -> dict[str, int] | Nothing:
    """Final scores by node, all nodes being feasible, or SKIP."""
    state = plugin.prepare_score(pod, cluster)
    if isinstance(state, Nothing):
        return state
    rows = slice(0, cluster.nodes.size)
    feasible = cluster.nodes.present.data[rows]
    finals = plugin.normalize(state, plugin.score(state, rows), feasible)
    if finals is None:
        finals = np.zeros(feasible.size, np.int64)
    return {name: int(finals[row]) for name, row in cluster.nodes.row_of.items() if feasible[row]}


def hinted(plugin: Any, pod: Pod, change: Change, cluster: Cluster | None = None) -> bool:
    """Whether some hint of the plugin says that the change helps; its index must find the pod then."""
    around = cluster if cluster is not None else Cluster()
    helping = [
        hint
        for hint in plugin.events()
        if hint.resource is change.resource
        and hint.actions & change.action
        and (hint.helps is None or hint.helps(pod, change, around))
    ]
    assert all(hint.index is None or finds(hint.index, pod, change) for hint in helping)
    return bool(helping)


def finds(index: HintIndex, pod: Pod, change: Change) -> bool:
    """Whether a change leads to a waiting pod."""
    filed = frozenset(index.filed_under(pod))
    keys = index.leads_to(change, filed)
    return keys is None or not filed.isdisjoint(keys)


def node_change(old: Any, new: Any, action: Action = Action.ADD) -> Change:
    """A change of a node; without an old one it is new."""
    return Change(Resource.NODE, action, old, new)


def pod_change(
    old: Pod | None, new: Pod | None, action: Action = Action.DELETE, resource: Resource = Resource.ASSIGNED_POD
) -> Change:
    """A change of a pod, by default the deletion of a placed one."""
    return Change(resource, action, old, new)
