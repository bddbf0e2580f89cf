"""Lines and tables of an explanation for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from policysched.app.dry_run.tables import plain_table
from policysched.app.why.results import Explanation, GroupExplanation, NodeComparison, ScoreDifference
from policysched.visible import visible

LIMIT: Final = 20
FITTING: Final = "nodes that then fit"


def explanation_parts(explanation: Explanation) -> Iterator[RenderableType]:
    """Yield the lines and tables that show an explanation."""
    if explanation.pod_group is not None:
        yield from _pod_group(explanation.pod_group)
    yield Text(visible(explanation.summary), "bold")
    if explanation.comparison is not None:
        yield from _comparison(explanation.comparison)
    if explanation.conditions:
        yield _conditions(explanation)
    if explanation.groups:
        yield _groups(explanation)
        if any(one.repairs for one in explanation.groups):
            yield _repairs(explanation)
    if explanation.preemption is not None:
        yield Text(visible(f"preemption would place the pod {explanation.preemption.text}"))


def _pod_group(found: GroupExplanation) -> Iterator[RenderableType]:
    yield Text(visible(found.summary), "bold")
    if found.repairs:
        rows = [[str(one.change), one.text, f"{one.placed} of {found.pods}"] for one in found.repairs]
        table = plain_table("Fixes of the pod group, each simulated", ["change", "fix", "pods that then fit"], rows)
        table.wraps = True
        yield table
    if found.result:
        yield Text("the pod, after the earlier pods of the group got their nodes:")


def _comparison(found: NodeComparison) -> Iterator[Table]:
    rows = []
    for tier, here, there in found.sums:
        for one in found.differences:
            if one.tier == tier:
                rows += _difference(one)
        rows.append([f"tier {tier}" if tier else "total", "", str(here), str(there), f"{here - there:+d}"])
    table = plain_table("Scores", ["plugin", "weight", found.here, found.there, "lead"], rows, range(1, 5))
    table.short = {found.here: "A", found.there: "B"}
    table.least = ("weight",)
    yield table
    turned = [[one.plugin, str(one.now), str(one.weight), ", ".join(one.selected[:3])] for one in found.turns]
    if turned:
        yield plain_table(
            f"Weights that would select {found.there}",
            ["plugin", "now", "required", "best nodes"],
            turned,
            range(1, 3),
        )


def _difference(one: ScoreDifference) -> list[list[str]]:
    rules = ([f"  rule {name}", "", _number(here), _number(there), ""] for name, (here, there) in one.rules.items())
    return [[one.plugin, str(one.weight), str(one.here), str(one.there), f"{one.lead:+d}"], *rules]


def _number(value: float | None) -> str:
    return "no score" if value is None else f"{value:g}"


def _conditions(explanation: Explanation) -> Table:
    rows = [
        [one.text, one.plugin, str(one.rejects), str(one.leaves), str(one.alone)]
        for one in explanation.conditions[:LIMIT]
    ]
    title = "Conditions on 1 node" if explanation.nodes == 1 else f"Conditions on all {explanation.nodes} nodes"
    table = plain_table(title, ["condition", "plugin", "rejects", "accepts", "rejects alone"], rows, range(2, 5))
    table.least, table.wraps = ("accepts", "plugin"), True
    if len(explanation.conditions) > LIMIT:
        table.caption, table.caption_justify = Text(f"… and {len(explanation.conditions) - LIMIT} conditions"), "left"
    return table


def _groups(explanation: Explanation) -> Table:
    rows = [[str(one.nodes), one.missing("; "), _some(one.nodes, one.examples)] for one in explanation.groups]
    table = plain_table("Nodes by missing conditions", ["nodes", "missing", "examples"], rows, range(1))
    table.least, table.wraps = ("examples",), True
    if explanation.more_groups:
        text = f"… and {explanation.more_nodes} nodes in {explanation.more_groups} more groups"
        table.caption, table.caption_justify = Text(text), "left"
    return table


def _repairs(explanation: Explanation) -> Table:
    rows = [
        [str(one.change), one.text, f"{one.nodes} of {group.nodes}", one.example]
        for group in explanation.groups
        for one in group.repairs
    ]
    table = plain_table("Fixes, each simulated", ["change", "fix", FITTING, "example"], rows)
    table.short = {FITTING: "fits"}
    table.least, table.wraps = ("example",), True
    return table


def _some(count: int, names: tuple[str, ...]) -> str:
    return ", ".join(names) + (" …" if count > len(names) else "")
