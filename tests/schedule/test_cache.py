"""What pod classes are remembered by takes no more memory than the engine allows for it."""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

from policysched.app.profiles import default_profile
from policysched.schedule import engine
from policysched.schedule.engine import Engine
from tests.build import cluster, node, pod
from tests.rules.build import policy_set, scoring

ALLOWED = 2_000_000
"""Units: bytes."""


def test_scores_that_are_normalised_count_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CACHE_BYTES", ALLOWED)
    values = ("pod.priority", "pod.requests.memory / 1Ki", "node.requested.pods")
    rules = [
        rule
        for place, value in enumerate(values)
        for rule in scoring(f"node.free.cpu / 1m + {value}", f"s{place}", normalize="Max")
    ]
    around = cluster(*(node(f"n{number}", allocatable={"cpu": number}) for number in range(2000)))
    made = Engine(around, policy_set(p={"scores": rules}).join(default_profile()), random.Random(0))
    made.decide(pod())
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(100):
            made.decide(pod(requests={"cpu": f"{number + 1}m"}))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1.5 * ALLOWED
