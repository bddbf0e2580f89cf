"""Out-of-tree plugins in a running scheduler: Reserve to PostBind, PreEnqueue, QueueSort and PostFilter."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace as replace_field
from typing import Any

import pytest

from policysched.framework import Action, Code, Hint, PostFilterResult, Resource, Status, Wait, unschedulable
from policysched.framework.out_of_tree.methods import PreBindPreFlightResult
from policysched.framework.out_of_tree.worker_threads import MOST
from policysched.framework.profile import Profile
from policysched.rules.policy_set.policy_set import PolicySet
from tests.build import node, pod
from tests.schedule.out_of_tree import SKIPPED, Scripted, adapted, profile_with
from tests.schedule.stand import ME, Stand, running

POD = pod()
FAILED = Status(Code.ERROR, ("out of order",))
SOFT, PENDING = unschedulable("soft"), Status(Code.PENDING, ("not yet",))
NIL = "%!w(<nil>)"
BINDING = ["reserve n1", "permit n1", "pre_bind_pre_flight n1", "pre_bind n1", "bind n1", "post_bind n1"]


class UntellableError(Exception):
    """An error whose text cannot be computed."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


async def settled(stand: Stand, until: Callable[[], bool]) -> None:
    """Wait until a condition is true, with time for threads."""
    for _ in range(400):
        await stand.settle()
        if until():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to that")


async def outcome(*plugins: Any, of: Profile | None = None) -> tuple[dict[str, str], list[str], tuple[int, int]]:
    """Schedule a pod; return bindings, notes of events, and the numbers of unschedulable and backoff pods."""
    async with running(node("n1"), of=of or profile_with(*plugins)) as stand:
        stand.scheduler.set_pod(POD)
        await settled(stand, lambda: bool(stand.bound or stand.notes))
        await settled(stand, lambda: not stand.scheduler.attempts.tasks)
        counts = stand.scheduler.queue.counts()
        if not stand.bound:
            assert not stand.scheduler.cluster.pods.by_id
        return stand.bound, stand.notes, (counts.unschedulable, counts.backoff)


def calls(log: list[str], since: str = "reserve") -> list[str]:
    found = [call.removeprefix("X.") for call in log]
    return found[next(place for place, call in enumerate(found) if call.startswith(since)) :]


async def test_points_are_run_in_order_with_the_pod_on_its_node() -> None:
    seen: dict[str, Any] = {}

    def note(point: str) -> Callable[..., Any]:
        def noted(state: Any, of: Any, on: str) -> Any:
            seen[point] = (of.spec.node_name, on, state.get("reserved"))
            if point == "reserve":
                state.write("reserved", of.metadata.name)
            return SKIPPED if point == "bind" else None

        return noted

    points = ("reserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind", "post_bind")
    plugin = Scripted([], "X", **{point: note(point) for point in points})
    bound, notes, _ = await outcome(plugin)
    assert (bound, notes, calls(plugin.log)) == ({"p": "n1"}, [], BINDING)
    assert seen == {point: ("n1", "n1", None if point == "reserve" else "p") for point in points}


NAMES = {"reserve": "Reserve", "permit": "Permit", "pre_bind": "PreBind", "bind": "Bind"}


@pytest.mark.parametrize("point", list(NAMES))
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (FAILED, "out of order"),
        (ValueError("a bug"), "ValueError('a bug')"),
        (SystemExit(3), "RuntimeError('the plugin raised SystemExit(3)')"),
        (asyncio.CancelledError("mine"), "RuntimeError(\"the plugin raised CancelledError('mine')\")"),
        (StopIteration(), "RuntimeError('the plugin raised StopIteration()')"),
        (7, "TypeError('expected a Status, got int')"),
        (UntellableError(), "RuntimeError('the plugin raised UntellableError')"),
        (Status(Code.ERROR, (ValueError("a cause"), 5)), "a cause, 5"),  # type: ignore[arg-type]
        (Status(Code.ERROR, b"no text"), "b'no text'"),  # type: ignore[arg-type]
        (Status(Code.ERROR, (UntellableError(),)), "UntellableError"),  # type: ignore[arg-type]
    ],
)
async def test_failure_ends_the_attempt_and_the_pod_backs_off(point: str, answer: Any, said: str) -> None:
    log: list[str] = []
    plugins = Scripted(log, "X", **{point: answer}), Scripted(log, "Y")
    bound, notes, places = await outcome(*plugins)
    assert (bound, notes, places) == ({}, [f'running {NAMES[point]} plugin "X": {said}'], (0, 1))
    assert [call for call in log if "unreserve" in call] == ["Y.unreserve n1", "X.unreserve n1"]
    assert not [call for call in log if "post_bind" in call]


