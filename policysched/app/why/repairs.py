"""Groups of nodes that the same conditions exclude, and repairs that the engine has confirmed.

A repair changes one object: the pod, one node, or the policies; pod and policies together only if neither is enough. A
change of the pod is evaluated on all nodes of its group, a change of a node on that node.

Shapes: K conditions, N rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np

from policysched.app.why.obstacles import ExcludingCondition, Fix
from policysched.app.why.results import Condition, Group, Repair, RepairKind
from policysched.app.why.variants import VariantEvaluator
from policysched.framework import Mask, PostFilterResult, RowNumbers

MOST_GROUPS: Final = 12
"""Largest number of groups of nodes in the result; groups with more conditions than others are omitted."""
MOST_FIXES: Final = 64
"""Largest number of conditions that a repair removes."""
EXAMPLES: Final = 3
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups of excluded nodes with their conditions and repairs."""

    conditions: tuple[Condition, ...]
    groups: tuple[Group, ...]
    more_groups: int
    more_nodes: int


def grouped(variants: VariantEvaluator, raw: Object, found: Sequence[ExcludingCondition], only: str = "") -> Grouped:
    """Group the excluded nodes and find repairs.

    Args:
        variants: Evaluates edited pods, nodes and policies.
        raw: The completed pod.
        found: The conditions.
        only: The only node to report; empty for all.
    """
    if not found:
        return Grouped((), (), 0, 0)
    matrix = np.array([one.rows for one in found])
    names = variants.cluster.nodes.names
    counts = matrix.sum(axis=0)
    conditions = _conditions(found, matrix, counts, int(variants.present.sum()))
    reported: Mask = counts > 0
    if only:
        reported &= np.arange(counts.size) == variants.cluster.nodes.row_of.get(only, -1)
    classes = sorted(
        _classes(matrix, np.flatnonzero(reported)),
        key=lambda one: (len(one[0]), -one[1].size, min(names[row] for row in one[1].tolist())),
    )
    groups = []
    for which, rows in classes[:MOST_GROUPS]:
        members = [found[place] for place in which]
        tried = variants.until_interrupted(_repairs(variants, raw, members, rows))
        repairs = sorted(tried, key=lambda one: -one.nodes)
        examples = tuple(sorted(names[row] for row in rows.tolist())[:EXAMPLES])
        groups.append(Group(int(rows.size), examples, tuple(one.text_for(rows) for one in members), tuple(repairs)))
    rest = classes[MOST_GROUPS:]
    return Grouped(conditions, tuple(groups), len(rest), sum(int(rows.size) for _, rows in rest))


def _conditions(found: Sequence[ExcludingCondition], matrix: Mask, counts: Any, nodes: int) -> tuple[Condition, ...]:
    """Return each condition with its numbers of nodes: excluded, not excluded, and excluded by no other condition."""
    conditions = [
        Condition(one.plugin, one.text, int(rows.sum()), nodes - int(rows.sum()), int((rows & (counts == 1)).sum()))
        for one, rows in zip(found, matrix, strict=True)
    ]
    return tuple(sorted(conditions, key=lambda one: (-one.rejects, one.plugin, one.text)))


