from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, Aspect, Code, Narrow, Status, unresolvable, unschedulable
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.record import make_record
from policysched.schedule.cycle.results.rejections import histogram
from policysched.state.tables.columns import FIRST_CAPACITY
from tests.build import cluster, node, pod
from tests.schedule.parts import FakeFilter, FakeScore, engine

ABC = ("a", "b", "c")


def nodes() -> Any:
    return cluster(*map(node, ABC))


def only(*names: str) -> Narrow[None]:
    return Narrow(None, frozenset(names))


def decided(*answers: Any, around: Any = None) -> Decision:
    """Return a decision with filters A, B and so on that have these answers."""
    filters = [FakeFilter(name, answer) for name, answer in zip("ABCDE", answers, strict=False)]
    return engine(around or nodes(), filters).decide(pod())


def rejections(decision: Decision) -> dict[str, tuple[str, Code, str]]:
    found = {}
    for name in ABC:
        row = decision.cluster.nodes.row_of[name]
        if decision.evaluation.first[row] > 0:
            status = decision.evaluation.status(row)
            found[name] = (status.plugin, status.code, status.message)
    return found


# PreFilter


SOFT, SOFTER, HARD = unschedulable("soft"), unschedulable("softer"), unresolvable("hard")
BROKEN = Status(Code.ERROR, ("broken",))


@pytest.mark.parametrize(
    ("answers", "rejection", "rejectors", "message"),
    [
        ((HARD,), HARD.by("A"), {"A"}, "0/3 nodes are available: hard."),
        ((SOFT,), SOFT.by("A"), {"A"}, "0/3 nodes are available: soft."),
        ((SOFT, SOFTER), SOFTER.by("B"), {"B"}, "0/3 nodes are available: softer."),
        ((SOFT, HARD), HARD.by("B"), {"B"}, "0/3 nodes are available: hard."),
        ((HARD, SOFT), HARD.by("A"), {"A"}, "0/3 nodes are available: hard."),
        ((SOFT, SKIP, None), SOFT.by("A"), {"A"}, "0/3 nodes are available: soft."),
        (
            (only("a"), only("b")),
            unresolvable("node(s) didn't satisfy plugin(s) [A B] simultaneously"),
            {"A", "B"},
            "0/3 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously.",
        ),
        (
            (only(),),
            unresolvable("node(s) didn't satisfy plugin A"),
            {"A"},
            "0/3 nodes are available: node(s) didn't satisfy plugin A.",
        ),
        (
            (SOFT, only("a"), only("b")),
            unresolvable("node(s) didn't satisfy plugin(s) [B C] simultaneously"),
            {"B", "C"},
            "0/3 nodes are available: node(s) didn't satisfy plugin(s) [B C] simultaneously.",
        ),
        ((only("a"), SOFT), SOFT.by("B"), {"A", "B"}, "0/3 nodes are available: soft."),
        ((only("a"), HARD), HARD.by("B"), {"B"}, "0/3 nodes are available: hard."),
    ],
)
def test_prefilter_rejects_the_pod_on_every_node(
    answers: tuple[Any, ...], rejection: Status, rejectors: set[str], message: str
) -> None:
    decision = decided(*answers)
    assert decision.rejection == rejection
    assert (decision.row, decision.node, decision.failed) == (-1, "", False)
    assert (set(decision.rejectors()), decision.fit_error()) == (rejectors, message)


def test_nothing_is_asked_after_a_rejection_that_nothing_can_resolve() -> None:
    later = FakeFilter("B")
    engine(nodes(), [FakeFilter("A", HARD), later]).decide(pod())
    assert later.prepared == 0


def test_a_plugin_that_fails_at_prefilter_makes_an_error() -> None:
    decision = decided(SOFT, BROKEN)
    assert decision.failed
    assert decision.error() == 'running PreFilter plugin "B": broken'


# Narrowing


NARROWED = "node(s) didn't satisfy plugin(s) [A]"


def test_nodes_that_are_narrowed_away_are_not_filtered() -> None:
    decision = decided(only("a"), {"a", "b"})
    assert rejections(decision) == {
        "a": ("B", Code.UNSCHEDULABLE, "B says no"),
        "b": ("PreFilterResult", Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NARROWED),
        "c": ("PreFilterResult", Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NARROWED),
    }
    assert decision.fit_error() == f"0/3 nodes are available: 1 B says no, 2 {NARROWED}."
    assert decision.rejectors() == {"A", "B"}


