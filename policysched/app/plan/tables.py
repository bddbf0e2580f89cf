"""A plan as lines and tables for people; it knows nothing of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from policysched.app.dry_run.tables import plain_table
from policysched.app.plan.results import Plan, PodEffect
from policysched.visible import visible

LIMIT: Final = 20


def plan_parts(told: Plan) -> Iterator[RenderableType]:
    """Show a plan part by part."""
    yield Text(visible(told.summary), "bold")
    workloads = told.workloads
    if workloads:
        rows = [
            [one.workload, str(one.effect), str(one.pods), "; ".join(map(_example, one.examples))] for one in workloads
        ]
        yield _table("Workloads", ["workload", "effect", "pods", "for example"], rows, range(2, 3))
    nodes = told.nodes
    if nodes:
        rows = [[one.node, str(one.loses), str(one.gains), f"{one.gains - one.loses:+d}"] for one in nodes]
        yield _table("Nodes", ["node", "loses", "gains", "in all"], rows, range(1, 4))
    if told.idle_policies:
        rows = [list(one.split(": ", 1)) for one in told.idle_policies]
        yield _table("Policies that decide nothing", ["policy", "why"], rows)
    if told.left_out:
        yield _table("Left out on both sides", ["what cannot be read"], [[one] for one in told.left_out])
    for count, what in ((told.others, "not decided about: other schedulers', ended, or their node's own"),
                        (told.gated, "with scheduling gates")):  # fmt: skip
        if count:
            yield Text(f"{count:,} {'pod' if count == 1 else 'pods'} {what}")


def _table(title: str, columns: list[str], rows: list[list[str]], numbers: range = range(0)) -> Table:
    table = plain_table(title, columns, rows[:LIMIT], numbers)
    if len(rows) > LIMIT:
        table.caption, table.caption_justify = Text(f"… and {len(rows) - LIMIT:,} more"), "left"
    return table


def _example(one: PodEffect) -> str:
    name = one.pod.partition("/")[2]
    ways = f"{one.before or 'nowhere'} → {one.after or 'nowhere'}"
    ties = f", one of {one.ties} as good" if one.ties > 1 else ""
    return f"{name}: {ways}{ties}" + (f" ({one.reason})" if one.reason else "")
