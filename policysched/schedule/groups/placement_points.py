"""Calls of the plugins at PlacementGenerate and PlacementScore.

Exceptions and invalid results become statuses with kube-scheduler's texts.

Shapes: P feasible placements.
Source: pkg/scheduler/framework/runtime/framework.go (RunPlacementGeneratePlugins, RunPlacementScorePlugins),
placement_merging.go, v1.37 and v1.38.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Cluster, Code, Scores, Status, unschedulable
from policysched.framework.pod_groups import (
    CandidatePlacement,
    FeasiblePlacement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupContext,
)

T = TypeVar("T")
log = logging.getLogger(__name__)
SEPARATOR: Final = "/"
"""Separator between the names of the placements of which an intersection is made."""
NO_PLACEMENTS: Final = "no feasible placements found"
NO_MERGED_PLACEMENTS: Final = "no feasible merged placements found"
_OUT_OF_RANGE: Final = (
    'applying score defaultWeights on PlacementScore plugins: plugin "{}" returns an invalid score {}, '
    f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
)


def all_nodes(cluster: Cluster) -> CandidatePlacement:
    """Return the placement (set of nodes for a pod group) that contains all nodes."""
    return CandidatePlacement("", np.flatnonzero(cluster.nodes.present.data[: cluster.nodes.size]))


def generate(
    plugins: Sequence[PlacementGeneratePlugin], context: PodGroupContext
) -> Sequence[CandidatePlacement] | Status:
    """Return the placements (sets of nodes) that plugins generate for a pod group; several plugins are intersected.

    Returns:
        One placement of all nodes if no plugin states a constraint; a status that rejects the group or fails.
    """
    whole = all_nodes(context.cluster)
    merged: Sequence[CandidatePlacement] | None = None
    for plugin in plugins:
        parent = CandidatePlacement("", whole.rows)
        found = _called(plugin.name, "PlacementGenerate", partial(plugin.generate_placements, context, parent))
        if isinstance(found, Status):
            return found
        if not found:
            return unschedulable(NO_PLACEMENTS).by(plugin.name)
        if fault := _name_fault(found):
            return Status(Code.ERROR, (fault,), plugin.name)
        if len(found) == 1 and found[0] is parent:
            continue
        merged = found if merged is None else _merged(merged, found)
        if not merged:
            return unschedulable(NO_MERGED_PLACEMENTS)
    return (whole,) if merged is None else merged


def _name_fault(placements: Iterable[CandidatePlacement]) -> str:
    """Return what is wrong with the names of a plugin's placements; empty if all names are valid."""
    seen: set[str] = set()
    for one in placements:
        if SEPARATOR in one.name:
            return f'placement name "{one.name}" must not contain "{SEPARATOR}"'
        if one.name in seen:
            return f'plugin returned duplicate placement name "{one.name}"'
        seen.add(one.name)
    return ""


def _merged(some: Iterable[CandidatePlacement], others: Sequence[CandidatePlacement]) -> list[CandidatePlacement]:
    """Intersect each placement of a list with each placement of another list; return the placements with nodes."""
    found: list[CandidatePlacement] = []
    for one in some:
        for other in others:
            rows = np.intersect1d(one.rows, other.rows, assume_unique=True)
            if rows.size:
                found.append(CandidatePlacement(f"{one.name}{SEPARATOR}{other.name}", rows))
    return found


def score(
    plugins: Sequence[tuple[PlacementScorePlugin, int]],
    context: PodGroupContext,
    feasible: Sequence[FeasiblePlacement],
) -> list[tuple[PlacementScorePlugin, Scores]] | Status:
    """Return the weighted scores of placements by plugin, or the status of a failed plugin.

    Shapes: each (P,).
    """
    raw: list[Scores] = []
    for plugin, _ in plugins:
        found = _called(plugin.name, "PlacementScore", partial(plugin.score_placements, context, feasible))
        if isinstance(found, Status):
            return _failed("running PlacementScore plugins", found)
        raw.append(found)
    final: list[Scores] = []
    for (plugin, _), scores in zip(plugins, raw, strict=True):
        normalize = partial(plugin.normalize_placements, context, feasible, scores)
        found = _called(plugin.name, "NormalizePlacementScore", normalize)
        if isinstance(found, Status):
            return _failed("running NormalizePlacementScore on PlacementScore plugins", found)
        final.append(found)
    for (plugin, _), scores in zip(plugins, final, strict=True):
        for one in (int(scores.min()), int(scores.max())):
            if not 0 <= one <= MAX_NODE_SCORE:
                return Status(Code.ERROR, (_OUT_OF_RANGE.format(plugin.name, one),), plugin.name)
    return [(plugin, scores * weight) for (plugin, weight), scores in zip(plugins, final, strict=True)]


def _failed(step: str, status: Status) -> Status:
    return Status(Code.ERROR, (f'{step}: plugin "{status.plugin}" failed with: {status.message}',), status.plugin)


def _called(name: str, point: str, call: Callable[[], T | Status]) -> T | Status:
    """Call a plugin and return its result; turn an exception into a status with the plugin's name."""
    try:
        answer = call()
    except Exception as error:
        log.exception('%s plugin "%s" failed', point, name)
        return Status(Code.ERROR, (repr(error),), name)
    return answer.by(name) if isinstance(answer, Status) else answer


def best_of(scored: Sequence[tuple[PlacementScorePlugin, Scores]]) -> list[int]:
    """Return the indexes of the placements with the highest total score; scores of higher tiers decide first."""
    best = np.arange(scored[0][1].size)
    for tier in sorted({plugin.tier for plugin, _ in scored}, reverse=True):
        total = np.sum([scores[best] for plugin, scores in scored if plugin.tier == tier], axis=0)
        best = best[total == total.max()]
    found: list[int] = best.tolist()
    return found