def test_two_plugins_narrow_together() -> None:
    decision = decided(only("a", "b"), only("b", "c"))
    assert decision.node == "b"
    assert {text for _, _, text in rejections(decision).values()} == {"node(s) didn't satisfy plugin(s) [A B]"}


def test_narrowing_to_absent_nodes_rejects_all_until_one_of_them_comes() -> None:
    around = nodes()
    made = engine(around, [FakeFilter("A", only("later"))])
    decision = made.decide(pod())
    assert decision.fit_error() == f"0/3 nodes are available: 3 {NARROWED}."
    assert decision.rejection is None
    assert decision.rejectors() == {"A"}
    around.set_node(node("later"))
    assert made.decide(pod()).node == "later"
    around.remove_node("later")
    assert made.decide(pod()).row == -1


def test_a_freed_row_of_a_named_node_is_another_node_s() -> None:
    around = nodes()
    made = engine(around, [FakeFilter("A", only("a"))])
    assert made.decide(pod()).node == "a"
    around.remove_node("a")
    around.set_node(node("new"))
    assert made.decide(pod()).row == -1


# Filters


def test_the_first_filter_that_rejects_a_node_gives_its_status() -> None:
    decision = decided({"a"}, {"a", "b"}, {"b", "c"})
    assert {name: plugin for name, (plugin, _, _) in rejections(decision).items()} == {"a": "A", "b": "B", "c": "C"}
    assert decision.rejectors() == {"A", "B", "C"}
    assert histogram(decision.evaluation.first[: decision.cluster.nodes.size], decision.evaluation.filters) == [
        (unschedulable(f"{name} says no").by(name), 1) for name in "ABC"
    ]  # fmt: skip


def test_the_histogram_counts_equal_reasons_and_sorts_them_as_texts() -> None:
    around = cluster(*(node(f"n{number}") for number in range(12)))
    tens = {f"n{number}" for number in range(10)}
    assert decided(tens, {"n10", "n11"}, around=around).fit_error() == (
        "0/12 nodes are available: 10 A says no, 2 B says no."
    )


def test_absent_rows_count_nowhere() -> None:
    around = cluster(*map(node, ABC), pod("ghost", on="gone"))
    assert decided({"a", "b", "c", "gone"}, around=around).fit_error() == "0/3 nodes are available: 3 A says no."


@pytest.mark.parametrize("answer", [None, HARD, BROKEN, only("a"), only()])
def test_without_nodes_nothing_rejects(answer: Any) -> None:
    decision = decided(answer, around=cluster(pod("ghost", on="gone")))
    assert (decision.rejection, decision.failed, decision.rejectors()) == (None, False, frozenset())
    assert decision.fit_error() == "no nodes available to schedule pods"


# Scores


def totals(decision: Decision) -> dict[str, int]:
    names = decision.cluster.nodes.names
    return {names[row]: int(total) for row, total in enumerate(decision.evaluation.ranking()) if total >= 0}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_weighted_scores_add_up_in_any_order(order: tuple[int, ...]) -> None:
    scores = [
        (FakeScore("plain", {"a": 10, "b": 20}), 3),
        (FakeScore("normalising", {"a": 4, "b": 1, "c": 400}, normalizes=True), 2),
        (FakeScore("skipping", SKIP), 5),
    ]
    decision = engine(nodes(), [FakeFilter("A", {"c"})], [scores[index] for index in order]).decide(pod())
    assert totals(decision) == {"a": 30 + 200, "b": 60 + 50}
    assert decision.node == "a"


def test_a_score_that_becomes_uneven_counts_from_then_on() -> None:
    around = nodes()
    score = FakeScore("S", {}, Aspect.LABELS)
    made = engine(around, (), [(score, 2)])
    assert set(made.decide(pod()).best) == {0, 1, 2}
    score.answer = {"b": 1}
    around.set_node(node("b", labels={"x": "y"}))
    assert made.decide(pod()).node == "b"
    score.answer = {}
    around.set_node(node("b"))
    assert set(made.decide(pod()).best) == {0, 1, 2}


def test_a_plugin_that_fails_at_prescore_matters_with_more_than_one_feasible_node() -> None:
    failing = [(FakeScore("S", BROKEN), 1), (FakeScore("T", {"a": 1}), 1)]
    decision = engine(nodes(), (), failing).decide(pod())
    assert (decision.failed, decision.row) == (True, -1)
    assert decision.error() == 'running PreScore plugin "S": broken'
    one_left = engine(nodes(), [FakeFilter("A", {"a", "b"})], failing).decide(pod())
    assert (one_left.failed, one_left.node) == (False, "c")
    none_left = engine(nodes(), [FakeFilter("A", set(ABC))], failing).decide(pod())
    assert (none_left.failed, none_left.row) == (False, -1)


