"""The null scheduler: a random node with room, and the requests that every scheduler makes.

It lists and watches nodes and pods, and writes a binding and an event for each pod, on one asyncio loop with aiohttp
and msgspec. Its rate is the reference for a scheduler in Python on the same API server. It checks resources only. A
pod that fits nowhere gets one condition and one event; a gated pod gets nothing.

    python -m bench.cluster.null_scheduler KUBECONFIG
"""

from __future__ import annotations

import asyncio
import gc
import random
import re
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from bench.cluster.client import STRATEGIC_PATCH, Client, RequestError
from bench.cluster.null_claims import EXTENDED, Device, Devices, Key

NAME = "default-scheduler"
BINDINGS, EVENTS = 64, 16
"""Largest numbers of bindings and events that are sent concurrently."""
TRIES = 50
"""Number of random nodes to try before all nodes are checked for room."""


class _Metadata(msgspec.Struct):
    name: str
    uid: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's name


class _Resources(msgspec.Struct):
    requests: dict[str, str] = {}


class _Container(msgspec.Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _Claim(msgspec.Struct):
    resourceClaimName: str = ""  # noqa: N815 - the API's name


class _PodSpec(msgspec.Struct):
    containers: list[_Container]
    nodeName: str = ""  # noqa: N815
    schedulerName: str = ""  # noqa: N815
    schedulingGates: list[Any] = []  # noqa: N815
    resourceClaims: list[_Claim] = []  # noqa: N815


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _PodSpec


class _NodeStatus(msgspec.Struct):
    allocatable: dict[str, str] = {}


class _Node(msgspec.Struct):
    metadata: _Metadata
    status: _NodeStatus


class _Nodes(msgspec.Struct):
    metadata: msgspec.Raw
    items: list[_Node]


class _Pods(msgspec.Struct):
    metadata: msgspec.Raw
    items: list[_Pod]


class _ListMetadata(msgspec.Struct):
    resourceVersion: str  # noqa: N815


class _Change(msgspec.Struct):
    type: str
    object: msgspec.Raw


_encode = msgspec.json.Encoder().encode
_change = msgspec.json.Decoder(_Change).decode
_pod, _node = msgspec.json.Decoder(_Pod).decode, msgspec.json.Decoder(_Node).decode
Amounts = tuple[int, int, int]
"""Amounts of CPU (thousandths of a core), memory (bytes) and pods."""


_SUFFIX = re.compile(r"(?:[numkMGTPE]|[KMGTPE]i)?$")
_FACTORS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0}
_FACTORS |= {letter: 1e3**power for power, letter in enumerate("kMGTPE", 1)}
_FACTORS |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)}


@lru_cache(4096)
def _amount(text: str, factor: int) -> int:
    """Return a quantity such as `100m` or `1Gi` multiplied by a factor, rounded."""
    [suffix] = _SUFFIX.findall(text)[:1]
    return round(float(text.removesuffix(suffix)) * _FACTORS[suffix] * factor)


def _asked(pod: _Pod) -> Amounts:
    requests = [one.resources.requests for one in pod.spec.containers]
    cpu = sum(_amount(one.get("cpu", "0"), 1000) for one in requests)
    return cpu, sum(_amount(one.get("memory", "0"), 1) for one in requests), 1


def _extended(pod: _Pod) -> list[str]:
    return [name for one in pod.spec.containers for name in one.resources.requests if name.startswith(EXTENDED)]


def _needs_devices(pod: _Pod) -> bool:
    return bool(pod.spec.resourceClaims or _extended(pod))


_Given = tuple[list[tuple[Key, list[Device]]], list[tuple[str, list[Device]]]]


