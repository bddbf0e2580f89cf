"""The summary of an explanation: one sentence about a pod and its node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from policysched.app.amounts import counted
from policysched.app.why.repairs import Grouped
from policysched.app.why.results import Explanation, Group
from policysched.schedule.cycle.decision import Decision

MOST_GROUPS_IN_SUMMARY: Final = 3
"""Largest number of groups of nodes in a summary."""


def fits_none(begun: Explanation, found: Grouped, decision: Decision) -> str:
    """Return the summary for a pod that fits no node: the largest groups of nodes with what they lack."""
    first = f"pod {begun.pod} fits none of {counted(begun.nodes, 'node')}"
    if begun.nodes == 1:
        first = f"pod {begun.pod} does not fit the only node"
    if begun.node:
        fits = "the only node" if begun.nodes == 1 else f"any of {begun.nodes} nodes"
        first = f"pod {begun.pod} {is_on(begun, decision)} but would not fit {fits} if recreated"
    if not found.groups:
        return f"{first}: {decision.fit_error()}"
    if decision.rejection is not None:
        return f"{first}: {decision.rejection.message}"
    return f"{first}: " + "; ".join(lacking(one) for one in found.groups[:MOST_GROUPS_IN_SUMMARY])


def is_on(begun: Explanation, decision: Decision) -> str:
    """Return the part of a summary that names the node of a placed pod."""
    missing = "" if begun.node in decision.cluster.nodes.row_of else ", which is not a node of the cluster,"
    return f"is on {begun.node}{missing}"


def lacking(group: Group) -> str:
    """Return the conditions of a group as one line."""
    nodes = "1 node lacks" if group.nodes == 1 else f"{group.nodes} nodes lack"
    only = " only" if len(group.lacks) == 1 else ""
    return f"{nodes}{only} {group.missing(' and ')}"


def refused(begun: Explanation, node: str, groups: Sequence[Group]) -> str:
    """Return the summary for a pod that does not fit a node but fits another one."""
    lacks = groups[0].missing(" and ") if groups else "conditions of the filters"
    if node == begun.node:
        text = f"pod {begun.pod} is on {node} but would not fit it if recreated; missing: {lacks}"
    else:
        text = f"pod {begun.pod} does not fit {node}; missing: {lacks}"
    if begun.node == begun.selected:
        return f"{text}; it is on {begun.node}"
    return f"{text}; it would go to {begun.selected}" + (" if recreated" if begun.node else "")


def only_node(begun: Explanation, decision: Decision) -> str:
    """Return the summary for a pod that has no other node to choose."""
    where = "is on" if begun.node == begun.selected else "would go to"
    if decision.nominated:
        return f"pod {begun.pod} {where} {begun.selected}, its nominated node"
    only = "the only node" if begun.nodes == 1 else f"the only one of {begun.nodes} nodes that fits"
    return f"pod {begun.pod} {where} {begun.selected}, {only}"


def compared_nodes(explanation: Explanation) -> str:
    """Return the summary for a pod whose node is compared with another node."""
    found = explanation.comparison
    assert found is not None  # noqa: S101 - the caller has set it
    where = (
        f"pod {explanation.pod} is on {explanation.node}"
        if explanation.node
        else f"pod {explanation.pod} would go to {explanation.selected}"
    )
    if explanation.node and explanation.node not in explanation.best:
        where += f" and would go to {explanation.selected} if recreated"
    if not found.margin:
        return f"{where}: {found.here} and {found.there} have the same total score of {found.here_total}"
    rule = f" (rule {found.decisive_rule})" if found.decisive_rule else ""
    by = f", by {found.decisive}{rule}" if found.decisive else ""
    tier = f" in tier {found.tier}" if found.tier else ""
    return f"{where}: {found.here} is {counted(found.margin, 'point')} ahead of {found.there}{tier}{by}"
