"""Lists are decoded and applied in portions, between which the event loop runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from policysched.kube import reflector
from policysched.kube.object_cache import CHUNK
from tests.kube.fake_server import Kube, answer, eventually, stream
from tests.kube.reflecting import HANG, NODE_PATH, Watching, gone, node, page, watching

COUNT = 5 * CHUNK + 7


def many(letter: str, version: int = 1) -> list[dict[str, Any]]:
    return [node(f"{letter}{number}", version) for number in range(COUNT)]


async def sizes_until(run: Watching, done: Callable[[], bool]) -> set[int]:
    """Return the numbers of stored objects after each iteration of the event loop."""
    sizes = set()
    while not done():
        await asyncio.sleep(0)
        sizes.add(len(run.ledger.held))
    return sizes


async def test_the_loop_gets_turns_while_the_first_list_is_taken(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(*many("a"))))
    kube.server.on("WATCH", NODE_PATH, HANG)
    async with watching(kube) as run:
        sizes = await sizes_until(run, run.reflector.synced.is_set)
    assert sizes == {0, *range(CHUNK, COUNT, CHUNK), COUNT}


async def test_the_loop_gets_turns_while_a_later_list_is_taken(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page()), answer(page(*many("a", 2), version=2)))
    kube.server.on("WATCH", NODE_PATH, stream(gone()), HANG)
    async with watching(kube) as run:
        sizes = await sizes_until(run, lambda: len(run.ledger.held) == COUNT)
    assert sizes == {0, *range(CHUNK, COUNT, CHUNK), COUNT}


async def test_the_first_list_is_taken_page_by_page_while_the_next_page_is_asked_for(kube: Kube) -> None:
    released = asyncio.Event()

    async def second(request: web.Request) -> web.StreamResponse:
        await released.wait()
        return await answer(page(node("b", 2), version=2))(request)

    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1), version=2, next_page="t")), second)
    kube.server.on("WATCH", NODE_PATH, HANG)
    async with watching(kube) as run:
        await eventually(lambda: len(kube.server.asked) == 2 and "a" in run.ledger.held)
        assert not run.reflector.synced.is_set()
        released.set()
        await eventually(run.reflector.synced.is_set)
        assert run.ledger.heard == ["list", "+a@1", "list", "+b@2"]


async def test_what_was_told_of_a_first_list_that_breaks_off_is_mended_by_the_next(kube: Kube) -> None:
    pages: list[Any] = [page(node("a", 1), node("b", 1), node("c", 1), next_page="t"), {}]
    again = page(node("a", 1), node("b", 2, uid="other"), version=3)
    kube.server.on("GET", NODE_PATH, *map(answer, pages), answer(again))
    kube.server.on("WATCH", NODE_PATH, HANG)
    async with watching(kube) as run:
        await eventually(run.reflector.synced.is_set)
        assert run.ledger.heard == ["list", "+a@1", "+b@1", "+c@1", "list", "-b@1", "+b@2", "list", "-c@1"]
        assert [one.metadata.name for one in run.reflector.objects()] == ["a", "b"]


async def test_a_later_list_that_breaks_off_changes_nothing(kube: Kube) -> None:
    pages: list[Any] = [page(node("b", 2), version=2, next_page="t"), {}]
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1))), *map(answer, pages), HANG)
    kube.server.on("WATCH", NODE_PATH, stream(gone()), HANG)
    async with watching(kube) as run:
        await eventually(lambda: len([one for one in kube.server.asked if "watch" not in one.query]) == 4)
        assert run.ledger.heard == ["list", "+a@1"]
        assert [one.metadata.name for one in run.reflector.objects()] == ["a"]


async def test_only_the_first_list_has_large_pages(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1))), answer(page(node("b", 2), version=2)))
    kube.server.on("WATCH", NODE_PATH, stream(gone()), HANG)
    async with watching(kube) as run:
        await eventually(lambda: "b" in run.ledger.held)
        assert [one.query["limit"] for one in kube.server.asked if "watch" not in one.query] == ["2000", "500"]


async def test_what_is_gone_is_taken_first_whatever_the_portions(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(*many("a"))), answer(page(*many("b", 2), version=2)))
    kube.server.on("WATCH", NODE_PATH, stream(gone()), HANG)
    async with watching(kube) as run:
        await eventually(lambda: "b0" in run.ledger.held and len(run.ledger.held) == COUNT)
        told = [one[0] for one in run.ledger.heard if one != "list"]
        assert told == ["+"] * COUNT + ["-"] * COUNT + ["+"] * COUNT


async def test_the_loop_gets_turns_between_events_that_come_together(
    kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "TURN", 0.0)
    lines = [
        msgspec.json.encode({"type": "ADDED", "object": node(f"n{number}", number + 2)}) + b"\n" for number in range(50)
    ]
    kube.server.on("GET", NODE_PATH, answer(page()))
    kube.server.on("WATCH", NODE_PATH, stream(b"".join(lines), then="hang"))
    async with watching(kube) as run:
        sizes = set()
        while len(run.ledger.held) < len(lines):
            await asyncio.sleep(0)
            sizes.add(len(run.ledger.held))
    assert len(sizes) > len(lines) / 2
