"""What an expression compiles to: its cost, what it depends on, and the values it has on columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from policysched.language import Cost, Diagnostic, Input, check_cost, interpret, load_grammar, parse, policy_cost, weigh
from policysched.language.evaluation.columns import Truth, run_program
from policysched.language.ir.graph import steps
from tests.language.frames import TableFrame, at_row
from tests.language.programs import program


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("1", Cost(0, 0, 0)),
        ('node.name == "a"', Cost(0, 1, 0)),
        ("cluster.nodes > 3", Cost(1, 0, 0)),
        ("node.free.cpu > pod.requests.cpu * 2", Cost(1, 1, 0)),
        ("node.ready and node.cordoned and has(node.zone)", Cost(0, 3, 0)),
        ("node.free.cpu * 2 + node.free.cpu * 2", Cost(0, 2, 0)),
        ("scale(node.free.cpu, 0, 4)", Cost(0, 4, 0)),
        ('has(node.labels[concat("a", pod.name)])', Cost(1, 2, 0)),
        ("has(node.zone)", Cost(0, 1, 0)),
        ("sum(node.free.cpu)", Cost(0, 1, 0)),
        ("avg(node.free.cpu * 2)", Cost(0, 3, 0)),
        ("count(node.ready) by node.zone", Cost(0, 3, 0)),
        ("sum(node.free.cpu) + sum(node.free.cpu)", Cost(1, 1, 0)),
        ("node.free.cpu * 2 + sum(node.free.cpu * 2)", Cost(0, 4, 0)),
        ("node.pods.count(true)", Cost(0, 0, 1)),
        ('node.pods.count(peer.name == "a")', Cost(0, 0, 2)),
        ('node.pods.any(peer.name == "a")', Cost(0, 1, 2)),
        ("node.pods.sum(peer.priority, node.ready and node.cordoned)", Cost(0, 0, 3)),
        ("node.pods.count(peer.priority > pod.priority * 2)", Cost(1, 0, 2)),
        ('node.pods.any(peer.name == "a") and node.pods.count(peer.name == "a") < 3', Cost(0, 3, 2)),
        ("sum(node.pods.count(true)) + node.pods.count(true)", Cost(0, 2, 1)),
        ("node.pods.count(peer.requests.cpu > avg(node.free.cpu))", Cost(0, 2, 2)),
        ("node.pods.count(peer.requests.cpu > avg(node.free.cpu) by node.zone)", Cost(0, 4, 2)),
        ('hour() > 3 and clock("22:00", "06:00")', Cost(4, 0, 0)),
        ("version(node.zone) > version(pod.name)", Cost(1, 9, 0)),
        ('concat(node.zone, "-", pod.name) == "a"', Cost(0, 9, 0)),
        ("concat(node.zone, node.name) == pod.name", Cost(0, 17, 0)),
        ('glob(node.zone, "a100-*")', Cost(0, 2, 0)),
        ('glob(node.zone, pod.annotations["x"])', Cost(0, 16, 0)),
        ('glob(node.annotations["x"], "a?00-*")', Cost(0, 66, 0)),
        ('glob(node.annotations["x"], pod.annotations["x"])', Cost(0, 1089, 0)),
        ('node.pods.any(concat(peer.name, pod.name) == "a")', Cost(0, 1, 10)),
    ],
)
def test_cost_counts_operations_once(text: str, cost: Cost) -> None:
    assert policy_cost([program(text)]) == cost


def test_policy_cost_counts_shared_parts_once() -> None:
    one, two = program("node.free.cpu * 2 > 1"), program("node.free.cpu * 2 > 3")
    assert policy_cost([one, two]) == Cost(0, 3, 0)


@pytest.mark.parametrize(
    ("cost", "over"), [(Cost(9999, 256, 24), False), (Cost(0, 257, 0), True), (Cost(0, 0, 25), True)]
)
def test_check_cost_has_the_limits_of_a_policy(cost: Cost, over: bool) -> None:
    found = check_cost(cost)
    assert (found is not None and found.code == "E0601") == over


@pytest.mark.parametrize(
    ("text", "value"),
    [("1 + 1", 2.0), ("2 > 1", True), ('"a"', "a"), ("1 / 0", None), ("cluster.nodes", None), ("normalize(1)", None)],
)
def test_constant_is_the_value_of_what_reads_nothing(text: str, value: Any) -> None:
    assert program(text).constant == value


@pytest.mark.parametrize(("text", "local"), [("node.free.cpu", True), ("1 + normalize(node.free.cpu)", False)])
def test_normalize_makes_a_program_depend_on_other_rows(text: str, local: bool) -> None:
    assert program(text).is_local is local


def test_equal_expressions_are_equal_programs() -> None:
    assert program("(node.free.cpu)  > 1") == program("node.free.cpu > 1")
    assert program("node.free.cpu > 1").root is program("1 < 2 and node.free.cpu > 1").root.args[1]
    assert program("node.free.cpu > 1") != program("node.free.cpu > 2")
    assert program("1") != program("true")
    assert program("-0 * cluster.nodes") != program("0 * cluster.nodes")


def test_a_program_is_shown_shortly_whatever_it_shares() -> None:
    assert repr(program('node.zone == "a"').root) == "<==: condition>"
    assert repr(program("3").root) == "<constant 3.0: number>"


def test_programs_on_a_frame_share_their_parts() -> None:
    frame = TableFrame([{"node.zone": "a"}])
    run_program(program('node.zone == "a"'), frame)
    run_program(program('node.zone == "b" or node.zone == "a"'), frame)
    assert [item.text for item in frame.reads] == ["node.zone"]


def test_values_have_the_shape_of_their_type() -> None:
    frame = TableFrame([{}, {}])
    condition = run_program(program("true or node.ready"), frame)
    assert isinstance(condition, Truth)
    assert condition.true.tolist() == [True, True]  # type: ignore[union-attr]
    assert condition.unknown.tolist() == [False, False]  # type: ignore[union-attr]
    assert run_program(program('pod.name == "a"'), frame) == Truth(False, False)
    assert run_program(program("if(true, 3, node.free.pods)"), frame).tolist() == [3.0, 3.0]  # type: ignore[union-attr]
    assert run_program(program('node.labels[pod.labels["x"]]'), frame).tolist() == [-1, -1]  # type: ignore[union-attr]
    assert run_program(program("if(true, pod.name, node.name)"), frame).dtype == np.int32  # type: ignore[union-attr]
    assert type(run_program(program("round(2.5)"), frame)) is float


@pytest.mark.parametrize(
    "text",
    [
        'node.name == "a"',
        "number(node.zone) > 1",
        'glob(node.name, "a*")',
        "normalize(node.free.cpu)",
        "starts_with(node.name, node.zone)",
        'concat(node.name, "a")',
        "concat(node.name, node.zone)",
    ],
)
def test_no_rows_give_no_values(text: str) -> None:
    value = run_program(program(text), TableFrame([]))
    assert len(value.true if isinstance(value, Truth) else value) == 0  # type: ignore[arg-type]


def test_running_never_warns() -> None:
    rows = [{"node.free.cpu": 1, 'node.labels["a"]': "9" * 19}, {}]
    text = 'scale(number(node.labels["a"]) / node.free.pods, node.free.memory / node.free.memory, node.free.pods)'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_program(program(text), TableFrame(rows))


def test_products_beyond_all_bounds_stay_numbers() -> None:
    factors = " * ".join(["node.free.pods"] * 20)
    found = run_program(program(f"{factors} - {factors} == 0"), TableFrame([{"node.free.pods": 2.0**60}]))
    assert isinstance(found, Truth)
    assert found.true.tolist() == [True]  # type: ignore[union-attr]
    grown = program(factors)
    frame = TableFrame([{"node.free.pods": 2.0**60}])
    assert at_row(grown, run_program(grown, frame), frame, 0) == interpret(grown, frame.at(0)) == 2.0**1000


@pytest.mark.parametrize(
    ("values", "feasible", "wanted"),
    [
        ([1, 2, 4], None, [25.0, 50.0, 100.0]),
        ([1, 2, 4], [True, True, False], [50.0, 100.0, 200.0]),
        ([0, 0, 0], None, [0.0, 0.0, 0.0]),
        ([-1, -2, -4], None, [0.0, 0.0, 0.0]),
        ([1, 2, 4], [False, False, False], [0.0, 0.0, 0.0]),
        (["x", 2, 4], None, [None, 50.0, 100.0]),
    ],
)
def test_normalize_takes_the_maximum_of_the_feasible(values: list[Any], feasible: Any, wanted: list[Any]) -> None:
    frame = TableFrame([{'node.labels["a"]': str(value)} for value in values])
    frame.feasible = None if feasible is None else np.array(feasible)
    compiled = program('normalize(number(node.labels["a"]))')
    assert [at_row(compiled, run_program(compiled, frame), frame, row) for row in range(3)] == wanted
    assert [interpret(compiled, frame.at(row)) for row in range(3)] == wanted


def test_a_tally_weighs_each_pod_by_itself() -> None:
    [count] = steps(program('node.pods.count(number(peer.labels["w"]) > 1)').root)
    [total] = steps(program('node.pods.sum(number(peer.labels["w"]), peer.priority > 0)').root)
    peers: list[dict[str, Any]] = [{'peer.labels["w"]': "3", "peer.priority": 1}, {'peer.labels["w"]': "2"}, {}]
    frame = TableFrame([{}], peers=[{"row": 0, **peer} for peer in peers])
    pods = frame.at(0).pods
    assert [weigh(count, pod) for pod in pods] == [1.0, 1.0, 0.0]
    assert [weigh(total, pod) for pod in pods] == [3.0, 0.0, 0.0]


def test_aggregates_and_what_else_knows_other_rows_make_a_program_depend_on_them() -> None:
    texts = ["sum(node.free.cpu)", "node.pods.count(true)", "node.free.cpu < avg(node.free.cpu)", "hour()"]
    assert [program(text).is_local for text in texts] == [False, True, False, True]


def test_the_grammar_can_be_loaded_before_it_is_needed() -> None:
    load_grammar()
    assert not isinstance(parse("1"), Diagnostic)


def test_inputs_are_texts_of_the_language() -> None:
    assert Input("node", ("labels",), 'a"b').text == 'node.labels["a\\"b"]'
    assert Input("node", ("taints", "has"), "k").text == 'node.taints.has("k")'
    assert Input("node", ("free", "cpu")).text == "node.free.cpu"
    assert Input("node", ("labels",), "*").text == "node.labels[*]"
