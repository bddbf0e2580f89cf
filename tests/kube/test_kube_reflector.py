from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from policysched.kube import reflector
from policysched.kube.reflector import AWAITED
from policysched.model.kinds import PODS, RESOURCE_CLAIMS
from tests.kube.fake_server import Answer, Kube, answer, eventually, refuse, reset, stream
from tests.kube.reflecting import (
    HANG,
    NODE_PATH,
    event,
    gone,
    heard,
    node,
    page,
    watch_versions,
    watching,
)


async def test_reflector_lists_in_pages_then_watches(kube: Kube) -> None:
    kube.server.on(
        "GET", NODE_PATH, answer(page(node("a", 1), version=7, next_page="t/1")), answer(page(node("b", 2), version=7))
    )
    kube.server.on(
        "WATCH",
        NODE_PATH,
        stream(
            event("ADDED", node("c", 8)),
            event("MODIFIED", node("a", 9)),
            event("DELETED", node("b", 10)),
            then="hang",
        ),
    )
    run = await heard(kube, "list", "+a@1", "list", "+b@2", "+c@8", "+a@9", "-b@2")
    assert run.reflector.synced.is_set()
    lists = [asked.query for asked in kube.server.asked if "watch" not in asked.query]
    assert [query.get("continue") for query in lists] == [None, "t/1"]
    assert [query["limit"] for query in lists] == ["2000", "2000"]
    asked = next(asked.query for asked in kube.server.asked if "watch" in asked.query)
    assert asked == {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "300", "resourceVersion": "7"}


async def test_bookmark_moves_the_version_that_the_next_watch_starts_from(
    kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.kube.reflector.LASTING", 0)
    kube.server.on("GET", NODE_PATH, answer(page(version=5)))
    kube.server.on(
        "WATCH",
        NODE_PATH,
        stream(event("BOOKMARK", node("", 90))),
        stream(event("ADDED", node("a", 91))),
        HANG,
    )
    async with watching(kube) as run:
        await eventually(lambda: len(watch_versions(kube)) == 3)
        assert watch_versions(kube) == ["5", "90", "91"]
        assert run.ledger.heard == ["list", "+a@91"]
        assert run.reflector.problem == ""
    assert kube.pauses.lengths == []


async def test_list_mends_what_an_event_said_wrongly_under_the_same_version(kube: Kube) -> None:
    true = page(node("a", 1, zone="z"), node("b", 2), version=2)
    lies = (event("MODIFIED", node("a", 2, zone="other")), event("MODIFIED", node("a", 2)), gone())
    kube.server.on("WATCH", NODE_PATH, stream(*lies), HANG)
    kube.server.on("GET", NODE_PATH, answer(true), answer(page(node("a", 2, zone="z"), node("b", 2), version=2)))
    await heard(kube, *("list", "+a@1", "+b@2", "+a@2", "+a@2"), *("list", "+a@2"))


@pytest.mark.parametrize("form", ["event", "answer"])
async def test_too_old_version_leads_to_a_new_list_with_deletions(kube: Kube, form: str) -> None:
    kube.server.on(
        "GET",
        NODE_PATH,
        answer(page(node("a", 1), node("b", 2), node("c", 3), node("d", 4), version=4)),
        answer(page(node("a", 1), node("c", 8), node("d", 9, uid="other"), node("e", 7), version=9)),
    )
    first = stream(gone()) if form == "event" else refuse(410, "Expired", "too old")
    kube.server.on("WATCH", NODE_PATH, first, HANG)
    await heard(
        kube,
        *("list", "+a@1", "+b@2", "+c@3", "+d@4"),
        *("list", "-b@2", "-d@4", "+c@8", "+d@9", "+e@7"),
    )
    assert kube.pauses.lengths == []


async def test_version_that_is_always_too_old_is_not_asked_for_without_pauses(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page()))
    kube.server.on("WATCH", NODE_PATH, *[stream(gone())] * 5, HANG)
    async with watching(kube) as run:
        await eventually(lambda: run.ledger.heard.count("list") == 6)
    assert kube.pauses.lengths == [2, 4, 8, 16]


async def test_version_that_is_too_old_after_each_bookmark_is_not_asked_for_without_pauses(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(version=5)))
    kube.server.on("WATCH", NODE_PATH, *[stream(event("BOOKMARK", node("", 5)), gone())] * 5, HANG)
    async with watching(kube) as run:
        await eventually(lambda: run.ledger.heard.count("list") == 6)
    assert kube.pauses.lengths == [2, 4, 8, 16]


