"""A client's own limit on its requests."""

from __future__ import annotations

import asyncio

import pytest

from policysched.kube.rate_limit import UNLIMITED, RateLimit
from policysched.kube.transport import Transport
from tests.kube.fake_server import Kube, answer


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each wait was, none of which is really waited."""
    lengths: list[float] = []

    async def sleep(length: float) -> None:
        lengths.append(length)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return lengths


async def test_so_many_requests_pass_at_once_and_the_next_ones_one_after_another(slept: list[float]) -> None:
    limit = RateLimit(0.001, 3)
    for _ in range(5):
        await limit.wait()
    assert slept == pytest.approx([1000.0, 2000.0], rel=0.01)


async def test_without_limit_nothing_waits(slept: list[float]) -> None:
    for _ in range(100):
        await UNLIMITED.wait()
    assert slept == []


async def test_requests_and_streams_wait(kube: Kube, slept: list[float]) -> None:
    kube.server.on("GET", "/a", answer({}), answer({}))
    transport = Transport(kube.connection, limit=RateLimit(0.001, 1))
    await transport.request("GET", "/a")
    assert slept == []
    async for _ in transport.lines("/a", 5.0):
        break
    assert len(slept) == 1


async def test_who_is_cancelled_takes_nobodys_turn() -> None:
    limit = RateLimit(1.0, 1)
    await limit.wait()
    waiting = [asyncio.create_task(limit.wait()) for _ in range(100)]
    await asyncio.sleep(0)
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert limit._tokens == pytest.approx(0.0, abs=0.5)
