"""Out-of-tree plugins in the scheduling cycle: the order and arguments of calls, and the effects of answers."""

from __future__ import annotations

import random
import re
import sys
from dataclasses import replace as replace_field
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.errors import UsageError
from policysched.framework import (
    SKIP,
    Code,
    Narrow,
    Status,
    unschedulable,
)
from policysched.framework.out_of_tree.methods import PreFilterResult
from policysched.framework.partial_plugins import filter_only, score_only
from policysched.model.release import DEFAULT
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod
from tests.schedule.out_of_tree import (
    ABC,
    FAILED,
    HARD,
    NIL,
    PENDING,
    SKIPPED,
    SOFT,
    Scripted,
    adapted,
    decided,
    engine_of,
    profile_with,
    rejected,
)
from tests.schedule.parts import FakeFilter


async def async_answer(*_: Any) -> None:
    """Coroutine function, whose result a cycle cannot use."""


def test_points_of_a_cycle_are_run_in_order_on_the_nodes_that_are_left() -> None:
    log: list[str] = []
    first = Scripted(log, "X", filter={"b": SOFT}, score={"a": 30, "c": 20})
    decision = decided(first, Scripted(log, "Y", score=5))
    assert decision.node == "a"
    assert log == [
        "X.pre_filter a,b,c", "Y.pre_filter a,b,c",
        "X.filter a", "X.filter b", "X.filter c", "Y.filter a", "Y.filter c",
        "X.pre_score a,c", "Y.pre_score a,c",
        "X.score a", "X.score c", "Y.score a", "Y.score c",
        "X.normalize_score [30, 20]", "Y.normalize_score [5, 5]",
    ]  # fmt: skip
    assert rejected(decision) == {"b": ("X", "soft")}
    assert make_record(decision)["scores"] == {"a": {"X": 30, "Y": 5}, "c": {"X": 20, "Y": 5}}


@pytest.mark.parametrize(("place", "asked"), [("before", ["c"]), ("after", ["a", "b", "c"])])
def test_filter_is_asked_about_nodes_that_those_before_it_let_pass(place: str, asked: list[str]) -> None:
    plugin = Scripted(filter={"b": SOFT, "c": SOFT})
    columns = {place: [FakeFilter("Columns", {"a", "b"})]}
    decision = decided(plugin, **columns)
    assert plugin.log[1:] == [f"X.filter {name}" for name in asked]
    said = {"a": ("Columns", "Columns says no"), "b": ("Columns", "Columns says no"), "c": ("X", "soft")}
    assert rejected(decision) == (said if place == "before" else said | {"b": ("X", "soft")})


def test_only_node_that_is_left_is_not_scored() -> None:
    plugin = Scripted(filter={"b": SOFT, "c": HARD})
    assert decided(plugin).node == "a"
    assert [call for call in plugin.log if "score" in call] == []


def test_record_shows_the_score_of_the_only_node_that_is_left() -> None:
    decision = decided(Scripted(filter={"b": SOFT, "c": HARD}, score=7))
    assert make_record(decision)["scores"] == {"a": {"X": 7}}


def test_no_plugin_is_asked_where_there_are_no_nodes() -> None:
    plugin = Scripted()
    assert decided(plugin, around=cluster()).fit_error() == "no nodes available to schedule pods"
    assert plugin.log == []


def test_skip_at_prefilter_leaves_filter_out() -> None:
    log: list[str] = []
    decision = decided(Scripted(log, "X", pre_filter=SKIPPED, filter=SOFT), Scripted(log, "Y"))
    assert decision.state.skip_filter_plugins == {"X"}
    assert not [call for call in log if call.startswith("X.filter")]
    assert decision.feasible_count == 3


def test_skip_at_prescore_leaves_score_out_and_records_leave_out_the_plugin() -> None:
    log: list[str] = []
    decision = decided(Scripted(log, "X", pre_score=SKIPPED, score=9), Scripted(log, "Y", score=3))
    assert decision.state.skip_score_plugins == {"X"}
    assert not [call for call in log if call.startswith(("X.score", "X.normalize"))]
    assert make_record(decision)["scores"] == {name: {"Y": 3} for name in ABC}