async def test_expired_page_is_fetched_again_in_one_piece(kube: Kube) -> None:
    kube.server.on(
        "GET",
        NODE_PATH,
        answer(page(node("a", 1), next_page="t")),
        refuse(410, "Expired", "too old"),
        answer(page(node("a", 1), node("b", 2))),
    )
    kube.server.on("WATCH", NODE_PATH, HANG)
    await heard(kube, "list", "+a@1", "list", "+b@2")
    assert kube.server.asked[2].query == {"limit": "0"}


async def test_object_made_anew_is_deleted_and_added(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1))))
    kube.server.on("WATCH", NODE_PATH, stream(event("ADDED", node("a", 5, uid="other")), then="hang"))
    await heard(kube, "list", "+a@1", "-a@1", "+a@5")


@pytest.mark.parametrize("ending", ["end", "reset"])
async def test_half_a_line_is_left_out_and_the_watch_goes_on_from_the_last_whole_one(kube: Kube, ending: str) -> None:
    whole = json.dumps(event("ADDED", node("a", 6))).encode() + b"\n"
    kube.server.on("GET", NODE_PATH, answer(page(version=5)))
    kube.server.on(
        "WATCH",
        NODE_PATH,
        stream(whole + b'{"type":"DELETED","obj', then=ending),
        stream(event("ADDED", node("b", 7)), then="hang"),
    )
    await heard(kube, "list", "+a@6", "+b@7")
    assert watch_versions(kube) == ["5", "6"]


async def test_line_that_cannot_be_read_leads_to_a_new_list(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(version=5)), answer(page(node("a", 6))))
    kube.server.on("WATCH", NODE_PATH, stream(b"<html>\n"), HANG)
    await heard(kube, "list", "list", "+a@6")


async def test_troubles_are_waited_out_with_growing_pauses(kube: Kube) -> None:
    kube.server.on(
        "GET",
        NODE_PATH,
        *(reset, reset),  # the HTTP library repeats a GET once
        refuse(500, "InternalError", "etcd is gone"),
        answer("<html>", 502),
        refuse(429, "TooManyRequests", "later", Retry_After="20"),
        answer(page(node("a", 1))),
    )
    kube.server.on("WATCH", NODE_PATH, HANG)
    await heard(kube, "list", "+a@1")
    assert kube.pauses.lengths == [1, 2, 4, 20]


async def test_problem_is_one_line_until_it_is_over(kube: Kube, caplog: pytest.LogCaptureFixture) -> None:
    forbidden = 'nodes is forbidden: User "x" cannot list resource "nodes"'
    caplog.set_level("INFO")
    kube.server.on("GET", NODE_PATH, refuse(403, "Forbidden", forbidden))
    async with watching(kube) as run:
        await eventually(lambda: len(kube.server.asked) >= 4)
        assert run.reflector.problem == f"nodes: {forbidden}; {AWAITED}"
        assert not run.reflector.synced.is_set()
        kube.server.on("WATCH", NODE_PATH, refuse(403, "Forbidden", "no watch"), HANG)
        kube.server.on("GET", NODE_PATH, answer(page()))
        await eventually(run.reflector.synced.is_set)
        await eventually(lambda: len(watch_versions(kube)) == 2 and run.reflector.problem == "")
    assert caplog.text.count(forbidden) == 1
    assert "nodes: up to date again" in caplog.text


@pytest.mark.parametrize(
    "broken", [refuse(500, "InternalError"), refuse(403, "Forbidden"), stream(gone(500)), stream(then="reset")]
)
async def test_watches_that_keep_failing_lead_to_a_new_list(kube: Kube, broken: Answer) -> None:
    pages = answer(page(node("a", 1))), answer(page(node("a", 1), node("b", 2), version=2))
    kube.server.on("GET", NODE_PATH, *pages)
    kube.server.on("WATCH", NODE_PATH, *[broken] * 8, HANG)
    await heard(kube, "list", "+a@1", "list", "+b@2")


