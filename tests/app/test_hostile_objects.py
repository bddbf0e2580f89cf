"""Random and mutated objects of every watched kind on the way that a real server's take: lists and watches, to the end.

Afterwards the process lives, the state equals that of the objects that can be used alone, and good pods are placed.
POLICYSCHED_FUZZ sets the number of objects, POLICYSCHED_SEED the seed.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import default_profile
from policysched.app.running import process as running_process
from policysched.app.running.object_handlers import ObjectHandler
from policysched.app.running.process import Process
from policysched.app.running.run_options import RunOptions
from policysched.framework import Cluster
from policysched.kube.connection import Connection
from policysched.kube.object_cache import LeftOutObjects
from policysched.metric_sources.no_source import NoSource
from policysched.model.decode import decode_pod
from policysched.model.kinds import KINDS, POLICIES
from policysched.model.objects import Pod, ResourceSlice
from policysched.model.release import DEFAULT, Release
from policysched.reading.lenient_json import identity, shallow
from policysched.schedule.scheduler import Scheduler
from policysched.state.pod_groups import GroupState
from tests.app import hostile
from tests.groups import GATED_38
from tests.kube.fake_server import Pauses
from tests.schedule.parts import FakeClient
from tests.schedule.side import Side

OBJECTS = int(os.environ.get("POLICYSCHED_FUZZ") or 1500)
SEED = int(os.environ.get("POLICYSCHED_SEED") or 20260101)
SLOTS = 12
"""How many objects of a kind there are at a time."""
CHUNK = 40
Slot = tuple[str, str]


class Server:
    """A server that serves whatever it holds, in place of a transport."""

    def __init__(self, release: Release) -> None:
        plugins = default_profile(release=release).plugin_names
        self.version = 1
        self.kinds = {kind.path: kind for kind in KINDS.values() if kind.is_read(plugins, release)}
        """What the scheduler watches, by path."""
        resources = [kind.plural for kind in self.kinds.values()]
        self.held: dict[str, dict[str, bytes]] = {name: {} for name in resources}
        self.news: dict[str, asyncio.Queue[tuple[int, bytes]]] = {name: asyncio.Queue() for name in resources}
        """Versions and lines that watches have not told yet."""

    async def request(self, method: str, path: str, body: bytes | None = None, **_given: str) -> bytes:
        plain = path.partition("?")[0]
        if method == "GET" and plain in self.kinds:
            watched = self.kinds[plain]
            items, kind = b",".join(self.held[watched.plural].values()), watched.kind.encode()
            return b'{"kind":"%sList","metadata":{"resourceVersion":"%d"},"items":[%s]}' % (kind, self.version, items)
        if plain.endswith("/binding"):
            _, namespace, _, name, _ = plain.rsplit("/", 4)
            self.bind(namespace, name, msgspec.json.decode(body or b"")["target"]["name"])
        return b'{"metadata":{"resourceVersion":"1"}}'

    async def lines(self, path: str, *_: float) -> AsyncIterator[list[bytes]]:
        news = self.news[self.kinds[path.partition("?")[0]].plural]
        start = int(path.rpartition("=")[2])
        yield []
        while True:
            version, line = await news.get()
            if version > start:
                yield [line]

    def bind(self, namespace: str, name: str, on: str) -> None:
        for slot, raw in self.held["pods"].items():
            of = identity(raw)
            if (of.namespace, of.name) == (namespace, name):
                try:
                    plain = msgspec.json.decode(shallow(raw))
                    plain["spec"]["nodeName"] = on
                    plain = self.numbered(plain, "")
                except (msgspec.MsgspecError, UnicodeError, RecursionError):
                    return
                self.put("pods", slot, msgspec.json.encode(plain))
                return

    def put(self, resource: str, slot: str, value: Any) -> None:
        """Store an object and tell of it."""
        raw = value if isinstance(value, bytes) else hostile.encode(value)
        kind = b"MODIFIED" if slot in self.held[resource] else b"ADDED"
        self.held[resource][slot] = raw
        self.tell(resource, b'{"type":"%s","object":%s}' % (kind, raw))

    def drop(self, resource: str, slot: str) -> None:
        raw = self.held[resource].pop(slot, None)
        if raw is not None:
            self.version += 1
            deleted = re.sub(rb'("resourceVersion":)"[0-9]+"', rb'\1"%d"' % self.version, raw)
            self.tell(resource, b'{"type":"DELETED","object":%s}' % deleted)

    def tell(self, resource: str, line: bytes) -> None:
        self.news[resource].put_nowait((self.version, line))

    def end_watch(self, resource: str) -> None:
        """Let a watch be too old, so that all is listed again."""
        self.version += 1
        self.tell(resource, b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}')

    def numbered(self, obj: hostile.Json, uid: str) -> hostile.Json:
        """Give an object the next version."""
        self.version += 1
        version = {"resourceVersion": str(self.version)}
        return {**obj, "metadata": {"uid": uid, **obj["metadata"], **version}}


class Trial:
    """A process under fire."""

    def __init__(self, process: Process, server: Server, seed: int) -> None:
        self.process, self.server, self.chance = process, server, random.Random(seed)
        self._makers = [name for name in hostile.MAKERS if name == "placed" or name in server.held]
        self._good = 0

    async def quiet(self) -> None:
        """Wait until everything that was told is taken in."""
        for turn in range(2000):
            await asyncio.sleep(0 if turn < 500 else 0.001)
            if not any(news.qsize() for news in self.server.news.values()) and not self._busy():
                break
        else:
            raise AssertionError("it never comes to rest")
        for _ in range(10):
            await asyncio.sleep(0)

    def _busy(self) -> bool:
        return self.process.scheduler.queue.counts().active > 0 or bool(self.process.reloader._work.qsize())

    async def fire(self, count: int) -> None:
        """Send so many objects, most of them mutated."""
        for number in range(count):
            self._one()
            if number % CHUNK == 0:
                await self.quiet()
        await self.quiet()

    def _one(self) -> None:
        chance = self.chance
        maker = chance.choice(self._makers)
        resource = "pods" if maker == "placed" else maker
        number = chance.randrange(SLOTS)
        slot = f"{maker}-{number}"
        if chance.random() < 0.1:
            self.server.drop(resource, slot)
        elif chance.random() < 0.003:
            self.server.end_watch(resource)
        elif chance.random() < 0.003:
            junk = chance.choice([b'{"type":"BOOKMARK","object":5}', b"[]", b'{"type":"X","object":{}}', b"", b'"x"'])
            self.server.tell(resource, junk)
        else:
            name = f"m{number + (SLOTS if maker == 'placed' else 0)}"
            obj = self.server.numbered(hostile.MAKERS[maker](name), f"{slot}-{chance.randrange(2)}")
            raw = hostile.encode(hostile.mutate(chance, obj, chance.choice((0, 1, 1, 1, 2, 3, 6))))
            if identity(raw).version in {"", str(self.server.version)}:
                # Which version an object has is not the object's to say.
                self.server.put(resource, slot, raw)

    async def good_pod_is_placed(self) -> None:
        """Create a good pod and see that it gets the good node."""
        self._good += 1
        slot = f"good-{self._good}"
        self.server.put("pods", slot, self.server.numbered(good_pod(slot), slot))
        await self.quiet()
        for _ in range(300):
            if msgspec.json.decode(self.server.held["pods"][slot])["spec"].get("nodeName"):
                break
            await asyncio.sleep(0.01)
        assert msgspec.json.decode(self.server.held["pods"][slot])["spec"].get("nodeName") == "good", slot

    def equals_the_usable_objects_alone(self) -> None:
        """Compare the state with one that is told at once of what can be used."""
        live = self.process.scheduler
        fresh = self._fresh()
        # A resource has columns once it was asked about: both are asked about all that either holds.
        ours, theirs = live.cluster.nodes.amounts, fresh.cluster.nodes.amounts
        for resource in {*ours._places, *theirs._places}:
            ours.place(resource), theirs.place(resource)
        told, expected = fingerprint(live.cluster), fingerprint(fresh.cluster)
        for part, found in told.items():
            if isinstance(found, dict):
                keys = found.keys() | expected[part].keys()
                differing = {key: (found.get(key), expected[part].get(key)) for key in keys}
                assert {key: one for key, one in differing.items() if one[0] != one[1]} == {}, part
            assert found == expected[part], part
        policies = [one.policy for one in self.process.reloader.store.policy_set().active]
        sides = [Side(of.cluster, ("ImageLocality",)).use(policies) for of in (live, fresh)]
        for one in probes():
            first, second = (side.record(one) for side in sides)
            assert first == second, one.key

    def _fresh(self) -> Scheduler:
        """A scheduler that takes in what the reflectors know now, in another order, and what is assumed."""
        live = self.process.scheduler
        release = live.cluster.release
        profiles, cluster = {"policysched": default_profile(release=release)}, Cluster(release=release)
        made = Scheduler(profiles, FakeClient(), SystemClock(), random.Random(0), cluster=cluster)
        made.cluster.time.move(live.cluster.time.seconds)
        handler = ObjectHandler(made, LeftOutObjects(lambda: 0.0, CollectorRegistry()))
        for reflector in self.process.reflectors:
            if reflector.watched is not POLICIES:
                objects = list(reflector.objects())
                self.chance.shuffle(objects)
                handler.replace(objects, [])
        for placed in live.cluster.pods.by_id.values():
            if placed.assumed:
                row = made.cluster.nodes.row_for(live.cluster.nodes.names[placed.row])
                made.cluster.assume(placed.pod, row)
        return made

    async def withdraw(self) -> None:
        """Delete everything that is not good."""
        for resource, held in self.server.held.items():
            for slot in [one for one in held if not one.startswith("good")]:
                self.server.drop(resource, slot)
            self.server.end_watch(resource)
        await self.quiet()


def good_pod(name: str) -> hostile.Json:
    container = {"name": "c", "resources": {"requests": {"cpu": "1m"}}}
    spec = {
        "schedulerName": "policysched",
        "containers": [container],
        "nodeSelector": {"good": "yes"},
        "tolerations": [{"key": "good", "operator": "Exists"}],
    }
    return {"metadata": {"name": name, "namespace": "good"}, "spec": spec, "status": {"phase": "Pending"}}


def good_node() -> hostile.Json:
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "1000000"}
    labels = {"good": "yes", "kubernetes.io/hostname": "good"}
    taints = [{"key": "good", "effect": "NoSchedule"}]
    return {
        "metadata": {"name": "good", "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def good_policy() -> hostile.Json:
    rule = {"name": "r", "require": 'node.labels["good"] == "yes"', "message": "not good"}
    return {"metadata": {"name": "good"}, "spec": {"filters": [rule], "podSelector": {"matchLabels": {"app": "none"}}}}


def probes() -> list[Pod]:
    """Pods to decide about: good ones, and ones that look at everything."""
    made = [good_pod("probe"), hostile.pod("probe2"), hostile.pod("probe3") | {"status": {}}]
    made[2]["spec"]["volumes"] = hostile.pod("x", on="y")["spec"]["volumes"]
    return [decode_pod(one) for one in made]


def fingerprint(cluster: Cluster) -> dict[str, Any]:
    """Everything that the state holds, but for the order in which it came."""
    nodes, storage = cluster.nodes, cluster.storage
    cluster.attachments.refresh()
    return {
        "nodes": {name: _node(cluster, row) for name, row in nodes.row_of.items()},
        "images": {
            image: sorted(nodes.names[row] for row in one.rows) for image, one in cluster.images._by_name.items()
        },
        "count": (nodes.count, len(cluster.pods)),
        "namespaces": (cluster.namespaces, cluster.unknown_namespaces, cluster.devices.mapped_resources),
        "claims": (cluster.resource_claims._stored, cluster.devices.allocated._allocated),
        "slices": cluster.objects.of(ResourceSlice),
        "workloads": (cluster.workloads._services, cluster.workloads._controllers),
        "volumes": (storage.volumes._stored, storage.claims._stored),
        "storage": (storage.classes, storage.csi_nodes, storage.csi_drivers, storage.capacities, storage.attachments),
        "users": (storage.volume_users._of_claim, storage.volume_users._of_disk, set(storage.pods)),
        "indexes": (storage._attached, storage._claims_of),
        "pool": (storage.pool._free, storage.pool._meant, set(storage.pool._volumes)),
        "signatures": Counter(
            key
            for key, one in zip(cluster.signatures._keys, cluster.signatures.present, strict=True)
            if one is not None
        ),
        "existing terms": {one: len(found) for one, found in cluster.existing_terms._signatures.values()},
        "groups": {one.key: _group(one) for one in cluster.pod_groups or ()},
        "errors": {nodes.names[row]: text for row, text in cluster.attachments.errors.items()},
    }


def _group(state: GroupState) -> Any:
    members = (state.unscheduled, state.assumed, state.assigned)
    return state.group, *({identity: one.key for identity, one in kind.items()} for kind in members)


def _node(cluster: Cluster, row: int) -> Any:
    nodes, amounts = cluster.nodes, cluster.nodes.amounts
    tables = (amounts.allocatable, amounts.requested, amounts.counted)
    held = {name: [int(table[place, row]) for table in tables] for name, place in amounts._places.items()}
    ports = {key: dict(rows[row]) for key, rows in cluster.ports._used.items() if rows.get(row)}
    return {
        "amounts": {name: one for name, one in held.items() if any(one)},
        "pods": sorted(f"{one.pod.key} {one.pod.metadata.uid}" for one in cluster.pods.on_row(row)),
        "numbers": [int(column.data[row]) for column in (nodes.pods_allowed, nodes.pods_count)],
        "own": _own(cluster, row) if nodes.present.data[row] else None,
        "texts": (dict(nodes._labels[row]), dict(nodes._annotations[row])),
        "ports": ports,
    }


def _own(cluster: Cluster, row: int) -> Any:
    nodes = cluster.nodes
    taints = nodes.taint_sets.value(int(nodes.taints.data[row]))
    return taints, [bool(column.data[row]) for column in (nodes.unschedulable, nodes.ready)]


@asynccontextmanager
async def under_fire(seed: int, monkeypatch: pytest.MonkeyPatch, release: Release = DEFAULT) -> AsyncIterator[Trial]:
    server = Server(release)
    monkeypatch.setattr(running_process, "Transport", lambda *_, **__: server)
    monkeypatch.setattr(running_process, "Pacing", lambda _: Pauses().pacing)
    connection = Connection("http://nowhere", SystemClock())
    server.held["nodes"]["good"] = hostile.encode(server.numbered(good_node(), "good"))
    server.held["schedulingpolicies"]["good"] = hostile.encode(server.numbered(good_policy(), "good"))
    process = Process(RunOptions(), connection, NoSource(), CollectorRegistry(), release=release)
    trial = Trial(process, server, seed)
    for resource in server.held:
        for number in range(3):
            bad = hostile.mutate(trial.chance, hostile.MAKERS[resource](f"m{number}"), 2)
            server.held[resource][f"{resource}-{number}"] = hostile.encode(bad)
    task = asyncio.create_task(process.run())
    try:
        await asyncio.sleep(0.05)
        yield trial
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("release", [DEFAULT, GATED_38], ids=["default", "with pod groups"])
async def test_hostile_objects_leave_the_state_of_the_usable_ones(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, release: Release
) -> None:
    caplog.set_level("ERROR")
    rounds = max(1, OBJECTS // 1000)
    async with under_fire(SEED, monkeypatch, release) as trial:
        for number in range(rounds):
            await trial.fire(OBJECTS // rounds)
            await trial.good_pod_is_placed()
            if number % 10 == 0 or number == rounds - 1:
                trial.equals_the_usable_objects_alone()
        await trial.withdraw()
        known = {one.watched.plural: len(one._cache) for one in trial.process.reflectors}
        goods = sum(slot.startswith("good") for slot in trial.server.held["pods"])
        assert known == dict.fromkeys(trial.server.held, 0) | {"nodes": 1, "schedulingpolicies": 1, "pods": goods}
        trial.equals_the_usable_objects_alone()
        await trial.good_pod_is_placed()
        assert [one.policy.key for one in trial.process.reloader.store.policy_set().active] == ["good"]
    assert 'scheduling cycle of pod "good/' not in caplog.text
    assert "listing again" not in caplog.text
    counted = trial.process.registry.get_sample_value(
        "policysched_objects_left_out_total", {"kind": "Pod", "reason": "malformed"}
    )
    assert counted
    assert counted > OBJECTS / 200
    groups = [
        sample.value
        for metric in trial.process.registry.collect()
        for sample in metric.samples
        if sample.name == "scheduler_podgroup_schedule_attempts_total"
    ]
    assert (sum(groups) > 0) is release.generic_workload
