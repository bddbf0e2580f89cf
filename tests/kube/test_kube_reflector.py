from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from policysched.kube.reflector import Reflector
from policysched.kube.resources import DEVICE_CLASSES, NODES, PODS, POLICIES, Watched
from policysched.model.decode import ObjectError
from tests.kube.fake_server import Kube, answer, eventually, hang, refuse, reset, status, stream

NODE_PATH = "/api/v1/nodes"
HANG = stream(then="hang")


def node(name: str, version: int, uid: str = "", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or f"u-{name}", "resourceVersion": str(version), "labels": labels}}


def malformed(name: str, version: int) -> dict[str, Any]:
    return node(name, version) | {"spec": {"unschedulable": "maybe"}}


def page(*items: Any, version: int = 1, next_page: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": next_page}, "items": list(items)}


def event(kind: str, obj: Any) -> dict[str, Any]:
    return {"type": kind, "object": obj}


def gone(code: int = 410) -> dict[str, Any]:
    return event("ERROR", status(code, "Expired", "too old resource version"))


class Ledger:
    """What a handler heard, as short texts, and what it holds after that."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.held: dict[str, str] = {}

    def replace(self, changed: Sequence[Any], gone: Sequence[Any]) -> None:
        self.heard.append("list")
        for obj in gone:
            self.delete(obj)
        for obj in changed:
            self.upsert(obj)

    def upsert(self, obj: Any) -> None:
        self.heard.append(f"+{obj.metadata.name}@{obj.metadata.resource_version}")
        self.held[obj.metadata.name] = obj.metadata.resource_version

    def delete(self, obj: Any) -> None:
        self.heard.append(f"-{obj.metadata.name}@{obj.metadata.resource_version}")
        assert self.held.pop(obj.metadata.name) == obj.metadata.resource_version


class Watching:
    def __init__(self, reflector: Reflector[Any], ledger: Ledger, broken: list[str]) -> None:
        self.reflector, self.ledger, self.broken = reflector, ledger, broken


@asynccontextmanager
async def watching(kube: Kube, watched: Watched[Any] = NODES) -> AsyncIterator[Watching]:
    ledger, broken = Ledger(), []

    def on_broken(error: ObjectError, raw: bytes) -> None:
        broken.append(f"{error.key}@{json.loads(raw)['metadata']['resourceVersion']}")

    reflector = Reflector(kube.transport, watched, ledger, kube.pauses.pacing, on_broken=on_broken)
    task = asyncio.create_task(reflector.run())
    try:
        yield Watching(reflector, ledger, broken)
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def heard(kube: Kube, *expected: str, watched: Watched[Any] = NODES) -> Watching:
    """Run a reflector until its handler heard exactly this."""
    async with watching(kube, watched) as run:
        await eventually(lambda: len(run.ledger.heard) >= len(expected))
        await asyncio.sleep(0.02)
        assert run.ledger.heard == list(expected)
        return run


def watch_versions(kube: Kube) -> list[str]:
    return [asked.query["resourceVersion"] for asked in kube.server.asked if "watch" in asked.query]


async def test_reflector_lists_in_pages_then_watches(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1), next_page="t/1")), answer(page(node("b", 2), version=7)))
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
    run = await heard(kube, "list", "+a@1", "+b@2", "+c@8", "+a@9", "-b@2")
    assert run.reflector.synced.is_set()
    lists = [asked.query for asked in kube.server.asked if "watch" not in asked.query]
    assert [query.get("continue") for query in lists] == [None, "t/1"]
    assert [query["limit"] for query in lists] == ["500", "500"]
    asked = next(asked.query for asked in kube.server.asked if "watch" in asked.query)
    assert asked == {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "300", "resourceVersion": "7"}


async def test_bookmark_moves_the_version_that_the_next_watch_starts_from(kube: Kube) -> None:
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


async def test_expired_page_is_fetched_again_in_one_piece(kube: Kube) -> None:
    kube.server.on(
        "GET",
        NODE_PATH,
        answer(page(node("a", 1), next_page="t")),
        refuse(410, "Expired", "too old"),
        answer(page(node("a", 1), node("b", 2))),
    )
    kube.server.on("WATCH", NODE_PATH, HANG)
    await heard(kube, "list", "+a@1", "+b@2")
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
        *(reset, reset),  # the HTTP library repeats a GET once by itself
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
        assert run.reflector.problem == f"nodes: {forbidden}"
        assert not run.reflector.synced.is_set()
        kube.server.on("WATCH", NODE_PATH, refuse(403, "Forbidden", "no watch"), HANG)
        kube.server.on("GET", NODE_PATH, answer(page()))
        await eventually(run.reflector.synced.is_set)
        await eventually(lambda: len(watch_versions(kube)) == 2 and run.reflector.problem == "")
    assert caplog.text.count(forbidden) == 1
    assert "nodes: up to date again" in caplog.text


async def test_watch_of_a_restored_server_is_listed_again(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 9), version=9)), answer(page(node("a", 3), version=3)))
    kube.server.on("WATCH", NODE_PATH, refuse(504, "Timeout", "Too large resource version"), HANG)
    await heard(kube, "list", "+a@9", "list", "+a@3")


async def test_watch_that_ends_without_a_word_is_not_repeated_at_once(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page()))
    kube.server.on("WATCH", NODE_PATH, stream(), stream(), HANG)
    async with watching(kube):
        await eventually(lambda: len(watch_versions(kube)) == 3)
    assert kube.pauses.lengths == [1, 1]


async def test_malformed_object_is_reported_once_a_version_and_counts_as_gone(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1), malformed("b", 2))), answer(page(malformed("b", 2))))
    kube.server.on(
        "WATCH",
        NODE_PATH,
        stream(
            event("MODIFIED", malformed("a", 3)),
            event("MODIFIED", malformed("a", 3)),
            event("MODIFIED", malformed("a", 4)),
            event("MODIFIED", node("a", 5)),
            event("DELETED", malformed("a", 6)),
            gone(),
        ),
        HANG,
    )
    run = await heard(kube, "list", "+a@1", "-a@1", "+a@5", "-a@5", "list")
    assert run.broken == ["b@2", "a@3", "a@4"]


async def test_malformed_policy_leaves_its_last_good_version_in_place(kube: Kube) -> None:
    bad = {"spec": {"weight": 1000}}
    kube.server.on("GET", POLICIES.path, answer(page(node("p", 1))), answer(page(node("p", 4) | bad)))
    kube.server.on("WATCH", POLICIES.path, stream(event("MODIFIED", node("p", 3) | bad), gone()), stream(gone()), HANG)
    run = await heard(kube, "list", "+p@1", "list", "list", watched=POLICIES)
    assert run.broken == ["p@3", "p@4"]


async def test_finished_pods_are_not_there(kube: Kube) -> None:
    done = {"status": {"phase": "Succeeded"}}
    kube.server.on("GET", PODS.path, answer(page(node("a", 1), node("b", 1) | done)))
    kube.server.on(
        "WATCH",
        PODS.path,
        stream(
            event("MODIFIED", node("a", 2) | done),
            event("MODIFIED", node("b", 3) | done),
            event("DELETED", node("a", 4) | done),
            then="hang",
        ),
    )
    await heard(kube, "list", "+a@1", "-a@1", watched=PODS)


@pytest.mark.parametrize(
    ("watched", "code", "tolerated"),
    [(POLICIES, 404, True), (POLICIES, 403, False), (DEVICE_CLASSES, 404, True), (DEVICE_CLASSES, 403, True)],
)
async def test_resource_that_may_be_missing_counts_as_empty(
    kube: Kube, watched: Watched[Any], code: int, tolerated: bool
) -> None:
    kube.server.on("GET", watched.path, refuse(code, "No", "no such thing"))
    async with watching(kube, watched) as run:
        await eventually(lambda: len(kube.server.asked) >= 3)
        assert (run.reflector.absent, run.reflector.synced.is_set()) == (tolerated, tolerated)
        assert bool(run.reflector.problem) is not tolerated
    assert kube.pauses.lengths[:2] == ([5, 5] if tolerated else [1, 2])


async def test_resource_that_goes_away_takes_its_objects_with_it_and_may_come_back(kube: Kube) -> None:
    kube.server.on(
        "GET",
        POLICIES.path,
        answer(page(node("p", 1))),
        refuse(404, "NotFound", "no such thing"),
        answer(page(node("q", 9))),
    )
    kube.server.on("WATCH", POLICIES.path, refuse(404, "NotFound", "no such thing"), HANG)
    run = await heard(kube, "list", "+p@1", "list", "-p@1", "list", "+q@9", watched=POLICIES)
    assert not run.reflector.absent


async def test_list_that_is_none_is_a_problem(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer("<html>"), answer(page(node("a", 1))))
    kube.server.on("WATCH", NODE_PATH, hang)
    await heard(kube, "list", "+a@1")
    assert kube.pauses.lengths == [1]
