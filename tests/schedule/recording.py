"""Plugins from Reserve to PostBind that log their calls, and an observer that records its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policysched.framework import (
    Action,
    AssumedPod,
    BindPlugin,
    Code,
    Handle,
    Hint,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    PreFlight,
    ReservePlugin,
    Resource,
    Status,
    WaitingPod,
)
from policysched.schedule.observer import Attempt, Observer
from tests.build import node, pod
from tests.schedule.parts import FakeFilter, profile
from tests.schedule.stand import running

POD = pod()


FAILED = Status(Code.ERROR, ("nothing left",))


SKIPPED = Status(Code.SKIP)


PENDING = Status(Code.PENDING, ("not yet",))


class Recorder(FakeFilter, ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin):
    """A plugin from Reserve to PostBind that logs its calls and returns prepared answers; None means success."""

    def __init__(self, name: str, log: list[str], **answers: Any) -> None:
        super().__init__(name)
        self.log = log
        self.answers = {"bind": SKIPPED, **answers}

    def _said(self, point: str, assumed: AssumedPod) -> Any:
        self.log.append(f"{self.name} {point}")
        counted = assumed.cluster.pods.by_id.get(f"default.{assumed.pod.metadata.name}")
        assert point == "unreserve" or counted is not None
        answer = self.answers.get(point)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def events(self) -> Sequence[Hint]:
        return (Hint(Resource.NODE, Action.ADD),)

    def reserve(self, assumed: AssumedPod) -> Any:
        return self._said("reserve", assumed)

    def unreserve(self, assumed: AssumedPod) -> Any:
        self._said("unreserve", assumed)

    def permit(self, assumed: AssumedPod, handle: Handle) -> Any:  # noqa: ARG002 - the protocol's signature
        return self._said("permit", assumed)

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> Any:  # noqa: ARG002 - the protocol's signature
        answer = self.answers.get("pre_flight", PreFlight())
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Any:  # noqa: ARG002 - the protocol's signature
        return self._said("pre_bind", assumed)

    async def bind(self, assumed: AssumedPod, handle: Handle) -> Any:  # noqa: ARG002 - the protocol's signature
        return self._said("bind", assumed)

    async def post_bind(self, assumed: AssumedPod, handle: Handle) -> Any:  # noqa: ARG002 - the protocol's signature
        return self._said("post_bind", assumed)


UNDONE = ["B unreserve", "A unreserve"]


ORDER = [f"{name} {point}" for point in ("reserve", "permit", "pre_bind", "bind") for name in "AB"]


async def outcome(
    first: dict[str, Any] | None = None, second: dict[str, Any] | None = None, bind: Exception | None = None
) -> tuple[dict[str, str], list[str], list[str], tuple[int, int]]:
    """Schedule a pod with two recorders; return bindings, notes of events, logged calls, and counts of the queue."""
    log: list[str] = []
    plugins = Recorder("A", log, **(first or {})), Recorder("B", log, **(second or {}))
    async with running(node("n1"), of=profile(plugins)) as stand:
        stand.client.errors["bind"] = [bind]
        await stand.settled(POD)
        counts = stand.scheduler.queue.counts()
        assert len(stand.scheduler.cluster.pods) == len(stand.bound)
        return stand.bound, stand.notes, log, (counts.backoff, counts.unschedulable)


class Heard(Observer):
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.waits: list[tuple[str, Status | None, float]] = []
        self.decided: list[str] = []

    def on_decision(self, queued: Any, decision: Any) -> None:  # noqa: ARG002 - the listener's signature
        self.decided.append(decision.node)

    def on_attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def on_permit_wait(self, waiting: WaitingPod, status: Status | None, seconds: float) -> None:
        self.waits.append((waiting.assumed.pod.metadata.name, status, seconds))
