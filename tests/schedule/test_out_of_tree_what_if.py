"""Out-of-tree plugins in what-ifs, and their cached results of a pod class."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import (
    ABOUT_PODS,
    Aspect,
    Code,
    Status,
    unschedulable,
)
from policysched.schedule.cycle.record import make_record
from policysched.schedule.cycle.results.out_of_tree_results import OutOfTreeResults
from tests.build import cluster, node, pod
from tests.schedule.out_of_tree import (
    ABC,
    FAILED,
    NIL,
    SKIPPED,
    SOFT,
    Scripted,
    decided,
    engine_of,
    rejected,
)
from tests.schedule.parts import FakeFilter


def declaring(**answers: Any) -> Any:
    plugin = Scripted(**answers)
    plugin.reads = Aspect.LABELS | Aspect.PODS  # type: ignore[attr-defined]
    return plugin


def test_plugin_that_declares_what_it_reads_is_asked_about_what_changed() -> None:
    around = cluster(*map(node, ABC))
    plugin = declaring(filter={"b": SOFT}, score=3, normalize_score=None)
    engine = engine_of(plugin, around=around)

    def asked(of: Any) -> list[str]:
        plugin.log.clear()
        decision = engine.decide(of)
        assert make_record(decision)["scores"] == {"a": {"X": 3}, "c": {"X": 3}}
        assert rejected(decision) == {"b": ("X", "soft")}
        return [call for call in plugin.log if call.startswith(("X.filter", "X.score"))]

    everything = ["X.filter a", "X.filter b", "X.filter c", "X.score a", "X.score c"]
    assert asked(pod("p")) == everything
    assert asked(pod("q")) == []
    assert plugin.log == ["X.pre_filter a,b,c", "X.pre_score a,c", "X.normalize_score [3, 3]"]
    around.set_node(node("c", unschedulable=True))
    assert asked(pod("p")) == []
    around.set_node(node("c", labels={"x": "y"}))
    assert asked(pod("p")) == ["X.filter c", "X.score c"]
    around.set_pod(pod("placed", on="a"))
    assert asked(pod("p")) == ["X.filter a", "X.score a"]
    assert asked(pod("p", labels={"another": "class"})) == everything


def test_no_kept_answer_stands_for_one_in_a_what_if_that_was_never_given() -> None:
    plugin = Scripted(filter={"b": SOFT})
    decision = decided(plugin, before=[FakeFilter("Columns", {"b"})])
    assert "X.filter b" not in plugin.log
    [results] = [one for one in decision.evaluation.filters if one.plugin.name == "X"]
    assert results.reads & ABOUT_PODS
    assert isinstance(results, OutOfTreeResults)


def test_failure_is_not_remembered() -> None:
    answers = [ValueError("once"), None, None, None]
    plugin = declaring(filter=lambda *_: answers.pop(0))
    engine = engine_of(plugin)
    assert [engine.decide(pod()).failed for _ in range(3)] == [True, False, False]


def test_statuses_of_a_plugin_that_always_says_another_thing_are_given_up() -> None:
    around = cluster(*map(node, ABC))
    said = iter(range(10_000))
    engine = engine_of(declaring(filter=lambda *_: unschedulable(f"no {next(said)}")), around=around)
    for number in range(300):
        around.set_node(node("a", labels={"x": str(number)}))
        engine.decide(pod())
    [known] = engine.classes.results(pod()).known.values()
    assert len(known.statuses) <= 2 * known.known.size + 3
    assert engine.decide(pod()).fit_error().startswith("0/3 nodes are available: 1 no ")


def test_what_if_tells_plugins_of_pods_on_a_clone_of_the_state() -> None:
    here, there = pod("one", on="a"), pod("two", on="a")

    def count(_state: Any, _pod: Any, nodes: Any) -> None:
        _state.write("count", [len(one.pods) for one in nodes if one.name == "a"])

    def more(by: int) -> Any:
        def changed(state: Any, _pod: Any, _other: Any, on: Any) -> None:
            [before] = state.read("count")
            state.write("count", [before + by])
            assert len(on.pods) == before + by

        return changed

    def full(state: Any, _pod: Any, on: Any) -> Status | None:
        [counted] = state.read("count")
        return SOFT if on.name != "a" or counted else None

    log: list[str] = []
    parts: dict[str, Any] = {"pre_filter": count, "add_pod": more(1), "remove_pod": more(-1), "filter": full}
    skipping = Scripted(log, "Y", pre_filter=SKIPPED)
    decision = decided(Scripted(log, "X", **parts), skipping, around=cluster(node("a"), node("b"), here, there))
    log.clear()
    trial = decision.evaluation.trial(0)
    assert trial.verdict() == SOFT.by("X")
    trial.remove(here)
    trial.remove(there)
    assert trial.verdict() is None
    trial.add(here)
    assert trial.verdict() == SOFT.by("X")
    assert log == [
        "X.filter a", "X.remove_pod one a", "X.remove_pod two a", "X.filter a", "X.add_pod one a", "X.filter a",
    ]  # fmt: skip
    assert decision.state.read("count") == [2]
    assert decision.evaluation.trial(0).verdict() == SOFT.by("X")


@pytest.mark.parametrize(
    ("answer", "said"),
    [(FAILED, "out of order"), (SOFT, "soft"), (ValueError("a bug"), "ValueError('a bug')"), (SKIPPED, NIL)],
)
def test_failure_to_follow_a_pod_is_the_verdict_of_the_what_if(answer: Any, said: str) -> None:
    here = pod("one", on="a")
    decision = decided(Scripted(filter=SOFT, remove_pod=answer), around=cluster(node("a"), here))
    trial = decision.evaluation.trial(0)
    trial.remove(here)
    assert trial.verdict() == Status(Code.ERROR, (f'running RemovePod on PreFilter plugin "X": {said}',))


def test_array_form_answers_what_ifs_too() -> None:
    class Empty:
        def filter_nodes(self, _state: Any, _pod: Any, nodes: Any) -> Any:
            return [(nodes.pods_count > 0, SOFT)]

    here = pod("one", on="a")
    decision = decided(Empty(), around=cluster(node("a"), here))
    trial = decision.evaluation.trial(0)
    assert trial.verdict() == SOFT.by("X")
    trial.remove(here)
    assert trial.verdict() is None