async def test_quiet_watches_that_break_are_no_failures_in_a_row(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a proxy that ends idle connections; after many breaks, a list is made."""
    monkeypatch.setattr(reflector, "LASTING", 0.02)
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1))))
    kube.server.on("WATCH", NODE_PATH, *[stream(*[b"\n"] * 10, then="reset")] * 8, HANG)
    await heard(kube, "list", "+a@1", "list")
    assert kube.pauses.lengths == [1] * 8


async def test_watches_that_end_without_a_word_lead_to_a_new_list(kube: Kube) -> None:
    """As behind a gateway that supports no streams and responds with success."""
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1))))
    kube.server.on("WATCH", NODE_PATH, *[stream()] * 8, HANG)
    await heard(kube, "list", "+a@1", "list")


async def test_watch_that_begins_late_and_is_too_old_has_the_next_list_wait(
    kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "LASTING", 0.02)

    async def late(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.03)
        return await stream(gone())(request)

    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1))))
    kube.server.on("WATCH", NODE_PATH, late, late, late, HANG)
    await heard(kube, "list", "+a@1", "list", "list", "list")
    assert kube.pauses.lengths == [2, 4]


async def test_watch_of_a_restored_server_is_listed_again(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 9), version=9)), answer(page(node("a", 3), version=3)))
    kube.server.on("WATCH", NODE_PATH, refuse(504, "Timeout", "Too large resource version"), HANG)
    await heard(kube, "list", "+a@9", "list", "+a@3")


@pytest.mark.parametrize("words", [(), (event("BOOKMARK", node("", 5)),)])
async def test_watch_that_ends_soon_is_not_repeated_at_once(kube: Kube, words: tuple[dict[str, Any], ...]) -> None:
    kube.server.on("GET", NODE_PATH, answer(page()))
    kube.server.on("WATCH", NODE_PATH, stream(*words), stream(*words), HANG)
    async with watching(kube):
        await eventually(lambda: len(watch_versions(kube)) == 3)
    assert kube.pauses.lengths == [1, 1]


BROKEN: dict[str, bytes] = {
    "deep": b'{"metadata":{"name":"x","resourceVersion":"6","labels":' + b'{"a":' * 2000 + b"1" + b"}" * 2002,
    "NaN": b'{"metadata":{"name":"x","resourceVersion":"6","labels":{"a":NaN}}}',
    "bytes": b'{"metadata":{"name":"x","resourceVersion":"6","labels":{"a":"\xff"}}}',
    "type": b'{"metadata":{"name":"x","resourceVersion":"6","labels":[7]}}',
    "range": b'{"metadata":{"name":"x","resourceVersion":"6","generation":1e400}}',
    "no name": b'{"metadata":{"name":"","resourceVersion":"6"}}',
    "a path": b'{"metadata":{"name":"../x","resourceVersion":"6"}}',
}
UNREADABLE = {"metadata": b'{"metadata":[]}', "null": b"null", "number": b"1e400"}


@pytest.mark.parametrize("raw", [*BROKEN.values(), *UNREADABLE.values()], ids=[*BROKEN, *UNREADABLE])
async def test_bad_item_of_a_list_spoils_no_other(kube: Kube, raw: bytes) -> None:
    items = b",".join((json.dumps(node("a", 1)).encode(), raw, json.dumps(node("b", 2)).encode()))
    body = b'{"kind":"NodeList","metadata":{"resourceVersion":"5","continue":""},"items":[' + items + b"]}"
    kube.server.on("GET", NODE_PATH, answer(body))
    kube.server.on("WATCH", NODE_PATH, HANG)
    run = await heard(kube, "list", "+a@1", "+b@2")
    assert len(run.broken) == 1


@pytest.mark.parametrize("raw", [*BROKEN.values(), *UNREADABLE.values()], ids=[*BROKEN, *UNREADABLE])
async def test_bad_object_of_a_watch_loses_neither_the_position_nor_others(kube: Kube, raw: bytes) -> None:
    lines = (
        *(json.dumps(event("ADDED", node(name, version))).encode() for name, version in (("x", 5), ("a", 6))),
        b'{"type":"MODIFIED","object":' + raw + b"}",
        json.dumps(event("ADDED", node("b", 7))).encode(),
    )
    kube.server.on("GET", NODE_PATH, answer(page(version=5)))
    kube.server.on("WATCH", NODE_PATH, stream(b"\n".join(lines) + b"\n", then="hang"))
    named = b'"name":"x"' in raw
    run = await heard(kube, "list", "+x@5", "+a@6", *(["-x@5"] if named else []), "+b@7")
    assert len(run.broken) == 1
    assert watch_versions(kube) == ["5"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"BOOKMARK","object":{"metadata":5}}',
        b'{"type":"BOOKMARK","object":null}',
        b'{"type":"PAINTED","object":{"metadata":{"name":"a","resourceVersion":"6"}}}',
        b'{"type":"","object":{}}',
    ],
)
async def test_event_that_says_nothing_is_skipped(kube: Kube, line: bytes) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(version=5)))
    after = json.dumps(event("ADDED", node("b", 7))).encode()
    kube.server.on("WATCH", NODE_PATH, stream(line + b"\n" + after + b"\n", then="hang"))
    run = await heard(kube, "list", "+b@7")
    assert len(run.broken) == 1


async def test_end_of_a_watch_that_cannot_be_read_leads_to_a_new_list(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(version=5)), answer(page(node("a", 6))))
    kube.server.on("WATCH", NODE_PATH, stream(b'{"type":"ERROR","object":{"code":"x"}}\n'), HANG)
    await heard(kube, "list", "list", "+a@6")


async def test_object_of_no_version_leaves_the_position_of_the_watch(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(version=5)))
    kube.server.on("WATCH", NODE_PATH, stream(event("ADDED", {"metadata": {"name": "a"}})), HANG)
    async with watching(kube):
        await eventually(lambda: watch_versions(kube) == ["5", "5"])


async def test_pods_of_one_uid_are_one_pod(kube: Kube) -> None:
    twin = node("b", 2, uid="u-a")
    kube.server.on("GET", PODS.path, answer(page(node("a", 1), twin, node("a", 3), kind="Pod")))
    news = (event("MODIFIED", twin), event("DELETED", node("a", 4)), event("MODIFIED", node("b", 5, uid="u-a")))
    kube.server.on("WATCH", PODS.path, stream(*news, then="hang"))
    run = await heard(kube, "list", "+a@1", "-a@1", "+b@5", watched=PODS)
    assert run.broken == ["b@2", "a@3"]


async def test_claim_with_the_uid_of_another_one_is_left_out(kube: Kube) -> None:
    twin = node("b", 2, uid="u-a")
    kube.server.on("GET", RESOURCE_CLAIMS.path, answer(page(node("a", 1), version=1, kind="ResourceClaim")))
    news = (event("ADDED", twin), event("DELETED", node("a", 4)), event("MODIFIED", node("b", 5, uid="u-a")))
    kube.server.on("WATCH", RESOURCE_CLAIMS.path, stream(*news, then="hang"))
    run = await heard(kube, "list", "+a@1", "-a@1", "+b@5", watched=RESOURCE_CLAIMS)
    assert run.broken == ["b@2"]


async def test_exception_of_a_handler_leads_to_a_new_list(kube: Kube, caplog: pytest.LogCaptureFixture) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(version=5)), answer(page(node("a", 6), version=6)))
    kube.server.on("WATCH", NODE_PATH, stream(event("ADDED", node("boom", 6))), HANG)
    async with watching(kube) as run:
        await eventually(lambda: "+a@6" in run.ledger.heard)
    assert "watching nodes failed; listing again" in caplog.text


async def test_error_without_words_is_told_in_words(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(version=5)))
    kube.server.on("WATCH", NODE_PATH, stream(event("ERROR", {"code": 0})))
    async with watching(kube) as run:
        await eventually(lambda: "the watch ended with an error of code 0 without a message" in run.reflector.problem)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
async def test_event_about_another_kind_changes_nothing_and_everything_is_listed_again(kube: Kube, kind: str) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1))), answer(page(node("a", 1), version=2)))
    of_node, of_pod = ({"kind": one, "apiVersion": "v1"} | node("a", 90) for one in ("Node", "Pod"))
    kube.server.on("WATCH", NODE_PATH, stream(event(kind, of_pod), event("MODIFIED", of_node)), HANG)
    async with watching(kube) as run:
        await eventually(lambda: watch_versions(kube) == ["1", "2"])
        assert run.ledger.heard == ["list", "+a@1", "list"]
    assert len(kube.pauses.lengths) == 1


@pytest.mark.parametrize(
    "head", ['{"kind":"Node","apiVersion":"v1",', '{"apiVersion":"v1","kind":"Node",', '{ "kind": "Node", ', "{"]
)
async def test_kind_of_an_event_is_read_however_it_is_written(kube: Kube, head: str) -> None:
    kube.server.on("GET", NODE_PATH, answer(page()))
    obj = head + json.dumps(node("a", 9))[1:]
    kube.server.on("WATCH", NODE_PATH, stream(f'{{"type":"ADDED","object":{obj}}}\n'.encode(), then="hang"))
    await heard(kube, "list", "+a@9")
