"""What a policy remembers of the pods that it turned away is bounded, however large they are, and keeps none alive."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import pytest
from msgspec.structs import replace

from policysched.model.objects import Pod
from policysched.rules.plugin import hints
from tests.build import cluster, node, pod
from tests.rules.build import filtering, plugin

LARGE = 100_000
"""Units: characters."""


def large(number: int) -> Pod:
    made = pod(f"p{number}")
    return replace(made, metadata=replace(made.metadata, annotations={"a": f"{number}" + "x" * LARGE}))


def test_pods_that_were_turned_away_are_not_kept_alive() -> None:
    made, around = plugin(filters=filtering('node.labels["disk"] == "ssd"')), cluster(node())
    pods = [pod(f"p{number}") for number in range(100)]
    refs = [weakref.ref(one) for one in pods]
    for one in pods:
        made.on_rejected(one, around)
    del pods, one
    gc.collect()
    # the pod that stands for all that are alike, and the one that was looked at last
    assert sum(ref() is not None for ref in refs) <= 2


def test_memory_of_pods_that_were_turned_away_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "REJECTIONS_BYTES", 20 * LARGE)
    made, around = plugin(filters=filtering("node.name == pod.name")), cluster(node())
    made.on_rejected(pod("first"), around)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(100):
            made.on_rejected(large(number), around)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 20 * LARGE


@pytest.mark.parametrize(
    "text",
    [
        "node.name == pod.name",
        'node.pods.count(peer.labels["a"] == pod.labels["a"]) < 1 and avg(node.free.cpu) > pod.requests.cpu',
    ],
)
def test_what_a_rejected_pod_takes_is_counted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def measure(self: hints.RejectedPods, of: Pod) -> None:
        measured(self, of)
        counted.append(self.nbytes)

    measured = hints.RejectedPods.measure
    monkeypatch.setattr(hints.RejectedPods, "measure", measure)
    made, around = plugin(filters=filtering(text)), cluster(node())
    pods = [pod(f"p{number}", labels={"a": f"x{number}"}) for number in range(200)]
    made.on_rejected(pod("first"), around)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for one in pods:
            made.on_rejected(one, around)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(counted) == 1 + len(pods)
    assert taken <= 1.1 * sum(counted)