@pytest.mark.parametrize(
    ("answers", "rejector", "message", "asked"),
    [
        ((HARD, None), "X", "hard", "X"),
        ((SOFT, None), "X", "soft", "XY"),
        ((SOFT, HARD), "Y", "hard", "XY"),
        ((SOFT, unschedulable("other")), "Y", "other", "XY"),
        ((None, SOFT), "Y", "soft", "XY"),
    ],
)
def test_rejection_at_prefilter_ends_it_or_goes_on(
    answers: tuple[Any, Any], rejector: str, message: str, asked: str
) -> None:
    log: list[str] = []
    decision = decided(*(Scripted(log, name, pre_filter=answer) for name, answer in zip("XY", answers, strict=True)))
    assert log == [f"{name}.pre_filter a,b,c" for name in asked]
    assert decision.fit_error() == f"0/3 nodes are available: {message}."
    assert decision.rejectors() == {rejector}
    assert make_record(decision)["preFilter"]["plugin"] == rejector


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (FAILED, "out of order"),
        (PENDING, "not yet"),
        (Status(Code.WAIT, ("w",)), NIL),
        (ValueError("a bug"), "ValueError('a bug')"),
        (SystemExit(3), "RuntimeError('the plugin raised SystemExit(3)')"),
        (7, "TypeError('expected a Status, got int')"),
        (PreFilterResult("abc"), "TypeError(\"expected node names, got 'abc'\")"),
        (PreFilterResult([1]), "TypeError('expected node names, got [1]')"),  # type: ignore[list-item]
    ],
)
def test_failure_at_prefilter_ends_the_attempt(answer: Any, said: str) -> None:
    log: list[str] = []
    decision = decided(Scripted(log, "X", pre_filter=answer), Scripted(log, "Y"))
    assert (decision.failed, decision.error()) == (True, f'running PreFilter plugin "X": {said}')
    assert log == ["X.pre_filter a,b,c"]
    assert make_record(decision)["result"] == "Error"


def test_keyboard_interrupt_is_the_users_and_not_the_plugins() -> None:
    with pytest.raises(KeyboardInterrupt):
        decided(Scripted(pre_filter=KeyboardInterrupt()))


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("own", [SOFT, HARD, None])
@pytest.mark.parametrize("columns", [SOFT, HARD, SKIP, None])
def test_prefilter_goes_through_all_plugins_in_one_order(place: str, own: Any, columns: Any) -> None:
    log: list[str] = []
    answers = (columns, own) if place == "before" else (own, columns)
    places = ("Columns", "X") if place == "before" else ("X", "Columns")
    outcome = None
    for name, answer in zip(places, answers, strict=True):
        outcome = answer.by(name) if isinstance(answer, Status) else outcome
        if answer is HARD:
            break
    decision = decided(Scripted(log, "X", pre_filter=own), **{place: [FakeFilter("Columns", columns)]})
    assert decision.rejection == outcome
    assert bool(log) is (place == "after" or columns is not HARD)


@pytest.mark.parametrize("place", ["before", "after"])
def test_prefilter_results_narrow_the_nodes_together(place: str) -> None:
    plugin = Scripted(pre_filter=PreFilterResult(["a", "b", "never"]))
    decision = decided(plugin, **{place: [FakeFilter("Columns", Narrow(None, frozenset({"b", "c"})))]})
    assert (decision.node, plugin.log[1:]) == ("b", ["X.filter b"])
    why = "node(s) didn't satisfy plugin(s) [Columns X]"
    assert rejected(decision) == dict.fromkeys("ac", ("PreFilterResult", why))
    assert decision.status(0).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_narrowing_alone_names_the_plugin_and_keeps_it_among_the_rejectors() -> None:
    decision = decided(Scripted(pre_filter=PreFilterResult({"a"}), filter=SOFT))
    assert decision.fit_error() == ("0/3 nodes are available: 1 soft, 2 node(s) didn't satisfy plugin(s) [X].")
    assert decision.rejectors() == {"X"}


@pytest.mark.parametrize("place", ["before", "after"])
def test_narrowing_to_no_node_rejects_the_pod(place: str) -> None:
    plugin = Scripted(pre_filter=PreFilterResult(["a"]))
    decision = decided(plugin, **{place: [FakeFilter("Columns", Narrow(None, frozenset("b")))]})
    assert decision.fit_error() == (
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [Columns X] simultaneously."
    )
    assert (set(decision.rejectors()), plugin.log[1:]) == ({"Columns", "X"}, [])


def test_narrowing_to_no_node_by_one_plugin_names_it() -> None:
    decision = decided(Scripted(pre_filter=PreFilterResult([])))
    assert decision.fit_error() == "0/3 nodes are available: node(s) didn't satisfy plugin X."


@pytest.mark.parametrize("answer", [SOFT, HARD, PENDING])
def test_rejection_of_a_node_keeps_its_code_and_reasons(answer: Status) -> None:
    decision = decided(Scripted(filter=answer))
    assert decision.fit_error() == f"0/3 nodes are available: 3 {answer.message}."
    assert {decision.status(row).code for row in range(3)} == {answer.code}
    assert decision.rejectors() == {"X"}
    assert decision.pending() == ({"X"} if answer is PENDING else set())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (FAILED, "out of order"),
        (SKIPPED, NIL),
        (Status(Code.WAIT), NIL),
        (ValueError("a bug"), "ValueError('a bug')"),
        (SystemExit(3), "RuntimeError('the plugin raised SystemExit(3)')"),
        (False, "TypeError('expected a Status, got bool')"),
    ],
)
def test_failure_of_a_filter_ends_the_attempt(answer: Any, said: str) -> None:
    plugin = Scripted(filter={"b": answer})
    decision = decided(plugin)
    assert (decision.failed, decision.error()) == (True, f'running "X" filter plugin: {said}')
    assert not [call for call in plugin.log if "score" in call]


