"""Handlers whose scheduler fails: the object is taken out, the others stay as they are, and it is counted."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import default_profile
from policysched.app.running.object_handlers import ObjectHandler
from policysched.errors import OutOfMemoryError
from policysched.kube.object_cache import LeftOutObjects
from policysched.model.objects import (
    Affinity,
    LabelSelector,
    Metadata,
    PersistentVolume,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Requirement,
)
from policysched.model.objects.pods import NodeSelector, NodeSelectorTerm
from policysched.model.objects.storage import PersistentVolumeSpec, PersistentVolumeStatus, VolumeNodeAffinity
from policysched.schedule.scheduler import Scheduler
from policysched.state.placed.counter import PodCounter
from tests.app.test_hostile_objects import fingerprint
from tests.build import node, pod
from tests.schedule.parts import FakeClient

TERM = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "a"}), topology_key="zone")
REACHED = VolumeNodeAffinity(
    required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=(Requirement(key="bad"),))])
)
NEAR = Affinity(pod_affinity=PodAffinity(required=[TERM]))


class Stand:
    """A scheduler behind handlers, and how often they left something out."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        left_out = LeftOutObjects(lambda: 0.0, self.registry)
        clock = SystemClock()
        self.scheduler = Scheduler({"me": default_profile("me")}, FakeClient(), clock, random.Random(0))
        self.handler = ObjectHandler(self.scheduler, left_out)

    def take(self, *objects: Any) -> Stand:
        for one in objects:
            self.handler.upsert(one)
        return self

    def failed(self, kind: str) -> float | None:
        labels = {"kind": kind, "reason": "failed"}
        return self.registry.get_sample_value("policysched_objects_left_out_total", labels)


def volume(name: str, **more: Any) -> PersistentVolume:
    return PersistentVolume(metadata=Metadata(name=name, **more), status=PersistentVolumeStatus(phase="Available"))


GOOD = (node("n1"), node("n2"), pod("a", on="n1", labels={"app": "a"}), pod("b", on="n9"), volume("v1"))
BAD: dict[str, tuple[Any, Any]] = {
    "Node": (node("x", images={"i": 5}), node("x", labels={"x": "bad"}, allocatable={"bad": 1}, features=("bad",))),
    "Pod": (
        pod("x", on="n1", requests={"cpu": "1"}, affinity=NEAR),
        pod("x", on="n1", labels={"app": "bad"}, requests={"cpu": "2"}, affinity=NEAR),
    ),
    "PersistentVolume": (volume("x"), replace(volume("x"), spec=PersistentVolumeSpec(node_affinity=REACHED))),
}
FAULTS = {
    "Node": (
        "tables.nodes.allocatable",
        "tables.nodes.declared_features",
        "cluster._images",
        "cluster.node_difference",
    ),
    "Pod": (
        "cluster.PlacedPod",
        "placed.pods.signature_key",
        "placed.existing_terms.existing_terms",
        "cluster.weighs_differently",
    ),
    "PersistentVolume": ("volumes.storage.affinity_key",),
}


def breaking(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Let a function fail that is asked about a bad object."""
    module, _, name = place.rpartition(".")
    target = f"policysched.state.{module}.{name}"
    real = __import__(f"policysched.state.{module}", fromlist=[name]).__dict__[name]

    def failing(*arguments: Any, **options: Any) -> Any:
        if any("bad" in repr(one) for one in arguments):
            raise RecursionError(place)
        return real(*arguments, **options)

    monkeypatch.setattr(target, failing)


@pytest.mark.parametrize(("kind", "place"), [(kind, place) for kind, places in FAULTS.items() for place in places])
@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_object_that_cannot_be_taken_in_leaves_no_trace(
    kind: str, place: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = BAD[kind]
    stand = Stand().take(*GOOD, *([before] if known else []))
    with monkeypatch.context() as patch:
        breaking(patch, place)
        stand.take(after)
    if not known and place in {"cluster.node_difference", "cluster.weighs_differently"}:
        assert not stand.failed(kind)
        return
    assert stand.failed(kind) == 1
    assert fingerprint(stand.scheduler.cluster) == fingerprint(Stand().take(*GOOD).scheduler.cluster)
    stand.take(after)
    assert fingerprint(stand.scheduler.cluster) == fingerprint(Stand().take(*GOOD, after).scheduler.cluster)


def test_weight_that_cannot_be_told_leaves_no_trace() -> None:
    stand = Stand().take(*GOOD)

    def weigh(placed: Any) -> float:
        if placed.pod.metadata.name == "bad":
            raise ValueError
        return 1.0

    first = stand.scheduler.cluster.counters.of("first", lambda _: 1.0)
    second: PodCounter = stand.scheduler.cluster.counters.of("second", weigh)
    stand.take(pod("bad", on="n1", labels={"app": "z"}))
    assert stand.failed("Pod") == 1
    stand.take(pod("c", on="n2", labels={"x": "y"}))
    for counter in (first, second):
        assert int(counter.counts.sum()) == 3
        assert len(counter.weights) == 3


def test_pending_pod_that_cannot_be_queued_is_not_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand()
    with monkeypatch.context() as patch:
        patch.setattr("policysched.plugins.queue_plugins.PrioritySort.key", _raise_with)
        stand.take(pod("bad", scheduler_name="me"))
    assert stand.failed("Pod") == 1
    assert sum(stand.scheduler.queue.counts()) == 0
    stand.take(pod("good", scheduler_name="me"))
    queued = stand.scheduler.queue.pop()
    assert queued is not None
    assert queued.pod.metadata.name == "good"


def _raise_with(*_: Any) -> Any:
    raise RecursionError


def test_list_goes_on_behind_an_object_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand()
    breaking(monkeypatch, "cluster.PlacedPod")
    bad = pod("bad", on="n1")
    stand.handler.replace([pod("a", on="n1"), bad, pod("b", on="n1")], [bad])
    assert sorted(one.pod.metadata.name for one in stand.scheduler.cluster.pods.by_id.values()) == ["a", "b"]
    assert stand.failed("Pod") == 1


def test_object_that_cannot_be_taken_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand().take(*GOOD)
    monkeypatch.setattr(stand.scheduler._changes, "publish", _raise_with)
    stand.handler.delete(node("n1"))
    assert stand.failed("Node") == 1
    assert "n1" not in {one.metadata.name for one in stand.scheduler.cluster.nodes.nodes if one is not None}


def test_assumption_that_fails_leaves_the_pod_to_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Stand().take(*GOOD).scheduler.cluster
    before = fingerprint(cluster)
    breaking(monkeypatch, "placed.existing_terms.existing_terms")
    with pytest.raises(RecursionError):
        cluster.assume(Pod(metadata=Metadata(name="bad", uid="x"), spec=PodSpec(affinity=NEAR)), 0)
    assert fingerprint(cluster) == before


@pytest.mark.parametrize("method", ["take", "drop"])
def test_memory_that_is_at_its_end_is_no_object_s_fault(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    stand = Stand().take(*GOOD)
    monkeypatch.setattr(stand.scheduler, method, exhausted)
    act = stand.handler.upsert if method == "take" else stand.handler.delete
    with pytest.raises(OutOfMemoryError, match="no memory is left for a Pod; the process exits"):
        act(GOOD[2])
    assert stand.failed("Pod") is None, "it is not left out"
