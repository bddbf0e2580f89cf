"""Run one scheduler on one workload: start it on a fresh state, watch until all pods are bound, stop it."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bench.cluster import policies, templates
from bench.cluster.client import Client, Json
from bench.cluster.figures import Figures, throughput
from bench.cluster.machine import Patience, memory_of
from bench.cluster.observation import Observation, Tail
from bench.cluster.quality import judge
from bench.cluster.schedulers import RunningScheduler
from bench.cluster.state import State
from bench.cluster.workloads import Workload
from tests.controlplane.api import MERGE_PATCH, Api, RefusedError

POLL: Final = 0.05
START: Final = 120.0
"""Longest time until the first binding of a scheduler; then the run fails. Units: seconds."""
STALL: Final = 15.0
"""Longest time without a binding or event; then the run ends. Units: seconds."""
WARM: Final = "warm-up"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits of a run, and its progress callback."""

    seconds: float
    """Longest time from the first binding to the end of the run. Units: seconds."""
    settling: float
    """Longest wait for an idle machine after the API server's start. Units: seconds."""
    say: Callable[[int, int], None]
    """Callback with the numbers of bound and of all pods."""


def run(workload: Workload, scheduler: str, state: State, terms: Terms) -> Figures:
    """Run one scheduler on the stored objects of a workload, and return its figures.

    Raises:
        RuntimeError: the scheduler ended, or bound nothing.
    """
    state.fresh()
    quiet = Patience(terms.settling).wait()
    seen = Observation(frozenset(workload.measured_names()))
    with RunningScheduler(scheduler, state.plane, groups=workload.has_groups) as process, others(workload, state):
        watch = _Watch(process, state, seen, terms)
        coming = _coming(workload, state, watch) if workload.rate else nullcontext()
        with coming:
            watch.until_done(limited=not workload.rate)
        peak, end = memory_of(process.pid)
        nodes = _nodes_of_pods(state)
    judged = judge(workload, seen, nodes) if workload.judged and not workload.rate else {}
    found: dict[str, Any] = throughput(
        seen, process.started, at_rate=bool(workload.rate), from_start=workload.from_start
    )
    return Figures(
        workload=workload.name,
        scheduler=scheduler,
        nodes=workload.nodes,
        pods=workload.measured.count,
        bound=len(seen.bound),
        peak_mib=peak,
        end_mib=end,
        quiet=quiet,
        **found,
        **judged,
    )


def last_line(log: str) -> str:
    """Return the last line of a log; for a traceback, that is the exception."""
    return (log.strip().splitlines() or ["it said nothing"])[-1].strip()


class _Watch:
    """Reads the audit log and samples the processes while a scheduler runs."""

    def __init__(self, process: RunningScheduler, state: State, seen: Observation, terms: Terms) -> None:
        self._process, self._seen, self._terms = process, seen, terms
        self._servers = state.plane.servers
        self._tail = Tail(state.plane.audit_log)

    def look(self) -> int:
        """Read new lines and take a sample; return the number of bindings and events so far.

        Raises:
            RuntimeError: the scheduler has ended.
        """
        if not self._process.running:
            raise RuntimeError(f"the scheduler ended: {last_line(self._process.told())}")
        self._seen.take(self._tail.read())
        self._seen.sample(self._process.pid, self._servers)
        self._terms.say(len(self._seen.bound), len(self._seen.pods))
        return len(self._seen.bound) + len(self._seen.told)

    def until_done(self, *, limited: bool) -> None:
        """Read until all pods have events, the time limit is reached, or nothing happens any more.

        Raises:
            RuntimeError: no pod was bound.
        """
        count, moved = 0, time.monotonic()
        while len(self._seen.told) < len(self._seen.pods):
            time.sleep(POLL)
            before, count = count, self.look()
            now = time.monotonic()
            moved = now if count != before else moved
            if limited and 0 < len(self._seen.bound) < len(self._seen.pods) and self._is_over():
                return
            if now - moved > (STALL if count else START):
                break
        if not self._seen.bound:
            raise RuntimeError(f"no pod was bound within {START:.0f} s: {last_line(self._process.told())}")

    def _is_over(self) -> bool:
        end = min(self._seen.bound.values()) + self._terms.seconds
        if time.time() < end:
            return False
        self._seen.until(end)
        return True


