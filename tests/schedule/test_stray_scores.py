"""Scores outside of 0 to 100 fail the cycle of their pod alone, as in kube-scheduler."""

from __future__ import annotations

import pytest

from policysched.framework import Cluster, Mask, Scores
from policysched.model.objects import Affinity, NodeAffinitySpec, NodeSelectorTerm, PreferredSchedulingTerm, Requirement
from policysched.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.nodes.node_affinity import NodeAffinity as Plugin
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod
from tests.schedule.parts import FakeFilter, FakeScore, engine

SENTENCE = (
    'applying score defaultWeights on Score plugins: plugin "{}" returns an invalid score {}, '
    "it should in the range of [0, 100] after normalizing"
)


class RawScore(FakeScore):
    """A score plugin whose normalization changes nothing."""

    def normalize(self, state: Cluster, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - as it says
        return scores


def nodes(*names: str) -> Cluster:
    return cluster(*map(node, names))


@pytest.mark.parametrize("normalizes", [False, True])
@pytest.mark.parametrize(
    ("scores", "stray"),
    [({"a": 101}, 101), ({"a": -1}, -1), ({"a": -7, "b": 900}, -7), ({"a": 200, "b": 300, "c": 100}, 300)],
)
def test_a_score_out_of_range_fails_the_pod(scores: dict[str, int], stray: int, normalizes: bool) -> None:
    good = FakeScore("G", {"a": 100}, normalizes=True)
    made = engine(nodes("a", "b", "c"), (), [(good, 1), (RawScore("S", scores, normalizes=normalizes), 2)])
    decision = made.decide(pod())
    assert decision.failed
    assert decision.error() == make_record(decision)["error"] == SENTENCE.format("S", stray)


@pytest.mark.parametrize("normalizes", [False, True])
@pytest.mark.parametrize("rejected", [{"b"}, {"b", "c"}])
def test_scores_of_nodes_that_are_not_feasible_do_not_matter(rejected: set[str], normalizes: bool) -> None:
    score = RawScore("S", {"a": 100, "b": -1}, normalizes=normalizes)
    decision = engine(nodes("a", "b", "c"), [FakeFilter("F", rejected)], [(score, 1)]).decide(pod())
    assert (decision.failed, decision.node) == (False, "a")


def test_the_only_feasible_node_is_not_scored() -> None:
    decision = engine(nodes("a", "b"), [FakeFilter("F", {"b"})], [(RawScore("S", {"a": 2**40}), 1)]).decide(pod())
    assert (decision.failed, decision.node) == (False, "a")


ODD = [["-1e15"], ["5Ei", "5Ei"], ["9223372036854775807", "1Ei"], ["4Ei", "4Ei", "3Ei"]]


@pytest.mark.parametrize("memory", ODD)
@pytest.mark.parametrize("plugin", [NodeResourcesFit, NodeResourcesBalancedAllocation])
def test_no_ordinary_pod_pays_for_what_others_put_on_a_node(memory: list[str], plugin: type) -> None:
    """Overflowing sums make a node look less than empty, which must not fail other pods."""
    around = nodes("a", "b")
    made = engine(around, (), [(plugin(), 1)])
    for number, amount in enumerate(memory):
        around.set_pod(pod(f"odd-{number}", on="a", requests={"memory": amount}))
    decision = made.decide(pod(requests={"cpu": "1", "memory": "1Gi"}))
    assert not decision.failed
    assert decision.node


def test_a_pod_pays_for_what_it_asks_itself() -> None:
    around = nodes("a", "b")
    around.set_pod(pod("odd", on="a", requests={"memory": "-1e15"}))
    failed = engine(around, (), [(NodeResourcesFit(), 1)]).decide(pod(requests={"memory": "-1e15"}))
    assert failed.error().startswith('applying score defaultWeights on Score plugins: plugin "NodeResourcesFit"')


def test_a_score_that_comes_back_into_range_counts_again() -> None:
    """A pod with negative requests makes a node look less than empty, which scores 0."""
    around = nodes("a", "b")
    made = engine(around, (), [(NodeResourcesFit(), 1)])
    assert made.decide(pod()).node in "ab"
    around.set_pod(pod("odd", on="a", requests={"memory": "-1e15"}))
    assert made.decide(pod()).node == "b"
    around.remove_pod("default.odd")
    around.set_pod(pod("even", on="a", requests={"memory": "1Gi"}))
    assert made.decide(pod()).node == "b"


def preferring(weight: int) -> Affinity:
    term = NodeSelectorTerm(match_fields=(Requirement(key="metadata.name", operator="In", values=("a",)),))
    return Affinity(node_affinity=NodeAffinitySpec(preferred=[PreferredSchedulingTerm(weight=weight, preference=term)]))


@pytest.mark.parametrize(("weight", "node_"), [(100, "a"), (1, "a"), (-1, "")])
def test_weights_below_0_fail_the_pod_that_states_them(weight: int, node_: str) -> None:
    made = engine(nodes("a", "b"), (), [(Plugin(), 1)])
    assert made.decide(pod(affinity=preferring(weight))).node == node_
    assert made.decide(pod(affinity=preferring(7))).node == "a"
