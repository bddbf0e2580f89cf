from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from policysched.framework import ApiError
from policysched.kube import listing, reflector
from policysched.kube.listing import is_older, read_list
from policysched.model.kinds import POLICIES
from tests.kube.fake_server import Kube, answer, eventually, hang, refuse, stream
from tests.kube.reflecting import HANG, NODE_PATH, event, gone, heard, node, page, watching

VERSION = {"resourceVersion": "7"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "missing required field `kind`"),
        ({"kind": "Status", "status": "Success"}, "missing required field `metadata`"),
        ({"kind": "PodList", "metadata": VERSION, "items": []}, "it is of kind 'PodList'"),
        ({"kind": "NodeList", "metadata": {}, "items": []}, "missing required field `resourceVersion`"),
        ({"kind": "NodeList", "metadata": {"resourceVersion": ""}, "items": []}, "it has no resourceVersion"),
        ({"kind": "NodeList", "metadata": VERSION}, "missing required field `items`"),
        ([], "Expected `object`"),
    ],
)
async def test_answer_that_is_no_list_of_the_kind_is_refused(kube: Kube, body: Any, why: str) -> None:
    kube.server.on("GET", NODE_PATH, answer(body))
    with pytest.raises(ApiError, match=why):
        await read_list(kube.transport, NODE_PATH, "Node")


async def test_pages_of_several_versions_are_no_list(kube: Kube) -> None:
    first, second = page(node("a", 1), version=7, next_page="t"), page(version=8)
    kube.server.on("GET", NODE_PATH, answer(first), answer(second))
    with pytest.raises(ApiError, match="different resourceVersions"):
        await read_list(kube.transport, NODE_PATH, "Node")


@pytest.mark.parametrize("items", [(), (node("a", 1),)], ids=["empty", "full"])
async def test_pages_that_continue_at_themselves_are_no_list(kube: Kube, items: tuple[Any, ...]) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(*items, next_page="t")))
    with pytest.raises(ApiError, match="its pages repeat a continue token"):
        await read_list(kube.transport, NODE_PATH, "Node")
    assert len(kube.server.asked) == 2


async def test_pages_that_go_round_in_a_circle_are_no_list(kube: Kube) -> None:
    tokens = ("a", "b", "c", "a", "b", "c")
    kube.server.on("GET", NODE_PATH, *(answer(page(next_page=token)) for token in tokens))
    with pytest.raises(ApiError, match="its pages repeat a continue token"):
        await read_list(kube.transport, NODE_PATH, "Node")
    assert len(kube.server.asked) == 4


async def test_pages_without_end_are_no_list(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_PAGES", 5)
    kube.server.on("GET", NODE_PATH, *(answer(page(next_page=f"t{number}")) for number in range(9)))
    with pytest.raises(ApiError, match="it has more than 5 pages"):
        await read_list(kube.transport, NODE_PATH, "Node")
    assert len(kube.server.asked) == 5


@pytest.mark.parametrize("cut", [1, 2, 3, 40])
async def test_list_that_breaks_off_is_no_list(kube: Kube, cut: int) -> None:
    whole = b'{"kind":"NodeList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},{}]}'
    kube.server.on("GET", NODE_PATH, answer(whole[:-cut]))
    with pytest.raises(ApiError, match="is not a valid list"):
        await read_list(kube.transport, NODE_PATH, "Node")


async def test_policy_that_cannot_be_named_takes_no_other_away(kube: Kube) -> None:
    whole = b'{"kind":"SchedulingPolicyList","metadata":{"resourceVersion":"7"},"items":[{"metadata":[]},%b]}'
    news = whole % json.dumps(node("q", 7)).encode()
    kube.server.on("GET", POLICIES.path, answer(page(node("p", 1), kind=POLICIES.kind)), answer(news))
    kube.server.on("WATCH", POLICIES.path, stream(gone()), HANG)
    await heard(kube, "list", "+p@1", "list", "+q@7", watched=POLICIES)


async def test_list_may_have_null_for_no_items(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer({"kind": "NodeList", "metadata": VERSION, "items": None}))
    assert await read_list(kube.transport, NODE_PATH, "Node") == ("7", [])


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("9", "9", False),
        ("09", "9", False),
        ("a", "9", False),
        ("9", "", False),
        ("9", str(2**63 - 1), True),
        ("9", "9" * 5000, False),
        ("9" * 5000, "9", False),
        ("9", "\u0669", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, than: str, older: bool) -> None:
    assert is_older(version, than) is older


async def test_older_list_is_refused(kube: Kube) -> None:
    kube.server.on(
        "GET",
        NODE_PATH,
        answer(page(node("a", 9), version=9)),
        answer(page(version=8)),
        answer(page(node("a", 9), node("b", 10), version=10)),
    )
    kube.server.on("WATCH", NODE_PATH, stream(gone()), HANG)
    await heard(kube, "list", "+a@9", "list", "+b@10")


async def test_server_that_stays_older_was_restored_and_all_of_it_is_news(
    kube: Kube, caplog: pytest.LogCaptureFixture
) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 9), version=9)), answer(page(node("a", 9), version=9)))
    kube.server.on("WATCH", NODE_PATH, stream(event("ADDED", node("b", 20)), gone()), HANG)
    await heard(kube, "list", "+a@9", "+b@20", "list", "-b@20", "+a@9")
    lists = [asked for asked in kube.server.asked if "watch" not in asked.query]
    assert len(lists) == 1 + reflector.MOST_OLDER
    assert sum(kube.pauses.lengths) > 90
    assert "restored" in caplog.text


