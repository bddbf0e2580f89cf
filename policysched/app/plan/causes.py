"""The reason why a pod is placed on another node with a change: a short text, by which pods are grouped.

Only the pod's nodes on both sides are compared: the filter that rejects the pod, or the plugin whose score favors the
other node. No decision is repeated, so `cause` must be called before the cluster changes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from policysched.app.plan.results import NEW_NODE, NEW_NODE_SCORE
from policysched.framework import Status
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.results.plugin_results import PRE_FILTER_RESULT

POLICY: Final = "SchedulingPolicy/"
NODE_REMOVED: Final = "node removed"
SCORE: Final = "score of "
FIT: Final = "NodeResourcesFit"
NO_PREEMPTION: Final = "preemption no longer helps"

Leads = dict[tuple[int, str], int]
"""Difference between two nodes' scores, by tier and plugin."""


@dataclass(frozen=True, slots=True)
class Room:
    """How preemption makes room for a pod on a node without the change, and what prevents this with the change."""

    removes: frozenset[str] = frozenset()
    """Without the change: rejections of the pod by its node that preemption removes; empty without preemption."""
    protected_by: tuple[str, ...] = ()
    """With the change: policies that protect the victims from preemption."""


NO_ROOM: Final = Room()


def cause(after: Decision, here: str, there: str, before: Decision | None = None, room: Room = NO_ROOM) -> str:
    """Return why a pod is placed on one node without the change and on another node with the change.

    Args:
        after: The decision with the change.
        here: Its node without the change; empty if it has none.
        there: Its node with the change; empty if it has none.
        before: The decision without the change, if it is about the current cluster.
        room: The effect of preemption without the change.

    Missing: empty if neither node explains the effect, because other pods used or freed the resources.
    """
    if here and not _is_there(after, here):
        return NODE_REMOVED
    if here and room.removes:
        return _no_room(rejecting(after, after.cluster.nodes.row_of[here]) - room.removes, room)
    rejection = _rejection_text(after, here)
    if rejection or not there:
        return rejection
    if before is None:
        return _by_score(after, here, there, {}, "") if here else ""
    lifted = _rejection_text(before, there)
    if lifted:
        return f"no longer: {lifted}"
    came = "" if _is_there(before, there) else NEW_NODE
    return _by_score(after, here, there, _leads(before, there, here), came) if here else came


def rejecting(decision: Decision, row: int) -> frozenset[str]:
    """Return all plugins and rules that reject the pod on a node, not only the first."""
    if decision.rejection is not None:
        return frozenset((_named(decision.rejection),))
    rejected = [one for one in decision.evaluation.filter_parts() if one.codes[row]]
    statuses = [one.reason(int(one.codes[row])) for one in rejected]
    return frozenset(name for one in statuses for name in (one.reasons if one.plugin == FIT else (_named(one),)))


def _no_room(added: frozenset[str], room: Room) -> str:
    """Return why, with the change, preemption cannot make room for a pod on the node it gets without the change."""
    reasons = sorted(added) or [f"{name} protects the victims" for name in room.protected_by]
    return f"{NO_PREEMPTION}: {', '.join(reasons)}" if reasons else NO_PREEMPTION


def _is_there(decision: Decision, node: str) -> bool:
    return node in decision.cluster.nodes.row_of


def _rejection_text(decision: Decision, node: str) -> str:
    """Return the name of the filter or rules that reject the pod on a node; empty if the node is feasible."""
    if not node or not _is_there(decision, node):
        return ""
    if decision.rejection is not None:
        return _named(decision.rejection)
    row = decision.cluster.nodes.row_of[node]
    if decision.evaluation.first[row] <= 0:
        return ""
    status = decision.evaluation.status(row)
    return ", ".join(decision.evaluation.narrowing) if status.plugin == PRE_FILTER_RESULT else _named(status)


def _named(status: Status) -> str:
    """Return a short name of a rejection: the rules of a policy, the resources, or the plugin."""
    if status.plugin.startswith(POLICY):
        return ", ".join(dict.fromkeys(reason.partition(": ")[0] for reason in status.reasons)) or status.plugin
    return ", ".join(status.reasons) if status.plugin == FIT else status.plugin


def _by_score(after: Decision, here: str, there: str, earlier: Leads, came: str) -> str:
    """Return the plugin whose score difference between new and old node grows most by the change, as the cause."""
    leads = _leads(after, there, here)
    sums: defaultdict[int, int] = defaultdict(int)
    for (tier, _), lead in leads.items():
        sums[tier] += lead
    deciding = next((tier for tier in sorted(sums, reverse=True) if sums[tier]), None)
    gained = {name: lead - earlier.get((tier, name), 0) for (tier, name), lead in leads.items() if tier == deciding}
    if not gained:
        return came
    plugin = max(gained, key=lambda name: (gained[name], name))
    return f"{NEW_NODE_SCORE if came else SCORE}{plugin}"


def _leads(decision: Decision, node: str, other: str) -> Leads:
    """Return the score differences between two nodes; empty if one of the nodes does not exist or is infeasible."""
    evaluation, rows = decision.evaluation, decision.cluster.nodes.row_of
    if decision.row < 0 or node not in rows or other not in rows:
        return {}
    one, two = rows[node], rows[other]
    if evaluation.first[one] or evaluation.first[two]:
        return {}
    feasible = evaluation.feasible()
    found: Leads = {}
    for results in evaluation.score_parts():
        if not results.flat:
            final = results.final(feasible)
            found[results.tier, results.plugin.name] = int(final[one]) - int(final[two])
    return found
