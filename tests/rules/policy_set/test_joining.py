"""Policies that are evaluated as they join a profile: the first decision sees what changed since."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.model.objects import Node
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.rules.results.pod_independent import PodIndependentResults
from policysched.schedule.cycle.engine import Engine
from tests.build import cluster, node, pod
from tests.rules.build import compiled, filtering, policy_set, scoring

RULES = (
    'node.labels["tier"] != "x{}"',
    "node.free.cpu >= {}m",
    'node.pods.count(peer.labels["app"] == "a{}") < 2',
    'sum(node.pods.count(peer.labels["app"] == "a{}")) by node.zone < 4',
    "max(node.requested.cpu) < 9000m + {}m",
)


def policies() -> PolicySet:
    specs = {f"p{index}": {"filters": filtering(text.format(index))} for index, text in enumerate(RULES)}
    scores = {"value": 'if(node.labels["tier"] == "x1", 90, 10) - node.pods.count(true)'}
    return policy_set(**specs, s={"scores": scoring(scores["value"])})


def located(name: str, zone: str, tier: str) -> Node:
    return node(name, labels={"topology.kubernetes.io/zone": zone, "tier": tier})


def world(nodes: int = 6) -> Cluster:
    return cluster(*(located(f"n{index}", zone=f"z{index % 2}", tier=f"x{index % 4}") for index in range(nodes)))


def decided(state: Cluster, profile: Profile) -> object:
    """What the first decision says of every node, and the scores."""
    evaluation = Engine(state, profile, random.Random(1)).find(pod("new", labels={"app": "a2"}))
    size = state.nodes.size
    names = [state.nodes.names[row] for row in range(size)]
    return sorted(zip(names, evaluation.first[:size].tolist(), evaluation.ranking().tolist(), strict=True))


def happen(state: Cluster, rng: random.Random, number: int) -> None:
    name = f"n{rng.randrange(12)}"
    match rng.randrange(4):
        case 0:
            state.set_node(located(name, zone=f"z{rng.randrange(3)}", tier=f"x{rng.randrange(4)}"))
        case 1:
            state.remove_node(name)
        case 2:
            state.set_pod(pod(f"q{number}", on=name, labels={"app": f"a{rng.randrange(4)}"}))
        case 3:
            for index in range(20 * rng.randrange(4)):
                state.set_node(located(f"more-{index}", zone="z1", tier="x0"))


@pytest.mark.parametrize("seed", range(10))
def test_what_happens_before_the_first_decision_is_seen(seed: int) -> None:
    rng, state = random.Random(seed), world()
    joined = policies().join(default_profile(), state)
    for number in range(rng.randrange(8)):
        happen(state, rng, number)
    assert decided(state, joined) == decided(state, policies().join(default_profile()))


def test_rows_given_back_before_the_first_decision_are_seen() -> None:
    state, alike = world(), policies()
    for number in range(500):
        state.set_pod(pod(f"q{number}", on=f"never-{number}"))
    before, joined = state.nodes.size, alike.join(default_profile(), state)
    for placed in list(state.pods.by_id):
        state.remove_pod(placed)
    state.set_node(located("n1", zone="z1", tier="x39"))
    assert state.nodes.size < before
    assert decided(state, joined) == decided(state, policies().join(default_profile()))


def test_a_policy_that_cannot_be_evaluated_is_not_evaluated_with_the_next_set(monkeypatch: pytest.MonkeyPatch) -> None:
    state, good = world(), compiled("good", filters=filtering("node.ready"))
    broken = compiled("broken", filters=filtering("node.free.cpu > 1"))
    refused = PolicySet.of([good, broken])

    def fail(*_: Any) -> None:
        raise RecursionError

    with monkeypatch.context() as patched:
        patched.setattr(PodIndependentResults, "_write", fail)
        with pytest.raises(RecursionError):
            refused.join(default_profile(), state)
    active = PolicySet.of([good], refused)
    active.join(default_profile(), state)
    assert list(active.active[0].results(state).index) == list(active.active[0].filter_rows)


def test_the_first_decision_writes_no_result_again(monkeypatch: pytest.MonkeyPatch) -> None:
    state = world()
    joined = policies().join(default_profile(), state)
    written: list[object] = []
    monkeypatch.setattr(PodIndependentResults, "_write", lambda *given: written.append(given))
    decided(state, joined)
    assert written == []
