from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.schedule.cycle.engine import Engine
from tests.build import cluster, node, pod
from tests.rules.build import Spec, plugin, policy_set, scoring


def numbered(*values: str | None) -> Cluster:
    """Nodes n0, n1 and so on, with a label `v`."""
    return cluster(*(node(f"n{index}", labels={"v": value} if value else {}) for index, value in enumerate(values)))


V = 'number(node.labels["v"])'


def final(made: Any, around: Cluster, feasible: set[str] | None = None) -> list[int]:
    """Final scores of the feasible nodes, in the order of names."""
    state: Any = made.prepare_score(pod(), around)
    size = around.nodes.size
    mask = np.array([feasible is None or name in feasible for name in around.nodes.names])
    scores = made.score(state, slice(0, size))
    if made.normalizes:
        scores = made.normalize(state, scores, mask)
    return [int(scores[row]) for row in range(size) if mask[row]]


@pytest.mark.parametrize(
    ("rules", "values", "expected"),
    [
        (scoring(V), ("10", "250", "-3", "x", None), [10, 100, 0, 0, 0]),
        (scoring(V), ("0.49", "0.5", "1.5", "2.5", "99.5"), [0, 1, 2, 3, 100]),
        (scoring([f"{V} > 5 → 50", "else → 7", "missing → 33"]), ("6", "5", "x", None), [50, 7, 33, 33]),
        (scoring([f"{V} > 5 → 50", f"{V} > 3 → 40"]), ("6", "4", "1"), [50, 40, 0]),
        (scoring(['node.labels["v"] == "a" → 50', "else → 7"]), ("a", "b", None), [50, 7, 7]),
        (scoring(V, normalize="Max"), ("10", "40", None, "-5"), [25, 100, 0, 0]),
        (scoring(V, normalize="Max"), ("-10", "-40", "0"), [0, 0, 0]),
        (scoring([f"{V} > 0 → {V}", "missing → 60"], normalize="Max"), ("400", "200", None, "-1"), [100, 50, 60, 60]),
        (scoring(f"normalize({V})"), ("10", "40", None, "-5"), [25, 100, 0, 0]),
        (scoring(f"100 - normalize({V})"), ("10", "40"), [75, 0]),
        ([*scoring(V, "a", weight=3), *scoring(50, "b")], ("10", "80", "250"), [20, 73, 88]),
        ([*scoring(V, "a", weight=0), *scoring(50, "b", weight=0)], ("10", "80"), [0, 0]),
        ([*scoring(V, "a", weight=0), *scoring(50, "b")], ("10", "80"), [50, 50]),
        ([*scoring(V, "a", normalize="Max"), *scoring(0, "b")], ("10", "40"), [13, 50]),
        (scoring("7"), ("10", "40"), [7, 7]),
        (scoring(f"only({V} > 20, 5)"), ("10", "40"), [0, 5]),
    ],
)
def test_a_score_is_the_weighted_mean_of_clipped_values(
    rules: list[Spec], values: tuple[str | None, ...], expected: list[int]
) -> None:
    assert final(plugin(scores=rules), numbered(*values)) == expected


@pytest.mark.parametrize("rules", [scoring(V, normalize="Max"), scoring(f"normalize({V})")])
def test_normalizing_looks_at_feasible_nodes_alone(rules: list[Spec]) -> None:
    around = numbered("10", "1000", "20")
    assert final(plugin(scores=rules), around, {"n0", "n2"}) == [50, 100]
    assert final(plugin(scores=rules), around, {"n1"}) == [100]


@pytest.mark.parametrize("rules", [scoring(V, normalize="Max"), scoring(f"normalize({V})")])
def test_final_scores_move_with_values_and_with_feasible_nodes(rules: list[Spec]) -> None:
    around, both = numbered("10", "40"), np.array([True, True])
    finals: Any = plugin(scores=rules).prepare_score(pod(), around)
    finals.answers(slice(0, 2))
    assert finals.final(both).tolist() == [25, 100]
    assert finals.final(np.array([True, False]))[0] == 100
    assert finals.final(both).tolist() == finals.final(both.copy()).tolist() == [25, 100]
    around.set_node(node("n1", labels={"v": "20"}))
    finals.answers(np.array([1], np.int32))
    assert finals.final(both).tolist() == [50, 100]


def test_a_rule_that_does_not_normalise_may_stand_alone_in_a_policy_that_does() -> None:
    """Where `when` silences the rules that normalise, the others are scored as ever."""
    rules = [*scoring(V, "max", normalize="Max", when='pod.name == "other"'), *scoring(V, "own")]
    assert final(plugin(scores=rules), numbered("10", "40")) == [10, 40]


def test_a_policy_whose_rules_read_only_their_row_needs_no_normalising() -> None:
    assert not plugin(scores=scoring(V)).normalizes
    assert plugin(scores=scoring(V, normalize="Max")).normalizes
    assert plugin(scores=scoring(f"normalize({V})")).normalizes


@pytest.mark.parametrize("normalize", ["None", "Max"])
def test_rows_have_no_number_while_there_is_no_node_and_nobody_is_warned(normalize: str) -> None:
    spec: Spec = {"scores": scoring("50 * (avg(if(node.ready, 0, 1)) by node.name)", normalize=normalize)}
    around = cluster(pod("early", on="a"))
    engine = Engine(around, policy_set(p=spec).join(default_profile()), random.Random(0))
    assert engine.decide(pod()).node == ""
    assert final(plugin(**spec), around, set()) == []
    around.set_node(node("a"))
    assert engine.decide(pod()).node == "a"
    assert final(plugin(**spec), around) == [50 if normalize == "None" else 100]
