from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Cluster, Codes, Narrow, Rows
from policysched.model.objects import Pod
from policysched.schedule.cycle.engine import Engine
from tests.build import cluster, node, pod
from tests.schedule.parts import FakeFilter, FakeScore, engine, profile


def nodes(*names: str) -> Cluster:
    return cluster(*map(node, names or ("a", "b", "c")))


def sibling(number: int, **fields: Any) -> Pod:
    return pod(f"sibling-{number}", **fields)


def test_siblings_share_what_was_found_out() -> None:
    filter_, score = FakeFilter("A", {"a"}), FakeScore("S", {"b": 3})
    made = engine(nodes(), [filter_], [(score, 1)])
    for number in range(5):
        assert made.decide(sibling(number, labels={"app": "x"})).node == "b"
    assert (filter_.prepared, score.prepared, len(filter_.asked), len(score.asked)) == (1, 1, 1, 1)
    made.decide(sibling(9, labels={"app": "y"}))
    assert (filter_.prepared, score.prepared) == (2, 2)


def test_another_generation_prepares_a_class_anew() -> None:
    filter_, score = FakeFilter("A"), FakeScore("S", {"b": 3})
    made = engine(nodes(), [filter_], [(score, 1)])
    for which in (filter_, score, score):
        made.decide(pod())
        which.generations = object()
    made.decide(pod())
    assert (filter_.prepared, score.prepared) == (4, 4)


def test_other_plugins_start_anew() -> None:
    old, new = FakeFilter("A", {"a"}), FakeFilter("A", {"b", "c"})
    made = engine(nodes(), [old])
    assert made.decide(pod()).node in "bc"
    made.use(profile([new]))
    assert made.decide(pod()).node == "a"
    assert (old.prepared, new.prepared) == (1, 1)


def test_the_best_are_drawn_from_evenly() -> None:
    made = engine(nodes("a", "b", "c", "d"), [FakeFilter("A", {"d"})], [(FakeScore("S", dict.fromkeys("abcd", 7)), 1)])
    drawn = Counter(made.decide(pod()).node for _ in range(6000))
    assert drawn.keys() == set("abc")
    assert all(1850 < count < 2150 for count in drawn.values())


def test_a_single_best_node_is_taken() -> None:
    made = engine(nodes(), (), [(FakeScore("S", {"a": 6, "b": 7}), 1)])
    assert {made.decide(pod()).node for _ in range(50)} == {"b"}


def test_without_scores_all_feasible_nodes_are_the_best() -> None:
    decision = engine(nodes(), [FakeFilter("A", {"a"})]).decide(pod())
    assert sorted(decision.cluster.nodes.names[row] for row in decision.best) == ["b", "c"]
    assert (decision.feasible_count, decision.evaluated_count, decision.nominated) == (2, 3, False)


@pytest.mark.parametrize(
    ("nominated", "node_", "evaluated"),
    [("a", "a", 1), ("b", "c", 3), ("absent", "c", 3), ("gone", "c", 3), ("", "c", 3)],
)
def test_the_nominated_node_comes_first_and_alone_where_it_fits(nominated: str, node_: str, evaluated: int) -> None:
    around = cluster(*map(node, "abc"), pod("ghost", on="gone"))
    made = engine(around, [FakeFilter("A", {"b"})], [(FakeScore("S", {"c": 9}), 1)])
    of = replace(pod(), status=replace(pod().status, nominated_node_name=nominated))
    decision = made.decide(of)
    assert (decision.node, decision.evaluated_count) == (node_, evaluated)
    assert decision.nominated is (evaluated == 1)


@pytest.mark.parametrize(("nominated", "best"), [("a", "b"), ("b", "b"), ("c", "c")])
def test_a_nominated_node_is_tried_though_narrowing_leaves_it_out(nominated: str, best: str) -> None:
    filters = [FakeFilter("N", Narrow(None, frozenset("b"))), FakeFilter("A", {"a"})]
    of = replace(pod(), status=replace(pod().status, nominated_node_name=nominated))
    assert engine(nodes(), filters).decide(of).node == best


def test_a_nomination_is_no_part_of_the_class() -> None:
    filter_ = FakeFilter("A")
    made = engine(nodes(), [filter_])
    made.decide(pod())
    made.decide(replace(pod(), status=replace(pod().status, nominated_node_name="a")))
    assert filter_.prepared == 1


def test_a_key_that_was_kept_is_used() -> None:
    filter_ = FakeFilter("A")
    made = engine(nodes(), [filter_])
    key = made.classes.key(pod("one"))
    made.decide(pod("one"), key)
    made.decide(pod("one"))
    assert filter_.prepared == 1


class Failing(FakeFilter):
    fails = False

    def filter(self, state: Cluster, rows: Rows) -> Codes:
        if self.fails:
            raise RuntimeError("broken")
        return super().filter(state, rows)


def test_a_plugin_that_raises_leaves_nothing_half_done_behind() -> None:
    around = nodes("a")
    failing = Failing("A", {"a"})
    made = engine(around, [failing])
    assert made.decide(pod()).row == -1
    around.set_node(node("b"))
    failing.fails = True
    failing.answer = {"a", "b"}
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            made.decide(pod())
    failing.fails = False
    assert made.decide(pod()).fit_error() == "0/2 nodes are available: 2 A says no."


def test_the_caller_s_random_source_decides() -> None:
    def drawn(seed: int) -> list[str]:
        made: Engine = engine(nodes(), seed=seed)
        return [made.decide(pod()).node for _ in range(20)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
