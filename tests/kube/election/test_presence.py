"""Presence leases: processes find each other, and leases of ended processes are reused."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, field, replace

import pytest

from policysched.framework import ApiError
from policysched.kube.election.presence import PLACES, LeasePlaces, Place, PresenceWatch
from policysched.kube.transport import Pacing
from tests.kube.election.simulated import SkewedClock, simulate
from tests.kube.fake_server import Kube, answer, refuse

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@dataclass
class Board:
    """The presence leases of a namespace."""

    places: dict[int, Place] = field(default_factory=dict)
    versions: int = 0
    forbidden: bool = False
    asked: int = 0

    async def read(self) -> list[Place]:
        self.asked += 1
        if self.forbidden:
            raise ApiError(403, "Forbidden", "cannot list leases")
        return list(self.places.values())

    async def write(self, place: Place) -> None:
        if self.forbidden:
            raise ApiError(403, "Forbidden", "cannot update leases")
        there = self.places.get(place.number)
        if place.version != (there.version if there is not None else ""):
            raise ApiError(409, "Conflict", "the object has been modified")
        self.versions += 1
        self.places[place.number] = replace(place, version=str(self.versions))

    @property
    def holders(self) -> list[str]:
        return sorted(place.holder for place in self.places.values() if place.holder)


def presence(board: Board, holder: str, *names: str, election: str = "", skew: float = 0.0) -> PresenceWatch:
    clock = SkewedClock(offset=skew)
    own = Place(0, holder=holder, scheduler_names=frozenset(names or ("ours",)), election=election)
    return PresenceWatch(board, own, clock, Pacing(random.Random(holder).random, clock.sleep))


def test_two_processes_of_one_name_without_an_election_say_so_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "policysched")

    async def run() -> None:
        board = Board()
        one, two = presence(board, "one", "a", "b", skew=-1e6), presence(board, "two", "b", "c", skew=1e6)
        tasks = [asyncio.ensure_future(each.run()) for each in (one, two)]
        await asyncio.sleep(40)
        assert (set(one.competing), set(two.competing)) == ({"two"}, {"one"})
        tasks[1].cancel()
        await two.leave()
        assert board.holders == ["one"]
        await asyncio.sleep(12)
        assert one.competing == frozenset()
        tasks[0].cancel()

    simulate(run())
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(" schedules for the same")[0] for line in said[:2]] == ["one", "two"] or [
        line.partition(" schedules for the same")[0] for line in said[:2]
    ] == ["two", "one"]
    assert said[2:] == ["two no longer competes with this process"]


@pytest.mark.parametrize(
    ("one", "two", "compete"),
    [
        (Place(0, election="ns/a"), Place(1, election="ns/a"), False),
        (Place(0, election="ns/a"), Place(1, election="ns/b"), True),
        (Place(0, election="ns/a"), Place(1), True),
        (Place(0), Place(1), True),
    ],
)
def test_one_election_decides_between_those_that_take_part_in_it(one: Place, two: Place, compete: bool) -> None:
    names = frozenset(("a",))
    one, two = replace(one, scheduler_names=names), replace(two, scheduler_names=names | {"b"})
    assert one.competes_with(two) is two.competes_with(one) is compete
    assert not one.competes_with(replace(two, scheduler_names=frozenset(("b",))))


def test_place_of_a_killed_process_alarms_nobody_and_is_emptied_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        board = Board()
        board.places[0] = Place(0, "7", "killed", frozenset(("ours",)), "", "2026-01-01T00:00:00.0Z")
        one = presence(board, "one")
        task = asyncio.ensure_future(one.run())
        await asyncio.sleep(59)
        assert board.holders == ["killed", "one"]
        await asyncio.sleep(25)
        assert board.holders == ["one"]
        assert len(board.places) == 2
        task.cancel()

    simulate(run())
    assert not caplog.records


def test_lease_that_somebody_deletes_ends_nothing() -> None:
    async def run() -> None:
        board = Board()
        one, two = presence(board, "one"), presence(board, "two")
        tasks = [asyncio.ensure_future(each.run()) for each in (one, two)]
        await asyncio.sleep(25)
        tasks[1].cancel()
        gone = next(place.number for place in board.places.values() if place.holder == "two")
        del board.places[gone]
        await asyncio.sleep(200)
        assert not tasks[0].done() and one.competing == frozenset()
        board.places[1 - gone] = replace(board.places[1 - gone], renewed="")
        await asyncio.sleep(12)
        assert board.places[1 - gone].renewed
        tasks[0].cancel()

    simulate(run())


def test_processes_that_are_killed_again_and_again_take_no_more_than_the_places(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        board = Board()
        for number in range(3 * PLACES):
            task = asyncio.ensure_future(presence(board, f"p{number}").run())
            await asyncio.sleep(5)
            task.cancel()
        assert len(board.places) == PLACES
        last = asyncio.ensure_future(presence(board, "last").run())
        await asyncio.sleep(100)
        assert board.holders == ["last"]
        last.cancel()

    simulate(run())
    assert (
        "all 16 presence Leases are in use, so other processes cannot detect this process (logged once)" in caplog.text
    )


def test_process_whose_place_was_taken_takes_another() -> None:
    async def run() -> None:
        board = Board()
        task = asyncio.ensure_future(presence(board, "one").run())
        await asyncio.sleep(1)
        board.places[0] = replace(board.places[0], holder="thief", version="x")
        await asyncio.sleep(12)
        assert board.holders == ["one", "thief"]
        task.cancel()

    simulate(run())


def test_without_the_right_it_is_said_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        board = Board(forbidden=True)
        one = presence(board, "one")
        task = asyncio.ensure_future(one.run())
        await asyncio.sleep(100)
        assert board.asked > 8
        await one.leave()
        board.forbidden = False
        await asyncio.sleep(12)
        assert board.holders == ["one"]
        task.cancel()

    simulate(run())
    assert [one.getMessage() for one in caplog.records] == [
        "cannot detect other processes with the same scheduler name: cannot list leases (logged once)"
    ]


async def test_places_are_leases_with_a_label(kube: Kube) -> None:
    annotations = {"policysched.io/scheduler-names": '["a"]', "policysched.io/election": "ns/l"}
    spec = {"holderIdentity": "one", "renewTime": "2026-01-02T00:00:00.000000Z"}
    items = [
        {
            "metadata": {"name": "policysched-presence-3", "resourceVersion": "9", "annotations": annotations},
            "spec": spec,
        },
        {"metadata": {"name": "policysched-presence-4", "annotations": {"policysched.io/scheduler-names": "{"}}},
        {"metadata": {"name": "policysched-presence-99"}, "spec": {}},
        {"metadata": {"name": "policysched-presence-03"}, "spec": {}},
        {"metadata": {"name": "policysched-presence-" + "9" * 5000}, "spec": {}},
        {"metadata": {"name": "another"}, "spec": {}},
    ]
    kube.server.on("GET", LEASES, answer({"items": items}), answer(b"[]"), refuse(403, "Forbidden"))
    kube.server.on("POST", LEASES, answer({}, 201))
    kube.server.on("PUT", f"{LEASES}/policysched-presence-3", answer({}))
    places = LeasePlaces(kube.transport, "kube-system")
    found = await places.read()
    assert found == [Place(3, "9", "one", frozenset(("a",)), "ns/l", spec["renewTime"]), Place(4)]
    assert kube.server.asked[-1].query["labelSelector"] == "policysched.io/presence=true"
    with pytest.raises(ApiError, match="is not a list"):
        await places.read()
    with pytest.raises(ApiError):
        await places.read()
    await places.write(replace(found[0], version=""))
    await places.write(found[0])
    first, second = kube.server.asked[-2:]
    assert first.body["metadata"]["annotations"] == annotations
    assert first.body["spec"] == spec | {"leaseDurationSeconds": 60}
    assert second.body["metadata"]["resourceVersion"] == "9"
    await places.write(Place(3, "9"))
    assert "annotations" not in kube.server.asked[-1].body["metadata"]


async def test_what_ends_the_looking_at_others_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    seen = presence(board, "a")

    async def broken() -> list[Place]:
        raise AttributeError("gone")

    monkeypatch.setattr(board, "read", broken)
    with pytest.raises(AttributeError):
        async with seen.published(1.0):
            await asyncio.sleep(0.01)
            assert "detecting other processes with the same scheduler name failed and is stopped" in caplog.text
            assert "AttributeError: gone" in caplog.text
