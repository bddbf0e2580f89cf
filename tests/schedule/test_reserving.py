"""Reserve, Permit, PreBind, Bind and PostBind: the order of calls, and the results for the pod."""

from __future__ import annotations

import asyncio
from dataclasses import replace as replace_field
from typing import Any

import pytest

from policysched.app.configuration.profiles import configured_profiles, default_profile
from policysched.framework import (
    AssumedPod,
    Cluster,
    Code,
    FailedDecision,
    Handle,
    PerPod,
    PostFilterPlugin,
    PostFilterResult,
    PreFlight,
    Status,
    unresolvable,
    unschedulable,
)
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.plugins.default_binder import DefaultBinder
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.volumes.volume_binding import VolumeBinding
from policysched.schedule import attempts
from policysched.schedule.observer import Attempt, Observer
from tests.build import node, pod
from tests.plugins.stored import claim, claiming, storage_class, volume
from tests.rules.build import filtering, policy_set
from tests.schedule.parts import profile, refused
from tests.schedule.recording import FAILED, ORDER, PENDING, POD, UNDONE, Heard, Recorder, outcome
from tests.schedule.stand import running


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
        assert stand.notes == ["all Bind plugins skipped the pod"]
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
        ("nonsense", "TypeError('expected a Status, got str')"),
        (Status(Code.WAIT, ("no",)), "%!w(<nil>)"),  # as Go formats a nil error
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


class Outside(Recorder, PostFilterPlugin):
    """A plugin whose Unreserve takes long and is completed outside of the cycle."""

    def __init__(self, **answers: Any) -> None:
        super().__init__("A", [], **answers)
        self.go, self.undone = asyncio.Event(), 0
        self.nominates: str | None = None

    def unreserve(self, assumed: AssumedPod) -> Any:
        super().unreserve(assumed)
        return self._undo

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:  # noqa: ARG002 - the protocol's
        return PostFilterResult(unschedulable("later"), nominated_node=self.nominates, cleanups=(self._undo,))

    async def _undo(self, _: Handle) -> None:
        await self.go.wait()
        self.undone += 1


def with_outside(point: str, one: Outside) -> Profile:
    if point == "post_filter":
        return replace_field(profile([NodeResourcesFit()]), post_filters=(one,))
    return profile([one])


@pytest.mark.parametrize("point", ["permit", "post_filter"])
async def test_pod_is_not_tried_again_before_what_it_had_is_taken_back(point: str) -> None:
    one = Outside(permit=unschedulable("not here"))
    wanting = pod(requests={"cpu": 99}) if point == "post_filter" else POD
    async with running(node("n1"), of=with_outside(point, one)) as stand:
        await stand.settled(wanting)
        stand.scheduler.set_node(node("n2", allocatable={"cpu": 100, "memory": "1Gi", "pods": 10}))
        await stand.pass_time(60.0)
        assert (stand.attempts("p"), stand.notes, one.undone) == (1, [], 0)
        one.answers["permit"] = None
        one.go.set()
        await stand.settle()
        assert (one.undone, len(stand.notes)) == (1, 1)  # changes in the meantime are not missed
        await stand.pass_time(60.0)
        assert stand.bound["p"] in {"n1", "n2"}


async def test_what_is_kept_for_a_pod_and_what_it_waits_for_counts_before_that() -> None:
    one = Outside()
    one.nominates = "n1"
    of = replace_field(default_profile("default-scheduler"), post_filters=(one,))
    rules = policy_set(p={"filters": filtering('node.labels["k"] == "x"')})
    async with running(node("n1"), node("n2"), of=of) as stand:
        stand.scheduler.use_policies(rules, frozenset({"SchedulingPolicy/p"}))
        await stand.settled(POD)
        assert [kept.metadata.name for kept in stand.scheduler.cluster.nominations.on_node("n1")] == ["p"]
        stand.scheduler.set_node(node("n2", labels={"k": "x"}))
        one.go.set()
        await stand.settle()
        await stand.pass_time(20.0)
        assert stand.bound == {"p": "n2"}


@pytest.mark.parametrize("change", ["deleted", "bound by others"])
async def test_pod_that_goes_while_what_it_had_is_taken_back_does_not_come_back(change: str) -> None:
    one = Outside(permit=unschedulable("not here"))
    async with running(node("n1"), of=profile([one])) as stand:
        await stand.settled(POD)
        if change == "deleted":
            stand.scheduler.remove_pod("default.p")
        else:
            stand.confirm(POD, "n1")
        one.go.set()
        await stand.pass_time(60.0)
        assert (one.undone, stand.notes, stand.bound) == (1, [], {})
        assert stand.scheduler.queue.get("default.p") is None
        assert stand.scheduler.queue.in_flight == (0, 0)


async def test_changes_are_not_kept_for_long_for_what_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "LISTENING", 0.05)
    one = Outside(permit=unschedulable("not here"))
    async with running(node("n1"), of=profile([one])) as stand:
        await stand.settled(POD)
        assert stand.scheduler.queue.in_flight[0] == 1
        await asyncio.sleep(0.1)
        for number in range(20):
            stand.scheduler.set_node(node(f"more-{number}"))
        assert stand.scheduler.queue.in_flight == (1, 0)
        one.answers["permit"] = None
        one.go.set()
        await stand.settle()
        await stand.pass_time(60.0)
        assert "p" in stand.bound


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
    assert [one.name for one in profile.pre_binds] == ["VolumeBinding", "DynamicResources"]
    assert (profile.permits, profile.post_binds) == ((), ())
    version = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    off = {"preBind": {"disabled": [{"name": "VolumeBinding"}, {"name": "DynamicResources"}]}}
    [without] = configured_profiles(version | {"profiles": [{"plugins": off}]}).values()
    assert without.pre_binds == ()
    assert [one.name for one in without.reserves] == ["VolumeBinding", "DynamicResources"]


# Volumes


async def test_a_plugin_that_names_pods_of_its_own_is_not_asked_to_reserve_for_others() -> None:
    class ForVolumes(Recorder, PerPod):
        @staticmethod
        def has_own_results(pod: Pod, cluster: Cluster) -> bool:  # noqa: ARG004 - the base's signature
            return bool(pod.spec.volumes)

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
