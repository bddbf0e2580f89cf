"""Volume data updated event by event gives the same decisions as data loaded at once.

POLICYSCHED_SEED sets the seed, POLICYSCHED_LIVES the number of random clusters.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any, get_args

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.decode import decode_node, decode_pod
from policysched.model.defaults import priority_classes
from policysched.model.kinds import KINDS, fill
from policysched.model.objects import Stored
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import Record, make_record
from policysched.state.placed.pods import pod_id
from tests.oracle.storage import storage

SEED = int(os.environ.get("POLICYSCHED_SEED") or 20260707)
LIVES = int(os.environ.get("POLICYSCHED_LIVES") or 30)
STORED = [one.__name__ for one in get_args(Stored)]
NO_CLASSES = priority_classes([])
Object = dict[str, Any]


def put(around: Cluster, raw: Object) -> None:
    filled = fill(raw, NO_CLASSES)
    if raw["kind"] == "Node":
        around.set_node(decode_node(filled))
    elif raw["kind"] == "Pod":
        around.set_pod(decode_pod(filled))
    elif raw["kind"] in STORED:
        around.set_stored(KINDS[raw["kind"]].decode(filled))


def drop(around: Cluster, raw: Object) -> None:
    if raw["kind"] == "Node":
        around.remove_node(raw["metadata"]["name"])
    elif raw["kind"] == "Pod":
        around.remove_pod(pod_id(decode_pod(fill(raw, NO_CLASSES))))
    elif raw["kind"] in STORED:
        around.remove_stored(KINDS[raw["kind"]].decode(fill(raw, NO_CLASSES)))


def loaded(objects: Iterable[Object]) -> Cluster:
    around = Cluster()
    for raw in sorted(objects, key=lambda one: one["kind"] == "Pod"):
        put(around, raw)
    return around


def begun(around: Cluster) -> Engine:
    return Engine(around, default_profile(), random.Random(0))


def decided(engine: Engine, wanted: Object) -> Record:
    record = make_record(engine.decide(decode_pod(fill(wanted, NO_CLASSES))))
    record.pop("selected", None)
    for status in record.get("rejected", {}).values():
        status["reasons"] = sorted(status["reasons"])
    return record


@pytest.mark.parametrize("life", range(LIVES))
def test_a_cluster_that_lived_decides_as_one_that_was_loaded(life: int) -> None:
    rng = random.Random(f"{SEED}/{life}")
    case = storage(rng, "life")
    objects, wanted = case["objects"], case["pod"]
    around, there = Cluster(), dict[int, Object]()
    live = begun(around)
    for step in range(4 * len(objects)):
        number = rng.randrange(len(objects))
        if number in there and rng.random() < 0.5:
            drop(around, there.pop(number))
        else:
            there[number] = objects[number]
            put(around, objects[number])
        if step % 20 == 0:
            assert decided(live, wanted) == decided(begun(loaded(there.values())), wanted), f"POLICYSCHED_SEED={SEED}"
    assert decided(live, wanted) == decided(begun(loaded(there.values())), wanted), f"POLICYSCHED_SEED={SEED}"
