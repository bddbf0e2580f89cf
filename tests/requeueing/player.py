"""Plays a situation in this process: objects are added as from an API server, and cycles are run one by one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from copy import deepcopy
from itertools import count
from typing import Any

from policysched.app.configuration.profiles import configured_profiles
from policysched.model.defaults import priority_classes
from policysched.model.kinds import KINDS, fill
from policysched.model.release import DEFAULT, Release
from policysched.schedule.binding import Failure
from policysched.schedule.observer import AttemptResult, Observer
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.scheduler import Scheduler
from policysched.state.cluster import Cluster
from tests.e2e.objects import Json
from tests.requeueing.situations import Change, Create, Delete, Situation, Step
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock

CLASSES = priority_classes(())
READY = frozenset((Stage.ACTIVE, Stage.BACKOFF))


def configuration(*plugins: str, name: str) -> Json:
    """Return a KubeSchedulerConfiguration with one profile of these plugins and those that every profile needs."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile(name, plugins)],
    }


def profile(name: str, plugins: Sequence[str]) -> Json:
    """Return one profile of such a configuration."""
    enabled = [{"name": one} for one in ("PrioritySort", *plugins, "DefaultBinder")]
    return {
        "schedulerName": name,
        "plugins": {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}},
    }


class Moves(Observer):
    """An observer that records which events moved pods to which queues."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:
        """Record a move."""
        self.seen.append((queued.pod.metadata.name, queue, event))


class Player:
    """A scheduler with the plugins of a situation, whose cycles the test runs."""

    def __init__(self, row: Situation, release: Release = DEFAULT) -> None:
        self.row = row
        self.moves = Moves()
        self.clock = StandingClock()
        profiles = configured_profiles(configuration(*row.plugins, name="gardener"), release=release)
        cluster = Cluster(release=release)
        self.scheduler = Scheduler(profiles, FakeClient(), self.clock, random.Random(0), (self.moves,), cluster=cluster)
        self._objects: dict[tuple[str, str], Json] = {}
        self._versions = count(1)

    async def begin(self, *, meanwhile: bool = False) -> None:
        """Reject all waiting pods; with `meanwhile`, the steps are done before these attempts end."""
        for obj in self.row.given:
            self._put(deepcopy(obj))
        for one in self.row.waiting:
            self._put(deepcopy(one.pod) | {"spec": one.pod["spec"] | {"schedulerName": "gardener"}})
        attempts: list[tuple[QueuedPod, Failure]] = []
        while (queued := self.scheduler.queue.pop()) is not None:
            attempts.append((queued, self._turned_away(queued)))
        if meanwhile:
            self.play()
        for queued, failure in attempts:
            self.scheduler.attempts.fail(queued, failure)
        await asyncio.sleep(0)
        if not meanwhile:
            self.clock.at += 20  # the backoff is over
            self.moves.seen.clear()

    def _turned_away(self, queued: QueuedPod) -> Failure:
        decision = self.scheduler._engines["gardener"].decide(queued.pod)
        assert decision.row < 0, f"{queued.pod.key} fits on {decision.node}"
        return Failure(AttemptResult.UNSCHEDULABLE, decision.fit_error(), decision.rejectors())

    def rejectors(self) -> dict[str, frozenset[str]]:
        """Return the plugins that rejected each waiting pod."""
        return {one.pod.metadata.name: one.rejectors for one in self._waiting()}

    def play(self) -> None:
        """Do all steps in order."""
        for step in self.row.steps:
            self._do(step)

    def ready(self) -> frozenset[str]:
        """Return the names of the pods that will be tried again."""
        return frozenset(one.pod.metadata.name for one in self._waiting() if one.stage in READY)

    def woken_by(self) -> frozenset[str]:
        """Return the events that moved pods to the active or the backoff queue after their rejection."""
        return frozenset(event for _, queue, event in self.moves.seen if queue in {"active", "backoff"})

    def _waiting(self) -> list[QueuedPod]:
        found = [self.scheduler.queue.get(f"uid-{one.name}") for one in self.row.waiting]
        return [one for one in found if one is not None]

    def _do(self, step: Step) -> None:
        match step:
            case Create(obj):
                self._put(deepcopy(obj))
            case Change(kind, name, edit):
                changed = deepcopy(self._objects[kind, name])
                edit(changed)
                self._put(changed)
            case Delete(kind, name):
                gone = self._objects.pop((kind, name))
                self.scheduler.drop(KINDS[kind].decode(gone))

    def _put(self, obj: Json) -> None:
        metadata: dict[str, Any] = obj["metadata"]
        metadata |= {"uid": f"uid-{metadata['name']}", "resourceVersion": str(next(self._versions))}
        obj = fill(obj, CLASSES)
        self._objects[obj["kind"], metadata["name"]] = obj
        self.scheduler.take(KINDS[obj["kind"]].decode(obj))
