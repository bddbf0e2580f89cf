"""What a listed object costs until the scheduler has it, counted in calls of functions: the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from bench import start
from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.process_metrics import ProcessMetrics
from policysched.app.running.object_handlers import ObjectHandler
from policysched.kube.object_cache import LeftOutObjects, ObjectCache
from policysched.model.kinds import NODES, PODS, ApiKind
from policysched.schedule.observer import LOG_LINES
from policysched.schedule.scheduler import Scheduler
from tests.schedule.parts import FakeClient
from tests.work import calls

COUNT = 200
MOST = {"node": 142, "placed pod": 98, "waiting pod": 113}
"""How many functions may be called for an object, of Python and of C."""


def made(kind: str, number: int) -> dict[str, Any]:
    if kind == "node":
        return start.node(number)
    return start.pod(number, start.node(number % 7)["metadata"]["name"] if kind == "placed pod" else "")


@pytest.fixture
def handler() -> ObjectHandler:
    clock = SystemClock()
    metrics = ProcessMetrics(clock, CollectorRegistry())
    profiles = {start.ME: default_profile(start.ME)}
    observers = (*LOG_LINES, *metrics.observers)
    scheduler = Scheduler(profiles, FakeClient(), clock, random.Random(0), observers, metrics.timing)
    return ObjectHandler(scheduler, LeftOutObjects(clock.monotonic))


def listing(handler: ObjectHandler, kind: str, first: int) -> Callable[[], None]:
    """Make what takes a list."""
    listed: ApiKind[Any] = NODES if kind == "node" else PODS
    taking = ObjectCache(listed, handler.left_out.malformed).replacement()
    raws = [msgspec.Raw(msgspec.json.encode(made(kind, number))) for number in range(first, first + COUNT)]

    def take() -> None:
        taking.take(raws)
        handler.replace(*taking.taken())
        taking.finish()

    return take


def count_of(handler: ObjectHandler) -> int:
    """The number of nodes and pods of a scheduler."""
    scheduler = handler.scheduler
    return scheduler.cluster.nodes.count + len(scheduler.cluster.pods) + sum(scheduler.queue.counts())


@pytest.mark.parametrize("kind", MOST)
def test_listed_object_costs_few_calls(handler: ObjectHandler, kind: str) -> None:
    listing(handler, kind, 0)()  # what is worked out once for all of a kind
    count = count_of(handler)
    assert calls(listing(handler, kind, COUNT)) < MOST[kind] * COUNT
    assert count_of(handler) >= count + COUNT
