"""Metrics written down: what a file may say, what is said of one that does not, and how policies find their numbers."""

from __future__ import annotations

import math
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from policysched.errors import UsageError
from policysched.framework import MetricKey, Sample
from policysched.framework.client import LEAST_UNKNOWN
from policysched.metric_sources import table
from policysched.metric_sources.table import as_table, load_table, read_table
from policysched.metric_sources.table_answers import answers

KEY = MetricKey("instance:node_cpu:ratio", "node")
NAMES = frozenset(("load", "cool/load"))


def test_a_file_holds_a_number_for_each_metric_and_node() -> None:
    text = """
load: {n1: 0.35, n2: 9e-1, n3: -1}   # by name
cool/load:
  n1: 1_000
'instance:node_cpu:ratio': {"n1": 3}
"""
    assert read_table(text, "m.yaml") == {
        "load": {"n1": 0.35, "n2": 0.9, "n3": -1.0},
        "cool/load": {"n1": 1000.0},
        "instance:node_cpu:ratio": {"n1": 3.0},
    }


def test_json_is_understood_too() -> None:
    assert read_table('{"load": {"n1": 1e3, "n2": null}}', "m.json") == {"load": {"n1": 1000.0}}


def test_names_stay_texts() -> None:
    assert read_table("on: {0815: 1, no: 2, 1.0: 3, null: 4}", "m") == {
        "on": {"0815": 1.0, "no": 2.0, "1.0": 3.0, "null": 4.0}
    }


@pytest.mark.parametrize("text", ["", "# nothing", "{}", "load:", "load: {}", "load: {n1: null, n2: ~, n3: }"])
def test_what_has_no_number_is_missing(text: str) -> None:
    assert not any(read_table(text, "m").values())


def test_nan_and_infinity_are_written_as_in_yaml() -> None:
    numbers = read_table("load: {a: .nan, b: .inf, c: -.inf}", "m")["load"]
    assert math.isnan(numbers["a"])
    assert (numbers["b"], numbers["c"]) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("load", "m:1:1: the file is not a mapping; write NAME: {NODE: NUMBER, …}"),
        ("- load", "m:1:1: the file is not a mapping; write NAME: {NODE: NUMBER, …}"),
        ("load: 3", 'm:1:7: "load" is not a mapping; write NAME: {NODE: NUMBER, …}'),
        ("load:\n- n1", 'm:2:1: "load" is not a mapping; write NAME: {NODE: NUMBER, …}'),
        ('load: {n1: "3"}', 'm:1:12: expected a plain number for node n1, got "3"'),
        ("load: {n1: 500m}", 'm:1:12: expected a plain number for node n1, got "500m"'),
        ("load: {n1: 80%}", 'm:1:12: expected a plain number for node n1, got "80%"'),
        ("load: {n1: yes}", 'm:1:12: expected a plain number for node n1, got "yes"'),
        ("load: {n1: [3]}", "m:1:12: expected one number for node n1"),
        ("load: {n1: {a: 3}}", "m:1:12: expected one number for node n1"),
        ("load: {[n1]: 3}", "m:1:8: expected a name; write NAME: {NODE: NUMBER, …}"),
        ("load: {n1: 1, n2: 2, n1: 3}", 'm:1:22: "n1" is defined twice'),
        ("load: {}\nload: {}", 'm:2:1: "load" is defined twice'),
        ("load: {n1: 1", "m:2:1: not valid YAML: did not find expected ',' or '}'"),
        ("a: {}\n---\nb: {}", "m:2:1: not valid YAML: but found another document"),
        ("load: {n1: *x}", "m:1:12: not valid YAML: found undefined alias"),
        ("load: &x {n1: *x}", "m:1:15: expected one number for node n1"),
        ("&x {load: *x}", 'm:1:11: "load" is not a mapping; write NAME: {NODE: NUMBER, …}'),
        ("a: &x {n1: 1}\nb: {n1: *x}", "m:2:9: expected one number for node n1"),
        ("a: {n1: &x 1}\nb: *x", 'm:2:4: "b" is not a mapping; write NAME: {NODE: NUMBER, …}'),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, error: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_table(text, "m")
    assert str(raised.value) == error


def test_a_file_has_so_many_numbers_of_so_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOST_NUMBERS", 4)
    monkeypatch.setattr(table, "MOST_NAMES", 5)
    assert len(read_table("a: {n1: 1, n2: 2, n3: 3}\nb: {n1: 1}", "m")) == 2
    with pytest.raises(UsageError, match=r"^m:2:16: more than 4 numbers$"):
        read_table("a: {n1: 1, n2: 2, n3: 3}\nb: {n1: 1, n2: null}", "m")
    monkeypatch.setattr(table, "MOST_NUMBERS", 9)
    with pytest.raises(UsageError, match=r"^m:1:40: more than 5 names$"):
        read_table("a: {n1: 1, n2: 2, n3: 3, n4: 4, n5: 5, n6: 6}", "m")


