from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace as replace_field
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, ApiError, AssumedPod, Change
from policysched.kube.short_requests import Answer
from policysched.kube.transport import refusal
from policysched.model.objects import Metadata, Pod, PodCondition, PodSpec, PodStatus
from policysched.schedule.binding import NOTE_LIMIT, Binder, Failure
from policysched.schedule.observer import Attempt, AttemptResult, Observer
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import QueuedPod
from tests.build import cluster, node
from tests.schedule.parts import FakeClient, profile, refused
from tests.schedule.queue_parts import StandingClock, queue

POD = Pod(metadata=Metadata(name="p", namespace="d", uid="u", generation=3), spec=PodSpec(scheduler_name="p"))
ASSIGNED = ("d/p", "Scheduled", "Successfully assigned d/p to n1")


PROFILE = profile()


class Listener(Observer):
    """An observer that records attempts."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def on_attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)


class Stand:
    """A binder, and an attempt whose pod is popped and assumed."""

    def __init__(self) -> None:
        self.clock = StandingClock()
        self.client = FakeClient()
        self.cluster = cluster(node("n1"), node("n2"))
        self.queue: Queue = queue(self.clock)
        self.changes: list[Change] = []
        self.heard = Listener()
        self.binder = Binder(
            self.cluster,
            self.queue,
            self.client,
            self.clock,
            lambda change, _: self.changes.append(change),
            [self.heard],
        )

    def attempt(self, of: Pod = POD) -> QueuedPod:
        self.queue.add(of)
        queued = self.queue.pop()
        assert queued is not None
        self.cluster.assume(queued.pod, self.cluster.nodes.row_of["n1"])
        return queued

    async def bind(self, queued: QueuedPod, node: str = "n1") -> None:
        await self.binder.bind(queued, AssumedPod(queued.pod, node, self.cluster), PROFILE)

    def bound_elsewhere(self, name: str) -> None:
        self.queue.delete("u")
        self.cluster.set_pod(replace(POD, spec=replace(POD.spec, node_name=name)))


async def test_a_bound_pod_stays_assumed_until_it_is_confirmed() -> None:
    stand = Stand()
    await stand.bind(stand.attempt())
    assert stand.client.bound == [("d/p", "n1")]
    assert stand.client.told == [ASSIGNED]
    [event] = stand.client.events
    assert (event.type, event.action, event.at) == ("Normal", "Binding", stand.clock.now())
    assert stand.cluster.is_assumed("u")
    assert (stand.queue.get("u"), stand.queue.in_flight, stand.changes) == (None, (0, 0), [])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (refused(409, "Operation cannot be fulfilled"), "Operation cannot be fulfilled"),
        (refused(500, "internal"), "internal"),
        (refused(0, "no connection"), "no connection"),
        (ValueError("a bug"), "ValueError('a bug')"),
    ],
)
async def test_a_failed_binding_frees_the_node_and_is_tried_again_without_an_event(error: Exception, said: str) -> None:
    stand = Stand()
    stand.client.errors["bind"] = [error]
    await stand.bind(stand.attempt())
    message = f'running Bind plugin "DefaultBinder": {said}'
    assert stand.client.told == [("d/p", "FailedScheduling", message)]
    [(key, condition)] = stand.client.conditions
    assert (key, condition["reason"], condition["message"]) == ("d/p", "SchedulerError", message)
    assert not stand.cluster.is_assumed("u")
    [change] = stand.changes
    freed = replace(POD, spec=replace(POD.spec, node_name="n1"))
    assert (change.old, change.row) == (freed, stand.cluster.nodes.row_of["n1"])
    assert stand.queue.counts().backoff == 1
    [attempt] = stand.heard.attempts
    assert (attempt.result, attempt.node, attempt.message, attempt.is_news) == (
        AttemptResult.ERROR,
        "n1",
        message,
        True,
    )
    stand.clock.at += 3
    again = stand.queue.pop()
    assert again is not None
    assert again.attempts == 2


async def test_binding_whose_end_cannot_be_found_out_frees_the_node() -> None:
    stand = Stand()
    stand.client.errors |= {"bind": [refused(500, "internal")], "read": [ValueError("a bug")]}
    await stand.bind(stand.attempt())
    assert stand.client.told == [
        ("d/p", "FailedScheduling", "running Bind plugin \"DefaultBinder\": ValueError('a bug')")
    ]
    assert not stand.cluster.is_assumed("u")
    assert stand.queue.counts().backoff == 1


async def test_a_pod_that_the_server_does_not_find_is_tried_again_until_the_watch_says_it_is_gone() -> None:
    stand = Stand()
    stand.client.errors["bind"] = [refused(404, 'pods "p" not found')]
    await stand.bind(stand.attempt())
    assert stand.queue.counts().backoff == 1
    assert (stand.queue.in_flight, len(stand.cluster.pods)) == ((0, 0), 0)
    assert stand.queue.delete("u")


async def test_a_pod_whose_deletion_was_seen_meanwhile_is_dropped_silently() -> None:
    stand = Stand()
    queued = stand.attempt()
    stand.queue.delete("u")
    stand.client.errors["bind"] = [refused(404, 'pods "p" not found')]
    await stand.bind(queued)
    assert (stand.client.events, stand.client.conditions) == ([], [])
    assert (stand.queue.get("u"), stand.queue.in_flight, len(stand.cluster.pods)) == (None, (0, 0), 0)


@pytest.mark.parametrize("lost", [0, 409, 500, 503])
async def test_a_binding_whose_answer_was_lost_counts_until_the_server_says_what_became_of_it(
    lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Stand()
    counted: list[int] = []

    async def pause(_: float) -> None:
        counted.append(len(stand.cluster.pods))

    monkeypatch.setattr(stand.binder, "handle", replace_field(stand.binder.handle, pause=pause))
    stand.client.errors |= {"bind": [refused(lost)], "read": [refused(0), refused(503), refused(429), None]}
    stand.client.nodes["d/p"] = "n1"
    await stand.bind(stand.attempt())
    assert counted == [1, 1, 1]
    assert [event.reason for event in stand.client.events] == ["Scheduled"]
    assert (stand.queue.in_flight, len(stand.cluster.pods)) == ((0, 0), 1)


GONE = ApiError(404, "NotFound", 'pods "p" not found')
PAGE = refusal(Answer(404, "Not Found", "text/html", "", b"<html>no backend</html>"), "https://server")
FORBIDDEN = ApiError(403, "Forbidden", "the roles are not known yet")


def pausing(stand: Stand, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None] = lambda: None) -> list[float]:
    """Make pauses advance the clock and call a function; return the list of their start times."""
    began: list[float] = []

    async def pause(seconds: float) -> None:
        began.append(stand.clock.at)
        stand.clock.at += seconds
        meanwhile()

    monkeypatch.setattr(stand.binder, "handle", replace_field(stand.binder.handle, pause=pause))
    return began


@pytest.mark.parametrize(("answer", "node"), [(None, ""), (None, "n2"), (GONE, "")])
async def test_a_lost_binding_that_was_not_stored_frees_its_place(answer: ApiError | None, node: str) -> None:
    stand = Stand()
    stand.client.errors |= {"bind": [refused(0)], "read": [answer]}
    stand.client.nodes["d/p"] = node
    await stand.bind(stand.attempt())
    assert (stand.queue.counts().backoff, len(stand.cluster.pods)) == (1, 0)


@pytest.mark.parametrize(
    "lost",
    [refused(0), refused(409), PAGE, refusal(Answer(408, "Request Time-out", "text/html", "", b""), "https://server")],
)
@pytest.mark.parametrize(
    "answer",
    [
        FORBIDDEN,
        ApiError(401, "Unauthorized", "Unauthorized"),
        PAGE,
        refusal(Answer(302, "Found", "text/html", "", b""), "https://server"),
        refused(404, "no such path"),
    ],
)
async def test_answers_that_say_nothing_of_the_pod_give_no_place_away(
    lost: ApiError, answer: ApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Stand()
    pauses = pausing(stand, monkeypatch)
    stand.client.errors |= {"bind": [lost], "read": [answer] * 20}
    stand.client.nodes["d/p"] = "n1"
    await stand.bind(stand.attempt())
    assert len(pauses) == 20
    assert (stand.client.told, len(stand.cluster.pods)) == ([ASSIGNED], 1)


async def test_a_place_is_kept_half_a_minute_where_the_server_never_tells_of_the_pod(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stand = Stand()
    pauses = pausing(stand, monkeypatch)
    busy: list[Exception | None] = [refused(0), refused(503), refused(429)] * 20
    stand.client.errors["bind"] = [refused(0)]
    stand.client.errors["read"] = [*[FORBIDDEN] * 20, *busy, *[FORBIDDEN] * 100]
    await stand.bind(stand.attempt())
    last_busy = pauses[20 + len(busy) - 1]
    assert stand.clock.at - last_busy == 30
    assert (stand.queue.counts().backoff, len(stand.cluster.pods)) == (1, 0)
    assert caplog.messages[-1] == (
        'the API server refuses to read pod "d/p"; releasing its place on the node: the roles are not known yet'
    )


@pytest.mark.parametrize(("name", "told"), [("n1", [ASSIGNED]), ("n2", []), ("", [])])
async def test_what_the_watch_tells_of_a_lost_binding_is_believed(
    name: str, told: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Stand()

    def watch() -> None:
        if name:
            stand.bound_elsewhere(name)
        else:
            stand.queue.delete("u")
            stand.cluster.remove_pod("u")

    pauses = pausing(stand, monkeypatch, watch)
    stand.client.errors |= {"bind": [refused(0)], "read": [FORBIDDEN]}
    await stand.bind(stand.attempt())
    assert len(pauses) == 1
    assert stand.client.told == told
    assert [stand.cluster.nodes.names[one.row] for one in stand.cluster.pods.by_id.values()] == ([name] if name else [])
    assert stand.queue.in_flight == (0, 0)


@pytest.mark.parametrize("name", ["n1", "n2"])
async def test_a_pod_that_another_client_bound_stays_where_it_is(name: str) -> None:
    stand = Stand()
    queued = stand.attempt()

    async def meanwhile(*_: Any) -> None:
        stand.bound_elsewhere(name)

    stand.client.on_bind = meanwhile
    stand.client.errors["bind"] = [refused(409, "pod p is already assigned to node")]
    await stand.bind(queued)
    # a conflict on the chosen node can be caused by a gateway that sent the binding twice
    assert [event.reason for event in stand.client.events] == (["Scheduled"] if name == "n1" else [])
    placed = stand.cluster.pods.by_id["u"]
    assert (placed.assumed, stand.cluster.nodes.names[placed.row]) == (False, name)
    assert stand.queue.in_flight == (0, 0)


@pytest.mark.parametrize("error", [None, refused(404), refused(409), refused(500)])
async def test_of_a_pod_deleted_while_it_is_bound_nothing_is_left(error: Any) -> None:
    stand = Stand()
    queued = stand.attempt()

    async def meanwhile(*_: Any) -> None:
        stand.queue.delete("u")
        stand.cluster.remove_pod("u")

    stand.client.on_bind = meanwhile
    stand.client.errors["bind"] = [error]
    await stand.bind(queued)
    assert (len(stand.cluster.pods), stand.queue.get("u"), stand.queue.in_flight) == (0, None, (0, 0))
    assert stand.client.conditions == []
    assert stand.client.told == ([ASSIGNED] if error is None else [])
    # the failed binding released what plugins reserved, so that waiting pods get an event
    told = [(change.action, change.old.spec.node_name, change.row) for change in stand.changes]
    assert told == ([] if error is None else [(Action.DELETE, "n1", stand.cluster.nodes.row_of["n1"])])


# Failures


NOT_NOW = "0/2 nodes are available: 2 Insufficient cpu."


async def test_a_failure_is_an_event_and_a_condition() -> None:
    stand = Stand()
    await stand.binder.report_failure(POD, Failure(AttemptResult.UNSCHEDULABLE, NOT_NOW))
    [event] = stand.client.events
    assert (event.type, event.reason, event.action, event.note) == (
        "Warning",
        "FailedScheduling",
        "Scheduling",
        NOT_NOW,
    )
    assert stand.client.conditions == [
        (
            "d/p",
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": NOT_NOW,
                "observedGeneration": 3,
                "lastProbeTime": None,
                "lastTransitionTime": "2026-01-01T00:16:40Z",
            },
        )
    ]


def having(**fields: str) -> Pod:
    found = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NOT_NOW} | fields
    condition = PodCondition(found["type"], found["status"], found["reason"], found["message"])
    return replace(POD, status=PodStatus(conditions=[PodCondition(type="Other"), condition]))


@pytest.mark.parametrize(
    ("of", "written", "moves"),
    [
        (having(), 0, None),
        (having(message="other"), 1, False),
        (having(reason="SchedulerError"), 1, False),
        (having(status="True"), 1, True),
        (having(type="Ready"), 1, True),
    ],
)
async def test_a_condition_is_written_where_it_changes(of: Pod, written: int, moves: bool | None) -> None:
    stand = Stand()
    await stand.binder.report_failure(of, Failure(AttemptResult.UNSCHEDULABLE, NOT_NOW))
    assert len(stand.client.events) == 1
    assert ["lastTransitionTime" in condition for _, condition in stand.client.conditions] == [moves] * written


@pytest.mark.parametrize("status", [404, 409, 500, 0])
async def test_a_condition_that_cannot_be_written_does_no_harm(status: int) -> None:
    stand = Stand()
    stand.client.errors["condition"] = [refused(status)]
    await stand.binder.report_failure(POD, Failure(AttemptResult.UNSCHEDULABLE, NOT_NOW))
    assert stand.client.conditions == []
    await stand.binder.report_failure(POD, Failure(AttemptResult.UNSCHEDULABLE, NOT_NOW))
    assert len(stand.client.conditions) == 1


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("x" * NOTE_LIMIT, "x" * NOTE_LIMIT),
        ("x" * (NOTE_LIMIT + 1), "x" * (NOTE_LIMIT - 4) + " ..."),
        ("→" * 341, "→" * 341),
        ("→" * 342, "→" * 340 + " ..."),
        ("x" + "→" * 400, "x" + "→" * 339 + " ..."),
    ],
)
async def test_a_note_is_cut_to_1024_bytes_and_the_condition_is_not(message: str, note: str) -> None:
    stand = Stand()
    await stand.binder.report_failure(POD, Failure(AttemptResult.UNSCHEDULABLE, message))
    assert stand.client.events[0].note == note
    assert len(note.encode()) <= NOTE_LIMIT
    assert stand.client.conditions[0][1]["message"] == message


async def test_bindings_do_not_wait_for_each_other() -> None:
    stand = Stand()
    first_may_end = asyncio.Event()

    async def on_bind(pod: Pod, _: str) -> None:
        if pod.metadata.uid == "u":
            await first_may_end.wait()

    stand.client.on_bind = on_bind
    first = asyncio.ensure_future(stand.bind(stand.attempt()))
    other = replace(POD, metadata=replace(POD.metadata, name="q", uid="v"))
    await stand.bind(stand.attempt(other))
    assert stand.client.bound == [("d/q", "n1")]
    first_may_end.set()
    await first
    assert stand.client.bound == [("d/q", "n1"), ("d/p", "n1")]