# Updates of cached results


def test_only_changed_rows_are_asked_again_and_only_about_what_is_read() -> None:
    around = nodes()
    labels = FakeFilter("L", set(), Aspect.LABELS)
    usage = FakeScore("U", {}, Aspect.USAGE)
    made = engine(around, [labels], [(usage, 1)])
    made.decide(pod())
    assert labels.asked == usage.asked == [list(ABC)]
    made.decide(pod())
    around.set_pod(pod("p", on="b"))
    made.decide(pod())
    assert (labels.asked[1:], usage.asked[1:]) == ([], [["b"]])
    around.set_node(node("a", labels={"x": "y"}))
    around.set_node(node("new"))
    made.decide(pod())
    assert (labels.asked[1:], usage.asked[2:]) == ([["a", "new"]], [["new"]])


def test_rows_beyond_the_capacity_are_seen() -> None:
    around = nodes()
    made = engine(around, [FakeFilter("A", {"n70"}, Aspect.LABELS)], [(FakeScore("S", {"n71": 9}), 1)])
    assert made.decide(pod()).feasible_count == 3
    for number in range(FIRST_CAPACITY + 10):
        around.set_node(node(f"n{number}"))
    decision = made.decide(pod())
    assert (decision.node, decision.feasible_count) == ("n71", FIRST_CAPACITY + 12)


def test_all_rows_may_be_freed_and_used_again() -> None:
    around = nodes()
    made = engine(around, [FakeFilter("A", {"a", "y"}, Aspect.LABELS)], [(FakeScore("S", {"z": 5}), 1)])
    assert made.decide(pod()).feasible_count == 2
    for name in ABC:
        around.remove_node(name)
    assert made.decide(pod()).fit_error() == "no nodes available to schedule pods"
    for name in "xyz":
        around.set_node(node(name))
    decision = made.decide(pod())
    assert (decision.node, decision.feasible_count, around.nodes.size) == ("z", 2, 3)


def test_scores_wait_while_no_node_is_feasible() -> None:
    around = cluster(*map(node, ABC))
    fits, likes = FakeFilter("A", {"a", "b", "c"}, Aspect.LABELS), FakeScore("S", {"a": 1}, Aspect.LABELS)
    made = engine(around, [fits], [(likes, 1)])
    assert made.decide(pod()).row == -1
    assert likes.asked == []
    around.set_node(node("b", labels={"x": "1"}))
    assert made.decide(pod()).row == -1
    assert likes.asked == []
    fits.answer = {"a"}
    around.set_node(node("b", labels={"x": "2"}))
    around.set_node(node("c", labels={"x": "2"}))
    assert made.decide(pod()).node in {"b", "c"}
    assert likes.asked == [list(ABC)]


def test_scores_that_waited_catch_up_with_the_rows_that_changed_meanwhile() -> None:
    around = cluster(*map(node, (*ABC, *(f"other{number}" for number in range(40)))))
    fits, likes = FakeFilter("A", set(), Aspect.LABELS), FakeScore("S", {"a": 5, "b": 1}, Aspect.LABELS)
    made = engine(around, [fits], [(likes, 1)])
    assert made.decide(pod()).node == "a"
    fits.answer = set(around.nodes.names)
    for name in around.nodes.names:
        around.set_node(node(name, labels={"x": "1"}))
    likes.answer = {"b": 7, "a": 5}
    assert made.decide(pod()).row == -1
    assert len(likes.asked) == 1
    fits.answer = set()
    for name in around.nodes.names[:2]:
        around.set_node(node(name, labels={"x": "2"}))
    assert made.decide(pod()).node == "b"
    assert len(likes.asked) == 2


def test_a_record_of_a_nominated_node_has_scores_though_no_other_node_is_feasible() -> None:
    around = cluster(*map(node, ABC))
    made = engine(around, [FakeFilter("A", Narrow(None, frozenset({"absent"})))], [(FakeScore("S", {"b": 5}), 2)])
    of = replace(pod(), status=replace(pod().status, nominated_node_name="b"))
    assert make_record(made.decide(of))["scores"] == {"b": {"S": 10}}
