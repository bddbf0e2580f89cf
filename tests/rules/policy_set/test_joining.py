"""Policies that join a profile piece by piece: what changes between two pieces is seen by the first decision."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.model.objects import Node
from policysched.pausing import Pausing, finished
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.rules.results.pod_independent import PodIndependentResults
from policysched.schedule.cycle.engine import Engine
from tests.build import cluster, node, pod
from tests.rules.build import filtering, policy_set, scoring

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
    evaluation = Engine(state, profile, random.Random(1)).evaluate(pod("new", labels={"app": "a2"}))
    size = state.nodes.size
    names = [state.nodes.names[row] for row in range(size)]
    return sorted(zip(names, evaluation.first[:size].tolist(), evaluation.ranked[:size].tolist(), strict=True))


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
def test_what_happens_between_two_pieces_is_seen(seed: int) -> None:
    rng, state = random.Random(seed), world()
    work: Pausing[Profile] = policies().joining(default_profile(), state)
    pieces = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            joined = end.value
            break
        pieces += 1
        if rng.random() < 0.4:
            happen(state, rng, pieces)
    assert pieces > 2 * len(RULES)
    assert decided(state, joined) == decided(state, policies().join(default_profile()))


ALIKE = [{"name": f"r{number}", "require": f'node.labels["tier"] != "x{number}"'} for number in range(40)]


def test_of_rules_that_read_alike_no_piece_writes_two(monkeypatch: pytest.MonkeyPatch) -> None:
    write, written = PodIndependentResults._write, [0]

    def counting(results: PodIndependentResults, *given: Any) -> None:
        written[-1] += 1
        write(results, *given)

    monkeypatch.setattr(PodIndependentResults, "_write", counting)
    work = policy_set(p={"filters": ALIKE}).joining(default_profile(), world())
    with pytest.raises(StopIteration):
        while True:
            next(work)
            written.append(0)
    assert (sum(written), max(written)) == (len(ALIKE), 1)


@pytest.mark.parametrize("after", [0, 1, 20, 39])
def test_rows_given_back_between_two_rules_are_seen(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    state, write, written = world(), PodIndependentResults._write, []
    for number in range(500):
        state.set_pod(pod(f"q{number}", on=f"never-{number}"))

    def counting(results: PodIndependentResults, *given: Any) -> None:
        written.append(given)
        write(results, *given)

    monkeypatch.setattr(PodIndependentResults, "_write", counting)
    alike, before = policy_set(p={"filters": ALIKE}), state.nodes.size
    work = alike.joining(default_profile(), state)
    joined = None
    while joined is None:
        try:
            next(work)
        except StopIteration as end:
            joined = end.value
        if len(written) == after + 1 and state.nodes.size == before:
            for placed in list(state.pods.by_id):
                state.remove_pod(placed)
            state.set_node(located("n1", zone="z1", tier="x39"))
            assert state.nodes.size < before
    assert decided(state, joined) == decided(state, alike.join(default_profile()))


def test_the_first_decision_writes_no_result_again(monkeypatch: pytest.MonkeyPatch) -> None:
    state = world()
    joined = finished(policies().joining(default_profile(), state))
    written: list[object] = []
    monkeypatch.setattr(PodIndependentResults, "_write", lambda *given: written.append(given))
    decided(state, joined)
    assert written == []
