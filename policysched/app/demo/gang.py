"""The demo of a gang: the pods of a PodGroup wait for each other and for room, while other pods are scheduled.

The scheduler has the feature gate GenericWorkload. Conditions and events have the messages of kube-scheduler.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from policysched.app.demo.demo import NEXT_STEPS, Narrator
from policysched.app.demo.scheduled_sandbox import ScheduledSandbox, scheduled_sandbox
from policysched.app.dry_run.tables import plain_table
from policysched.app.running.run_options import RunOptions
from policysched.model.kinds import POD_GROUPS
from policysched.model.release import Release
from policysched.sandbox import sandbox_nodes

Object = dict[str, Any]
GROUP: Final = "train"
MEMBERS: Final = tuple(f"{GROUP}-{index}" for index in range(4))
_INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"


def gang() -> Object:
    """Return a PodGroup whose four pods are scheduled together."""
    policy = {"gang": {"minCount": len(MEMBERS)}}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": GROUP},
        "spec": {"schedulingPolicy": policy},
    }


def gang_pod(name: str, cpu: str, group: str = "") -> Object:
    """Return a pod of the demo; with a group, a member of the group."""
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": {"cpu": cpu}}}
    spec: Object = {"schedulerName": "policysched", "containers": [container]}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def play_gang(narrator: Narrator) -> None:
    """Run the demo of a gang.

    Raises:
        PolicyschedError: a step did not finish in time.
    """
    narrator.working("starting an in-memory API server and the scheduler")
    async with scheduled_sandbox(sandbox_nodes(2), RunOptions(apply_gates=_with_groups)) as on:
        narrator.say("An in-memory API server has 2 nodes with 4 CPUs each.")
        narrator.say("The scheduler runs with --feature-gates=GenericWorkload=true.")
        await _GangDemo(on, narrator).play()
    for line in NEXT_STEPS:
        narrator.say(line)


def _with_groups(release: Release) -> Release:
    return replace(release, generic_workload=True)


class _GangDemo:
    def __init__(self, on: ScheduledSandbox, narrator: Narrator) -> None:
        self._sandbox, self._narrator = on, narrator

    async def play(self) -> None:
        say, create = self._narrator.say, self._sandbox.api.create
        *early, last = MEMBERS
        say("\n1. Create PodGroup train (gang, minCount 4) and three of its pods of 2 CPUs, then pod web-1.")
        await create(gang())
        for name in early:
            await create(gang_pod(name, "2", GROUP))
        await self._run_beside("web-1")
        say("   train lacks a pod of its minCount: the scheduler does not try its pods.")
        await self._show_members()
        say("\n2. Create the fourth pod. Only three fit, so no pod of the gang gets a node. Then create pod web-2.")
        await create(gang_pod(last, "2", GROUP))
        await self._print_condition("False")
        for name in (MEMBERS[0], last):
            say(f"   {name}: FailedScheduling: {await self._sandbox.failure_of(name)}")
        await self._run_beside("web-2")
        await self._show_members()
        say("\n3. Add a third node: the gang fits, and all its pods get nodes.")
        await create(sandbox_nodes(3)[-1])
        for name in MEMBERS:
            await self._sandbox.runs_on(name)
        await self._print_condition("True")
        await self._show_members()

    async def _run_beside(self, name: str) -> None:
        await self._sandbox.api.create(gang_pod(name, "250m"))
        self._narrator.say(f"   {name} runs on {await self._sandbox.runs_on(name)}")

    async def _print_condition(self, status: str) -> None:
        self._narrator.working(f"waiting for the condition of pod group {GROUP}")

        async def condition() -> Object | None:
            group = await self._sandbox.api.get("PodGroup", GROUP)
            found = (group.get("status") or {}).get("conditions") or ()
            return next((one for one in found if one["type"] == _INITIALLY_SCHEDULED and one["status"] == status), None)

        told = await self._sandbox.until(condition, f"the condition of pod group {GROUP}")
        message = told.get("message")
        self._narrator.say(f"   {GROUP}: {told['type']} {status}, {told['reason']}{f': {message}' if message else ''}")

    async def _show_members(self) -> None:
        pods = {pod["metadata"]["name"]: pod for pod in await self._sandbox.api.list("Pod")}
        members = [pods[name] for name in MEMBERS if name in pods]
        rows = [[pod["metadata"]["name"], pod["spec"].get("nodeName", "none")] for pod in members]
        self._narrator.show(plain_table(None, ["pod", "node"], rows))
