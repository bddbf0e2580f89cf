from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from policysched.sandbox import Sandbox, sandbox_nodes
from policysched.sandbox.api import reading
from tests.sandbox.bodies import PODS, binding, config_map, pod

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
LIST = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


def seen(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def version(api: Api) -> str:
    found: str = (await api.get(PODS))[1]["metadata"]["resourceVersion"]
    return found


async def test_a_watch_from_a_version_shows_what_came_after(quiet_api: Api) -> None:
    await quiet_api.post(MAPS, config_map("a"))
    start = await version(quiet_api)
    await quiet_api.post(MAPS, config_map("b"))
    await quiet_api.merge(f"{MAPS}/b", {"data": {"x": "y"}})
    await quiet_api.delete(f"{MAPS}/b")
    events = await quiet_api.watch(MAPS, 3, resourceVersion=start)
    assert seen(events) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(start)
    assert events[0]["object"]["kind"] == "ConfigMap"


async def test_a_watch_goes_on_with_what_happens(quiet_api: Api) -> None:
    start = await version(quiet_api)
    watching = asyncio.create_task(quiet_api.watch(PODS, 2, resourceVersion=start))
    await asyncio.sleep(0.05)
    await quiet_api.post(PODS, pod("a"))
    await quiet_api.post(PODS, pod("b"))
    assert seen(await watching) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_without_a_version_starts_with_what_there_is(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("a"))
    assert seen(await quiet_api.watch(PODS, 1)) == [("ADDED", "a")]
    assert seen(await quiet_api.watch(PODS, 1, resourceVersion="0")) == [("ADDED", "a")]


async def test_a_watch_list_ends_its_list_with_a_bookmark(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("a"))
    await quiet_api.post(PODS, pod("b"))
    events = await quiet_api.watch(PODS, 3, **LIST)
    assert seen(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
    bookmark = events[2]["object"]
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["metadata"]["resourceVersion"] == await version(quiet_api)
    assert (bookmark["kind"], bookmark["apiVersion"]) == ("Pod", "v1")


async def test_a_watch_list_states_what_it_matches(quiet_api: Api) -> None:
    code, found = await quiet_api.get(PODS, watch="true", sendInitialEvents="true")
    assert (code, found["reason"]) == (422, "Invalid")
    assert "sendInitialEvents requires setting resourceVersionMatch" in found["message"]


async def test_objects_that_leave_a_selection_are_deleted_to_its_watch(quiet_api: Api) -> None:
    start = await version(quiet_api)
    await quiet_api.post(PODS, pod("a", labels={"team": "x"}))
    await quiet_api.merge(f"{PODS}/a", {"metadata": {"labels": {"more": "1"}}})
    await quiet_api.merge(f"{PODS}/a", {"metadata": {"labels": {"team": "y"}}})
    _, back = await quiet_api.merge(f"{PODS}/a", {"metadata": {"labels": {"team": "x"}}})
    events = await quiet_api.watch(PODS, 4, resourceVersion=start, labelSelector="team=x")
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    assert events[2]["object"]["metadata"]["labels"] == {"team": "x", "more": "1"}
    assert events[3]["object"]["metadata"] == back["metadata"]
    before, after = (int(event["object"]["metadata"]["resourceVersion"]) for event in events[1:3])
    assert before < after


async def test_field_selectors_hold_in_watches(quiet_api: Api, quiet: Sandbox) -> None:
    quiet.load(sandbox_nodes(1))
    await quiet_api.post(PODS, pod("a"))
    start = await version(quiet_api)
    await quiet_api.post(f"{PODS}/a/binding", binding("a", "node-1"))
    query = {"resourceVersion": start, "fieldSelector": "spec.nodeName="}
    assert seen(await quiet_api.watch(PODS, 1, **query)) == [("DELETED", "a")]
    query["fieldSelector"] = "spec.nodeName!=,status.phase!=Failed"
    assert seen(await quiet_api.watch(PODS, 1, **query)) == [("ADDED", "a")]


async def test_a_watch_from_before_the_history_ends_with_410(quiet_api: Api) -> None:
    start = await version(quiet_api)
    for index in range(10):  # the history of this sandbox is 8
        await quiet_api.post(MAPS, config_map(f"c{index}"))
    events = await quiet_api.watch(MAPS, 0, resourceVersion=start)
    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"].startswith(f"too old resource version: {start} (")


async def test_forgotten_history_is_gone_at_once(quiet_api: Api, quiet: Sandbox) -> None:
    start = await version(quiet_api)
    await quiet_api.post(MAPS, config_map("c"))
    quiet.forget_history()
    events = await quiet_api.watch(MAPS, 0, resourceVersion=start)
    assert events[0]["object"]["code"] == 410


async def test_a_watch_ends_after_its_time(quiet_api: Api) -> None:
    start = await version(quiet_api)
    async with asyncio.timeout(60):
        assert await quiet_api.watch(PODS, 0, resourceVersion=start, timeoutSeconds="1") == []


@pytest.mark.parametrize(("bookmarks", "least", "most"), [("true", 3, 100), ("false", 1, 2)])
async def test_a_watch_that_has_nothing_to_say_sleeps(
    quiet_api: Api, monkeypatch: pytest.MonkeyPatch, bookmarks: str, least: int, most: int
) -> None:
    pauses: list[float] = []
    pause = reading.WatchStream._pause

    async def counting(stream: reading.WatchStream, seconds: float) -> None:
        pauses.append(seconds)
        await pause(stream, seconds)

    monkeypatch.setattr(reading, "BOOKMARK_SECONDS", 0.05)
    monkeypatch.setattr(reading.WatchStream, "_pause", counting)
    await quiet_api.watch(PODS, 0, allowWatchBookmarks=bookmarks, timeoutSeconds="1")
    assert least <= len(pauses) <= most


async def test_a_watch_of_a_name_sees_that_object_alone(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("a"))
    await quiet_api.post(PODS, pod("b"))
    assert seen(await quiet_api.watch(f"{PODS}/b", 1)) == [("ADDED", "b")]


async def test_a_watch_of_a_namespace_sees_that_namespace_alone(quiet_api: Api) -> None:
    await quiet_api.post("/api/v1/namespaces/kube-system/pods", pod("a"))
    await quiet_api.post(PODS, pod("b"))
    assert seen(await quiet_api.watch(PODS, 1)) == [("ADDED", "b")]
    assert seen(await quiet_api.watch("/api/v1/pods", 2)) == [("ADDED", "b"), ("ADDED", "a")]


@pytest.mark.parametrize("path", ["/api/v1/events", "/apis/events.k8s.io/v1/events"])
async def test_events_are_one_store_with_two_forms(quiet_api: Api, path: str) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "default"},
        "regarding": {"kind": "Pod", "name": "web", "namespace": "default", "uid": "u"},
        "note": "Successfully assigned default/web to n1",
        "reason": "Scheduled",
        "type": "Normal",
        "action": "Binding",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "policysched",
        "reportingInstance": "policysched-1",
    }
    code, answered = await quiet_api.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
    assert (code, answered["note"]) == (201, event["note"])
    found = (await quiet_api.watch(path, 1))[0]["object"]
    core = path.startswith("/api/v1")
    assert found["apiVersion"] == ("v1" if core else "events.k8s.io/v1")
    assert found["involvedObject" if core else "regarding"]["name"] == "web"
    assert found["message" if core else "note"] == event["note"]
    assert found["reportingComponent" if core else "reportingController"] == "policysched"
    side = "involvedObject" if core else "regarding"
    _, listed = await quiet_api.get(path, fieldSelector=f"{side}.name=web,{side}.uid=u,reason=Scheduled")
    assert len(listed["items"]) == 1


async def test_new_events_are_whole_and_short_enough(quiet_api: Api) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {"metadata": {"name": "e"}, "note": "x" * 1025, "reason": "R", "eventTime": "2026-01-01T00:00:00.000000Z"}
    code, found = await quiet_api.post(path, event)
    assert code == 422
    fields = {cause["field"] for cause in found["details"]["causes"]}
    assert fields == {"reportingController", "reportingInstance", "action", "message", "type"}
    code, found = await quiet_api.post(path, {"metadata": {"name": "e"}, "type": "Normal"})
    assert [cause["field"] for cause in found["details"]["causes"]] == ["eventTime"]


async def test_table_watches_send_rows(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("a"))
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with quiet_api.session.get(quiet_api.url + PODS, params={"watch": "true"}, headers=headers) as response:
        line = await response.content.readline()
    assert b'"kind":"Table"' in line
    assert b'"cells":["a","0/1","Pending"' in line


async def not_reading(quiet: Sandbox, path: str) -> asyncio.StreamWriter:
    """Open a watch and never read what it says."""
    port = int(quiet.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    await reader.readexactly(12)
    return writer


async def changing_until_closed(api: Api, stream: reading.WatchStream) -> None:
    """Change an object by much, often enough that it does not fit between the two ends, and wait for the end."""
    for number in range(100):
        await api.merge(f"{MAPS}/a", {"data": {"x": f"{number}" * 100_000}})
        if stream.closed:
            return
    async with asyncio.timeout(60):
        while not stream.closed:
            await asyncio.sleep(0.01)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[reading.WatchStream]:
    """The watches that were opened."""
    made: list[reading.WatchStream] = []
    begin = reading.WatchStream.__init__

    def noted(stream: reading.WatchStream, *given: Any) -> None:
        begin(stream, *given)
        made.append(stream)

    monkeypatch.setattr(reading.WatchStream, "__init__", noted)
    return made


async def test_a_watch_that_falls_far_behind_is_given_up(
    quiet_api: Api, quiet: Sandbox, monkeypatch: pytest.MonkeyPatch, streams: list[reading.WatchStream]
) -> None:
    monkeypatch.setattr(reading, "MOST_BEHIND", 1_000_000)
    await quiet_api.post(MAPS, config_map("a"))
    idle = await not_reading(quiet, f"{MAPS}?watch=1&timeoutSeconds=600")
    await changing_until_closed(quiet_api, streams[0])
    assert sum(map(len, streams[0]._pending)) == 0
    idle.close()


async def test_a_watch_that_nobody_reads_ends_soon_after_its_time(
    quiet_api: Api, quiet: Sandbox, monkeypatch: pytest.MonkeyPatch, streams: list[reading.WatchStream]
) -> None:
    monkeypatch.setattr("policysched.sandbox.api.server.GRACE", 0.1)
    await quiet_api.post(MAPS, config_map("a"))
    idle = await not_reading(quiet, f"{MAPS}?watch=1&timeoutSeconds=1")
    await changing_until_closed(quiet_api, streams[0])
    idle.close()
