"""A pod, its events, and the writers for tests of writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from policysched.framework import Event
from policysched.kube.client import KubeClient
from policysched.kube.events.writer import EventWriter
from policysched.model.objects import Metadata, Pod, PodSpec
from tests.kube.fake_server import Answer, Kube, answer

POD = Pod(
    metadata=Metadata(name="web", namespace="d", uid="u-1", resource_version="5"),
    spec=PodSpec(scheduler_name="policysched"),
)
BINDING = "/api/v1/namespaces/d/pods/web/binding"
POD_STATUS = "/api/v1/namespaces/d/pods/web/status"
POLICY_STATUS = "/apis/policysched.io/v1beta1/schedulingpolicies/pin/status"
EVENTS = "/apis/events.k8s.io/v1/namespaces/d/events"
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
NAME = "web.1886d5fcf2dcfc08"
OK = answer({"kind": "Status", "status": "Success"}, 201)
CONDITION = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}


def failed(note: str = "0/1 nodes", after: float = 0.0) -> Event:
    at = AT + timedelta(seconds=after)
    return Event(POD, "Warning", "FailedScheduling", "Scheduling", note, at)


def client(kube: Kube) -> KubeClient:
    return KubeClient(kube.transport, writer(kube), kube.pauses.pacing)


def writer(kube: Kube, **bounds: int) -> EventWriter:
    return EventWriter(kube.transport, kube.pauses.pacing, "host-1", **bounds)


@asynccontextmanager
async def writing(kube: Kube, *answers: Answer, **bounds: int) -> AsyncIterator[EventWriter]:
    kube.server.on("POST", EVENTS, *answers or (OK,))
    tested = writer(kube, **bounds)
    tested.start()
    try:
        yield tested
    finally:
        await tested.close(0.0)