@pytest.mark.parametrize("point", ["reserve", "permit"])
@pytest.mark.parametrize("answer", [SOFT, PENDING])
async def test_rejection_at_reserve_or_permit_waits_for_a_change(point: str, answer: Status) -> None:
    bound, notes, places = await outcome(Scripted([], "X", **{point: answer}))
    assert (bound, notes, places) == ({}, [f"0/1 nodes are available: 1 {answer.message}."], (1, 0))


@pytest.mark.parametrize("point", ["pre_bind", "bind"])
async def test_rejection_in_the_binding_cycle_is_said_and_tried_again(point: str) -> None:
    bound, notes, places = await outcome(Scripted([], "X", **{point: unschedulable("pod is not permitted")}))
    assert (bound, notes, places) == ({}, ["pod is not permitted"], (0, 1))


@pytest.mark.parametrize(
    ("point", "answer"), [("reserve", SKIPPED), ("permit", SKIPPED), ("pre_bind", Status(Code.WAIT))]
)
async def test_codes_without_a_meaning_at_a_point_are_errors(point: str, answer: Status) -> None:
    bound, notes, places = await outcome(Scripted([], "X", **{point: answer}))
    assert (bound, notes, places) == ({}, [f'running {NAMES[point]} plugin "X": {NIL}'], (0, 1))


async def test_skip_at_preflight_leaves_prebind_out() -> None:
    log: list[str] = []
    await outcome(Scripted(log, "X", pre_bind_pre_flight=SKIPPED), Scripted(log, "Y"))
    late = [call for call in log if "pre_bind" in call]
    assert late == ["X.pre_bind_pre_flight n1", "Y.pre_bind_pre_flight n1", "Y.pre_bind n1"]


async def test_plugin_that_hangs_keeps_no_other_waiting() -> None:
    go, told, hung = threading.Event(), threading.Event(), 0

    class Hanging:
        def pre_bind_pre_flight(self, state: Any, of: Any, node_name: str) -> Status | None:  # noqa: ARG002 - as named
            return None if of.metadata.name.startswith("hung") else SKIPPED

        def pre_bind(self, *_: Any) -> None:
            nonlocal hung
            hung += 1
            go.wait(60)

    other = Scripted([], "Y", post_bind=lambda *_: told.set())
    async with running(node("n1"), of=profile_with(Hanging(), other)) as stand:
        try:
            for number in range(MOST + 1):
                stand.scheduler.set_pod(pod(f"hung-{number}"))
            await settled(stand, lambda: hung == MOST)
            stand.scheduler.set_pod(POD)
            await settled(stand, lambda: "p" in stand.bound and told.is_set())
            assert list(stand.bound) == ["p"]
        finally:
            go.set()
        await settled(stand, lambda: len(stand.bound) == MOST + 2)


PARALLEL = PreBindPreFlightResult(allow_parallel=True)


class Meeting:
    """A PreBind plugin that logs its start and end, and waits in between."""

    def __init__(self, log: list[str], name: str, flight: Any, wait: Callable[[], Any], answer: Any = None) -> None:
        self.log, self.name, self.flight, self.wait, self.answer = log, name, flight, wait, answer

    def pre_bind_pre_flight(self, *_: Any) -> Any:
        return self.flight

    async def pre_bind(self, *_: Any) -> Any:
        self.log.append(f"{self.name} begins")
        try:
            await self.wait()
        except asyncio.CancelledError:
            self.log.append(f"{self.name} is cancelled")
            raise
        self.log.append(f"{self.name} ends")
        return self.answer


async def for_ever() -> None:
    await asyncio.Event().wait()


async def at_once() -> None:
    pass


async def test_prebind_plugins_that_allow_it_run_side_by_side() -> None:
    log: list[str] = []
    barrier = asyncio.Barrier(2)
    bound, notes, _ = await outcome(
        Meeting(log, "X", PARALLEL, barrier.wait), Meeting(log, "Y", (PARALLEL, None), barrier.wait)
    )
    assert (bound, notes) == ({"p": "n1"}, [])
    assert log[:2] == ["X begins", "Y begins"]


@pytest.mark.parametrize("between", [None, SKIPPED, (PreBindPreFlightResult(), SKIPPED)])
async def test_plugin_that_does_not_allow_it_parts_its_neighbours(between: Any) -> None:
    log: list[str] = []
    await outcome(
        Meeting(log, "X", PARALLEL, at_once),
        Meeting([], "Y", between, at_once),
        Meeting(log, "Z", PARALLEL, at_once),
    )
    assert log == ["X begins", "X ends", "Z begins", "Z ends"]


