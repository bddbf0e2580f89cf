"""`Landing`: where a pod lands by a decision, and which effect a change has that lets it land elsewhere.

Where several nodes are as good, a pod lands on one that it is said to prefer: what a tie could change is no change.
"""

from __future__ import annotations

from dataclasses import dataclass

from policysched.app.plan.results import Effect
from policysched.schedule.cycle.decision import Decision


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a pod lands."""

    node: str
    ties: int = 1
    reason: str = ""
    by: str = ""
    """What decides that it lands there and not where it landed without the change, see `causes`."""


def landing_of(decision: Decision, *prefer: str) -> Landing:
    """Say where a pod lands by a decision.

    Args:
        decision: The decision.
        prefer: Which nodes the pod takes where they are among equally good ones, the first of them that is; else that
            of the decision.
    """
    if decision.row < 0:
        return Landing("", 0, decision.error() if decision.failed else decision.fit_error())
    for name in prefer:
        row = decision.cluster.nodes.row_of.get(name, -1)
        if row >= 0 and (decision.tied == row).any():
            return Landing(name, int(decision.tied.size))
    return Landing(decision.node, int(decision.tied.size))


def effect_of(before: str, after: str, place: str = "") -> Effect | None:
    """Say what a change does to a pod that lands on one node without it and on another with it, empty for none.

    Args:
        before: The node without the change.
        after: The node with it.
        place: Where the pod runs.

    Missing: None where it is the same node.
    """
    if before == after:
        return None
    if not after:
        return Effect.UNSCHEDULABLE
    if not before:
        return Effect.SCHEDULABLE
    return Effect.STAYS if after == place else Effect.MOVES
