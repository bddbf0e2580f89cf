"""Tables of decision records for people: at most twenty nodes per table, counts for the rest.

This module reads decision records, not the engine. Texts of users are never interpreted as markup, because names and
messages can contain brackets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from policysched.app.dry_run.preemption_text import why_no_preemption
from policysched.app.report_table import ReportTable, short_names
from policysched.schedule.cycle.ranking import ranked, sums_by_tier
from policysched.visible import visible

LIMIT: Final = 20
FEW: Final = 6
"""Largest number of nodes for which tables show the value of each node; more nodes are grouped by value."""
_NO_SCORES: Final = "reject no node; scores are only computed if a node fits"
Record = Mapping[str, Any]


def decision_parts(record: Record) -> Iterator[RenderableType]:
    """Yield the texts and tables that show a decision record."""
    yield from _headline(record)
    if record.get("devices"):
        yield devices_table(record["devices"])
    if record.get("scores"):
        yield _scores(record)
    yield from reasons_parts(record)
    if record.get("nodeTemplates"):
        yield _node_templates(record["nodeTemplates"])
    if record.get("notApplied"):
        yield not_applied_table(record["notApplied"])


def _node_templates(templates: Mapping[str, Any]) -> Table:
    """Return a table that states which node templates take the pod, and the reasons of the others."""
    rows = []
    for name, told in templates.items():
        rows += [[name, one["plugin"], ", ".join(one["reasons"])] for one in told.get("rejected", ())]
        rows += [[name, "", "takes the pod"]] if told["fits"] else []
        rows += [
            [name, f"policy {policy}/{rule}", f"{one['result']}: {clause}"]
            for policy, rules in told.get("rules", {}).items()
            for rule, one in rules.items()
            for clause in one["clauses"]
        ]
    return plain_table("Node templates", ["template", "by", "result"], rows)


def reasons_parts(record: Record) -> Iterator[RenderableType]:
    """Yield the texts and tables of a decision record about rejected nodes, preemption and rules."""
    if record.get("rejected"):
        yield _rejections(record["rejected"])
    if record.get("refusedDevices"):
        yield refused_devices_table(record["refusedDevices"])
    yield from _preemption(record)
    if record.get("rules"):
        yield _rules(record["rules"], is_placed=record.get("result") == "Scheduled")


def plain_table(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: range = range(0)
) -> ReportTable:
    """Return a table whose cells are texts.

    Args:
        title: The line above the table.
        columns: The headers.
        rows: The cells.
        numbers: Indexes of columns with numbers.
    """
    table = ReportTable(
        title=title,
        title_justify="left",
        title_style="bold",
    )
    for index, column in enumerate(columns):
        table.add_column(Text(visible(column)), justify="right" if index in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def not_applied_table(reasons: Mapping[str, str]) -> ReportTable:
    """Return a table with the policies that do not apply, each with the reason."""
    table = plain_table("Not applied", ["policy", "reason"], reasons.items())
    table.wraps = True
    return table


def _line(text: str, style: str = "") -> Text:
    return Text(visible(text), style)


def _headline(record: Record) -> Iterator[Text]:
    pod, profile = record["pod"], record["schedulerName"]
    if record["result"] == "Scheduled":
        yield _line(f"pod {pod} → node {record['selected']} (profile {profile})", "bold")
        best = record["best"]
        if len(best) > 1:
            yield _line(f"chosen at random from {len(best)} nodes with the highest score: {_names(best)}")
    elif record["result"] == "Error":
        yield _line(f"pod {pod}: scheduling failed (profile {profile}): {record['error']}", "bold")
    else:
        yield _line(f"pod {pod} fits no node (profile {profile})", "bold")
        yield _line(record.get("fitError", ""))


def devices_table(devices: Mapping[str, Any]) -> Table:
    """Return a table with the device, or share of a device, of each request of a claim."""
    rows = [
        [claim, one["request"], f"{one['driver']}/{one['pool']}/{one['device']}", _consumed(one)]
        for claim, results in devices.items()
        for one in results
    ]
    return plain_table("Devices", ["claim", "request", "device", "capacity used"], rows)


def refused_devices_table(nodes: Mapping[str, Any]) -> Table:
    """Return a table with the reasons against the devices of each node."""
    rows = [
        [node, one["claim"], one["request"], f"{one['fitting']} of {one['asked']}", _reasons(one["refused"])]
        for node, refusals in nodes.items()
        for one in refusals
    ]
    return plain_table("Rejected devices", ["node", "claim", "request", "suitable", "reasons"], rows)


def _reasons(refused: Mapping[str, int]) -> str:
    return ", ".join(f"{count}: {reason}" for reason, count in refused.items()) or "no devices"


def _consumed(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in result.get("consumedCapacity", {}).items()) or "all"


def _scores(record: Record) -> Table:
    scores, total = record["scores"], record["total"]
    plugins = list(next(iter(scores.values())))
    names = ranked(record)
    tiers = [tier for tier in sums_by_tier(record, names[0]) if tier]
    rows = [
        [node, *(str(scores[node][plugin]) for plugin in plugins), *map(str, sums_by_tier(record, node).values())]
        for node in names[:LIMIT]
    ]
    columns = ["node", *plugins, *(f"tier {tier}" for tier in tiers), "total"]
    table = plain_table("Scores", columns, rows, range(1, len(columns)))
    table.sums_up, table.short = plugins, short_names(plugins)
    table.least = (*_by_difference(scores, plugins), *(f"tier {tier}" for tier in reversed(tiers)), "total")
    if len(names) > LIMIT:
        least = "that rank lower" if tiers else f"with a total of {total[names[LIMIT]]} or less"
        table.caption = f"… and {len(names) - LIMIT} nodes {least}"
        table.caption_justify = "left"
    return table


def _by_difference(scores: Mapping[str, Mapping[str, int]], plugins: Sequence[str]) -> list[str]:
    """Return plugins sorted by the largest score difference that each plugin causes between nodes."""
    return sorted(plugins, key=lambda plugin: _spread([of[plugin] for of in scores.values()]))


def _spread(values: Sequence[int]) -> int:
    return max(values) - min(values)


def _rejections(rejected: Mapping[str, Any]) -> Table:
    names = sorted(rejected)
    rows = [
        [node, rejected[node]["plugin"], "; ".join(rejected[node]["reasons"]), rejected[node]["code"]]
        for node in names[:LIMIT]
    ]
    table = plain_table("Rejected", ["node", "plugin", "reason", "code"], rows)
    table.sums_up, table.least = ("plugin", "code"), ("code", "plugin")
    if len(names) > LIMIT:
        counts = Counter(
            f"{rejected[node]['plugin']}: {'; '.join(rejected[node]['reasons'])}" for node in names[LIMIT:]
        )
        said = ", ".join(f"{count} by {reason}" for reason, count in counts.most_common())
        table.caption = _line(f"… and {len(names) - LIMIT} nodes: {said}")
        table.caption_justify = "left"
    return table


def _preemption(record: Record) -> Iterator[RenderableType]:
    """Yield texts and tables about preemption candidates: victims, costs, and why other candidates lost."""
    told = record.get("preemption", {})
    if "nominated" not in record:
        if "message" in told:
            yield _line(why_no_preemption(told | {"protected": {}}) or "preemption would not help")
        yield from _protected(told)
        return
    node, going = record["nominated"]["node"], record["nominated"]["victims"]
    pods = "1 pod" if len(going) == 1 else f"{len(going)} pods"
    victims = told.get("victims", {})
    rows = [[pod, str(cost["priority"]), _budgets(cost)] for pod, cost in victims.items()]
    title = f"Preemption of {pods} on {node}"
    yield plain_table(title, ["victim", "priority", "notes"], rows, range(1, 2))
    others = told.get("others", {})
    if others:
        shown = sorted(others.items())[:LIMIT]
        table = plain_table(
            "Other candidates",
            ["node", "victims", "reason"],
            [[name, _names(other["victims"]), other["why"]] for name, other in shown],
        )
        if len(others) > LIMIT:
            table.caption, table.caption_justify = _line(f"… and {len(others) - LIMIT} nodes"), "left"
        yield table
    yield from _protected(told)
    if told.get("cleared"):
        yield _line(f"nomination to {node} removed: {_names(told['cleared'])}")


def _protected(told: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield the pods that policies protect from preemption, with reasons."""
    rows = [[node, pod, why] for node, pods in told.get("protected", {}).items() for pod, why in pods.items()]
    if rows:
        table = plain_table("Protected from preemption", ["node", "pod", "reason"], rows[:LIMIT])
        more = len(rows) - LIMIT + told.get("protectedMore", 0)
        if more > 0:
            table.caption, table.caption_justify = _line(f"… and {more} pods"), "left"
        yield table


