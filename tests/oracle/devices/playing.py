"""Plays Kubernetes' own cases for the plugin with ours: the same objects and points, what each answers and leaves.

Knows nothing of how the table came about. Requests go to a server in memory; time passes only while something waits.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from policysched.framework import ApiError, AssumedPod, Code, Handle, Status
from policysched.model.release import V1_36
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from policysched.schedule.cycle.post_filter import FailedCycle
from policysched.schedule.cycle.record import make_record
from tests.plugins.dynamic_resources.binding import Clock, Server
from tests.schedule.parts import FakeClient

from .comparison import plain as without_chance
from .ours import DeviceLife, plain, plugin_of

if TYPE_CHECKING:
    from policysched.model.release import Release
    from policysched.schedule.cycle.decision import Decision

    from .tables import TableCase

Thing: TypeAlias = dict[str, Any]

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "multiPoint": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": name} for name in ("PrioritySort", "DynamicResources", "DefaultBinder")],
                }
            },
        }
    ],
}
KINDS = {
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
    "claims": ("resource.k8s.io/v1", "ResourceClaim"),
    "slices": ("resource.k8s.io/v1", "ResourceSlice"),
    "classes": ("resource.k8s.io/v1", "DeviceClass"),
}
CODES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
}
RUNNING = 'running "DynamicResources" filter plugin: '


class Playing:
    """One case of the table in our hands."""

    def __init__(self, case: TableCase, release: Release) -> None:
        self.release = release
        first = next(step for step in case.steps if step["step"] == "end")
        self.pod = _of_kind("Pod", "v1", first["pod"])
        config: Thing = {**CONFIG}
        if timeout := case.begin["args"].get("BindingTimeout"):
            args = {"apiVersion": CONFIG["apiVersion"], "kind": "DynamicResourcesArgs", "bindingTimeout": timeout}
            profile = {**config["profiles"][0], "pluginConfig": [{"name": "DynamicResources", "args": args}]}
            config["profiles"] = [profile]
        objects = [
            _of_kind(kind, version, one)
            for name, (version, kind) in KINDS.items()
            for one in case.begin[name] or ()
            if name != "pods"
        ]
        asked = {"objects": objects, "sequence": [self.pod], "config": config}
        self.world = DeviceLife(asked, seed=0, release=release)
        self.known = self.world.engine.cluster.resource_claims
        for one in first["inFlight"] or ():
            self.known.begin(self.world._decoded(_of_kind("ResourceClaim", KINDS["claims"][0], one)))
        self.server, self.client, self.clock = Server(self.world.engine.cluster), FakeClient(), Clock()
        self.server.stored = dict(self.known._stored)
        self.client.claims = self.server  # type: ignore[assignment]
        if case.begin["failPatch"]:
            self.server.errors["tell"] = [ApiError(500, "", "patch error")]
        if case.begin["reactors"]:
            self.server.errors["create"] = [ApiError(500, "", "claim creation errors")]
        self.handle = Handle(self.client, self.clock, self.clock.pause, {}, lambda _: None, changed=lambda _: None)
        now = datetime.fromisoformat(case.begin["now"])
        written = now.replace(microsecond=0)  # the precision of times in objects
        self.clock.now = lambda: written + timedelta(seconds=self.clock.seconds)  # type: ignore[method-assign]
        self.world.engine.cluster.time.move(now.timestamp())
        self.decision: Decision = self.world.look(self.pod)
        self.record = make_record(self.decision)
        reports = release.no_deallocation_is_reported
        self.plugin = plugin_of(self.decision) or DynamicResources(reports_no_deallocation=reports)
        self.assumed: AssumedPod | None = None

    def prepare(self, step: Thing) -> None:
        """Have somebody else change a claim, which the watch has not brought yet."""
        changed = self.world._decoded(_of_kind("ResourceClaim", KINDS["claims"][0], step["object"]))
        version = str(self.server.version)
        self.server.stored[changed.key] = replace(changed, metadata=replace(changed.metadata, resource_version=version))

    async def said(self, step: Thing, node: str) -> tuple[str, str]:
        """Play one step; give the code and the text of what the plugin says there."""
        point, _, about = step["point"].partition("/")
        if point == "prefilter":
            return self._pre_filter()
        if point == "filter":
            return self._filter(about)
        if point.startswith("unreserve"):
            await self._unreserve()
            return step["code"], step["message"]
        return _told(await self._status(point, node))

    async def _status(self, point: str, node: str) -> Status | None:
        cluster = self.world.engine.cluster
        if point == "PreEnqueue":
            return self.plugin.pre_enqueue(self.decision.pod, cluster)
        if point == "reserve":
            self.assumed = AssumedPod(self.decision.pod, node, cluster)
            return self.plugin.reserve(self.assumed)
        if point == "postfilter":
            outcome = self.plugin.post_filter(self.decision.pod, FailedCycle(self.decision, Random(0)))
            for clean_up in outcome.cleanups:
                await clean_up(self.handle)
            return outcome.status
        assert point == "prebind", point
        assert self.assumed is not None
        works = self.plugin.pre_bind_pre_flight(self.assumed).works
        return await self.plugin.pre_bind(self.assumed, self.handle) if works else None

    async def _unreserve(self) -> None:
        assert self.assumed is not None
        undo = self.plugin.unreserve(self.assumed)
        if undo is not None:
            await undo(self.handle)

    def _pre_filter(self) -> tuple[str, str]:
        if (rejection := self.record.get("preFilter")) is not None:
            return rejection["code"], ", ".join(rejection["reasons"])
        error = self.record.get("error", "")
        return ("Error", error) if error and RUNNING not in error else ("Success", "")

    def _filter(self, node: str) -> tuple[str, str]:
        if "error" in self.record:
            return "Error", self.record["error"].removeprefix(RUNNING)
        rejection = self.record.get("rejected", {}).get(node)
        return (rejection["code"], ", ".join(rejection["reasons"])) if rejection else ("Success", "")

    def score(self, node: str) -> int:
        """Give a node's score as it counts in the end."""
        found: int = self.record["scores"][node]["DynamicResources"]
        return found

    def left(self) -> Thing:
        """Give what is stored and what is in flight, as the API writes it."""
        stored, in_flight = self.server.stored.values(), self.known._in_flight.values()
        return {"claims": _by_name(map(plain, stored)), "inFlight": _by_name(map(plain, in_flight))}


