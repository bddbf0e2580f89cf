"""The client-side limit of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from policysched.kube.request_limits import UNLIMITED, RateLimit
from policysched.kube.transport import Transport
from tests.kube.fake_server import Kube, answer


class Loop:
    """Replacement of the event loop's time and timers, which a test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.timers = 1000.0, list[tuple[float, Callable[[], None]]]()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now)
        monkeypatch.setattr(loop, "call_later", self._call_later)

    def _call_later(self, delay: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        entry = (self.now + delay, call)
        self.timers.append(entry)

        def cancel() -> None:
            if entry in self.timers:
                self.timers.remove(entry)

        return Handle(cancel)  # type: ignore[return-value]

    async def go_on(self, seconds: float) -> None:
        """Advance the time, and call the timers that expire."""
        end = self.now + seconds
        await turns()
        while due := [one for one in self.timers if one[0] <= end + 1e-9]:
            entry = min(due, key=lambda one: one[0])
            self.timers.remove(entry)
            self.now = max(self.now, entry[0])
            entry[1]()
            await turns()
        self.now = end


@dataclass
class Handle:
    """A timer that can be cancelled."""

    cancel: Callable[[], object]


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def ask(limit: RateLimit, passed: list[str], name: str, *, last: bool = False) -> asyncio.Task[None]:
    async def wait() -> None:
        await limit.wait(last=last)
        passed.append(name)

    return asyncio.create_task(wait())


async def test_so_many_requests_pass_at_once_and_the_next_ones_one_after_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, limit, passed = Loop(monkeypatch), RateLimit(2.0, 3), list[str]()
    tasks = [ask(limit, passed, str(number)) for number in range(6)]
    await loop.go_on(0.0)
    assert passed == ["0", "1", "2"]
    await loop.go_on(0.5)
    assert passed == ["0", "1", "2", "3"]
    await loop.go_on(1.0)
    assert passed == ["0", "1", "2", "3", "4", "5"]
    await loop.go_on(100.0)
    tasks += [ask(limit, passed, "more") for _ in range(9)]
    await loop.go_on(0.0)
    assert passed.count("more") == 3
    await loop.go_on(10.0)
    await asyncio.gather(*tasks)
    assert loop.timers == []


async def test_without_limit_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch)
    for _ in range(100):
        await UNLIMITED.wait()
    assert loop.timers == []


async def test_requests_and_streams_wait(kube: Kube) -> None:
    kube.server.on("GET", "/a", answer({}), answer({}))
    asked = list[bool]()

    class Counting(RateLimit):
        async def wait(self, *, last: bool = False) -> None:
            asked.append(last)

    transport = Transport(kube.connection, limit=Counting(1.0, 1))
    await transport.request("GET", "/a")
    async for _ in transport.lines("/a", 5.0):
        break
    await transport.request("GET", "/a", last=True)
    assert asked == [False, False, True]


async def test_body_is_made_when_the_turn_has_come(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    kube.server.on("PATCH", "/a", answer({}), answer({}))
    limit, text = RateLimit(1.0, 1), b"{}"
    transport = Transport(kube.connection, limit=limit)
    await transport.request("PATCH", "/a", b"{}")
    task = asyncio.create_task(transport.request("PATCH", "/a", lambda: text))
    await turns()
    text = b'{"a": 1}'
    monkeypatch.setattr(limit, "_tokens", 1.0)
    limit._serve()
    await task
    assert kube.server.bodies("PATCH")[-1] == {"a": 1}


async def test_who_is_cancelled_takes_nobodys_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, limit, passed = Loop(monkeypatch), RateLimit(1.0, 1), list[str]()
    await limit.wait()
    waiting = [asyncio.create_task(limit.wait()) for _ in range(1000)]
    behind = ask(limit, passed, "behind")
    await turns()
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await loop.go_on(1.0)
    assert passed == ["behind"]
    await behind


async def test_who_is_cancelled_with_its_turn_gives_it_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, limit, passed = Loop(monkeypatch), RateLimit(1.0, 1), list[str]()
    await limit.wait()
    given, behind = ask(limit, passed, "given"), ask(limit, passed, "behind")
    await turns()
    loop.now += 1.0
    [(_, serve)] = loop.timers
    serve()
    given.cancel()
    await turns()
    assert passed == ["behind"]
    await behind


async def test_what_only_tells_waits_for_what_decisions_wait_for_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, limit, passed = Loop(monkeypatch), RateLimit(1.0, 1), list[str]()
    await limit.wait()
    tasks = [ask(limit, passed, "status", last=True) for _ in range(3)]
    tasks += [ask(limit, passed, "binding") for _ in range(20)]
    await loop.go_on(23.0)
    assert passed == [*["binding"] * 9, "status", *["binding"] * 9, "status", *["binding"] * 2, "status"]
    await asyncio.gather(*tasks)
