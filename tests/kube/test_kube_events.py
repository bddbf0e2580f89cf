from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest
from aiohttp import web

from policysched.framework import Event
from policysched.kube.events.bodies import MEMORY, NOTE_LIMIT, EventContent, SeriesMemory, event_name, shorten
from policysched.kube.events.writer import FALLEN_BEHIND, MOST_WORKERS, TRIES, WORKERS
from policysched.kube.transport import Pacing
from policysched.model.objects import Metadata, Pod
from policysched.visible import cut_bytes, visible
from tests.kube.fake_server import Answer, Kube, answer, eventually, hang, refuse, reset
from tests.kube.writing import (
    AT,
    EVENTS,
    OK,
    failed,
    writer,
    writing,
)
from tests.work import lines


def test_event_name_is_the_pods_and_the_time_in_hexadecimal_nanoseconds() -> None:
    name, _, time = event_name(EventContent.of(failed())).rpartition(".")
    assert name == "web"
    assert int(time, 16) == int(AT.timestamp()) * 10**9 + 678901000
    long = Event(Pod(metadata=Metadata(name="p" * 253)), "Normal", "r", "a", "n", AT)
    assert len(event_name(EventContent.of(long))) == 253
    dashed = Event(Pod(metadata=Metadata(name="p" * 200 + "-." * 26 + "q")), "Normal", "r", "a", "n", AT)
    assert "p" * 200 + "." + time == event_name(EventContent.of(dashed))


@pytest.mark.parametrize(
    ("note", "length", "end"),
    [
        ("n" * 1024, 1024, "nn"),
        ("n" * 1025, 1024, "n ..."),
        ("ä" * 1000, 1024, "ä ..."),
        ("xä" + "ä" * 999, 1023, "ä ..."),
    ],
)
def test_note_is_cut_to_what_the_server_takes(note: str, length: int, end: str) -> None:
    short = shorten(note)
    assert len(short.encode()) == length <= NOTE_LIMIT
    assert short.endswith(end)


def test_note_of_any_length_and_any_characters_is_shortened_by_what_is_written_of_it() -> None:
    for note in ("\x1b[31m" * 100, "\x1b[31m" * 100_000, "ä" * 513 + "\x1b" * 4096, "n" * 1020 + "\n" * 5000):
        assert shorten(note) == cut_bytes(visible(note, None), NOTE_LIMIT, " ...")
    assert lines(lambda: shorten("\x1b" * 1_000_000)) == lines(lambda: shorten("\x1b" * 10_000))


async def test_repeated_event_becomes_a_series(kube: Kube) -> None:
    kube.server.on("PATCH", f"{EVENTS}/{event_name(EventContent.of(failed()))}", OK)
    async with writing(kube) as tested:
        tested.record(failed())
        await eventually(lambda: tested.counts.requests == 1)
        for after in (1, 2, 3):
            tested.record(failed(after=after))
            await eventually(lambda: tested.counts.requests == 2)
        tested.record(failed("0/2 nodes", after=4))
        await eventually(lambda: tested.counts.requests == 3)
        tested.record(failed(after=303))
        await eventually(lambda: tested.counts.requests == 4)
        tested.record(failed(after=304))
        assert await tested.close(5) == 0
    assert [body["note"] for body in kube.server.bodies("POST")] == ["0/1 nodes", "0/2 nodes"]
    assert [body["series"]["count"] for body in kube.server.bodies("PATCH")] == [2, 5, 6]
    assert kube.server.bodies("PATCH")[0]["series"]["lastObservedTime"] == "2026-01-02T03:04:06.678901Z"


async def test_events_that_repeat_before_the_first_is_written_are_one_request(kube: Kube) -> None:
    kube.server.on("POST", EVENTS, OK)
    tested = writer(kube)
    for after in range(3):
        tested.record(failed(after=after))
    tested.start()
    assert await tested.close(5) == 0
    assert [body["series"]["count"] for body in kube.server.bodies("POST")] == [3]
    assert tested.counts == (3, 1, 0, 0, 0)


