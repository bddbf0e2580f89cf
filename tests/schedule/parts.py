"""Plugins that count their calls, a client that records writes, and profiles for them."""

# ruff: noqa: ARG002 - the fakes do not use all arguments of the protocols
from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import numpy as np

from policysched.framework import (
    SKIP,
    Action,
    ApiError,
    Aspect,
    ChangedRow,
    Cluster,
    Codes,
    Event,
    Hint,
    Incremental,
    Mask,
    Narrow,
    PodStatusChange,
    PolicyEvent,
    Resource,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    WhatIfFilter,
    unschedulable,
)
from policysched.framework.profile import Filter, Profile, Score
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, Pod, PodGroup
from policysched.model.policy import Policy
from policysched.plugins.default_binder import DefaultBinder
from policysched.plugins.queue_plugins import PrioritySort
from policysched.schedule.cycle.engine import Engine
from policysched.testing.recorded_writes import RecordingClaims


class Fake:
    """A plugin with a constant answer, which counts preparations and records the nodes of each call."""

    def __init__(self, name: str, answer: Any = None, reads: Aspect = Aspect.NONE, *, normalizes: bool = False) -> None:
        self.name = name
        self.answer = answer
        self.filter_reads = self.score_reads = reads
        self.normalizes = normalizes
        self.prepared = 0
        self.asked: list[list[str]] = []
        self.generations: Hashable = 0

    def events(self) -> Sequence[Hint]:
        return (Hint(Resource.NODE, Action.ALL),)

    def stamp(self, cluster: Cluster) -> Hashable:
        return self.generations

    def _names(self, cluster: Cluster, rows: Rows) -> list[str]:
        numbers = np.arange(cluster.nodes.size)[rows].tolist()
        names = [cluster.nodes.names[row] for row in numbers]
        self.asked.append(sorted(names))
        return names


class FakeFilter(Fake, WhatIfFilter[Any], Incremental[Any]):
    """A filter that rejects the nodes of its answer, or returns its answer from the preparation."""

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        self.prepared += 1
        if isinstance(self.answer, Narrow):
            return Narrow(cluster, self.answer.nodes)
        return self.answer if self.answer is SKIP or isinstance(self.answer, Status) else cluster

    def filter(self, state: Cluster, rows: Rows) -> Codes:
        rejected = self.answer if isinstance(self.answer, set) else set()
        return np.array([name in rejected for name in self._names(state, rows)], np.int32)

    def filter_changed(self, state: Cluster, changed: ChangedRow) -> Status | None:
        [code] = self.filter(state, np.array([changed.row]))
        return self.reason(state, code) if code else None

    def reason(self, state: Any, code: int) -> Status:
        return unschedulable(f"{self.name} says no")


class FakeScore(Fake, ScorePlugin[Any], Incremental[Any]):
    """A score plugin that returns the scores of its answer."""

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        self.prepared += 1
        return self.answer if self.answer is SKIP or isinstance(self.answer, Status) else cluster

    def score(self, state: Cluster, rows: Rows) -> Scores:
        given = self.answer or {}
        return np.array([given.get(name, 0) for name in self._names(state, rows)], np.int64)

    def normalize(self, state: Cluster, scores: Scores, feasible: Mask) -> Scores:
        return 100 * scores // max(1, int(scores.max(initial=0, where=feasible)))


def profile(filters: Sequence[Filter] = (), scores: Sequence[tuple[Score, int]] = ()) -> Profile:
    def having(method: str) -> tuple[Any, ...]:
        return tuple(one for one in filters if hasattr(one, method))

    return Profile(
        "default-scheduler",
        PrioritySort(),
        filters=tuple(filters),
        scores=tuple(scores),
        reserves=having("reserve"),
        permits=having("permit"),
        pre_binds=having("pre_bind"),
        binds=(*having("bind"), DefaultBinder()),
        post_binds=having("post_bind"),
    )


def engine(
    cluster: Cluster,
    filters: Sequence[Filter] = (),
    scores: Sequence[tuple[Score, int]] = (),
    seed: int = 0,
) -> Engine:
    return Engine(cluster, profile(filters, scores), random.Random(seed))


class FakeClient:
    """A client that records writes; each request first raises the next of its `errors`, if that is not None."""

    def __init__(self) -> None:
        self.claims = RecordingClaims()
        self.bound: list[tuple[str, str]] = []
        self.conditions: list[tuple[str, dict[str, Any]]] = []
        self.group_conditions: list[tuple[str, dict[str, Any]]] = []
        self.nominated: list[tuple[str, str]] = []
        self.deleted: list[str] = []
        self.statuses: list[tuple[str, str, dict[str, Any]]] = []
        self.annotation_makes: str | None = None
        """Resource version after a write of annotations; None: the version before."""
        self.annotated: list[tuple[str, str, dict[str, str]]] = []
        self.events: list[Event | PolicyEvent] = []
        self.written: list[tuple[str, str]] = []
        self.errors: dict[str, list[Exception | None]] = {
            "bind": [], "condition": [], "status": [], "annotation": [], "read": [], "volume": [],
            "deletion": [], "group": [],
        }  # fmt: skip
        self.nodes: dict[str, str] = {}
        self.on_bind: Any = None

    def _answer(self, request: str) -> None:
        error = self.errors[request].pop(0) if self.errors[request] else None
        if error is not None:
            raise error

    async def bind(self, pod: Pod, node: str) -> None:
        if self.on_bind is not None:
            await self.on_bind(pod, node)
        self._answer("bind")
        self.bound.append((pod.key, node))

    async def node_of(self, pod: Pod) -> str:
        self._answer("read")
        return self.nodes.get(pod.key, "")

    async def claim_volume(self, volume: PersistentVolume) -> str:
        self._answer("volume")
        self.written.append((volume.metadata.name, ""))
        return "2"

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        self._answer("volume")
        self.written.append((claim.key, node))
        return "2"

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        await self.set_pod_status(pod, newest())

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        self._answer("condition")
        if change.condition is not None:
            self.conditions.append((pod.key, change.condition))
        if change.nominated_node is not None:
            self.nominated.append((pod.key, change.nominated_node))

    async def set_pod_group_status(self, group: PodGroup, condition: dict[str, Any]) -> None:
        self._answer("group")
        self.group_conditions.append((group.key, condition))

    async def delete_pod(self, pod: Pod) -> None:
        self._answer("deletion")
        self.deleted.append(pod.key)

    async def set_policy_status(self, policy: str, resource_version: str, status: dict[str, Any]) -> None:
        self._answer("status")
        self.statuses.append((policy, resource_version, status))

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:
        self._answer("annotation")
        version = policy.metadata.resource_version
        self.annotated.append((policy.key, version, annotations))
        return version if self.annotation_makes is None else self.annotation_makes

    def record(self, event: Event | PolicyEvent) -> None:
        self.events.append(event)

    @property
    def told(self) -> list[tuple[str, str, str]]:
        """Pod, reason and note of each event."""
        return [(event.pod.key, event.reason, event.note) for event in cast("list[Event]", self.events)]


def refused(status: int, message: str = "no") -> ApiError:
    return ApiError(status, "Reason", message)
