"""Results that depend on a single pod's volumes, besides the results of its class."""

# ruff: noqa: ARG002 - the fakes do not use all arguments of the protocols
from __future__ import annotations

from itertools import permutations
from typing import Any, TypeVar

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, Aspect, Cluster, Code, PerPod, Status, unresolvable, unschedulable
from policysched.model.objects import ClaimSource, Pod, Volume
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from policysched.schedule.cycle.results.plugin_results import FilterResults, ScoreResults
from tests.build import cluster, node, pod
from tests.schedule.parts import FakeFilter, FakeScore, engine

ABC = ("a", "b", "c")
SOFT, HARD = unschedulable("soft"), unresolvable("hard")


class ByPod(FakeFilter, PerPod):
    """A filter with separate results for each pod with volumes."""

    @staticmethod
    def has_own_results(pod: Pod, cluster: Cluster) -> bool:  # noqa: ARG004 - the base's signature
        return bool(pod.spec.volumes)


class Failing(ByPod):
    """A filter that fails on the nodes of its answer."""

    def reason(self, state: Any, code: int) -> Status:
        return Status(Code.ERROR, ("out of order",))


def claiming(name: str = "p", claim: str = "c", **fields: Any) -> Pod:
    made = pod(name, **fields)
    volume = Volume(name="v", persistent_volume_claim=ClaimSource(claim_name=claim))
    return replace(made, spec=replace(made.spec, volumes=[volume]))


def made(*filters: FakeFilter, scores: Any = (), around: Cluster | None = None) -> Engine:
    return engine(around or cluster(*map(node, ABC)), list(filters), scores)


def decided(*filters: FakeFilter, scores: Any = ()) -> Decision:
    return made(*filters, scores=scores).decide(claiming())


def rejections(decision: Decision) -> dict[str, str]:
    rejected = make_record(decision).get("rejected", {})
    return {name: status["plugin"] for name, status in rejected.items()}


@pytest.mark.parametrize("kinds", [(FakeFilter, ByPod), (ByPod, FakeFilter), (ByPod, ByPod), (FakeFilter, FakeFilter)])
def test_the_first_filter_of_the_profile_gives_the_status_whichever_it_is(kinds: Any) -> None:
    first, second = kinds
    decision = decided(first("A", {"a", "b"}), second("B", {"b", "c"}))
    assert rejections(decision) == {"a": "A", "b": "A", "c": "B"}
    assert decision.fit_error() == "0/3 nodes are available: 1 B says no, 2 A says no."
    assert decision.rejectors() == {"A", "B"}


class Named(FakeFilter, PerPod):
    """A filter with separate results for each pod whose name begins with `a`."""

    @staticmethod
    def has_own_results(pod: Pod, cluster: Cluster) -> bool:  # noqa: ARG004 - the base's signature
        return pod.metadata.name.startswith("a")

    def filter(self, state: Any, rows: Any) -> Any:
        return np.ones(len(self._names(state, rows)), np.int32)


class LongerNamed(Named):
    """A filter with separate results for each pod whose name begins with `ab`."""

    @staticmethod
    def has_own_results(pod: Pod, cluster: Cluster) -> bool:  # noqa: ARG004 - the base's signature
        return pod.metadata.name.startswith("ab")


def test_each_plugin_says_itself_which_pods_it_has_own_answers_about() -> None:
    first, second = Named("a"), LongerNamed("ab")
    engine = made(first, second)
    decisions = [engine.decide(pod(name)) for name in ("x", "a1", "ab1", "ab2", "x2")]
    assert [decision.rejectors() for decision in decisions] == [set(), {"a"}, {"a"}, {"a"}, set()]
    assert (first.prepared, second.prepared, len(engine.classes.cached)) == (3, 2, 1)


@pytest.mark.parametrize("order", list(permutations("ABCD")))
def test_any_order_of_four_filters(order: tuple[str, ...]) -> None:
    answers = {"A": {"a"}, "B": {"a", "b"}, "C": {"b", "c"}, "D": {"c"}}
    filters = [(ByPod if name in "BD" else FakeFilter)(name, answers[name]) for name in order]
    expected = {row: next(name for name in order if row in answers[name]) for row in ABC}
    assert rejections(decided(*filters)) == expected


def test_the_best_of_the_nodes_that_are_left_is_chosen() -> None:
    scores = [(FakeScore("S", {"a": 9, "b": 5, "c": 1}), 1), (FakeScore("T", {"b": 5, "c": 9}, normalizes=True), 1)]
    assert decided(scores=scores).node == "c"
    decision = decided(ByPod("A", {"c"}), scores=scores)
    assert (decision.node, decision.feasible_count) == ("b", 2)
    assert make_record(decision)["scores"] == {"a": {"S": 9, "T": 0}, "b": {"S": 5, "T": 100}}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((SOFT, ByPod, HARD), "B"),
        ((HARD, ByPod, SOFT), "A"),
        ((SOFT, ByPod, SOFT), "B"),
        ((SOFT, FakeFilter, SOFT), "B"),
        ((HARD, FakeFilter, HARD), "A"),
        ((SOFT, FakeFilter, HARD), "B"),
    ],
)
def test_prefilter_ends_with_the_first_status_that_ends_it_else_the_last(answers: Any, expected: str) -> None:
    first, kind, second = answers
    other = FakeFilter if kind is ByPod else ByPod
    decision = decided(other("A", first), kind("B", second))
    assert decision.rejection is not None
    assert (decision.rejection.plugin, decision.rejectors()) == (expected, frozenset({expected}))


