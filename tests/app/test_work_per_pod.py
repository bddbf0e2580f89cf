"""The work for a pod from the queue to its stored event, in requests and bytes, which are the same on every machine.

`bench.calls` counts its function calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from policysched.kube.client import AT_ONCE
from policysched.kube.events.writer import MOST_WORKERS
from policysched.kube.short_requests import ShortRequests
from policysched.model.objects import Pod
from tests.app.wired import Wired
from tests.app.wired import wired as run_wired
from tests.build import pod

PODS = 200
BACKLOG, TURNS = 1000, 20
"""Number of pods in the queue, and turns of the event loop until a slow server has answered one request."""


@pytest.fixture
def wired() -> Iterator[tuple[asyncio.Runner, Wired]]:
    with run_wired() as made:
        yield made


def pods(first: int, count: int = PODS) -> list[Pod]:
    return [pod(f"pod-{number}", requests={"cpu": "1m"}) for number in range(first, first + count)]


def test_pod_is_two_requests_of_one_piece_each(wired: tuple[asyncio.Runner, Wired]) -> None:
    runner, of = wired
    runner.run(of.place(pods(0)))
    assert len(of.written) == 2 * PODS
    assert of.connections <= AT_ONCE + MOST_WORKERS
    bindings = [one for one in of.written if b"/binding HTTP/1.1" in one]
    assert len(bindings) == PODS
    assert max(map(len, bindings)) <= 400
    assert max(map(len, of.written)) <= 900


def test_bindings_go_before_events_that_wait(wired: tuple[asyncio.Runner, Wired]) -> None:
    runner, of = wired
    runner.run(of.place(pods(0)))
    events = [place for place, one in enumerate(of.written) if b"/events HTTP/1.1" in one]
    bindings = [place for place, one in enumerate(of.written) if b"/binding HTTP/1.1" in one]
    assert sum(bindings) < sum(events)
    assert bindings[0] == 0


def test_backlog_is_bound_before_most_of_its_events_are_written(wired: tuple[asyncio.Runner, Wired]) -> None:
    """On a server that answers one request after another, an event before a binding makes a pod wait."""
    runner, of = wired
    waiting: deque[Callable[[], object]] = deque()
    of.answer = waiting.append

    async def serve() -> None:
        while True:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if waiting:
                waiting.popleft()()

    async def place() -> None:
        serving = asyncio.create_task(serve())
        await of.place(pods(0, BACKLOG))
        serving.cancel()

    runner.run(place())
    bindings = [place for place, one in enumerate(of.written) if b"/binding HTTP/1.1" in one]
    assert len(bindings) == BACKLOG
    assert bindings[-1] + 1 - BACKLOG <= 120, "so many events were sent before the last binding"


def test_late_requests_have_one_timer(wired: tuple[asyncio.Runner, Wired], monkeypatch: pytest.MonkeyPatch) -> None:
    runner, of = wired
    timers: list[tuple[Any, ...]] = []
    loop = runner.get_loop()
    call_at = loop.call_at

    def noted(*given: Any, **named: Any) -> asyncio.TimerHandle:
        timers.append(given)
        return call_at(*given, **named)

    monkeypatch.setattr(loop, "call_at", noted)
    runner.run(of.place(pods(0)))
    assert sum(isinstance(getattr(given[1], "__self__", None), ShortRequests) for given in timers) <= 1
    assert len(timers) <= of.connections + 2, "a timer for each request"