class NullScheduler:
    """A scheduler that binds each pod to a random node with room."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._devices = Devices(client)
        self._given: dict[str, _Given] = {}
        """Claims and devices taken for each pod that is to be bound, by the pod's UID."""
        self._random = random.Random(7)
        self._free: dict[str, list[int]] = {}
        self._names: list[str] = []
        self._placed: dict[str, tuple[str, Amounts]] = {}
        self._known: set[str] = set()
        self._waiting: deque[_Pod] = deque()
        self._bindings: asyncio.Queue[tuple[_Pod, str]] = asyncio.Queue()
        self._events: asyncio.Queue[tuple[_Pod, str]] = asyncio.Queue()
        self._work = asyncio.Event()
        self._serial = 0

    async def run(self) -> None:
        """Schedule pods until the task is cancelled."""
        nodes = msgspec.json.decode(await self._client.send("GET", "/api/v1/nodes?resourceVersion=0"), type=_Nodes)
        for node in nodes.items:
            self._take_node("ADDED", node)
        await self._devices.load()
        pods = msgspec.json.decode(await self._client.send("GET", "/api/v1/pods?resourceVersion=0"), type=_Pods)
        for pod in pods.items:
            self._take_pod("ADDED", pod)
        gc.collect()
        gc.freeze()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch("/api/v1/nodes", nodes.metadata, self._node_changed))
            group.create_task(self._watch("/api/v1/pods", pods.metadata, self._pod_changed))
            group.create_task(self._decide())
            for _ in range(BINDINGS):
                group.create_task(self._worker(self._bindings, self._bind))
            for _ in range(EVENTS):
                group.create_task(self._worker(self._events, self._tell))

    async def _watch(self, path: str, listed: msgspec.Raw, take: Callable[[str, msgspec.Raw], None]) -> None:
        version = msgspec.json.decode(listed, type=_ListMetadata).resourceVersion
        while True:
            query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
            async for line in self._client.lines(path + query):
                change = _change(line)
                if change.type == "BOOKMARK":
                    version = _node(change.object).metadata.resourceVersion
                elif change.type == "ERROR":
                    raise RequestError(f"watch {path}: {bytes(change.object)[:300]!r}")
                else:
                    take(change.type, change.object)

    def _node_changed(self, kind: str, raw: msgspec.Raw) -> None:
        self._take_node(kind, _node(raw))

    def _pod_changed(self, kind: str, raw: msgspec.Raw) -> None:
        self._take_pod(kind, _pod(raw))

    def _take_node(self, kind: str, node: _Node) -> None:
        name = node.metadata.name
        if kind == "DELETED":
            del self._free[name]
        elif name not in self._free:
            room = node.status.allocatable
            factors = {"cpu": 1000, "memory": 1, "pods": 1}
            self._free[name] = [_amount(room.get(resource, "0"), factor) for resource, factor in factors.items()]
        else:
            return
        self._names = list(self._free)

    def _take_pod(self, kind: str, pod: _Pod) -> None:
        uid = pod.metadata.uid
        if kind == "DELETED":
            self._known.discard(uid)
            self._release(uid)
        elif pod.spec.nodeName:
            self._known.add(uid)
            if uid not in self._placed:
                self._place(uid, pod.spec.nodeName, _asked(pod))
        elif uid not in self._known and pod.spec.schedulerName == NAME and not pod.spec.schedulingGates:
            self._known.add(uid)
            self._waiting.append(pod)
            self._work.set()

    def _place(self, uid: str, name: str, asked: Amounts, sign: int = 1) -> None:
        free = self._free.get(name)
        if free is not None:
            for place, amount in enumerate(asked):
                free[place] -= sign * amount
        if sign > 0:
            self._placed[uid] = name, asked

    def _release(self, uid: str) -> None:
        found = self._placed.pop(uid, None)
        if found is not None:
            self._place(uid, *found, sign=-1)

    async def _decide(self) -> None:
        while True:
            await self._work.wait()
            while self._waiting:
                # At most as many as can be sent soon, then the other tasks run.
                for _ in range(min(BINDINGS, len(self._waiting))):
                    self._decide_one(self._waiting.popleft())
                while self._bindings.qsize() > BINDINGS:
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0)
            self._work.clear()

    def _decide_one(self, pod: _Pod) -> None:
        asked = _asked(pod)
        name = self._draw_with_devices(pod, asked) if _needs_devices(pod) else self._draw(asked)
        if name:
            self._place(pod.metadata.uid, name, asked)
            self._bindings.put_nowait((pod, name))
        else:
            self._events.put_nowait((pod, ""))

    def _draw_with_devices(self, pod: _Pod, asked: Amounts) -> str:
        """Return a random node with room and free devices, and take the devices for the pod; empty if there is none."""
        keys = [(pod.metadata.namespace, one.resourceClaimName) for one in pod.spec.resourceClaims]
        home = next(filter(None, map(self._devices.home, keys)), "")
        missing = [key for key in keys if not self._devices.home(key)]
        resources = _extended(pod)
        count = sum(map(self._devices.wanted, missing)) + len(resources)
        name = home or self._draw(asked)
        for _ in range(TRIES * 4):
            if home or self._devices.has(name, count):
                break
            name = self._draw(asked)
        else:
            name = next((one for one in self._names if self._devices.has(one, count)), "")
        if name:
            given = [(key, self._devices.take(name, self._devices.wanted(key), key)) for key in missing]
            shared = [(key, list[Device]()) for key in keys if key not in missing]
            extended = [(one, self._devices.take(name, 1)) for one in resources]
            self._given[pod.metadata.uid] = [*given, *shared], extended
        return name

    def _draw(self, asked: Amounts) -> str:
        """Return a random node with room; empty if there is none."""
        names, free, draw = self._names, self._free, self._random.random
        cpu, memory, _ = asked
        for _ in range(min(TRIES, 2 * len(names))):
            name = names[int(draw() * len(names))]
            room = free[name]
            if room[0] >= cpu and room[1] >= memory and room[2] >= 1:
                return name
        fitting = [name for name, room in free.items() if room[0] >= cpu and room[1] >= memory and room[2] >= 1]
        return fitting[int(draw() * len(fitting))] if fitting else ""

    async def _worker(self, queue: asyncio.Queue[tuple[_Pod, str]], do: Callable[[_Pod, str], Awaitable[None]]) -> None:
        while True:
            pod, name = await queue.get()
            try:
                await do(pod, name)
            except RequestError as error:
                sys.stderr.write(f"{error}\n")
                self._release(pod.metadata.uid)

    async def _bind(self, pod: _Pod, name: str) -> None:
        of = pod.metadata
        claims, extended = self._given.pop(of.uid, ((), ()))
        if claims or extended:
            await self._devices.nominate(of, name)
        for key, taken in claims:
            await self._devices.allocate(key, of, name, taken)
        for resource, taken in extended:
            await self._devices.extend(of, resource, name, taken)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": of.name, "namespace": of.namespace, "uid": of.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": name},
        }
        await self._client.send("POST", f"/api/v1/namespaces/{of.namespace}/pods/{of.name}/binding", _encode(body))
        self._events.put_nowait((pod, name))

    async def _tell(self, pod: _Pod, name: str) -> None:
        """Write the event of a bound pod, or the condition and event of a pod that fits nowhere."""
        of = pod.metadata
        if not name:
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            body = _encode({"metadata": {"uid": of.uid}, "status": {"conditions": [condition]}})
            await self._client.send(
                "PATCH", f"/api/v1/namespaces/{of.namespace}/pods/{of.name}/status", body, STRATEGIC_PATCH
            )
        self._serial += 1
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": of.name,
            "namespace": of.namespace,
            "uid": of.uid,
            "resourceVersion": of.resourceVersion,
        }
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{of.name}.{self._serial:016x}", "namespace": of.namespace},
            "eventTime": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "type": "Normal" if name else "Warning",
            "reason": "Scheduled" if name else "FailedScheduling",
            "action": "Binding" if name else "Scheduling",
            "note": f"Successfully assigned {of.namespace}/{of.name} to {name}" if name else "no room",
            "regarding": about,
            "reportingController": NAME,
            "reportingInstance": f"{NAME}-null",
        }
        await self._client.send("POST", f"/apis/events.k8s.io/v1/namespaces/{of.namespace}/events", _encode(event))


async def _main(kubeconfig: Path) -> None:
    async with Client(kubeconfig, BINDINGS + EVENTS + 4) as client:
        await NullScheduler(client).run()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