async def test_series_whose_event_expired_is_made_anew(kube: Kube) -> None:
    async with writing(kube) as tested:
        tested.record(failed())
        await eventually(lambda: tested.counts.requests == 1)
        tested.record(failed(after=1))
        await eventually(lambda: tested.counts.requests == 2)
    assert [body.get("series", {}).get("count") for body in kube.server.bodies("POST")] == [None, 2]


async def test_series_is_over_after_a_long_silence(kube: Kube) -> None:
    async with writing(kube) as tested:
        tested.record(failed())
        tested.record(failed(after=361))
        assert await tested.close(5) == 0
    assert len(kube.server.bodies("POST")) == 2
    assert kube.server.bodies("PATCH") == []


def test_series_pushed_out_of_memory_is_given_back() -> None:
    memory = SeriesMemory()
    entries = [memory.note(failed(str(number))) for number in range(MEMORY)]
    assert {over for _, over in entries} == {None}
    memory.note(failed("0"))
    assert memory.note(failed("one more"))[1] is entries[1][0]
    assert len(list(memory)) == MEMORY


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        ((refuse(429, "TooManyRequests", Retry_After="12"), OK), [12]),
        ((refuse(500, "InternalError"), reset, answer("<html>", 502), OK), [1, 1, 2]),
        ((reset, refuse(409, "AlreadyExists")), [1]),
    ],
)
async def test_events_wait_for_a_server_in_trouble(
    kube: Kube, answers: tuple[Answer, ...], pauses: list[float]
) -> None:
    async with writing(kube, *answers) as tested:
        tested.record(failed())
        assert await tested.close(5) == 0
        assert tested.counts == (1, 1, 0, 0, 0)
    assert kube.pauses.lengths == pauses


