"""A long list is decoded and taken in a portion at a time: the loop gets its turn between two of them."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from policysched.kube import reflector
from policysched.kube.object_cache import PORTION
from tests.kube.fake_server import Kube, answer, eventually, stream
from tests.kube.reflecting import HANG, NODE_PATH, gone, node, page, watching

COUNT = 5 * PORTION + 7


async def test_the_loop_gets_turns_while_a_list_is_taken(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page()))
    kube.server.on("WATCH", NODE_PATH, HANG)
    async with watching(kube) as run:
        await eventually(run.reflector.synced.is_set)
        raws = [msgspec.Raw(msgspec.json.encode(node(f"n{number}", number + 1))) for number in range(COUNT)]
        taking = asyncio.ensure_future(run.reflector._replace(raws))
        sizes = set()
        while not taking.done():
            await asyncio.sleep(0)
            sizes.add(len(run.ledger.held))
        await taking
    # decoding comes first, then portions are handed on
    assert sizes == {0, *range(PORTION, COUNT, PORTION), COUNT}


async def test_what_is_gone_is_taken_first_whatever_the_portions(kube: Kube) -> None:
    before = [node(f"a{number}", 1) for number in range(COUNT)]
    after = [node(f"b{number}", 2) for number in range(COUNT)]
    kube.server.on("GET", NODE_PATH, answer(page(*before)), answer(page(*after, version=2)))
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