def expected(step: Thing) -> Thing:
    """Give what a step left in Kubernetes' own hands, in the same form."""
    return {name: _by_name(step[name] or ()) for name in ("claims", "inFlight")}


def _settled(left: Thing) -> Thing:
    """Leave out claims in flight that are stored with their allocation: from 1.37 on, they stay until PreBind ends."""
    claims, flying = left["claims"], left["inFlight"].items()
    found = {name: one for name, one in flying if _allocation(claims.get(name, {})) != _allocation(one)}
    return left | {"inFlight": found}


def _allocation(claim: Thing) -> Any:
    return claim.get("status", {}).get("allocation")


def _told(status: Status | None) -> tuple[str, str]:
    return ("Success", "") if status is None else (CODES[status.code], status.message)


def _of_kind(kind: str, version: str, thing: Thing) -> Thing:
    return {**thing, "apiVersion": version, "kind": kind}


def _by_name(claims: Any) -> Thing:
    return {_name(one): _looked_at(one) for one in claims}


def _name(claim: Thing) -> str:
    made: str = claim["metadata"].get("generateName", "")
    return made or str(claim["metadata"]["name"])


def _looked_at(claim: Thing) -> Thing:
    """Give what is compared: conditions are only read, and which of equal devices it is does not matter there."""
    finalizers = claim["metadata"].get("finalizers", [])
    status = {key: part for key, part in claim.get("status", {}).items() if key != "devices"}
    found: Thing = without_chance({"finalizers": finalizers, "status": status, "spec": claim["spec"]})
    return found


async def play(case: TableCase, release: Release) -> list[str]:
    """Play a case with the plugin of a release; list where it differs, one line a step."""
    playing, node, found = Playing(case, release), "", []
    for step in case.steps:
        point, _, about = step["point"].partition("/")
        if step["step"] == "prepared":
            playing.prepare(step)
        elif point == "score":  # the test has them normalized before it chooses
            continue
        elif point == "normalizeScore":
            node = max(step["result"], key=lambda one: one["Score"])["Name"]
            found += [f"{one}" for one in step["result"] if playing.score(one["Name"]) != one["Score"]]
        else:
            node = node or (about if point == "filter" and step["code"] == "Success" else "")
            found += await _differences(playing, step, node)
    return found


async def _differences(playing: Playing, step: Thing, node: str) -> list[str]:
    said = await playing.said(step, node)
    wanted = ("Success", "") if step["code"] == "Skip" else (step["code"], step["message"])
    found = [f"{step['point']}: ours {said}, theirs {wanted}"] if said != wanted else []
    mine, theirs = playing.left(), expected(step)
    if playing.release is not V1_36:
        mine, theirs = _settled(mine), _settled(theirs)
    return found + ([f"{step['point']}: ours left {mine}, theirs {theirs}"] if mine != theirs else [])