def test_one_rejection_of_either_kind_is_enough() -> None:
    assert decided(ByPod("A", HARD), FakeFilter("B")).fit_error() == "0/3 nodes are available: hard."
    assert decided(ByPod("A", SKIP), FakeFilter("B", HARD)).fit_error() == "0/3 nodes are available: hard."


def test_a_filter_that_fails_makes_an_error_where_it_is_asked() -> None:
    decision = decided(FakeFilter("A", {"a"}), Failing("B", {"a", "b"}))
    assert (decision.failed, decision.row) == (True, -1)
    assert make_record(decision)["error"] == 'running "B" filter plugin: out of order'
    unasked = decided(FakeFilter("A", {"a"}), Failing("B", {"a"}))
    assert (unasked.failed, unasked.feasible_count) == (False, 2)


def test_the_class_keeps_its_evaluation_and_other_pods_are_not_touched() -> None:
    around = cluster(*map(node, ABC))
    kept, anew = FakeFilter("A", {"a"}, Aspect.LABELS), ByPod("B", {"b"})
    tested = made(kept, anew, around=around)
    for number in range(3):
        assert rejections(tested.decide(claiming(f"p{number}", f"c{number}"))) == {"a": "A", "b": "B"}
    assert rejections(tested.decide(pod())) == {"a": "A"}
    assert (kept.prepared, anew.prepared) == (1, 3)
    anew.answer = {"c"}
    assert rejections(tested.decide(claiming())) == {"a": "A", "c": "B"}


def test_rows_that_come_later_are_asked_too() -> None:
    around = cluster(*map(node, ABC))
    tested = made(ByPod("A", set(ABC)), around=around)
    assert tested.decide(claiming()).row == -1
    around.set_node(node("d"))
    assert tested.decide(claiming()).node == "d"
    around.remove_node("d")
    assert tested.decide(claiming()).fit_error() == "0/3 nodes are available: 3 A says no."


def test_a_nominated_node_must_pass_too() -> None:
    nominated = claiming()
    nominated = replace(nominated, status=replace(nominated.status, nominated_node_name="a"))
    assert made(ByPod("A", {"b"})).decide(nominated).nominated
    decision = made(ByPod("A", {"a"})).decide(nominated)
    assert (decision.nominated, decision.node in {"b", "c"}) == (False, True)


class OwnScore(FakeScore, PerPod):
    """A score plugin with separate results for each pod with volumes."""

    has_own_results = staticmethod(ByPod.has_own_results)


def test_scores_of_a_pod_of_its_own_are_added_and_not_kept() -> None:
    own = OwnScore("O", {"b": 7, "c": 1})
    scores = [(FakeScore("S", {"a": 9, "b": 5, "c": 1}), 1), (own, 2)]
    engine_ = made(scores=scores)
    decision = engine_.decide(claiming())
    assert (decision.node, own.prepared) == ("b", 1)
    assert make_record(decision)["total"] == {"a": 9, "b": 19, "c": 3}
    assert engine_.decide(pod("plain")).node == "a"
    assert (engine_.decide(claiming("other")).node, own.prepared) == ("b", 2)


def test_scores_of_a_pod_of_its_own_may_normalise() -> None:
    own = OwnScore("O", {"b": 1, "c": 2}, normalizes=True)
    decision = decided(scores=[(FakeScore("S", {"a": 60, "b": 55}), 1), (own, 1)])
    assert make_record(decision)["total"] == {"a": 60, "b": 105, "c": 100}


def test_a_failure_at_pre_score_of_a_pod_of_its_own_fails_the_pod() -> None:
    decision = decided(scores=[(OwnScore("O", Status(Code.ERROR, ("no claims",))), 1)])
    assert (decision.failed, decision.error()) == (True, 'running PreScore plugin "O": no claims')


ResultsT = TypeVar("ResultsT", FilterResults, ScoreResults)


def computed(results: ResultsT) -> ResultsT:
    results.recompute(results.state.nodes.columns.capacity, results.state.nodes.size)
    return results


def test_answers_from_elsewhere_are_laid_over_the_nodes_that_were_found() -> None:
    engine_ = made(FakeFilter("A", {"a"}), scores=[(FakeScore("S", {"b": 5, "c": 1}), 1)])
    found = engine_.find(pod("p"))
    assert found.feasible().tolist() == [False, True, True]
    webhook = computed(FilterResults(FakeFilter("webhook", {"b"}), engine_.cluster, 9))
    decision = engine_.choose(found.extended([webhook]))
    assert (decision.node, rejections(decision)) == ("c", {"a": "A", "b": "webhook"})
    likes = computed(ScoreResults(FakeScore("webhook", {"c": 9}), 1, engine_.cluster))
    assert engine_.choose(found.extended(scores=[likes])).node == "c"
    assert engine_.choose(found).node == "b"


def test_all_nodes_may_be_left_out_from_elsewhere() -> None:
    engine_ = made(FakeFilter("A", {"a"}))
    webhook = computed(FilterResults(FakeFilter("webhook", {"b", "c"}), engine_.cluster, place=9))
    decision = engine_.choose(engine_.find(pod("p")).extended([webhook]))
    assert decision.fit_error() == "0/3 nodes are available: 1 A says no, 2 webhook says no."
    assert decision.rejectors() == {"A", "webhook"}
