from __future__ import annotations

import random

import pytest

from policysched.framework import Action, Change, Resource
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from tests.schedule.queue_parts import FIT, NODE_ADDED, POD_REMOVED, SPREAD, Gates, StandingClock, interests, pod, queue

REJECTORS = [FIT, SPREAD, FIT | SPREAD, frozenset()]
CHANGES = [NODE_ADDED, POD_REMOVED, Change(Resource.NODE, Action.UPDATE_NODE_TAINT)]


class Life:
    """Random operations on a queue, and the pods that must be in it."""

    def __init__(self, seed: int) -> None:
        self.draw, self.clock = random.Random(seed), StandingClock()
        self.queue = queue(self.clock, interests(Gates()))
        self.alive: set[str] = set()
        self.flying: dict[str, QueuedPod] = {}

    def step(self) -> None:
        steps = (self.set, self.set, self.pop, self.end, self.move, self.delete, self.activate, self.wait)
        self.draw.choice(steps)(str(self.draw.randrange(40)))

    def set(self, name: str) -> None:
        identity = f"uid-{name}"
        if identity in self.flying and identity not in self.alive:
            return
        gates = ("g",) * self.draw.randrange(2)
        self.queue.update(pod(name, self.draw.randrange(3), gates=gates, v=str(self.draw.random())))
        self.alive.add(identity)

    def pop(self, _: str) -> None:
        queued = self.queue.pop()
        if queued is not None:
            self.flying[queued.identity] = queued

    def end(self, _: str) -> None:
        if not self.flying:
            return
        queued = self.flying.pop(self.draw.choice(list(self.flying)))
        if self.draw.random() < 0.3:
            self.queue.done(queued)
            self.alive.discard(queued.identity)
        else:
            kept = self.queue.reject(queued, self.draw.choice(REJECTORS))
            assert kept is (queued.identity in self.alive)

    def move(self, _: str) -> None:
        self.queue.move(self.draw.choice(CHANGES))

    def delete(self, name: str) -> None:
        assert self.queue.delete(f"uid-{name}") is (f"uid-{name}" in self.alive)
        self.alive.discard(f"uid-{name}")

    def activate(self, name: str) -> None:
        self.queue.activate([f"uid-{name}"])

    def wait(self, _: str) -> None:
        self.clock.at += self.draw.random() * 40

    def check(self) -> None:
        """Assert that every existing pod is in exactly one place, and that the counts match."""
        places = [queued.stage for identity in self.alive if (queued := self.queue.get(identity)) is not None]
        assert len(places) == len(self.alive)
        counts = self.queue.counts()
        assert places.count(Stage.ACTIVE) == counts.active
        assert places.count(Stage.BACKOFF) == counts.backoff
        assert places.count(Stage.UNSCHEDULABLE) == counts.unschedulable + counts.gated
        assert places.count(Stage.IN_FLIGHT) == len(self.alive & set(self.flying))
        assert places.count(Stage.NOWHERE) == 0
        assert self.queue.in_flight[0] == len(self.flying)
        assert self.flying or self.queue.in_flight == (0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_queue_never_loses_or_doubles_a_pod(seed: int) -> None:
    life = Life(seed)
    for _ in range(1500):
        life.step()
        life.check()


def test_queue_brings_every_rejected_pod_back_in_the_end() -> None:
    clock = StandingClock()
    tested = queue(clock)
    for number in range(50):
        tested.add(pod(str(number), number % 3))
    while (queued := tested.pop()) is not None:
        tested.reject(queued, SPREAD if queued.attempts % 2 else frozenset())
        if queued.attempts > 3:
            break
        clock.at += 0.1
    seen = set()
    for _ in range(400):
        clock.at += 5
        while (queued := tested.pop()) is not None:
            seen.add(queued.identity)
            tested.done(queued)
    assert tested.counts() == (0, 0, 0, 0)
    assert len(seen) == 50