@pytest.mark.parametrize("kind", ["MODIFIED", "DELETED", "BOOKMARK"])
async def test_event_that_is_older_than_what_was_seen_leads_to_a_new_list(kube: Kube, kind: str) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 9), version=9)))
    kube.server.on("WATCH", NODE_PATH, stream(event(kind, node("a", 5))), HANG)
    async with watching(kube) as run:
        await eventually(lambda: run.ledger.heard.count("list") == 2)
        assert "-a@9" not in run.ledger.heard
        assert run.ledger.held == {"a": "9"}


async def test_one_absurd_version_does_not_make_all_later_ones_old(kube: Kube) -> None:
    absurd = node("a", 9) | {"metadata": node("a", 9)["metadata"] | {"resourceVersion": "9" * 300}}
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 9), version=9)), answer(page(node("a", 10), version=10)))
    kube.server.on("WATCH", NODE_PATH, stream(event("MODIFIED", absurd)), refuse(400, "BadRequest"), HANG)
    await heard(kube, "list", "+a@9", f"+a@{'9' * 300}", "list", "+a@10")


@pytest.mark.parametrize("kind", ["ADDED", "DELETED"])
async def test_list_after_an_older_event_tells_what_the_event_said(kube: Kube, kind: str) -> None:
    there, held = (node("b", 4), {"a": "5", "b": "4"}) if kind == "ADDED" else (None, {"a": "5"})
    before = [] if there else [node("b", 1)]
    after = page(node("a", 5), *filter(None, [there]), version=5)
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1), *before)), answer(after))
    news = event("MODIFIED", node("a", 5)), event(kind, node("b", 4))
    kube.server.on("WATCH", NODE_PATH, stream(*news), HANG)
    async with watching(kube) as run:
        await eventually(lambda: run.ledger.held == held)
        assert run.ledger.heard.count("list") == 2


DRIP = stream(*[b"x"] * 400, then="hang")


BLANKS = stream(*[b"\n"] * 400, then="hang")


@pytest.mark.parametrize("silent", [HANG, hang, DRIP, BLANKS], ids=["none", "no answer", "half a line", "blanks"])
async def test_silent_watch_leads_to_a_new_list(kube: Kube, silent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SILENCE", 0.2)
    kube.server.on("GET", NODE_PATH, answer(page(version=5)), answer(page(node("a", 6), version=6)))
    kube.server.on("WATCH", NODE_PATH, silent)
    async with watching(kube) as run:
        await eventually(lambda: run.ledger.heard[:3] == ["list", "list", "+a@6"])
    assert kube.pauses.lengths == []


async def test_watch_with_bookmarks_is_not_silent(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SILENCE", 0.3)
    kube.server.on("GET", NODE_PATH, answer(page(version=5)))
    kube.server.on("WATCH", NODE_PATH, stream(*(event("BOOKMARK", node("", 6 + one)) for one in range(400))))
    async with watching(kube) as run:
        await asyncio.sleep(1)
        assert run.ledger.heard == ["list"]


async def test_server_cannot_ask_for_endless_pauses(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, refuse(429, "TooManyRequests", Retry_After="9" * 400), answer(page()))
    kube.server.on("WATCH", NODE_PATH, HANG)
    await heard(kube, "list")
    assert kube.pauses.lengths == [120]