@pytest.mark.parametrize(
    ("point", "answer", "said"),
    [
        ("pre_score", FAILED, 'running PreScore plugin "X": out of order'),
        ("pre_score", SOFT, 'running PreScore plugin "X": soft'),
        ("pre_score", Status(Code.WAIT), f'running PreScore plugin "X": {NIL}'),
        ("pre_score", ValueError("a bug"), "running PreScore plugin \"X\": ValueError('a bug')"),
        ("pre_score", 5, "running PreScore plugin \"X\": TypeError('expected a Status, got int')"),
        ("score", (0, FAILED), 'running Score plugins: plugin "X" failed with: out of order'),
        ("score", (0, SKIPPED), f'running Score plugins: plugin "X" failed with: {NIL}'),
        ("score", ValueError("a bug"), "running Score plugins: plugin \"X\" failed with: ValueError('a bug')"),
        ("score", 1.5,
         "running Score plugins: plugin \"X\" failed with: TypeError('expected an integer score, got float')"),
        ("score", None,
         "running Score plugins: plugin \"X\" failed with: TypeError('expected an integer score, got NoneType')"),
        ("normalize_score", FAILED, 'running Normalize on Score plugins: plugin "X" failed with: out of order'),
        ("normalize_score", ValueError("a bug"),
         "running Normalize on Score plugins: plugin \"X\" failed with: ValueError('a bug')"),
        ("score", 101, 'applying score defaultWeights on Score plugins: plugin "X" returns an invalid score 101, '
         "it should in the range of [0, 100] after normalizing"),
        ("score", -1, 'applying score defaultWeights on Score plugins: plugin "X" returns an invalid score -1, '
         "it should in the range of [0, 100] after normalizing"),
    ],
)  # fmt: skip
def test_failure_of_a_score_ends_the_attempt(point: str, answer: Any, said: str) -> None:
    decision = decided(Scripted(**{point: answer}))
    assert (decision.failed, decision.error()) == (True, said)
    assert make_record(decision) == {
        "pod": "default/p",
        "schedulerName": "default-scheduler",
        "reference": DEFAULT.minor,
        "result": "Error",
        "error": said,
    }


def test_scores_are_weighed_after_they_are_normalized() -> None:
    def stretch(_state: Any, _pod: Any, scores: Any) -> None:
        for one in scores:
            one.score = one.score * 100 // 250

    decision = decided(Scripted(score={"a": 0, "b": 250, "c": (125, None)}, normalize_score=stretch), weight=3)
    assert make_record(decision)["total"] == {"a": 0, "b": 300, "c": 150}
    assert decision.node == "b"


class Arrays:
    """A plugin that evaluates all nodes at once."""

    def __init__(self, rejections: Any, scores: Any) -> None:
        self.rejections, self.scores = rejections, scores

    def filter_nodes(self, _state: Any, _pod: Any, nodes: Any) -> Any:
        self.seen = nodes.names
        return self.rejections

    def score_nodes(self, _state: Any, _pod: Any, nodes: Any) -> Any:
        assert len(nodes) == len(self.scores)
        return self.scores


def test_array_forms_answer_for_all_nodes_at_once() -> None:
    rejections = [(np.array([True, False]), SOFT), (np.array([True, False]), HARD)]
    plugin = Arrays(rejections, np.array([7], np.int32))
    decision = decided(plugin, before=[FakeFilter("Columns", {"b"})])
    assert (plugin.seen, decision.node) == (["a", "c"], "c")
    assert rejected(decision) == {"a": ("X", "soft"), "b": ("Columns", "Columns says no")}
    assert make_record(decision)["scores"] == {"c": {"X": 7}}


@pytest.mark.parametrize(
    ("rejections", "scores", "said"),
    [
        ([(np.array([True]), SOFT)], [], "TypeError('expected a mask of bool (3,), got bool (1,)')"),
        ([(np.array([1, 0, 1]), SOFT)], [], "TypeError('expected a mask of bool (3,), got int64 (3,)')"),
        ([(np.array([True, True, False]), FAILED)], [], "out of order"),
        (5, [], "TypeError(\"'int' object is not iterable\")"),
        (None, np.array([0.5, 1, 2]), "TypeError('expected integer scores (3,), got float64 (3,)')"),
    ],
)
def test_arrays_of_another_shape_or_type_fail_the_attempt(rejections: Any, scores: Any, said: str) -> None:
    assert decided(Arrays(rejections, scores)).error().endswith(said)


