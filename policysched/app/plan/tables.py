"""Lines and tables of a plan for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from policysched.app.amounts import counted
from policysched.app.dry_run.tables import plain_table
from policysched.app.plan.results import NodeEffect, Plan, PodEffect
from policysched.app.report_table import ReportTable
from policysched.visible import visible

LIMIT: Final = 20
EXAMPLES: Final = "examples: node without → with change"
POLICY: Final = "SchedulingPolicy/"
_OTHERS: Final = "not evaluated (static, finished, or of another scheduler)"
_STRANDED: Final = "not evaluated (on nodes that are not in the cluster)"


def plan_parts(plan: Plan) -> Iterator[RenderableType]:
    """Yield the lines and tables that show a plan."""
    yield from _headlines(plan)
    yield from _effects(plan)
    yield from _groups(plan)
    yield from _nodes(plan)
    if plan.idle_policies:
        rows = [list(one.split(": ", 1)) for one in plan.idle_policies]
        idle = _table("Policies without effect", ["policy", "reason"], rows)
        idle.wraps = True
        yield idle
    if plan.left_out:
        yield _table("Objects left out", ["reason"], [[one] for one in plan.left_out])
    for count, one, many in (
        (plan.daemons.created, "DaemonSet pod added with its new node", "DaemonSet pods added with new nodes"),
        (plan.daemons.deleted, "DaemonSet pod deleted with its node", "DaemonSet pods deleted with their nodes"),
        (plan.others, f"pod {_OTHERS}", f"pods {_OTHERS}"),
        (plan.stranded, f"pod {_STRANDED}", f"pods {_STRANDED}"),
        (plan.gated, "pod with scheduling gates", "pods with scheduling gates"),
    ):
        if count:
            yield Text(f"{count:,} {one if count == 1 else many}")


def _headlines(plan: Plan) -> Iterator[RenderableType]:
    """Yield the lines before the tables: the plan in one sentence, and numbers of pods and pod groups."""
    yield Text(visible(plan.summary), "bold")
    if plan.running:
        alone = "are running and would not move; each is evaluated alone, so this is not a final placement"
        text = "is running and would not move" if plan.running == 1 else alone
        yield Text(f"{plan.running:,} of these {text}")
    if plan.unplaced.pods:
        yield Text(visible(plan.unplaced.text))
    for policy in plan.policies:
        yield Text(visible(f"policy {policy.policy} is evaluated for {policy.pods:,} of {_count(plan.pods)}"))
    if plan.groups:
        groups = counted(len(plan.groups), "pod group")
        fit = sum(not one.before for one in plan.groups), sum(not one.after for one in plan.groups)
        yield Text(f"of {groups} with pending pods, {fit[0]:,} fit without, {fit[1]:,} with the change")


def _effects(plan: Plan) -> Iterator[RenderableType]:
    workloads = plan.workloads
    if not workloads:
        return
    rows = [
        [one.workload, one.effect.short, str(one.pods), _cause(one.by), "; ".join(map(_example, one.examples))]
        for one in workloads
    ]
    columns = ["workload", "effect", "pods", "decided by", EXAMPLES]
    table = _table("Workloads", columns, rows, range(2, 3))
    table.least = (EXAMPLES,)
    yield table
    reasons: dict[str, list[str]] = {}
    for group in workloads[:LIMIT]:
        for example in group.examples[:1]:
            reasons.setdefault(example.reason, []).append(group.workload)
    for reason, names in reasons.items():
        if reason:
            yield Text(visible(f"no node for {', '.join(dict.fromkeys(names))}: {reason}"))


def _groups(plan: Plan) -> Iterator[RenderableType]:
    """Yield a table of the pod groups that fit only without or only with the change."""
    differing = [one for one in plan.groups if bool(one.before) is not bool(one.after)]
    if differing:
        rows = [[one.group, "without" if one.after else "with", one.after or one.before] for one in differing]
        table = _table("Pod groups", ["pod group", "fits only", "reason why not otherwise"], rows)
        table.wraps = True
        yield table


def _nodes(plan: Plan) -> Iterator[RenderableType]:
    nodes = plan.nodes
    if not nodes:
        return
    over = any(one.over for one in nodes)
    rows = [
        [one.node, str(one.loses), str(one.gains), f"{one.gains - one.loses:+d}", *([_over(one)] if over else [])]
        for one in nodes
    ]
    columns = ["node", "without change", "with change", "difference", *(["would exceed"] if over else [])]
    table = _table("Affected pods per node", columns, rows, range(1, 4))
    table.short = {"without change": "without", "with change": "with"}
    table.least = ("difference",)
    yield table


def _table(title: str, columns: list[str], rows: list[list[str]], numbers: range = range(0)) -> ReportTable:
    table = plain_table(title, columns, rows[:LIMIT], numbers)
    if len(rows) > LIMIT:
        table.caption, table.caption_justify = Text(f"… and {len(rows) - LIMIT:,} more"), "left"
    return table


def _count(pods: int) -> str:
    return f"{pods:,} {'pod' if pods == 1 else 'pods'}"


def _cause(by: str) -> str:
    """Format a cause for a narrow column: a policy's rule as `policy/rule`, its score as `score of policy NAME`."""
    return by.replace("policy ", "").replace(POLICY, "policy ")


def _over(one: NodeEffect) -> str:
    return ", ".join(excess.text for excess in one.over)


def _example(one: PodEffect) -> str:
    name = one.pod.partition("/")[2]
    name += f" (on {one.node})" if one.runs and one.node != one.before else ""
    ways = f"{one.before or 'none'} → {one.after or 'none'}"
    return f"{name}: {ways}" + (f" or {counted(one.ties - 1, 'other')}" if one.ties > 1 else "")