@pytest.mark.parametrize("code", [403, 404, 422])
async def test_refused_events_are_counted_and_said_once(
    kube: Kube, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with writing(kube, refuse(code, "Refused", "not you")) as tested:
        for number in range(3):
            tested.record(failed(f"note {number}"))
        assert await tested.close(5) == 0
        assert tested.counts == (3, 0, 3, 0, 0)
    assert caplog.text.count("not you") == 1


async def test_events_that_the_server_fails_at_give_way_to_others(kube: Kube, caplog: pytest.LogCaptureFixture) -> None:
    failing = refuse(500, "InternalError", "out of order")
    async with writing(kube, *[failing] * TRIES, OK) as tested:
        tested.record(failed("never"))
        await eventually(lambda: tested.counts.refused == 1)
        tested.record(failed("later"))
        assert await tested.close(5) == 0
        assert tested.counts == (2, 1, 1, 0, 0)
    assert [body["note"] for body in kube.server.bodies("POST")] == ["never"] * TRIES + ["later"]
    assert caplog.text.count("out of order") == 1


async def test_more_events_are_written_at_once_only_while_they_fall_behind(kube: Kube) -> None:
    going_on, under_way, most = asyncio.Event(), 0, 0

    async def slow(request: web.Request) -> web.StreamResponse:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await going_on.wait()
        under_way -= 1
        return await OK(request)

    async with writing(kube, slow) as tested:
        for number in range(2 * FALLEN_BEHIND * MOST_WORKERS):
            tested.record(failed(f"note {number}"))
        await eventually(lambda: under_way == MOST_WORKERS)
        going_on.set()
        await eventually(lambda: not tested.counts.waiting)
        going_on.clear()
        for number in range(FALLEN_BEHIND * WORKERS):
            tested.record(failed(f"another note {number}"))
        await eventually(lambda: under_way == WORKERS)
        going_on.set()
        await eventually(lambda: not tested.counts.waiting)
    assert most == MOST_WORKERS


async def test_four_events_that_the_server_fails_at_for_ever_hold_nobody(kube: Kube) -> None:
    for number in range(WORKERS):
        kube.server.on("POST", _events_of(f"bad-{number}"), *[refuse(500, "InternalError")] * TRIES)
    kube.server.on("POST", EVENTS, OK)
    tested = writer(kube)
    for number in range(WORKERS):
        tested.record(_about(f"bad-{number}"))
    for number in range(50):
        tested.record(failed(f"note {number}"))
    tested.start()
    assert await tested.close(20) == 0
    assert tested.counts == (50 + WORKERS, 50, WORKERS, 0, 0)
    paths = [asked.path for asked in kube.server.asked]
    last_good = max(place for place, path in enumerate(paths) if path == EVENTS)
    assert all(paths[:last_good].count(_events_of(f"bad-{number}")) < TRIES / 2 for number in range(WORKERS))


@pytest.mark.parametrize("code", [429, 503])
async def test_namespaces_whose_events_are_not_taken_hold_no_other(
    kube: Kube, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = asyncio.Event()

    async def sleep(seconds: float) -> None:
        kube.pauses.lengths.append(seconds)
        await ended.wait()

    monkeypatch.setattr(kube.pauses, "pacing", Pacing(lambda: 0.0, sleep))

    async def limited_answer(request: web.Request) -> web.StreamResponse:
        return await (OK if ended.is_set() else refuse(code, "TooManyRequests", Retry_After="60"))(request)

    limited = [f"bad-{number}" for number in range(2 * WORKERS)]
    for namespace in limited:
        kube.server.on("POST", _events_of(namespace), limited_answer)
    kube.server.on("POST", EVENTS, OK)
    tested = writer(kube)
    for number in range(5):
        for namespace in limited:
            tested.record(replace(_about(namespace), note=f"note {number}"))
    for number in range(50):
        tested.record(failed(f"note {number}"))
    tested.start()
    await eventually(lambda: tested.counts.requests == 50)
    assert max(len(_asked(kube, namespace)) for namespace in limited) <= WORKERS
    assert kube.pauses.lengths == [60] * len(limited)
    tested.record(failed("later"))
    await eventually(lambda: tested.counts.requests == 51)
    ended.set()
    assert await tested.close(5) == 0
    assert tested.counts == (91, 91, 0, 0, 0)


async def test_events_that_wait_for_a_namespace_are_bounded(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.kube.events.writer.MOST_HELD", 5)
    async with writing(kube, refuse(429, "TooManyRequests", Retry_After="60"), OK) as tested:
        for number in range(40):
            tested.record(failed(f"note {number}"))
        await eventually(lambda: tested.counts.waiting == 0)
        assert tested.counts.requests + tested.counts.given_up == 40
        assert await tested.close(5) == 0


async def test_of_events_that_wait_those_of_the_namespace_with_most_are_given_up(
    kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.kube.events.writer.MOST_HELD", 5)

    async def sleep(_: float) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(kube.pauses, "pacing", Pacing(lambda: 0.0, sleep))
    kube.server.on("POST", _events_of("other"), refuse(429, "TooManyRequests"))
    async with writing(kube, refuse(429, "TooManyRequests")) as tested:
        for number in range(20):
            tested.record(failed(f"note {number}"))
        tested.record(_about("other"))
        await eventually(lambda: tested.counts.given_up == 16)
        assert tested.counts.waiting == 5
        assert {name: len(hold.entries) for name, hold in tested._held.items()} == {"d": 4, "other": 1}


async def test_of_a_namespace_whose_events_were_all_given_up_nothing_is_kept(
    kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.kube.events.writer.MOST_HELD", 0)
    names = [f"n{number}" for number in range(20)]
    for name in names:
        kube.server.on("POST", _events_of(name), refuse(429, "TooManyRequests"))
    async with writing(kube, OK) as tested:
        for name in names:
            tested.record(_about(name))
        await eventually(lambda: tested.counts.given_up == 20)
        await eventually(lambda: not tested._held)
        assert tested._held_count == 0


def _asked(kube: Kube, namespace: str) -> list[str]:
    return [asked.path for asked in kube.server.asked if asked.path == _events_of(namespace)]


def _about(namespace: str) -> Event:
    event = failed()
    return replace(event, pod=Pod(metadata=Metadata(name="web", namespace=namespace, uid=namespace)))


def _events_of(namespace: str) -> str:
    return EVENTS.replace("/d/", f"/{namespace}/")


def scheduled(name: str) -> Event:
    return Event(Pod(metadata=Metadata(name=name, namespace="d")), "Normal", "Scheduled", "Binding", "to n", AT)


async def test_what_waits_is_bounded_and_what_loses_least_is_given_up(
    kube: Kube, caplog: pytest.LogCaptureFixture
) -> None:
    kube.server.on("POST", EVENTS, OK)
    tested = writer(kube, most=20)
    for number in range(30):
        tested.record(scheduled(f"early-{number}"))
        tested.record(failed(f"note {number}"))
    assert tested.counts == (60, 0, 0, 20, 40)
    tested.start()
    assert await tested.close(5) == 0
    assert [body["note"] for body in kube.server.bodies("POST")] == [f"note {number}" for number in range(10, 30)]
    assert tested.counts == (60, 20, 0, 0, 40)
    assert caplog.text.count("dropping the least important") == 1
    assert "40 event(s) were dropped" in caplog.text


async def test_bytes_that_wait_are_bounded_whatever_notes_say(kube: Kube) -> None:
    tested = writer(kube, most_bytes=100_000)
    large = Pod(metadata=Metadata(name="web", namespace="d", annotations={"a": "x" * 1_000_000}))
    tracemalloc.start()
    try:
        for number in range(2000):
            tested.record(Event(large, "Warning", "a", "b", f"{number}" + "n" * 1_000_000, AT))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tested.counts.waiting < 100
    assert tested.counts.given_up == 2000 - tested.counts.waiting
    assert taken < 500_000


async def test_a_series_that_is_left_out_is_told_as_a_whole_later(kube: Kube) -> None:
    kube.server.on("PATCH", f"{EVENTS}/{event_name(EventContent.of(failed()))}", OK)
    async with writing(kube, most=2) as tested:
        tested.record(failed())
        await eventually(lambda: tested.counts.requests == 1)
        tested.record(failed(after=1))
        for number in range(2):
            tested.record(failed(f"note {number}"))
        assert tested.counts.given_up == 0
        await eventually(lambda: tested.counts.requests == 3)
        tested.record(failed(after=2))
        assert await tested.close(5) == 0
    assert [body["series"]["count"] for body in kube.server.bodies("PATCH")] == [3]
    assert tested.counts == (5, 4, 0, 0, 0)


def test_an_event_keeps_nothing_of_its_pod_but_names(kube: Kube) -> None:
    pod = Pod(metadata=Metadata(name="web", namespace="d"))
    entry, _ = SeriesMemory().note(Event(pod, "Warning", "r", "a", "n" * 5000, AT))
    assert not any(one is pod for one in gc.get_referents(entry, entry.about))
    assert len(entry.about.note) == NOTE_LIMIT


async def test_events_left_at_the_deadline_are_counted_and_said(kube: Kube, caplog: pytest.LogCaptureFixture) -> None:
    async with writing(kube, hang) as tested:
        for number in range(10):
            tested.record(failed(f"note {number}"))
        assert await tested.close(0.05) == 10
    assert "10 event(s) could not be written before shutdown" in caplog.text


async def test_worker_survives_what_nobody_expected(
    kube: Kube, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Callable[[], None]:
        raise RuntimeError("no encoder")

    async with writing(kube) as tested:
        with monkeypatch.context() as patch:
            patch.setattr("policysched.kube.events.writer.create_body", broken)
            for number in range(8):
                tested.record(failed(f"note {number}"))
            await eventually(lambda: tested.counts.refused == 8)
        tested.record(failed("after"))
        assert await tested.close(5) == 0
        assert tested.counts == (9, 1, 8, 0, 0)
    assert "no encoder" in caplog.text


async def test_few_events_are_under_way_at_once(kube: Kube) -> None:
    async with writing(kube, hang) as tested:
        for number in range(20):
            tested.record(failed(f"note {number}"))
        await eventually(lambda: len(kube.server.asked) == 4)
        await asyncio.sleep(0.02)
        assert len(kube.server.asked) == 4
