"""Tables of the dry-run of a pod group: its members, and the nodes that reject the first member without a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from policysched.app.dry_run.tables import LIMIT, not_applied_table, plain_table, reasons_parts
from policysched.visible import visible

Record = Mapping[str, Any]


def group_parts(record: Record) -> Iterator[RenderableType]:
    """Yield the texts and tables that show a pod group's decision record."""
    yield from _headline(record)
    members = record["members"]
    # Members that fit no node are the reason, so the limit does not hide them.
    told = sorted(members, key=_rank)
    rows = [[one["pod"], one.get("node", ""), _result(one)] for one in told[:LIMIT]]
    table = plain_table("Members", ["pod", "node", "result"], rows)
    if len(members) > LIMIT:
        table.caption, table.caption_justify = Text(f"… and {len(members) - LIMIT} pods"), "left"
    yield table
    if "placements" in record:
        rows = [[name, *_placement(name, one, record)] for name, one in record["placements"].items()]
        yield plain_table("Placements", ["placement", "nodes", "pods that fit", "score", "result"], rows)
        yield from _placement_rules(record["placements"])
    first = next((one for one in told if "decision" in one), None)
    if record.get("victims"):
        victims = record["victims"]
        more = f" and {len(victims) - LIMIT} more" if len(victims) > LIMIT else ""
        yield Text(visible(f"preemption would evict {len(victims)} pods: {', '.join(victims[:LIMIT])}{more}"))
    if first is not None:
        yield Text(visible(f"pod {first['pod']} fits no node while earlier members have theirs:"))
        yield from reasons_parts(first["decision"])
    if record.get("notApplied"):
        yield not_applied_table(record["notApplied"])


def _headline(record: Record) -> Iterator[Text]:
    group, profile, members = record["podGroup"], record["schedulerName"], record["members"]
    placed = sum("node" in one and "message" not in one for one in members)
    match record["result"]:
        case "Scheduled":
            told = f"pod group {group} fits: {placed} of {len(members)} pods get nodes (profile {profile})"
        case "Error":
            told = f"pod group {group}: scheduling failed (profile {profile}): {record['message']}"
        case _ if all("evaluated" in one for one in members):
            told = f"pod group {group} waits, no pod is tried (profile {profile})"
        case _:
            told = f"pod group {group} does not fit, no pod gets a node (profile {profile})"
    yield Text(visible(told), "bold")
    if record["result"] == "Unschedulable":
        yield Text(visible(record.get("message", "")))
    if "fitting" in record:
        had = f", {record['placed']} had nodes before" if "placed" in record else ""
        text = f"{record['fitting']} of {len(members)} pods fit at the same time{had}, minCount is {record['minCount']}"
        yield Text(text)


def _placement(name: str, told: Record, record: Record) -> list[str]:
    """Return the cells of a placement's row in the table: number of nodes, fitting members, score and result."""
    result = told.get("message", "fits") if name != record.get("placement") else "chosen"
    score = str(sum(told["scores"].values())) if "scores" in told else ""
    return [str(told["nodes"]), str(told["fitting"]), score, result]


def _placement_rules(placements: Record) -> Iterator[RenderableType]:
    """Yield a table with the results of placement rules of policies; yield nothing if there are no results."""
    rows = [
        [placement, policy, rule, result]
        for placement, told in placements.items()
        for policy, results in told.get("policies", {}).items()
        for rule, result in _rule_results(results)
    ]
    if rows:
        yield plain_table("Placement rules", ["placement", "policy", "rule", "result"], rows)


def _rule_results(results: Record) -> Iterator[tuple[str, str]]:
    """Yield the name and the result of each rule of a policy for a placement."""
    shadow = " (Shadow)" if results["mode"] == "Shadow" else ""
    for rule, told in results.get("filters", {}).items():
        clauses = (_clause(text, values) for text, values in told["clauses"].items())
        yield rule, f"rejects: {', '.join(clauses)}{shadow}"
    for rule, number in results.get("scores", {}).items():
        yield rule, ("no value" if number is None else f"gives {number:g}") + shadow


def _clause(text: str, values: Record) -> str:
    shown = ", ".join(f"{name} is {value}" for name, value in values.items())
    return f"{text} ({shown})" if shown else text


def _rank(member: Record) -> int:
    """Return the sort key of a member's row: members without a node first, then with a node, then not evaluated."""
    return 2 if "evaluated" in member else int("node" in member)


def _result(member: Record) -> str:
    if "evaluated" in member:
        return "not evaluated"
    if "nominated" in member:
        return f"nominated to {member['nominated']} after preemption"
    if "node" in member:
        return "fits, waits for the group" if "message" in member else "fits"
    return str(member["message"])
