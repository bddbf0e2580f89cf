"""What policies count of placed pods for a pod class is counted before its first cycle, a counter at a time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle import engine as engine_module
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.scheduler import Scheduler
from policysched.state.placed.counters import PodCounters
from tests.build import cluster, node, pod
from tests.rules.build import filtering, policy_set, scoring
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock

NODES = tuple(node(f"n{number}") for number in range(4))
COUNTERS = 6
PODS = 100


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "LONG_COUNTS", COUNTERS * PODS)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The keys of counters as they are made."""
    keys: list[object] = []
    make = PodCounters._begin

    def noted(self: PodCounters, counter: object, key: object, *rest: object) -> None:
        keys.append(key)
        make(self, counter, key, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(PodCounters, "_begin", noted)
    yield keys


def counting() -> Profile:
    """Policies that each count the pods of other values, some for a filter and some for a score."""
    unlike = [f'node.pods.count(peer.labels["a"] != concat(pod.labels["a"], "{number}"))' for number in range(COUNTERS)]
    half = COUNTERS // 2
    filters = {f"f{number}": {"filters": filtering(f"{text} < 1000")} for number, text in enumerate(unlike[:half])}
    scores = {f"s{number}": {"scores": scoring(text)} for number, text in enumerate(unlike[half:])}
    return policy_set(**filters, **scores).join(default_profile("default-scheduler"))


def crowded() -> Cluster:
    pods = (pod(f"p{number}", on=f"n{number % 4}", labels={"a": f"v{number}"}) for number in range(PODS))
    return cluster(*NODES, *pods)


def newcomer(value: str = "v1") -> Pod:
    return pod("new", labels={"a": value})


def test_a_cycle_finds_the_counters_of_its_class_made_one_a_turn(made: list[object]) -> None:
    engine = Engine(crowded(), counting(), random.Random(0))
    turns = [len(made) for _ in engine.working_ahead(newcomer())]
    assert turns == list(range(1, COUNTERS + 1))
    first = engine.decide(newcomer())
    assert len(made) == COUNTERS
    assert first.node == Engine(crowded(), counting(), random.Random(0)).decide(newcomer()).node
    assert not list(engine.working_ahead(newcomer()))  # the class is known
    assert not engine._held


def test_a_pod_that_is_placed_meanwhile_counts() -> None:
    around, profile = crowded(), counting()
    engine = Engine(around, profile, random.Random(0))
    for number, _ in enumerate(engine.working_ahead(newcomer())):
        around.set_pod(pod(f"late{number}", on="n0", labels={"a": f"late{number}"}))
    found = engine.evaluate(newcomer())
    anew = Engine(around, profile, random.Random(0)).evaluate(newcomer())
    assert found.ranked.tolist() == anew.ranked.tolist()


def test_few_pods_are_counted_in_the_cycle(made: list[object]) -> None:
    few = Engine(cluster(*NODES, pod("one", on="n0", labels={"a": "v1"})), counting(), random.Random(0))
    assert not list(few.working_ahead(newcomer()))
    plain = Engine(crowded(), default_profile(), random.Random(0))
    assert not list(plain.working_ahead(newcomer()))
    assert not made


async def test_the_loop_has_its_turn_between_counters(made: list[object]) -> None:
    profile = default_profile("default-scheduler")
    scheduler = Scheduler(
        {"default-scheduler": profile}, FakeClient(), StandingClock(), random.Random(0), cluster=crowded()
    )
    scheduler._engines["default-scheduler"].use(counting())
    scheduler.take(newcomer())
    queued = scheduler.queue.pop()
    assert queued is not None
    attempt = asyncio.create_task(scheduler.attempts.make(queued))
    turns = []
    while not attempt.done():
        await asyncio.sleep(0)
        turns.append(len(made))
    assert set(range(1, COUNTERS + 1)) <= set(turns)