async def test_plugin_that_skips_and_allows_it_parts_nobody() -> None:
    log: list[str] = []
    barrier = asyncio.Barrier(2)
    await outcome(
        Meeting(log, "X", PARALLEL, barrier.wait),
        Meeting(log, "Y", (PARALLEL, SKIPPED), at_once),
        Meeting(log, "Z", PARALLEL, barrier.wait),
    )
    assert log[:2] == ["X begins", "Z begins"]
    assert len(log) == 4


async def test_first_failure_at_prebind_cancels_those_beside_it_and_leaves_out_what_follows() -> None:
    log: list[str] = []
    bound, notes, places = await outcome(
        Meeting(log, "X", PARALLEL, for_ever),
        Meeting(log, "Y", PARALLEL, at_once, FAILED),
        Scripted(log, "Z"),
    )
    assert (bound, notes, places) == ({}, ['running PreBind plugin "Y": out of order'], (0, 1))
    assert log.index("X is cancelled") < log.index("Z.unreserve n1")
    assert not {"Z.pre_bind n1", "Z.bind n1"} & set(log)


async def test_plugin_in_a_thread_ends_before_unreserve() -> None:
    log: list[str] = []
    failed = threading.Event()

    def slow(*_: Any) -> None:
        failed.wait(10)
        log.append("Z ends")

    async def fail() -> None:
        asyncio.get_running_loop().call_later(0.02, failed.set)

    plugins = Meeting(log, "Y", PARALLEL, fail, FAILED), Scripted(log, "Z", pre_bind_pre_flight=PARALLEL, pre_bind=slow)
    _, notes, _ = await outcome(*plugins)
    assert notes == ['running PreBind plugin "Y": out of order']
    assert log.index("Z ends") < log.index("Z.unreserve n1")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (FAILED, 'running PreBindPreFlight "X": out of order'),
        ((PARALLEL, FAILED), 'running PreBindPreFlight "X": out of order'),
        ((7, None), "running PreBindPreFlight \"X\": TypeError('expected a PreBindPreFlightResult, got int')"),
        (ValueError("a bug"), "running PreBindPreFlight \"X\": ValueError('a bug')"),
        (SOFT, 'PreBindPreFlight X returned "Unschedulable", which is unsupported. '
               "It is supposed to return Success, Skip, or Error status"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("waits", [True, False])
async def test_failure_at_preflight_ends_the_attempt_before_it_waits(answer: Any, said: str, waits: bool) -> None:
    plugin = Scripted(pre_bind_pre_flight=answer, permit=Wait(60) if waits else None)
    bound, notes, places = await outcome(plugin)
    assert (bound, notes, places) == ({}, [said], (0, 1))


async def test_plugin_without_preflight_is_always_asked_at_prebind() -> None:
    class Bare:
        asked = 0

        def pre_bind(self, *_: Any) -> None:
            self.asked += 1

    plugin = Bare()
    await outcome(plugin)
    assert plugin.asked == 1


async def test_first_bind_plugin_that_does_not_skip_binds() -> None:
    log: list[str] = []
    plugins = (Scripted(log, "X"), Scripted(log, "Y", bind=Status(Code.SUCCESS)), Scripted(log, "Z"))
    async with running(node("n1"), of=profile_with(*plugins)) as stand:
        stand.scheduler.set_pod(POD)
        await settled(stand, lambda: "Z.post_bind n1" in log)
        assert stand.bound == {}
    assert [call for call in log if ".bind" in call] == ["X.bind n1", "Y.bind n1"]
    assert [call for call in log if "post_bind" in call] == ["X.post_bind n1", "Y.post_bind n1", "Z.post_bind n1"]


@pytest.mark.parametrize("answer", [ValueError("a bug"), SystemExit(1), FAILED, 7])
async def test_postbind_changes_nothing(answer: Any) -> None:
    log: list[str] = []
    bound, notes, _ = await outcome(Scripted(log, "X", post_bind=answer), Scripted(log, "Y"))
    assert (bound, notes) == ({"p": "n1"}, [])
    assert [call for call in log if "unreserve" in call] == []


WAITS = pytest.mark.parametrize("wait", [Wait(60), (Status(Code.WAIT), 60), (Status(Code.WAIT, ("why",)), 60.0)])


@WAITS
async def test_pod_waits_at_permit_until_it_is_allowed_by_another_pods_plugin(wait: Any) -> None:
    of = profile_with(Scripted(permit=lambda _state, of, _on: wait if of.metadata.name == "p" else None))
    handle = of.handle
    assert handle is not None
    async with running(node("n1"), of=of) as stand:
        stand.scheduler.set_pod(POD)
        await settled(stand, lambda: bool(handle.waiting_pods()))
        stand.scheduler.set_pod(pod("other"))
        await settled(stand, lambda: "other" in stand.bound)
        assert "p" not in stand.bound
        [waiting] = handle.waiting_pods()
        assert (waiting.pod, waiting.pending) == (POD, ("X",))
        waiting.allow("X")
        await settled(stand, lambda: "p" in stand.bound)
        assert handle.waiting_pods() == []


async def test_pod_that_waits_is_rejected_from_elsewhere() -> None:
    of = profile_with(Scripted(permit=Wait(60)))
    handle = of.handle
    assert handle is not None
    async with running(node("n1"), of=of) as stand:
        stand.scheduler.set_pod(POD)
        await settled(stand, lambda: bool(handle.waiting_pods()))
        assert await asyncio.to_thread(handle.waiting_pods()[0].reject, "X", "no gang")
        await settled(stand, lambda: bool(stand.notes))
        assert stand.notes == ["0/1 nodes are available: 1 no gang."]
        assert stand.waiting == 1


async def test_wait_ends_with_its_timeout() -> None:
    bound, notes, places = await outcome(Scripted(permit=Wait(0)))
    said = "0/1 nodes are available: 1 rejected due to timeout after waiting 0s at plugin X."
    assert (bound, notes, places) == ({}, [said], (1, 0))


@pytest.mark.parametrize("answer", [Wait("soon"), (Status(Code.WAIT), None), (1, 2, 3)])  # type: ignore[arg-type]
async def test_wait_of_no_number_fails_the_attempt(answer: Any) -> None:
    bound, [note], _ = await outcome(Scripted(permit=answer))
    assert (bound, note[:28]) == ({}, 'running Permit plugin "X": ' + note[27])


async def test_rejection_after_a_wait_of_another_plugin_leaves_nothing_waiting() -> None:
    log: list[str] = []
    of = profile_with(Scripted(log, "X", permit=Wait(60)), Scripted(log, "Y", permit=SOFT))
    bound, notes, _ = await outcome(of=of)
    assert of.handle is not None
    assert (bound, notes, of.handle.waiting_pods()) == ({}, ["0/1 nodes are available: 1 soft."], [])


async def test_code_that_waits_has_a_thread_of_its_own_and_async_code_the_loop() -> None:
    threads: dict[str, int] = {}

    class Both:
        def pre_bind(self, *_: Any) -> None:
            threads["pre_bind"] = threading.get_ident()
            time.sleep(0.05)

        async def post_bind(self, *_: Any) -> None:
            await asyncio.sleep(0)
            threads["post_bind"] = threading.get_ident()

        def reserve(self, *_: Any) -> None:
            threads["reserve"] = threading.get_ident()

    await outcome(Both())
    here = threading.get_ident()
    assert (threads["reserve"], threads["post_bind"]) == (here, here)
    assert threads["pre_bind"] != here


async def test_binding_that_hangs_keeps_neither_other_pods_nor_the_end_waiting() -> None:
    go = threading.Event()

    def hang(_state: Any, of: Any, _on: str) -> None:
        if of.metadata.name == "p":
            go.wait(30)

    async with running(node("n1"), of=profile_with(Scripted(pre_bind=hang))) as stand:
        stand.scheduler.set_pod(POD)
        stand.scheduler.set_pod(pod("other"))
        await settled(stand, lambda: "other" in stand.bound)
        assert "p" not in stand.bound
        go.set()
        await settled(stand, lambda: "p" in stand.bound)


async def test_unreserve_that_raises_keeps_no_other_from_being_called() -> None:
    log: list[str] = []
    plugins = Scripted(log, "X"), Scripted(log, "Y", unreserve=SystemExit(1)), Scripted(log, "Z", pre_bind=FAILED)
    await outcome(*plugins)
    assert [call for call in log if "unreserve" in call] == ["Z.unreserve n1", "Y.unreserve n1", "X.unreserve n1"]


@pytest.mark.parametrize(("answer", "gated"), [(SOFT, 1), (ValueError("a bug"), 1), (7, 1), (None, 0)])
async def test_preenqueue_keeps_pods_out_of_the_active_queue(answer: Any, gated: int) -> None:
    async with running(of=profile_with(Scripted(pre_enqueue=answer))) as stand:
        stand.scheduler.set_pod(POD)
        await stand.settle()
        assert stand.scheduler.queue.counts().gated == gated


@pytest.mark.parametrize("error", [ValueError("a bug"), SystemExit(3), asyncio.CancelledError()])
async def test_queue_is_sorted_as_the_plugin_compares(error: BaseException) -> None:
    class ByName:
        def less(self, a: Any, b: Any) -> bool:
            if "broken" in (a.pod.metadata.name, b.pod.metadata.name):
                raise error
            return bool(a.pod.metadata.name < b.pod.metadata.name)

    [sort] = adapted(ByName())
    of = replace_field(profile_with(Scripted()), queue_sort=sort)
    async with running(of=of) as stand:
        for name in ("c", "a", "b"):
            stand.scheduler.queue.add(pod(name))
        popped = [stand.scheduler.queue.pop() for _ in range(3)]
        assert [one.pod.metadata.name for one in popped if one is not None] == ["a", "b", "c"]
        for name in ("d", "broken"):
            stand.clock.at += 1
            stand.scheduler.queue.add(pod(name))
        first = stand.scheduler.queue.pop()
        assert first is not None
        assert first.pod.metadata.name == "d"
        for one in (*popped, first):
            if one is not None:
                stand.scheduler.queue.done(one)


@pytest.mark.parametrize(
    ("answer", "note", "nominated"),
    [
        (SOFT, "0/1 nodes are available: 1 full. soft", None),
        (None, "0/1 nodes are available: 1 full.", None),
        (PostFilterResult(unschedulable("later"), nominated_node="n1"), "0/1 nodes are available: 1 full. later", "n1"),
        (FAILED, "0/1 nodes are available: 1 full. out of order", None),
        (ValueError("a bug"), "0/1 nodes are available: 1 full. ValueError('a bug')", None),
        (7, "0/1 nodes are available: 1 full. TypeError('expected a Status, got int')", None),
    ],
)
async def test_postfilter_is_asked_once_no_node_is_left(answer: Any, note: str, nominated: str | None) -> None:
    def ask(state: Any, _pod: Any, statuses: Any) -> Any:
        assert state.read("from") == "PreFilter"
        assert statuses.get("n1").message == "full"
        assert statuses.get("never") is None
        assert [one.name for one in statuses.nodes(Code.UNSCHEDULABLE)] == ["n1"]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def prepare(state: Any, *_: Any) -> None:
        state.write("from", "PreFilter")

    plugin = Scripted(pre_filter=prepare, filter=unschedulable("full"), post_filter=ask)
    async with running(node("n1"), of=profile_with(plugin)) as stand:
        stand.scheduler.set_pod(POD)
        await settled(stand, lambda: bool(stand.notes))
        assert stand.notes == [note]
        kept = stand.scheduler.cluster.nominations.get("default.p")
        assert (kept.node if kept is not None else None) == nominated


async def test_pod_rejected_by_a_plugin_comes_back_with_the_changes_that_it_names() -> None:
    class Picky(Scripted):
        def events(self) -> Any:
            return [Hint(Resource.NODE, Action.UPDATE_NODE_LABEL)]

    async with running(node("n1"), of=profile_with(Picky(filter=SOFT))) as stand:
        await stand.settled(POD)
        stand.scheduler.set_node(node("n1", unschedulable=True))
        await stand.settle()
        assert stand.attempts("p") == 1
        stand.scheduler.set_node(node("n1", unschedulable=True, labels={"a": "b"}))
        await stand.pass_time(2)
        assert stand.attempts("p") == 2


async def test_pending_pod_comes_back_without_backoff() -> None:
    async with running(node("n1"), of=profile_with(Scripted(filter=PENDING))) as stand:
        await stand.settled(POD)
        assert stand.attempts("p") == 1
        stand.scheduler.set_node(node("n2"))
        await stand.settle()
        assert stand.attempts("p") == 2


async def test_plugins_of_a_changed_configuration_reach_the_scheduler_too() -> None:
    async with running(node("n1"), of=profile_with(Scripted())) as stand:
        changed = profile_with(Scripted(filter=SOFT))
        stand.scheduler.use_profiles({ME: changed}, PolicySet.of([]), frozenset())
        assert changed.handle is not None
        assert [one.name for one in changed.handle.nodes] == ["n1"]
        assert await asyncio.to_thread(changed.handle.waiting_pods) == []
        await stand.settled(POD)
        assert stand.notes == ["0/1 nodes are available: 1 soft."]
        assert ("X", "Filter") in stand.scheduler.plugin_watches()[ME].spent