def _nodes_of_pods(state: State) -> dict[tuple[str, str], str]:
    """Return the node of each pod; empty if it has none."""
    found = state.plane.objects("Pod")
    return {(of["namespace"], of["name"]): pod["spec"].get("nodeName", "") for pod in found if (of := pod["metadata"])}


@contextmanager
def _background(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a function in a thread during the block, and set its event at the end.

    Raises:
        RuntimeError: the function failed.
    """
    end, failed = threading.Event(), []

    def guarded() -> None:
        try:
            work(end)
        except Exception as error:  # whatever the error, the figures of the run are invalid
            failed.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    if failed:
        raise RuntimeError(f"what happens beside the scheduler failed: {failed[0]!r}") from failed[0]


@contextmanager
def _coming(workload: Workload, state: State, watch: _Watch) -> Iterator[None]:
    """Create pods at a steady rate during the block, once the scheduler has bound a first pod."""
    api = state.plane.api
    api.create(templates.pod("pod-default", WARM, "default"))
    end = time.monotonic() + START
    while not api.get("Pod", WARM)["spec"].get("nodeName"):
        watch.look()
        if time.monotonic() > end:
            raise RuntimeError(f"no pod was bound within {START:.0f} s")
        time.sleep(POLL)

    async def make(stop: threading.Event) -> None:
        async with Client(state.plane.kubeconfig()) as client, asyncio.TaskGroup() as group:
            began = time.monotonic()
            for index, pod in enumerate(workload.measured_pods()):
                await asyncio.sleep(max(0.0, began + index / workload.rate - time.monotonic()))
                if stop.is_set():
                    return
                group.create_task(client.create(pod))

    with _background(lambda stop: asyncio.run(make(stop))):
        yield


@contextmanager
def others(workload: Workload, state: State) -> Iterator[None]:
    """Make the changes that a workload includes (churn, or edits of a policy) during the block."""
    churn, work = workload.churn, None
    if workload.edited:
        every, work = 1.0, _edits()
    elif churn is not None:
        every, work = churn.every, _CHURNS[churn.mode](workload)
    if work is None:
        yield
        return
    step = work

    def repeat(end: threading.Event) -> None:
        plane = state.plane
        api = Api(int(plane.url.rpartition(":")[2]), plane.identities.tls(), plane.identities.token())
        try:
            while not end.wait(every):
                next(step, lambda _: None)(api)
        finally:
            api.close()

    with _background(repeat):
        yield


Step = Callable[[Api], Any]


def _edits() -> Iterator[Step]:
    """Yield edits of a policy's weight, without end."""
    path = f"{policies.PATH}/{policies.name(0)}"
    for turn in itertools.count():
        yield lambda api, turn=turn: api.call("PATCH", path, policies.edit(turn), MERGE_PATCH)  # type: ignore[misc]


def _creates(workload: Workload) -> Iterator[Step]:
    """Yield creations of a pod, without end."""
    assert workload.churn is not None  # noqa: S101 - only asked where there is one
    for number in itertools.count():
        made = templates.pod(workload.churn.template, f"churn-{number:05}", "default")
        yield lambda api, made=made: api.create(made)  # type: ignore[misc]


def _recreates(workload: Workload) -> Iterator[Step]:
    """Yield in turn the creation and the deletion of a node without room, a pod that fits nowhere and a Service."""
    assert workload.churn is not None  # noqa: S101
    made: list[Json] = [
        templates.node("node-churn", pods="0"),
        templates.pod(workload.churn.template, "pod-churn", "default"),
        templates.service("service-churn", "default", {"app": "foo"}, 8080),
    ]
    while True:
        yield lambda api: [api.create(one) for one in made]
        yield partial(_delete_all, made)


def _deletes(workload: Workload) -> Iterator[Step]:
    """Yield the deletions of the pods that were placed before the run."""
    for number in range(workload.before[0].count):
        name = f"before-0-{number:05}"
        yield lambda api, name=name: _delete(api, "Pod", name)  # type: ignore[misc]


def _delete_all(objects: Iterable[Json], api: Api) -> None:
    for one in objects:
        _delete(api, one["kind"], one["metadata"]["name"])


def _delete(api: Api, kind: str, name: str) -> None:
    with suppress(RefusedError):  # the pod is deleted already
        api.delete(kind, name, gracePeriodSeconds=0)


_CHURNS: Final = {"create": _creates, "recreate": _recreates, "delete": _deletes}
