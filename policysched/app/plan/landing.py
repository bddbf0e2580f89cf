"""`Landing`: the node on which a decision places a pod, or why it places the pod on no node.

Among equally good nodes, a pod lands on a preferred one, because a tie is no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

from policysched.app.plan.results import Effect
from policysched.schedule.cycle.decision import Decision


@dataclass(frozen=True, slots=True)
class Landing:
    """The node on which a decision places a pod, or why the decision places the pod on no node."""

    node: str
    ties: int = 1
    reason: str = ""
    by: str = ""
    """Reason why the pod is placed on another node than without the change."""


def landing_of(decision: Decision, *prefer: str) -> Landing:
    """Return the Landing of a decision: the selected node, or why no node was selected.

    Args:
        decision: The decision.
        prefer: Preferred nodes among equally good ones, in order; otherwise the node of the decision.
    """
    if decision.row < 0:
        return Landing("", 0, decision.error() if decision.failed else decision.fit_error())
    for name in prefer:
        row = decision.cluster.nodes.row_of.get(name, -1)
        if row >= 0 and (decision.tied == row).any():
            return Landing(name, int(decision.tied.size))
    return Landing(decision.node, int(decision.tied.size))


def effect_of(before: str, after: str, place: str = "") -> Effect | None:
    """Return the effect of a change on a pod, from the pod's nodes without and with the change (empty for no node).

    Args:
        before: The node without the change.
        after: The node with it.
        place: The node on which the pod runs.

    Missing: None if both nodes are equal.
    """
    if before == after:
        return None
    if not after:
        return Effect.UNSCHEDULABLE
    if not before:
        return Effect.SCHEDULABLE
    return Effect.STAYS if after == place else Effect.MOVES
