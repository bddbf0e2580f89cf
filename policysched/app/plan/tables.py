"""A plan as lines and tables for people; it knows nothing of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from policysched.app.dry_run.tables import plain_table
from policysched.app.plan.results import NodeEffect, Plan, PodEffect
from policysched.visible import visible

LIMIT: Final = 20


def plan_parts(told: Plan) -> Iterator[RenderableType]:
    """Show a plan part by part."""
    yield Text(visible(told.summary), "bold")
    if told.running:
        one = told.running == 1
        yield Text(f"{told.running:,} of these {'is' if one else 'are'} running and would not move")
    workloads = told.workloads
    if workloads:
        rows = [
            [one.workload, one.effect.said, str(one.pods), one.by, "; ".join(map(_example, one.examples))]
            for one in workloads
        ]
        columns = ["workload", "effect", "pods", "decided by", "examples: now → planned"]
        yield _table("Workloads", columns, rows, range(2, 3))
    nodes = told.nodes
    if nodes:
        over = any(one.over for one in nodes)
        rows = [
            [one.node, str(one.loses), str(one.gains), f"{one.gains - one.loses:+d}", *([_over(one)] if over else [])]
            for one in nodes
        ]
        columns = ["node", "now", "planned", "difference", *(["overcommitted"] if over else [])]
        yield _table("Pods per node", columns, rows, range(1, 4))
    if told.idle_policies:
        rows = [list(one.split(": ", 1)) for one in told.idle_policies]
        yield _table("Policies without effect", ["policy", "reason"], rows)
    if told.left_out:
        yield _table("Objects left out", ["reason"], [[one] for one in told.left_out])
    for count, what in ((told.others, "not evaluated (static, finished, or of another scheduler)"),
                        (told.gated, "with scheduling gates")):  # fmt: skip
        if count:
            yield Text(f"{count:,} {'pod' if count == 1 else 'pods'} {what}")


def _table(title: str, columns: list[str], rows: list[list[str]], numbers: range = range(0)) -> Table:
    table = plain_table(title, columns, rows[:LIMIT], numbers)
    if len(rows) > LIMIT:
        table.caption, table.caption_justify = Text(f"… and {len(rows) - LIMIT:,} more"), "left"
    return table


def _over(one: NodeEffect) -> str:
    return ", ".join(f"{excess.asked} of {excess.allocatable} {excess.resource}" for excess in one.over)


def _example(one: PodEffect) -> str:
    name = one.pod.partition("/")[2]
    name += f" (on {one.node})" if one.runs and one.node != one.before else ""
    ways = f"{one.before or 'none'} → {one.after or 'none'}"
    ties = f", one of {one.ties} equal nodes" if one.ties > 1 else ""
    return f"{name}: {ways}{ties}" + (f" ({one.reason})" if one.reason else "")