def _classes(matrix: Mask, rows: RowNumbers) -> Iterator[tuple[list[int], RowNumbers]]:
    """Yield groups of nodes that the same conditions exclude: the conditions, and the nodes' indexes (rows)."""
    if not rows.size:
        return
    packed = np.packbits(matrix[:, rows], axis=0)
    _, first, which = np.unique(packed, axis=1, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    for number, place in enumerate(first.tolist()):
        yield np.flatnonzero(matrix[:, rows[place]]).tolist(), rows[which == number]


def _repairs(
    variants: VariantEvaluator, raw: Object, members: Sequence[ExcludingCondition], rows: RowNumbers
) -> Iterator[Repair]:
    """Yield the confirmed repairs of a group."""
    row = _nearest(members, rows)
    on_node = _node_repair(variants, members, row)
    if on_node is not None:
        yield on_node
    seen = set()
    for targets in (np.array([row]), rows):
        found = _pod_repair(variants, raw, members, rows, targets)
        if found is not None and found.text not in seen and found.nodes not in seen:
            seen |= {found.text, found.nodes}
            yield found


def _nearest(members: Sequence[ExcludingCondition], rows: RowNumbers) -> int:
    """Return the node (row) that lacks least by the first condition about an amount; on a tie, the first by name."""
    for one in members:
        if one.least is not None:
            short = one.least(rows)
            return int(rows[int(np.argmin(short))])
    return int(rows[0])


def _node_repair(variants: VariantEvaluator, members: Sequence[ExcludingCondition], row: int) -> Repair | None:
    name = variants.cluster.nodes.names[row]
    fixes = _fixes(members, np.array([row]), (RepairKind.NODE,))
    given = variants.nodes.get(name)
    if fixes is None or given is None:
        return None
    node: Object = given
    for fix in fixes:
        node = fix.edit(node) if fix.edit is not None else node
    with variants.node_changed(node) as changed:
        fits = bool(variants.feasible(variants.simulation.pod)[changed])
    if not fits:
        return None
    return Repair(RepairKind.NODE, f"{_joined(fixes)} on {name}", 1, name, {"node": node})


def _pod_repair(
    variants: VariantEvaluator,
    raw: Object,
    members: Sequence[ExcludingCondition],
    rows: RowNumbers,
    targets: RowNumbers,
) -> Repair | None:
    """Return a repair that edits the pod, or removes rules, so that the pod fits some nodes.

    Args:
        variants: Evaluates the edited pod and policies.
        raw: The completed pod.
        members: The conditions of the group.
        rows: The rows of the group.
        targets: The rows for which the fixes are chosen.
    """
    fixes = _fixes(members, targets, (RepairKind.POD, RepairKind.POLICY))
    if fixes is None:
        return None
    pod: Object = raw
    for fix in fixes:
        pod = fix.edit(pod) if fix.edit is not None else pod
    rules = frozenset(fix.rule for fix in fixes if fix.rule)
    feasible = variants.feasible(variants.simulation.pod if pod is raw else variants.pod(pod), rules)
    fitting = rows[feasible[rows]]
    if not fitting.size:
        return None
    changes = {fix.change for fix in fixes}
    change = changes.pop() if len(changes) == 1 else RepairKind.POD_AND_POLICY
    made = {key: value for key, value in (("pod", None if pod is raw else pod), ("rules", sorted(rules))) if value}
    example = min(variants.cluster.nodes.names[row] for row in fitting.tolist())
    edits = tuple(fix.edit for fix in fixes if fix.edit is not None)
    return Repair(change, _joined(fixes), int(fitting.size), example, made, edits)


def _fixes(members: Sequence[ExcludingCondition], rows: RowNumbers, changes: Sequence[RepairKind]) -> list[Fix] | None:
    """Return a fix of the given kinds for each condition; None if a condition has no fix or too many are needed."""
    if len(members) > MOST_FIXES:
        return None
    found = [next((fix for fix in one.fixes(rows) if fix.change in changes), None) for one in members]
    kept = [fix for fix in found if fix is not None]
    return list(dict.fromkeys(kept)) if len(kept) == len(found) else None


def _joined(fixes: Sequence[Fix]) -> str:
    texts = dict.fromkeys(fix.text for fix in fixes)
    return " and ".join(texts)


def preempting(variants: VariantEvaluator, outcome: PostFilterResult | None) -> Repair | None:
    """Return the preemption as a repair if the pod fits the node without the victims; otherwise None."""
    if outcome is None or not outcome.succeeded or not outcome.nominated_node:
        return None
    node, pods = outcome.nominated_node, outcome.victims
    victims = [one.key for one in pods]
    with variants.pods_removed(pods):
        row = variants.cluster.nodes.row_of.get(node, -1)
        fits = row >= 0 and bool(variants.feasible(variants.simulation.pod)[row])
    if not fits:
        return None
    shown = ", ".join(chain(victims[:EXAMPLES], [f"{len(victims) - EXAMPLES} more"] if len(victims) > EXAMPLES else []))
    return Repair(RepairKind.VICTIMS, f"with victims on {node}: {shown}", 1, node, {"victims": victims})
