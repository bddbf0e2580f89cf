"""Reserve, Permit, PreBind, Bind and PostBind: who is asked in which order, and what becomes of the pod."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace as replace_field
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import configured_profiles
from policysched.framework import (
    Action,
    AssumedPod,
    Code,
    Handle,
    Hint,
    PreFlight,
    Resource,
    Status,
    Wait,
    WaitingPod,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import Pod
from policysched.plugins.default_binder import DefaultBinder
from policysched.plugins.volumes.volume_binding import VolumeBinding
from policysched.schedule.observer import Attempt, AttemptResult, Observer
from tests.build import cluster, node, pod
from tests.plugins.stored import claim, claiming, storage_class, volume
from tests.schedule.parts import FakeFilter, profile, refused
from tests.schedule.stand import Stand, running

POD = pod()
FAILED = Status(Code.ERROR, ("nothing left",))
SKIPPED = Status(Code.SKIP)
PENDING = Status(Code.PENDING, ("not yet",))


class Recorder(FakeFilter):
    """A plugin at every point that notes what it is asked, and answers there as it was told: nothing is success."""

    def __init__(self, name: str, log: list[str], **answers: Any) -> None:
        super().__init__(name)
        self.log = log
        self.answers = {"bind": SKIPPED, **answers}

    def _said(self, point: str, assumed: AssumedPod) -> Any:
        self.log.append(f"{self.name} {point}")
        counted = assumed.cluster.pods.by_id.get(f"default.{assumed.pod.metadata.name}")
        assert point == "unreserve" or counted is not None
        answer = self.answers.get(point)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def events(self) -> Sequence[Hint]:
        return (Hint(Resource.NODE, Action.ADD),)

    def reserve(self, assumed: AssumedPod) -> Any:
        return self._said("reserve", assumed)

    def unreserve(self, assumed: AssumedPod) -> None:
        self._said("unreserve", assumed)

    def permit(self, assumed: AssumedPod, handle: Handle) -> Any:  # noqa: ARG002 - the protocol's signature
        return self._said("permit", assumed)

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> Any:  # noqa: ARG002 - the protocol's signature
        answer = self.answers.get("pre_flight", PreFlight())
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Any:  # noqa: ARG002 - the protocol's signature
        return self._said("pre_bind", assumed)

    async def bind(self, assumed: AssumedPod, handle: Handle) -> Any:  # noqa: ARG002 - the protocol's signature
        return self._said("bind", assumed)

    async def post_bind(self, assumed: AssumedPod, handle: Handle) -> Any:  # noqa: ARG002 - the protocol's signature
        return self._said("post_bind", assumed)


UNDONE = ["B unreserve", "A unreserve"]
ORDER = [f"{name} {point}" for point in ("reserve", "permit", "pre_bind", "bind") for name in "AB"]


async def outcome(
    first: dict[str, Any] | None = None, second: dict[str, Any] | None = None, bind: Exception | None = None
) -> tuple[dict[str, str], list[str], list[str], tuple[int, int]]:
    """Schedule a pod with two recorders; give who was bound, what was said, who was asked, and where the pod is."""
    log: list[str] = []
    plugins = Recorder("A", log, **(first or {})), Recorder("B", log, **(second or {}))
    async with running(node("n1"), of=profile(plugins)) as stand:
        stand.client.errors["bind"] = [bind]
        await stand.settled(POD)
        counts = stand.scheduler.queue.counts()
        assert len(stand.scheduler.cluster.pods) == len(stand.bound)
        return stand.bound, stand.notes, log, (counts.backoff, counts.unschedulable)


async def test_points_are_run_in_their_order() -> None:
    bound, notes, log, _ = await outcome()
    assert (bound, notes) == ({"p": "n1"}, [])
    assert log == [*ORDER, "A post_bind", "B post_bind"]


async def test_plugin_that_binds_keeps_the_others_from_it() -> None:
    async def nobody(*_: Any) -> None:
        raise AssertionError

    log: list[str] = []
    async with running(node("n1"), of=profile([Recorder("A", log, bind=None), Recorder("B", log)])) as stand:
        stand.client.on_bind = nobody
        await stand.settled(POD)
        assert "Successfully assigned default/p to n1" in [event.note for event in stand.client.events]
        assert "B bind" not in log


async def test_pod_that_no_plugin_binds_comes_back() -> None:
    log: list[str] = []
    of = profile([Recorder("A", log)])
    async with running(node("n1"), of=replace_field(of, binds=of.binds[:1])) as stand:
        await stand.settled(POD)
        assert stand.notes == ["no Bind plugin has bound the pod"]
        assert (stand.scheduler.queue.counts().backoff, len(stand.scheduler.cluster.pods)) == (1, 0)


async def test_pre_bind_is_left_out_where_its_pre_flight_says_so() -> None:
    _, _, log, _ = await outcome({"pre_flight": PreFlight(works=False)})
    assert log == [one for one in [*ORDER, "A post_bind", "B post_bind"] if one != "A pre_bind"]


@pytest.mark.parametrize("point", ["reserve", "permit"])
@pytest.mark.parametrize("answer", [unschedulable("not here", "a"), unresolvable("not here", "a"), PENDING])
async def test_rejection_in_the_scheduling_cycle_makes_the_pod_unschedulable(point: str, answer: Status) -> None:
    bound, notes, log, places = await outcome({point: answer})
    said = "1 not yet" if answer is PENDING else "1 a, 1 not here"
    assert (bound, notes, places) == ({}, [f"0/1 nodes are available: {said}."], (0, 1))
    assert log == [*ORDER[: ORDER.index(f"A {point}") + 1], *UNDONE]


@pytest.mark.parametrize("point", ["pre_bind", "bind"])
async def test_rejection_in_the_binding_cycle_brings_the_pod_back_after_a_backoff(point: str) -> None:
    bound, notes, log, places = await outcome({point: unschedulable("not now")})
    assert (bound, notes, places) == ({}, ["not now"], (1, 0))
    assert log == [*ORDER[: ORDER.index(f"A {point}") + 1], *UNDONE]


NAMES = {"reserve": "Reserve", "permit": "Permit", "pre_bind": "PreBind", "bind": "Bind"}


@pytest.mark.parametrize("point", list(NAMES))
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (FAILED, "nothing left"),
        (ValueError("a bug"), "ValueError('a bug')"),
        ("nonsense", "TypeError('it gave str in place of a status')"),
        (Status(Code.WAIT, ("no",)), "%!w(<nil>)"),  # as Go writes an error that is none
    ],
)
async def test_failure_undoes_everything_and_is_tried_again(point: str, answer: Any, said: str) -> None:
    bound, notes, log, places = await outcome(second={point: answer})
    assert (bound, notes, places) == ({}, [f'running {NAMES[point]} plugin "B": {said}'], (1, 0))
    assert log[-2:] == UNDONE


@pytest.mark.parametrize("point", ["pre_bind", "bind", "post_bind"])
@pytest.mark.parametrize("raises", [True, False])
async def test_plugin_that_is_no_coroutine_fails_as_one_that_raises(point: str, *, raises: bool) -> None:
    def plain(*_: Any) -> Any:
        if raises:
            raise ValueError("a bug")

    log: list[str] = []
    plugins = Recorder("A", log), Recorder("B", log)
    setattr(plugins[1], point, plain)
    async with running(node("n1"), of=profile(plugins)) as stand:
        await stand.settled(POD)
        if point == "post_bind":
            assert (stand.bound, stand.notes) == ({"p": "n1"}, [])
            return
        assert stand.bound == {}
        assert [note.partition(": ")[0] for note in stand.notes] == [f'running {NAMES[point]} plugin "B"']
        assert (log[-2:], stand.scheduler.queue.counts().backoff) == (UNDONE, 1)


async def test_pre_flight_that_fails_undoes_everything() -> None:
    bound, notes, log, places = await outcome(second={"pre_flight": ValueError("a bug")})
    assert (bound, notes, places) == ({}, ["running PreBindPreFlight plugin \"B\": ValueError('a bug')"], (1, 0))
    assert log[-2:] == UNDONE


async def test_binding_that_the_server_refuses_undoes_everything() -> None:
    bound, notes, log, _ = await outcome(bind=refused(409, "gone"))
    assert (bound, notes) == ({}, ['running Bind plugin "DefaultBinder": gone'])
    assert log == [*ORDER, *UNDONE]


async def test_plugins_that_fail_after_the_binding_or_while_they_undo_stop_nothing() -> None:
    bound, _, log, _ = await outcome({"post_bind": ValueError("a bug")})
    assert (bound, log[-2:]) == ({"p": "n1"}, ["A post_bind", "B post_bind"])
    _, notes, log, places = await outcome({"permit": FAILED}, {"unreserve": ValueError("a bug")})
    assert (notes, log[-2:], places) == (['running Permit plugin "A": nothing left'], UNDONE, (1, 0))


async def test_rejected_pod_comes_back_by_the_hints_of_who_rejected_it() -> None:
    plugin = Recorder("A", [], permit=unschedulable("not here"))
    async with running(node("n1"), of=profile([plugin])) as stand:
        await stand.settled(POD)
        assert stand.waiting == 1
        stand.scheduler.set_pod(pod("other", on="n1"))
        assert stand.waiting == 1
        plugin.answers["permit"] = None
        stand.scheduler.set_node(node("n2"))
        await stand.pass_time(2)
        assert "p" in stand.bound


# Permit


class Heard(Observer):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.waits: list[tuple[str, Status | None, float]] = []
        self.decided: list[str] = []

    def on_decision(self, queued: Any, decision: Any) -> None:  # noqa: ARG002 - the listener's signature
        self.decided.append(decision.node)

    def on_attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def on_permit_wait(self, waiting: WaitingPod, status: Status | None, seconds: float) -> None:
        self.waits.append((waiting.assumed.pod.metadata.name, status, seconds))


def waiting_in(stand: Stand) -> dict[str, WaitingPod]:
    return dict(stand.scheduler._binder.handle.waiting)


async def waited(act: Callable[[Stand, WaitingPod], Any], timeout: float = 60.0) -> tuple[Stand, list[str], Heard]:
    """Let a pod wait for two plugins, and do something."""
    log: list[str] = []
    heard = Heard()
    plugins = [Recorder("A", log, permit=Wait(timeout)), Recorder("B", log, permit=Wait(60))]
    async with running(node("n1"), of=profile(plugins), observers=[heard]) as stand:
        await stand.settled(POD)
        [waiting] = waiting_in(stand).values()
        assert (waiting.pending, stand.bound, len(stand.scheduler.cluster.pods)) == (("A", "B"), {}, 1)
        stand.clock.at += 5
        act(stand, waiting)
        await stand.settle()
    return stand, log, heard


async def test_pod_that_waits_is_bound_once_every_plugin_allows_it() -> None:
    def act(stand: Stand, waiting: WaitingPod) -> None:
        waiting.allow("A")
        waiting.allow("A")
        assert waiting.pending == ("B",)
        waiting.allow("B")

    stand, log, heard = await waited(act)
    assert (stand.bound, waiting_in(stand)) == ({"p": "n1"}, {})
    assert "A unreserve" not in log
    assert heard.waits == [("p", None, 5.0)]
    [attempt] = heard.attempts
    assert (attempt.result, attempt.node, attempt.seconds, heard.decided) == (
        AttemptResult.SCHEDULED,
        "n1",
        5.0,
        ["n1"],
    )


async def test_pod_that_one_plugin_allows_goes_on_waiting() -> None:
    stand, _, heard = await waited(lambda _, waiting: waiting.allow("A"))
    assert (stand.bound, heard.attempts) == ({}, [])


async def test_pod_that_is_rejected_while_it_waits_is_unschedulable_by_that_plugin() -> None:
    def act(stand: Stand, waiting: WaitingPod) -> None:
        waiting.reject("B", "no gang")
        waiting.reject("A", "too late")
        waiting.allow("A")

    stand, log, heard = await waited(act)
    assert (stand.bound, stand.notes, stand.waiting) == ({}, ["0/1 nodes are available: 1 no gang."], 1)
    assert len(stand.scheduler.cluster.pods) == 0
    assert log[-2:] == UNDONE
    queued = stand.scheduler.queue.get("default.p")
    assert queued is not None
    assert queued.rejectors == {"B"}
    assert [(attempt.result, attempt.node) for attempt in heard.attempts] == [(AttemptResult.UNSCHEDULABLE, "")]
    [(_, status, _)] = heard.waits
    assert status == Status(Code.UNSCHEDULABLE, ("no gang",), "B")


@pytest.mark.parametrize(("timeout", "said"), [(0.02, "20ms"), (0.5, "500ms"), (1.5, "1.5s"), (59, "59s")])
async def test_wait_ends_after_the_shortest_timeout(timeout: float, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    later, due = loop.call_later, []

    def kept(delay: float, ring: Callable[..., None], *rest: Any) -> Any:
        due.append((delay, partial(ring, *rest)))
        return later(delay, lambda: None)

    monkeypatch.setattr(loop, "call_later", kept)
    stand, _, _ = await waited(lambda *_: min(due)[1](), timeout=timeout)
    assert min(due)[0] == min(timeout, 60, 900)
    assert stand.notes == [f"0/1 nodes are available: 1 rejected due to timeout after waiting {said} at plugin A."]


@pytest.mark.parametrize(
    ("timeout", "said"),
    [
        (0, "0s"),
        (90, "1m30s"),
        (840, "14m0s"),
        (901, "15m0s"),
        (10_000, "15m0s"),
        (900.5, "15m0s"),
        (math.nan, "15m0s"),
    ],
)
async def test_waits_are_bounded_and_written_as_go_does(timeout: float, said: str) -> None:
    waiting = WaitingPod(AssumedPod(POD, "n1", cluster()), {"A": Wait(timeout)})
    waiting._time_out("A", Wait(timeout))
    status = await waiting.outcome()
    assert status is not None
    assert status.message == f"rejected due to timeout after waiting {said} at plugin A"


async def test_changes_that_come_while_a_pod_waits_are_not_missed_when_it_is_rejected() -> None:
    def act(stand: Stand, waiting: WaitingPod) -> None:
        stand.scheduler.set_node(node("n2"))
        waiting.reject("A", "not here")

    stand, _, _ = await waited(act)
    assert (stand.waiting, stand.scheduler.queue.in_flight) == (0, (1, 0))


async def test_going_of_a_rejected_pod_helps_others_but_not_itself() -> None:
    class Freed(Recorder):
        def events(self) -> Sequence[Hint]:
            return (Hint(Resource.ASSIGNED_POD, Action.DELETE),)

        def permit(self, assumed: AssumedPod, handle: Handle) -> Any:
            return Wait(60) if assumed.pod.metadata.name == "p" else super().permit(assumed, handle)

    plugin = Freed("A", [], permit=unschedulable("full"))
    async with running(node("n1"), of=profile([plugin])) as stand:
        await stand.settled(POD)
        await stand.settled(pod("other"))
        assert stand.waiting == 1
        waiting_in(stand)["default.p"].reject("A", "no")
        await stand.settle()
        assert (stand.attempts("p"), stand.attempts("other")) == (1, 2)


@pytest.mark.parametrize("gone", [True, False])
async def test_pod_that_is_deleted_while_it_waits_leaves_nothing_behind(gone: bool) -> None:
    def act(stand: Stand, _: WaitingPod) -> None:
        if gone:
            stand.scheduler.drop(POD)
        else:
            going = replace(POD.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            stand.scheduler.set_pod(replace(POD, metadata=going))

    stand, log, _ = await waited(act)
    assert (stand.bound, len(stand.scheduler.cluster.pods), waiting_in(stand)) == ({}, 0, {})
    assert log[-2:] == UNDONE
    assert (stand.scheduler.queue.get("default.p") is None) is gone


async def test_pod_that_another_client_binds_waits_no_longer() -> None:
    def act(stand: Stand, _: WaitingPod) -> None:
        stand.scheduler.set_pod(replace(POD, spec=replace(POD.spec, node_name="n1")))

    stand, log, _ = await waited(act)
    assert (stand.bound, len(stand.scheduler.cluster.pods), waiting_in(stand)) == ({}, 1, {})
    assert (log[-2:], stand.scheduler.queue.get("default.p")) == (UNDONE, None)


async def test_end_of_the_process_does_not_wait_for_pods_that_wait() -> None:
    stand, log, heard = await waited(lambda *_: None)
    assert (stand.bound, heard.attempts, log[-1]) == ({}, [], "B permit")


async def test_pods_that_wait_do_not_hold_others_up() -> None:
    class Gang(Recorder):
        def permit(self, assumed: AssumedPod, handle: Handle) -> Any:
            """Wait for a pod of the name `last`, which lets all go."""
            if assumed.pod.metadata.name != "last":
                return Wait(60)
            for waiting in handle.waiting.values():
                waiting.allow(self.name)
            return None

    async with running(node("n1", allocatable={"pods": "1000", "cpu": 1000}), of=profile([Gang("A", [])])) as stand:
        await stand.settled(*(pod(f"p{number}") for number in range(600)))
        assert (stand.bound, len(waiting_in(stand))) == ({}, 600)
        await stand.settled(pod("last"))
        await stand.settle()
        assert (len(stand.bound), waiting_in(stand)) == (601, {})


# Observers


async def test_listener_that_fails_stops_nothing() -> None:
    class Broken(Observer):
        def on_attempt(self, attempt: Attempt) -> None:
            raise ValueError(attempt)

    heard = Heard()
    async with running(node("n1"), of=profile(), observers=[Broken(), heard]) as stand:
        await stand.settled(POD)
        assert (stand.bound, len(heard.attempts)) == ({"p": "n1"}, 1)


async def test_without_listeners_nothing_is_made_for_them() -> None:
    async with running(node("n1"), of=profile(), observers=()) as stand:
        stand.client.errors["bind"] = [refused(409, "gone")]
        await stand.settled(POD, pod("q"))
        assert stand.bound == {"q": "n1"}
        assert stand.scheduler.queue._queues.on_queued is None


# Configuration


def test_binding_plugins_are_those_of_the_configuration() -> None:
    [profile] = configured_profiles(None).values()
    assert [type(one) for one in profile.binds] == [DefaultBinder]
    assert [one.name for one in profile.pre_binds] == ["VolumeBinding"]
    assert (profile.permits, profile.post_binds) == ((), ())
    version = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    off = {"preBind": {"disabled": [{"name": "VolumeBinding"}]}}
    [without] = configured_profiles(version | {"profiles": [{"plugins": off}]}).values()
    assert (without.pre_binds, [one.name for one in without.reserves]) == ((), ["VolumeBinding"])


# Volumes


async def test_a_plugin_that_names_pods_of_its_own_is_not_asked_to_reserve_for_others() -> None:
    class ForVolumes(Recorder):
        def per_pod(self, of: Pod) -> bool:
            return bool(of.spec.volumes)

    log: list[str] = []
    async with running(node("n1"), of=profile([ForVolumes("A", log, pre_flight=PreFlight(works=False))])) as stand:
        await stand.settled(POD)
        assert (stand.bound, "A reserve" in log) == ({"p": "n1"}, False)
        await stand.settled(claiming("q", "c"))
        assert "A reserve" in log


async def test_a_pod_takes_its_volume_along() -> None:
    async with running(node("n1"), of=profile([VolumeBinding()])) as stand:
        for one in (
            claim(of="static"),
            volume(of="static"),
            storage_class("static", provisioner="kubernetes.io/no-provisioner"),
        ):
            stand.scheduler.take(one)
        await stand.settled(claiming("p", "c"))
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
        await stand.settled(claiming("p", "c"))
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
