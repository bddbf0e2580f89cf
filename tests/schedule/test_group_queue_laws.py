"""Laws of a queue with pod groups, in random lives of groups and pods."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.schedule.queue.group_queue import GroupQueue
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.queue.queued_pod_group import GroupOutcome, QueuedPodGroup, evaluation_key
from policysched.state.pod_groups import group_key
from tests.build import pod
from tests.groups import group, member
from tests.schedule.test_group_queue import FIT, GATE, Queued

STEPS = 400
NAMES = [f"g{number}" for number in range(4)]


class Life:
    """Random groups and pods with the attempts that are under way."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.made = Queued()
        self.count = 0
        self.attempts: list[QueuedPodGroup] = []
        self.bindings: list[QueuedPod] = []

    def step(self) -> None:
        often = (self.create, self.create, self.create, self.object, self.pop, self.pop, self.end, self.end)
        act = self.random.choice(
            (*often, self.delete, self.update, self.lose, self.bind, self.bind, self.wait, self.activate)
        )
        act()

    def create(self) -> None:
        self.count += 1
        gates = GATE if self.random.random() < 0.15 else []
        fields: dict[str, Any] = {"scheduling_gates": gates, "priority": self.random.randrange(2)}
        name = f"p{self.count}"
        grouped = self.random.random() < 0.9
        self.made.add(member(name, self.random.choice(NAMES), **fields) if grouped else pod(name, **fields))

    def some(self) -> QueuedPod | None:
        known = list(self.made.queue._pods.values())
        return self.random.choice(known) if known else None

    def delete(self) -> None:
        if (one := self.some()) is not None:
            self.made.remove(one.pod.metadata.name)

    def update(self) -> None:
        one = self.some()
        if one is not None and one.identity not in self.made.cluster.pods.by_id:
            latest = self.made.queue.latest(one)
            labels = {"x": str(self.random.randrange(3))}
            spec = replace(latest.spec, scheduling_gates=[]) if self.random.random() < 0.5 else latest.spec
            self.made.add(replace(latest, metadata=replace(latest.metadata, labels=labels), spec=spec))

    def object(self) -> None:
        self.made.add(group(self.random.choice(NAMES), self.random.choice([None, 1, 2, 3, 5])))

    def lose(self) -> None:
        self.made.drop(group(self.random.choice(NAMES)))

    def pop(self) -> None:
        popped = self.made.queue.pop()
        if isinstance(popped, QueuedPodGroup):
            assert popped.members == sorted(popped.members, key=evaluation_key)
            assert all(one.stage is Stage.IN_FLIGHT for one in popped.members)
            self.attempts.append(popped)
        elif popped is not None:
            self.bindings.append(popped)

    def end(self) -> None:
        if not self.attempts:
            return
        popped = self.attempts.pop(self.random.randrange(len(self.attempts)))
        outcome = self.random.choice(list(GroupOutcome))
        for one in popped.members:
            if outcome is GroupOutcome.SCHEDULED and self.random.random() < 0.6:
                if self.made.queue.get(one.identity) is one:
                    self.made.cluster.assume(one.pod, 0)
                self.bindings.append(one)
            else:
                self.made.queue.reject(one, frozenset() if outcome is GroupOutcome.ERROR else FIT)
        self.made.queue.end_group(popped, outcome)

    def bind(self) -> None:
        if not self.bindings:
            return
        one = self.bindings.pop(self.random.randrange(len(self.bindings)))
        if self.random.random() < 0.3:
            self.made.cluster.forget(one.identity)
            self.made.queue.fail(one)
        else:
            exists = self.made.queue.get(one.identity) is one
            self.made.queue.done(one)
            if exists:
                self.made.cluster.set_pod(replace(one.pod, spec=replace(one.pod.spec, node_name="n1")))

    def wait(self) -> None:
        self.made.clock.at += self.random.choice([0.5, 2, 40])
        self.made.queue.flush()

    def activate(self) -> None:
        if (one := self.some()) is not None:
            self.made.queue.activate([one.identity])

    def check(self) -> None:
        check(self.made.queue, {one.key for one in self.attempts})

    def finish(self) -> None:
        """Every group that no gate holds is tried after the attempts under way and the backoffs have ended."""
        while self.attempts:
            self.end()
        while self.bindings:
            self.bind()
        for _ in range(2):
            self.made.clock.at += 400
            self.made.queue.flush()
        tried = set()
        while (popped := self.made.queue.pop()) is not None:
            if isinstance(popped, QueuedPodGroup):
                tried.add(popped.key)
        groups = self.made.cluster.pod_groups
        assert groups is not None
        expected = {
            state.key
            for state in groups
            if state.has_quorum
            and state.unscheduled
            and not any(one.spec.scheduling_gates for one in state.unscheduled.values())
        }
        assert tried == expected


def check(queue: GroupQueue, in_flight: set[str]) -> None:
    """Each pod is at one place, which its stage names, and the counts are those of the places."""
    known, groups = queue._pods, queue._groups
    members = [one for each in groups.values() for one in each.members]
    assert len({one.identity for one in members}) == len(members)
    by_stage = {stage: [one for one in known.values() if one.stage is stage] for stage in Stage}
    assert {id(one) for one in members} == {id(one) for one in by_stage[Stage.IN_GROUP]}
    held = by_stage[Stage.INCOMPLETE], by_stage[Stage.PENDING]
    assert queue.held_counts() == {"incomplete": len(held[0]), "pending": len(held[1])}
    assert sum(queue.counts()) + sum(map(len, held)) == len(known) - len(by_stage[Stage.IN_FLIGHT])
    assert queue._popped == in_flight
    assert not in_flight & groups.keys()
    assert {group_key(one.pod) for one in held[1]} <= in_flight
    for key, each in groups.items():
        assert each.members == sorted(each.members, key=evaluation_key)
        assert (each.pod.spec.priority or 0) == each.group.priority
        assert (each.stage is Stage.UNSCHEDULABLE) == bool(each.gated_by)
        assert queue._object(key) == each.group
    for one in held[0]:
        assert queue._object(group_key(one.pod)) is None


@pytest.mark.parametrize("seed", range(25))
def test_each_pod_is_at_one_place_and_no_group_is_forgotten(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
        life.check()
    life.finish()
