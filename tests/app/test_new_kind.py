"""A kind that nobody declared before: its struct and its row in the table of kinds are all that it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.demo.sandbox_setup import new_sandbox
from policysched.app.dry_run import dry_run, inputs, live_cluster
from policysched.app.running.process import Process
from policysched.app.running.run_options import RunOptions
from policysched.framework import Action, Change, Cluster, Resource
from policysched.kube.connection import Connection
from policysched.metric_sources.no_source import NoSource
from policysched.model.decode import ObjectError, decode
from policysched.model.kinds import KINDS, ApiKind
from policysched.model.objects import Metadata, Struct
from policysched.model.release import V1_37, Release
from policysched.plugins.registry import plugin_entries
from policysched.sandbox import Sandbox, sandbox_nodes
from tests.kube.fake_server import eventually


class Gizmo(Struct, frozen=True):
    """Something that a plugin could ask for."""

    metadata: Metadata = Metadata()
    size: int = 0


def _fill(raw: dict[str, Any]) -> None:
    raw.setdefault("size", 1)


ROW = partial(
    ApiKind, "example.io/v1", "Gizmo", "gizmos", partial(decode, Gizmo, "Gizmo"), Resource.CSI_DRIVER, fill=_fill
)
POD = "kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: a}]}\n"


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiKind[Gizmo]]:
    monkeypatch.setitem(KINDS, "Gizmo", ROW())
    yield KINDS["Gizmo"]


def gizmo(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.io/v1", "kind": "Gizmo", "metadata": metadata, **fields}


@asynccontextmanager
async def following(sandbox: Sandbox) -> AsyncIterator[Process]:
    """A scheduler at work on a sandbox."""
    await sandbox.start()
    connection = Connection(sandbox.url, SystemClock())
    process = Process(RunOptions(), connection, NoSource(), CollectorRegistry())
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await connection.close()
        await sandbox.stop()


async def test_new_kind_is_served_watched_and_held(declared: ApiKind[Gizmo]) -> None:
    sandbox = new_sandbox(kubelet_seconds=None)
    sandbox.load([*sandbox_nodes(1), gizmo("a", size=3)])
    async with following(sandbox) as process:
        held = process.scheduler.cluster.objects.of(Gizmo)
        await eventually(lambda: {key: one.size for key, one in held.items()} == {"default/a": 3})
        sandbox.load([gizmo("b", size=4)])
        await eventually(lambda: set(held) == {"default/a", "default/b"})
        path = f"{declared.path.replace('/gizmos', '/namespaces/default/gizmos')}/a"
        await process._transport.request("DELETE", path)
        await eventually(lambda: set(held) == {"default/b"})


@pytest.mark.parametrize(
    ("plugins", "watched"), [(None, True), (("NodeName",), True), (("Another",), False), ((), False)]
)
def test_new_kind_is_watched_where_a_plugin_reads_it(
    plugins: tuple[str, ...] | None, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "Gizmo", ROW(read_by=None if plugins is None else frozenset(plugins)))
    process = Process(RunOptions(), Connection("http://nowhere", SystemClock()), NoSource(), CollectorRegistry())
    assert ("gizmos" in {one.watched.plural for one in process.reflectors}) is watched


async def test_new_kind_is_read_from_files_and_completed(
    declared: ApiKind[Gizmo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Cluster] = []

    class Kept(Cluster):
        def __init__(self, release: Release) -> None:
            super().__init__(release=release)
            made.append(self)

    monkeypatch.setattr(dry_run, "Cluster", Kept)
    cluster, pod = tmp_path / "cluster.yaml", tmp_path / "pod.yaml"
    other = "---\napiVersion: other.io/v1\nkind: Gizmo\nmetadata: {name: b}\nsize: 7\n"
    cluster.write_text("apiVersion: example.io/v1\nkind: Gizmo\nmetadata: {name: a}\n" + other)
    pod.write_text(POD)
    read = await inputs.gather(inputs.ClusterSources([str(cluster)]), str(pod))
    assert read.evaluate(read.findings()).to_dict()["result"] == "Unschedulable"
    assert {key: one.size for key, one in made[0].objects.of(Gizmo).items()} == {"default/a": 1}


def test_malformed_object_of_a_new_kind_is_refused_with_its_field(declared: ApiKind[Gizmo]) -> None:
    with pytest.raises(ObjectError, match='gizmo "default/a": size: expected int, got str') as caught:
        dry_run.dry_run([gizmo("a", size="x")], {"metadata": {"name": "p"}, "spec": {"containers": []}})
    assert caught.value.field == "size"


async def test_new_kind_is_read_from_a_live_cluster(declared: ApiKind[Gizmo], monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = new_sandbox(kubelet_seconds=None)
    sandbox.load([gizmo("a")])
    async with following(sandbox):
        opened = Connection(sandbox.url, SystemClock())

        async def found(*_: Any, **__: Any) -> Connection:
            return opened

        monkeypatch.setattr(Connection, "open", found)
        kinds = [(one["apiVersion"], one["kind"]) for one in await live_cluster.read_cluster()]
    assert ("example.io/v1", "Gizmo") in kinds


def test_new_kind_says_what_happened_to_its_objects(declared: ApiKind[Gizmo]) -> None:
    cluster = Cluster()
    first, second = (declared.decode(gizmo("a", size=size)) for size in (1, 2))
    changes = [cluster.take(one) for one in (first, first, second)]
    changes += [cluster.drop(second), cluster.drop(second)]
    assert changes == [
        Change(Resource.CSI_DRIVER, Action.ADD, None, first),
        Change(Resource.CSI_DRIVER, Action.NONE, first, first),
        Change(Resource.CSI_DRIVER, Action.UPDATE_OTHER, first, second),
        Change(Resource.CSI_DRIVER, Action.DELETE, second, None),
        Change(Resource.CSI_DRIVER, Action.NONE),
    ]


def test_kinds_are_read_by_plugins_that_there_are() -> None:
    named = frozenset[str]().union(*(kind.read_by or () for kind in KINDS.values()))
    gated = replace(V1_37, generic_workload=True)
    assert named <= {name for name, entry in plugin_entries(gated).items() if entry.is_default}


def test_kinds_are_named_as_their_structs() -> None:
    assert {name: kind.kind for name, kind in KINDS.items()} == {name: name for name in KINDS}
    shapes = {name: type(kind.decode(b'{"metadata":{"name":"x"}}')).__name__ for name, kind in KINDS.items()}
    assert {name: shape for name, shape in shapes.items() if name != shape} == {"SchedulingPolicy": "Policy"}
