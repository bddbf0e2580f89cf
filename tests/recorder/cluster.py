"""An API server in memory with the little behaviour that the scheduler relies on, as the Go recorder's.

It notes what the scheduler writes to pods, and tells the scheduler of changes at the loop's next turn, as watches do.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable
from typing import Any, Final

from policysched.framework import ApiError, Event, PodStatusChange, PolicyEvent
from policysched.model.decode import decode_pod
from policysched.model.defaults import priority_classes
from policysched.model.kinds import RESOURCE_CLAIMS, fill, kind_of
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, Pod, PodGroup, ResourceClaim
from policysched.model.policy import Policy
from policysched.testing.recorded_writes import RecordingClaims
from tests.recorder.theirs import InvalidScriptError

Thing = dict[str, Any]
CLASSES: Final = priority_classes([])
STARTED: Final = "2000-01-01T00:00:00Z"
"""When all pods start for our scheduler: kube-scheduler takes the time of its clock, which stands still meanwhile."""


class FakeClaims(RecordingClaims):
    """The writes to resource claims, which the scheduler hears of as of other changes."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.latest: dict[str, ResourceClaim] = {}

    async def set_finalizers(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the finalizers of a claim."""
        return self._wrote(await super().set_finalizers(claim))

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the allocation of a claim."""
        return self._wrote(await super().allocate(claim))

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the reservation of a claim."""
        return self._wrote(await super().reserve(claim))

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Write that a claim is not allocated."""
        return self._wrote(await super().deallocate(claim))

    def lines(self, names: Iterable[str]) -> list[Thing]:
        """Describe how claims end: with which devices, and for which pods."""
        return [_claim_line(name, self.latest.get(name)) for name in names]

    def _wrote(self, claim: ResourceClaim) -> ResourceClaim:
        self.latest[claim.metadata.name] = claim
        asyncio.get_running_loop().call_soon(self._cluster.take, claim)
        return claim


def _claim_line(name: str, claim: ResourceClaim | None) -> Thing:
    allocation = None if claim is None else claim.status.allocation
    devices = [] if allocation is None else [f"{one.pool}/{one.device}" for one in allocation.devices.results]
    reserved = [] if claim is None else [one.name for one in claim.status.reserved_for]
    return {"claim": name, "devices": sorted(devices), "reserved": sorted(reserved)}


class FakeCluster:
    """The objects, and a client that writes to them."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._version = 0
        self.things: dict[tuple[str, str], Thing] = {}
        self.take: Callable[[Any], None] = lambda _: None
        self.drop: Callable[[Any], None] = lambda _: None
        self.writes: list[Thing] = []
        self.claims = FakeClaims(self)
        self.events: list[Thing] = []

    def set(self, thing: Thing) -> None:
        """Create an object or put another version in its place; a pod keeps its node, it and a group their status."""
        thing = copy.deepcopy(thing)
        key = (thing["kind"], thing["metadata"]["name"])
        old = self.things.get(key)
        if old is None:
            thing["metadata"] = {"uid": key[1], **thing["metadata"], "generation": 1}
        else:
            thing["metadata"]["uid"] = old["metadata"]["uid"]
            _keep(thing, old)
        self._store(key, thing)
        if thing["kind"] == "ResourceClaim":
            self.claims.latest[key[1]] = RESOURCE_CLAIMS.decode(copy.deepcopy(thing))

    def remove(self, kind: str, name: str) -> None:
        """Delete an object.

        Raises:
            InvalidScriptError: it is gone, such as a victim of preemption.
        """
        thing = self.things.pop((kind, name), None)
        if thing is None:
            raise InvalidScriptError(f"{kind} {name} is gone")
        self._tell(self.drop, thing)

    def pod(self, name: str) -> Thing:
        """Return a pod as it is, for changing it.

        Raises:
            ApiError: it is gone.
        """
        found = self.things.get(("Pod", name))
        if found is None:
            raise ApiError(404, "NotFound", f'pods "{name}" not found')
        return copy.deepcopy(found)

    def decoded_pod(self, name: str) -> Pod | None:
        """Return a pod as the scheduler reads it."""
        found = self.things.get(("Pod", name))
        return None if found is None else decode_pod(fill(copy.deepcopy(found), CLASSES))

    def lines(self) -> list[Thing]:
        """Describe how each pod ends."""
        return [
            {
                "pod": name,
                "node": thing["spec"].get("nodeName", ""),
                "nominated": thing.get("status", {}).get("nominatedNodeName", ""),
                "condition": _scheduled(thing),
            }
            for (kind, name), thing in sorted(self.things.items())
            if kind == "Pod"
        ]

    def claim_lines(self) -> list[Thing]:
        """Describe how each resource claim ends."""
        return self.claims.lines(sorted(name for kind, name in self.things if kind == "ResourceClaim"))

    def group_lines(self) -> list[Thing]:
        """Describe how each pod group ends."""
        return [
            {"group": name, "condition": _initially_scheduled(thing)}
            for (kind, name), thing in sorted(self.things.items())
            if kind == "PodGroup"
        ]

    def _store(self, key: tuple[str, str], thing: Thing) -> None:
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)
        self.things[key] = thing
        self._tell(self.take, thing)

    def _tell(self, what: Callable[[Any], None], thing: Thing) -> None:
        kind = kind_of(thing)
        if kind is None:
            raise ValueError(f"the scheduler does not read a {thing['kind']}")
        thing = copy.deepcopy(thing)
        if thing["kind"] == "Pod":
            thing.setdefault("status", {}).setdefault("startTime", STARTED)
        asyncio.get_running_loop().call_soon(what, kind.decode(fill(thing, CLASSES)))

    def _wrote(self, pod: Pod, **what: Any) -> None:
        self.writes.append({"at": self._now(), "pod": pod.metadata.name, **what})

    async def set_pod_group_status(self, group: PodGroup, condition: Thing) -> None:
        """Write a condition of a pod group."""
        key = ("PodGroup", group.metadata.name)
        found = self.things.get(key)
        if found is None:
            raise ApiError(404, "NotFound", f'podgroups "{key[1]}" not found')
        thing = copy.deepcopy(found)
        status = thing.setdefault("status", {})
        others = [one for one in status.get("conditions", ()) if one["type"] != condition["type"]]
        status["conditions"] = [*others, condition]
        if (written := _initially_scheduled(thing)) != _initially_scheduled(found):
            self.writes.append({"at": self._now(), "group": key[1], "condition": written})
        self._store(key, thing)

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod, and write what kube-apiserver's binding writes."""
        thing = self.pod(pod.metadata.name)
        if "nodeName" in thing["spec"]:
            raise ApiError(409, "Conflict", f"pod {pod.metadata.name} is another one, or bound already")
        thing["spec"]["nodeName"] = node
        status = thing.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        _set_condition(status, {"type": "PodScheduled", "status": "True"})
        self._wrote(pod, node=node)
        self._store(("Pod", pod.metadata.name), thing)

    async def node_of(self, pod: Pod) -> str:
        """Read where a pod is bound."""
        node: str = self.pod(pod.metadata.name)["spec"].get("nodeName", "")
        return node

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        """Take such a change in its turn."""
        await self.set_pod_status(pod, newest())

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        """Write a condition of a pod, the node that it is nominated to, or both."""
        thing = self.pod(pod.metadata.name)
        status = thing.setdefault("status", {})
        before, wrote = (_scheduled(thing), status.get("nominatedNodeName", "")), {}
        if change.condition is not None:
            _set_condition(status, change.condition)
        if change.nominated_node is not None:
            status["nominatedNodeName"] = change.nominated_node
        if (condition := _scheduled(thing)) != before[0]:
            wrote["condition"] = condition
        if status.get("nominatedNodeName", "") != before[1]:
            wrote["nominated"] = status["nominatedNodeName"]
        if wrote:
            self._wrote(pod, **wrote)
        self._store(("Pod", pod.metadata.name), thing)

    async def delete_pod(self, pod: Pod) -> None:
        """Delete a pod."""
        self.pod(pod.metadata.name)
        self.remove("Pod", pod.metadata.name)

    def record(self, event: Event | PolicyEvent) -> None:
        """Note an event."""
        assert isinstance(event, Event)
        self.events.append({
            "at": self._now(), "pod": event.pod.metadata.name, "type": event.type, "reason": event.reason,
            "action": event.action, "note": event.note,
        })  # fmt: skip

    async def claim_volume(self, volume: PersistentVolume) -> str:
        """Refuse: scripts have no volumes."""
        raise AssertionError(volume)

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Refuse: scripts have no volumes."""
        raise AssertionError(claim, node)

    async def set_policy_status(self, policy: str, resource_version: str, status: Thing) -> None:
        """Refuse: scripts have no policies."""
        raise AssertionError(policy, resource_version, status)

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:
        """Refuse: scripts have no policies."""
        raise AssertionError(policy, annotations)


def _keep(thing: Thing, old: Thing) -> None:
    """Give a new version what an API server keeps of the old one."""
    if thing["kind"] not in ("Pod", "PodGroup"):
        return
    thing["status"] = old.get("status", {})
    if thing["kind"] == "PodGroup":
        thing["metadata"]["generation"] = old["metadata"]["generation"] + (thing["spec"] != old["spec"])
    elif "nodeName" in old["spec"]:
        thing["spec"]["nodeName"] = old["spec"]["nodeName"]


def _initially_scheduled(thing: Thing) -> list[str] | None:
    for one in thing.get("status", {}).get("conditions", ()):
        if one["type"] == "PodGroupInitiallyScheduled":
            return [one["status"], one["reason"], one["message"], str(one["observedGeneration"])]
    return None


def _set_condition(status: Thing, condition: Thing) -> None:
    conditions = status.setdefault("conditions", [])
    for old in conditions:
        if old["type"] == condition["type"]:
            if condition["status"] == "True":
                old.clear()
            old.update(condition)
            return
    conditions.append(dict(condition))


def _scheduled(thing: Thing) -> list[str] | None:
    for one in thing.get("status", {}).get("conditions", ()):
        if one["type"] == "PodScheduled":
            return [one["status"], one.get("reason", ""), one.get("message", "")]
    return None
