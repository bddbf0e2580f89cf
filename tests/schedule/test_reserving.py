"""What plugins hold for a pod from decision to binding, and that all of it is given back when anything fails."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from policysched.framework import BindingHandle, Cluster, Code, Reservation, ReservePlugin, Status
from policysched.model.objects import Pod
from policysched.plugins.volumes.volume_binding import VolumeBinding
from tests.build import node, pod
from tests.plugins.stored import claim, claiming, storage_class, volume
from tests.schedule.parts import FakeFilter, profile, refused
from tests.schedule.stand import running

FAILED = Status(Code.ERROR, ("nothing left",))


@dataclass
class Held:
    """A reservation that notes what happens to it."""

    plugin: str
    log: list[str]
    problem: str | Exception = ""
    gate: asyncio.Event | None = None
    handles: list[BindingHandle] = field(default_factory=list)

    async def pre_bind(self, handle: BindingHandle) -> str:
        self.handles.append(handle)
        self.log.append(f"{self.plugin} pre-binds")
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.problem, Exception):
            raise self.problem
        return self.problem

    def undo(self) -> None:
        self.log.append(f"{self.plugin} gives back")


class Reserving(FakeFilter):
    """A filter that holds something for each pod."""

    def __init__(self, name: str, log: list[str], held: Any = None, **fields: Any) -> None:
        super().__init__(name)
        self.log = log
        self.held = Held(name, log, **fields) if held is None else held

    def reserve(self, of: Pod, cluster: Cluster, row: int) -> Reservation | Status | None:
        self.log.append(f"{self.name} reserves {cluster.nodes.names[row]} for {of.metadata.name}")
        if isinstance(self.held, Exception):
            raise self.held
        return self.held if not isinstance(self.held, str) else None


POD = claiming("p", "c")
RESERVED = ["A reserves n1 for p", "B reserves n1 for p"]


async def outcome(
    *plugins: Reserving, of: Pod = POD, bind: Exception | None = None
) -> tuple[dict[str, str], list[str]]:
    async with running(node("n1"), of=profile(plugins)) as stand:
        stand.client.errors["bind"] = [bind]
        await stand.settled(of)
        if not stand.bound:
            assert (len(stand.scheduler.cluster.pods), stand.scheduler.queue.counts().backoff) == (0, 1)
        return stand.bound, stand.notes


async def test_everything_is_held_and_done_before_the_pod_is_bound() -> None:
    log: list[str] = []
    assert await outcome(Reserving("A", log), Reserving("B", log)) == ({"p": "n1"}, [])
    assert log == [*RESERVED, "A pre-binds", "B pre-binds"]


async def test_a_plugin_that_holds_nothing_is_not_asked_again() -> None:
    log: list[str] = []
    assert await outcome(Reserving("A", log, "nothing"), Reserving("B", log)) == ({"p": "n1"}, [])
    assert log == [*RESERVED, "B pre-binds"]


async def test_what_cannot_be_had_frees_what_was_held_before() -> None:
    log: list[str] = []
    bound, notes = await outcome(Reserving("A", log), Reserving("B", log, FAILED))
    assert (bound, notes) == ({}, ['running Reserve plugin "B": nothing left'])
    assert log == [*RESERVED, "A gives back"]


async def test_plugin_that_fails_frees_what_was_held_before() -> None:
    log: list[str] = []
    bound, notes = await outcome(Reserving("A", log), Reserving("B", log, ValueError("a bug")))
    assert (bound, notes) == ({}, ["the scheduling cycle failed: ValueError('a bug')"])
    assert log == [*RESERVED, "A gives back"]


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ("too late", 'running PreBind plugin "A": too late'),
        (ValueError("a bug"), "running PreBind plugin \"A\": ValueError('a bug')"),
    ],
)
async def test_what_fails_before_the_binding_gives_everything_back(problem: Any, message: str) -> None:
    log: list[str] = []
    bound, notes = await outcome(Reserving("A", log, problem=problem), Reserving("B", log))
    assert (bound, notes) == ({}, [message])
    assert log == [*RESERVED, "A pre-binds", "B gives back", "A gives back"]


async def test_a_binding_that_fails_gives_everything_back() -> None:
    log: list[str] = []
    bound, notes = await outcome(Reserving("A", log), Reserving("B", log), bind=refused(409, "gone"))
    assert (bound, notes) == ({}, ['running Bind plugin "DefaultBinder": gone'])
    assert log[-2:] == ["B gives back", "A gives back"]


async def test_pods_without_volumes_hold_nothing() -> None:
    log: list[str] = []
    assert await outcome(Reserving("A", log), of=pod()) == ({"p": "n1"}, [])
    assert log == []


async def test_pods_that_wait_for_their_volumes_do_not_hold_others_up() -> None:
    log: list[str] = []
    gate = asyncio.Event()
    async with running(node("n1"), of=profile([Reserving("A", log, gate=gate)])) as stand:
        await stand.settled(*(claiming(f"p{number}", "c") for number in range(600)), pod("plain"))
        assert stand.bound == {"plain": "n1"}
        gate.set()
        await stand.settle()
        await stand.settle()
        assert len(stand.bound) == 601


async def test_a_pod_takes_its_volume_along() -> None:
    assert isinstance(VolumeBinding(), ReservePlugin)
    async with running(node("n1"), of=profile([VolumeBinding()])) as stand:
        for one in (
            claim(of="static"),
            volume(of="static"),
            storage_class("static", provisioner="kubernetes.io/no-provisioner"),
        ):
            stand.scheduler.take(one)
        await stand.settled(POD)
        assert (stand.client.written, stand.bound) == ([("v", "")], {})
        named = volume(
            of="static", metadata={"resourceVersion": "2"},
            claimRef={"namespace": "default", "name": "c", "uid": "u-c"},
        )  # fmt: skip
        stand.scheduler.take(named)
        stand.scheduler.take(
            claim(
                to="v",
                of="static",
                metadata={"resourceVersion": "3", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            )
        )
        await asyncio.sleep(0.15)
        assert stand.bound == {"p": "n1"}


async def test_a_claim_that_comes_later_wakes_its_pod() -> None:
    async with running(node("n1"), of=profile([VolumeBinding()])) as stand:
        await stand.settled(POD)
        assert stand.notes == ['0/1 nodes are available: persistentvolumeclaim "c" not found.']
        stand.scheduler.take(claim("other", to="v"))
        await stand.settle()
        assert stand.waiting == 1
        stand.scheduler.take(volume())
        stand.scheduler.take(claim(to="v"))
        stand.clock.at += 2
        await stand.settle()
        await asyncio.sleep(0.05)
        assert stand.bound == {"p": "n1"}