def test_a_file_has_so_many_anchors_of_which_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kept 900 bytes: those of a file of 30 MiB more than a GiB."""
    text = "m: {" + ", ".join(f"&a{number} n{number}: &b{number} {number}" for number in range(5000)) + "}"
    tracemalloc.start()
    assert read_table(text, "m") == {"m": {f"n{number}": float(number) for number in range(5000)}}
    assert tracemalloc.get_traced_memory()[1] < len(text) + 5000 * 600
    tracemalloc.stop()
    monkeypatch.setattr(table, "MOST_ANCHORS", 2)
    with pytest.raises(UsageError, match=r"^m:1:29: more than 2 anchors$"):
        read_table("m: {&a n1: &b 1, n2: 2, n3: &c 3}", "m")


def test_of_a_long_text_little_is_said() -> None:
    with pytest.raises(UsageError) as raised:
        read_table(f"m: {{{'n' * 1000}: '{'1' * 1_000_000}'}}", "m")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    "text", ["m: {" + "a," * (1 << 22) + "}", "m: {" + "{[" * (1 << 20), "m: {" + "? " * 200 + "a"]
)
def test_nothing_is_made_of_a_file_of_another_shape(text: str) -> None:
    """Such a text of 8 MiB took seconds and 3 GiB, as nodes were made of all of it."""
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(UsageError, match=r"^m:1:\d+: "):
        read_table(text, "m")
    assert time.process_time() - began < 1
    assert tracemalloc.get_traced_memory()[1] < 40 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("text", ["\0", "a: \x07", "[" * 5000, "{a: " * 5000])
def test_any_text_gives_a_table_or_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"^m"):
        read_table(text, "m")


@pytest.mark.parametrize(
    ("data", "error"),
    [(None, "cannot be read: no such file or directory"), (b"\xff\xfe", ": not UTF-8 text")],
)
def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path, data: bytes | None, error: str) -> None:
    path = tmp_path / "m.yaml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match=error):
        load_table(path)


def test_metrics_that_are_one_by_an_alias_share_their_numbers() -> None:
    read = read_table("a: &a {n: 1, m: 2}\nb: *a\nc: {n: 1, m: 2}\n", "f")
    assert read["a"] == read["b"] == read["c"] == {"n": 1.0, "m": 2.0}
    assert read["a"] is read["b"]
    assert read_table("a: {&k n: &v 1, m: *v}\n*k : {*k : *v}", "f") == {"a": {"n": 1.0, "m": 1.0}, "n": {"n": 1.0}}


def test_a_file_without_an_end_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="/dev/zero is larger than 32 MiB"):
        load_table(Path("/dev/zero"))


def test_a_caller_gives_the_same_shape() -> None:
    given: Any = {"load": {"n1": 1, "n2": 0.5, "n3": None, "n4": math.nan}, "none": {}}
    table = as_table(given)
    assert {node: number for node, number in table["load"].items() if node != "n4"} == {"n1": 1.0, "n2": 0.5}
    assert table["none"] == {}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([], r"^metrics: expected a dict with string keys, got \[\]$"),
        ({1: {}}, "^metrics: expected a dict with string keys"),
        ({"load": 3}, r"^metrics\['load'\]: expected a dict"),
        ({"load": {"n1": "3"}}, r"^metrics\['load'\]\['n1'\]: expected a number, got '3'$"),
        ({"load": {"n1": True}}, r"^metrics\['load'\]\['n1'\]: expected a number, got True$"),
    ],
)
def test_what_a_caller_gives_wrongly_is_a_usage_error(given: Any, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        as_table(given)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"load": {"n1": 1.0}}, 1.0),
        ({"instance:node_cpu:ratio": {"n1": 2.0}}, 2.0),
        ({"load": {"n1": 1.0}, "instance:node_cpu:ratio": {"n1": 2.0}}, 1.0),
        ({"load": {"n1": 1.0}, "cool/load": {"n1": 3.0}}, 3.0),
    ],
)
def test_a_metric_finds_its_numbers_by_policy_then_name_then_query(table: Any, expected: float) -> None:
    (answer,) = answers(table, {KEY: NAMES}, 5.0, "m.yaml")
    assert (answer.samples, answer.problem) == ({"n1": Sample(expected, 5.0)}, "")


def test_a_metric_that_is_not_there_is_a_problem_and_has_no_values() -> None:
    (answer,) = answers({"other": {"n1": 1.0}}, {KEY: NAMES}, 5.0, "m.yaml")
    assert (answer.samples, answer.problem) == ({}, 'm.yaml has no values for "load"')


def test_a_metric_that_is_misspelled_is_asked_about() -> None:
    (answer,) = answers({"laod": {"n1": 1.0}}, {KEY: NAMES}, 5.0, "m.yaml")
    assert answer.problem == 'm.yaml has no values for "load"; "laod" has values; did you mean "load"?'


def test_what_is_no_finite_number_is_missing() -> None:
    (answer,) = answers({"load": {"a": math.nan, "b": math.inf, "c": 1.0}}, {KEY: NAMES}, 5.0, "m.yaml")
    assert answer.samples == {"c": Sample(1.0, 5.0)}


def test_of_names_that_are_no_nodes_some_numbers_are_given() -> None:
    numbers = {f"x{number}": 1.0 for number in range(3_000)} | {"n1": 2.0, "n2": math.nan}
    (found,) = answers({"load": numbers}, {KEY: frozenset(("load",))}, 5.0, "m.yaml", ["n1", "n2", "n3"])
    assert found.samples is not None
    assert len(found.samples) == LEAST_UNKNOWN + 1
    assert found.samples["n1"] == Sample(2.0, 5.0)
    (whole,) = answers({"load": numbers}, {KEY: frozenset(("load",))}, 5.0, "m.yaml")
    assert len(whole.samples or ()) == 3_001
