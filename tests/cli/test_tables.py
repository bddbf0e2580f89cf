"""Tables at several widths, with the long node names of real clusters."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from policysched.app.dry_run.tables import decision_parts, plain_table
from policysched.app.report_table import SHORT_NAMES, ReportTable, short_names
from policysched.cli.rich_output import print_parts
from policysched.cli.tables import table_lines
from policysched.plugins.registry import plugin_entries
from tests.cli.conftest import Command, Write
from tests.cli.processes import on_a_terminal

NODES = [f"ip-10-0-{number}-17.eu-central-1.compute.internal" for number in range(1, 6)]
PLUGINS = ["TaintToleration", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"]
POLICY = "SchedulingPolicy/gpu-models"
WIDTHS = [80, 120, 200]


def _scores() -> ReportTable:
    scores = {node: {"TaintToleration": 300, "NodeResourcesFit": 50 + place, "NodeResourcesBalancedAllocation": 70,
                     "ImageLocality": 0, POLICY: 100 * (place % 2)} for place, node in enumerate(NODES)}  # fmt: skip
    record: dict[str, object] = {
        "pod": "a/b",
        "schedulerName": "x",
        "result": "Scheduled",
        "selected": NODES[0],
        "best": NODES[:1],
    }
    record |= {"scores": scores, "total": {node: sum(of.values()) for node, of in scores.items()}}
    (found,) = [one for one in decision_parts(record) if isinstance(one, ReportTable)]
    return found


def _rejected(
    reason: str = "node(s) didn't match Pod's node affinity/selector, and more text than fits",
) -> ReportTable:
    status = {"plugin": "NodeAffinity", "code": "UnschedulableAndUnresolvable", "reasons": [reason]}
    record: dict[str, object] = {"pod": "a/b", "schedulerName": "x", "result": "Unschedulable", "fitError": "no"}
    rejected: dict[str, object] = dict.fromkeys(NODES, status)
    rejected[NODES[0]] = {"plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Insufficient cpu"]}
    (found,) = [one for one in decision_parts(record | {"rejected": rejected}) if isinstance(one, ReportTable)]
    return found


def _lines(table: ReportTable, width: int | None, *, wide: bool = False) -> list[str]:
    return [line for one in table_lines(table, width, wide=wide) for line in one.plain.split("\n")]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", [_scores, _rejected])
def test_rows_are_one_line_with_the_whole_name(width: int, table: Callable[[], ReportTable]) -> None:
    lines = _lines(table(), width)
    assert max(map(len, lines)) <= width
    assert [sum(line.startswith(node) for line in lines) for node in NODES] == [1] * len(NODES)


def test_equal_columns_are_one_line_below() -> None:
    lines = _lines(_scores(), 80)
    assert "equal in all rows: TaintToleration 300, NodeResourcesBalancedAllocation 70," in lines
    assert "Taints" not in lines[1]
    assert lines[-1].startswith("Fit = NodeResourcesFit, gpu-models = SchedulingPolicy/gpu-models")
    assert lines[1].split() == ["node", "Fit", "gpu-models", "total"]


def test_full_headers_are_shown_where_they_fit() -> None:
    lines = _lines(_scores(), 120)
    assert lines[1].split() == ["node", "NodeResourcesFit", POLICY, "total"]
    assert not any(" = " in line for line in lines)


def test_wide_shows_all_columns_whole() -> None:
    lines = _lines(_scores(), 80, wide=True)
    assert lines[1].split() == ["node", *PLUGINS, POLICY, "total"]
    assert len(lines) == 3 + len(NODES)
    assert "…" not in "".join(_lines(_rejected(), 80, wide=True))


def test_least_important_columns_are_left_out_and_texts_are_cut() -> None:
    lines = _lines(_rejected(), 80)
    assert lines[1].split() == ["node", "reason"]
    assert lines[4] == f"{NODES[1]}  node(s) didn't match Pod's node …"
    assert lines[-1] == "not shown: code, plugin; -o wide shows all"


def test_a_reason_is_worth_more_than_a_code() -> None:
    reason = "policy kafka/one-broker: node has a broker"
    rows = [
        ["a-1", "SchedulingPolicy/kafka", reason, "Unschedulable"],
        ["b-1", "NodeResourcesFit", "Insufficient memory", "UnschedulableAndUnresolvable"],
    ]
    table = plain_table("Rejected", ["node", "plugin", "reason", "code"], rows)
    table.least = ("code", "plugin")
    lines = _lines(table, 80)
    assert lines[3] == f"a-1   SchedulingPolicy/kafka  {reason}"
    assert lines[-1] == "not shown: code; -o wide shows all"


def test_a_pipe_has_one_whole_row_a_line() -> None:
    lines = _lines(_rejected(), None)
    assert all(line.endswith("UnschedulableAndUnresolvable") for line in lines[4:])
    assert "and more text than fits" in lines[4]


def test_headers_are_broken_between_words_alone() -> None:
    table = plain_table(
        None, ["node", "without change", "with change", "difference"], [[NODES[0], "1", "2", "+1"]], range(1, 4)
    )
    lines = _lines(table, 75)
    assert [one.split() for one in lines[:2]] == [["node", "without", "with", "difference"], ["change", "change"]]


@pytest.mark.parametrize("text", ["one-word-that-is-much-longer-than-the-place-for-it", "some words, and more of them"])
def test_texts_are_cut_after_a_word_or_in_the_only_one(text: str) -> None:
    table = plain_table(None, ["node", "reason"], [[NODES[0], text]])
    (row,) = [line for line in _lines(table, 60) if line.startswith(NODES[0])]
    assert row.endswith("…")
    assert len(row) <= 60


def test_default_plugins_have_short_headers() -> None:
    found = short_names(list(SHORT_NAMES))
    assert len(set(found.values())) == len(found)
    assert set(SHORT_NAMES) <= set(plugin_entries())
    assert short_names(["SchedulingPolicy/a-policy-with-a-long-name", "SchedulingPolicy/short", "x/short"]) == {
        "SchedulingPolicy/a-policy-with-a-long-name": "#1",
        "SchedulingPolicy/short": "short",
        "x/short": "#3",
    }


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_parts([_rejected("x " * 200)])
    assert max(map(len, capsys.readouterr().out.splitlines())) > 400


@pytest.mark.parametrize("command", ["example", "plugins"])
def test_lists_keep_to_the_terminal_and_lose_nothing(command: str, write: Write) -> None:
    lines = re.sub(r"\x1b\[[0-9;]*m|\r", "", on_a_terminal(command)).splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)


def test_wide_is_a_format_of_the_command(command: Command, write: Write) -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: '4', pods: '9'}}\n"
    write("nodes.yaml", "---\n".join(node % name for name in NODES))
    write(
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
        "spec: {schedulerName: policysched, containers: [{name: a, image: a}]}\n",
    )
    asked = ("dry-run", "--cluster", "nodes.yaml", "--pod", "pod.yaml")
    assert "equal in all rows: TaintToleration 300" in command(*asked).out
    assert "TaintToleration  " in command(*asked, "-o", "wide").out