def test_nominated_node_that_fits_is_the_only_one_looked_at() -> None:
    plugin = Scripted()
    one = pod()
    nominated = replace(one, status=replace(one.status, nominated_node_name="b"))
    decision = decided(plugin, of=nominated)
    assert (decision.node, decision.nominated) == ("b", True)
    assert plugin.log == ["X.pre_filter a,b,c", "X.filter b"]


def test_nodes_kept_for_others_are_not_looked_at_where_the_nominated_one_fits() -> None:
    plugin = Scripted()
    engine, one, other = engine_of(plugin), pod(), pod("other")
    engine.cluster.nominations.update(replace(other, status=replace(other.status, nominated_node_name="c")))
    assert engine.decide(replace(one, status=replace(one.status, nominated_node_name="b"))).node == "b"
    assert plugin.log == ["X.pre_filter a,b,c", "X.filter b"]
    plugin.log.clear()
    engine.decide(one)
    assert plugin.log[:3] == ["X.pre_filter a,b,c", "X.add_pod other c", "X.filter c"]


def test_nominated_node_that_does_not_fit_is_one_of_all() -> None:
    plugin = Scripted(filter={"b": SOFT})
    one = pod()
    nominated = replace(one, status=replace(one.status, nominated_node_name="b"))
    assert decided(plugin, of=nominated).node in "ac"
    assert plugin.log[:5] == ["X.pre_filter a,b,c", "X.filter b", "X.filter a", "X.filter b", "X.filter c"]


def test_each_pod_is_asked_about_anew_whatever_field_the_plugin_reads() -> None:
    class ByName:
        def filter(self, _state: Any, of: Any, on: Any) -> Status | None:
            return None if of.metadata.name == on.name else SOFT

    engine = engine_of(ByName())
    assert [engine.decide(pod(name)).node for name in "abcba"] == list("abcba")


def test_state_of_an_attempt_goes_from_point_to_point_and_no_further() -> None:
    seen: list[Any] = []

    def note(state: Any, *_: Any) -> None:
        seen.append(state.get("n"))
        state.write("n", (state.get("n") or 0) + 1)

    engine = engine_of(Scripted(pre_filter=note, filter={"b": note}))
    first, second = engine.decide(pod()), engine.decide(pod())
    assert (seen, first.state.read("n"), second.state is first.state) == ([None, 1, None, 1], 2, False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"filter": async_answer}, "plugin X: filter cannot be `async def`, because a scheduling cycle does not wait"),
        ({"reads": "labels"}, "plugin X: reads must be an Aspect, got 'labels'"),
    ],
)
def test_plugin_that_cannot_be_asked_is_refused(wrong: dict[str, Any], said: str) -> None:
    plugin = type("Wrong", (), wrong)()
    with pytest.raises(UsageError, match=re.escape(said)):
        profile_with(plugin)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (lambda _: 3, "plugin X: events failed: TypeError(\"'int' object is not iterable\")"),
        (lambda _: sys.exit(3), "plugin X: events failed: SystemExit(3)"),
        (lambda _: ["Node"], "plugin X: events must return hints, got ('Node',)"),
    ],
)
def test_hints_that_are_none_are_refused(events: Any, said: str) -> None:
    made = profile_with(type("Wrong", (), {"events": events, "filter": lambda *_: None})())
    with pytest.raises(UsageError, match=re.escape(said)):
        _ = made.hints


def test_plugin_that_is_not_enabled_at_prefilter_or_prescore_is_not_asked_there() -> None:
    plugin = Scripted(filter={"b": SOFT}, score=5)
    made = profile_with(plugin)
    [one], [(other, weight)] = made.filters, made.scores
    bare = replace_field(made, filters=(filter_only(one),), scores=((score_only(other), weight),), handle=None)
    decision = Engine(cluster(*map(node, ABC)), bare, random.Random(0)).decide(pod())
    assert decision.feasible_count == 2
    assert not [call for call in plugin.log if "pre_" in call]


def test_plugin_at_prefilter_or_prescore_alone_is_asked_there_alone() -> None:
    plugin = Scripted()
    log: list[str] = []
    made = profile_with(Scripted(log, "Y", score=2))
    alone: Any = adapted(plugin)[0]
    both = replace_field(made, pre_filters=(alone, *made.filters), pre_scores=(alone,))
    decision = Engine(cluster(*map(node, ABC)), both, random.Random(0)).decide(pod())
    assert plugin.log == ["X.pre_filter a,b,c", "X.pre_score a,b,c"]
    assert make_record(decision)["scores"] == {name: {"Y": 2} for name in ABC}