def _budgets(cost: Mapping[str, Any]) -> str:
    parts = ["already being deleted"] if cost.get("terminating") else []
    if cost.get("budgets"):
        verb = "violates" if cost["violates"] else "allowed by"
        parts.append(f"{verb} PodDisruptionBudget {_names(cost['budgets'])}")
    return "; ".join(parts)


def _rules(rules: Mapping[str, Any], *, is_placed: bool) -> Table:
    """Return a table with the results of the rules of each policy that applies to the pod."""
    rows = []
    for name, policy in rules.items():
        shown = name if policy["mode"] == "Enforce" else f"{name} ({policy['mode']}, no effect)"
        for rule, nodes in policy.get("filters", {}).items():
            rows.append([shown, rule, f"rejects {_names([_kept_out(*item) for item in sorted(nodes.items())])}"])
        for rule, values in policy.get("scores", {}).items():
            rows.append([shown, rule, f"gives {_given(values)}"])
        if "waits" in policy:
            rows.append([shown, "all", f"reject all nodes: {policy['waits']}"])
        kept = policy.get("preemption", {})
        if kept:
            rows.append([shown, "preemption", f"protects {_names([f'{pod} ({why})' for pod, why in kept.items()])}"])
        if "waits" not in policy and not policy.get("filters") and not policy.get("scores") and not kept:
            rows.append([shown, "all", "reject no node" if is_placed else _NO_SCORES])
    return plain_table("Rules", ["policy", "rule", "result"], rows)


def _kept_out(node: str, why: str) -> str:
    return node if why == "false" else f"{node} (missing value)"


def _given(values: Mapping[str, float | None]) -> str:
    """Format the value that each node has, best first; for many nodes, group the nodes by value."""
    ranked = sorted(values.items(), key=lambda item: (-(item[1] if item[1] is not None else -1.0), item[0]))
    if len(ranked) <= FEW:
        return ", ".join(f"{node} {_value(value)}" for node, value in ranked)
    groups: dict[str, list[str]] = {}
    for node, value in ranked:
        groups.setdefault(_value(value), []).append(node)
    said = [f"{value}: {', '.join(nodes) if len(nodes) <= FEW // 2 else f'{len(nodes)} nodes'}"
            for value, nodes in [*groups.items()][:FEW]]  # fmt: skip
    more = len(groups) - FEW
    return "; ".join(said) + (f"; and {more} more values" if more > 0 else "")


def _value(value: float | None) -> str:
    return "no score" if value is None else _short(value)


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - LIMIT} more" if len(names) > LIMIT else ""
    return ", ".join(names[:LIMIT]) + more
