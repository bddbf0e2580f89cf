"""Parts for tests of reflectors: pages and events of a server, and a handler that records calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from policysched.kube.reflector import Reflector
from policysched.model.decode import ObjectError
from policysched.model.kinds import NODES, ApiKind
from policysched.reading.lenient_json import identity
from tests.kube.fake_server import Kube, eventually, status, stream

NODE_PATH = "/api/v1/nodes"
HANG = stream(then="hang")


def node(name: str, version: int, uid: str = "", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or f"u-{name}", "resourceVersion": str(version), "labels": labels}}


def malformed(name: str, version: int) -> dict[str, Any]:
    return node(name, version) | {"spec": {"unschedulable": "maybe"}}


def page(*items: Any, version: int = 1, next_page: str = "", kind: str = "Node") -> dict[str, Any]:
    metadata = {"resourceVersion": str(version), "continue": next_page}
    return {"kind": f"{kind}List", "metadata": metadata, "items": list(items)}


def groups(*versions: str) -> dict[str, Any]:
    return {"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": one}]} for one in versions]}


def kinds(*plurals: str) -> dict[str, Any]:
    return {"kind": "APIResourceList", "resources": [{"name": one} for one in plurals]}


def event(kind: str, obj: Any) -> dict[str, Any]:
    return {"type": kind, "object": obj}


def gone(code: int = 410) -> dict[str, Any]:
    return event("ERROR", status(code, "Expired", "too old resource version"))


class Ledger:
    """A handler that records its calls as short texts, and the objects that they leave."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.held: dict[str, str] = {}

    def replace(self, changed: Sequence[Any], gone: Sequence[Any]) -> None:
        self.heard.append("list")
        for obj in gone:
            self.delete(obj)
        for obj in changed:
            self.upsert(obj)

    def upsert(self, obj: Any) -> None:
        self.heard.append(f"+{obj.metadata.name}@{obj.metadata.resource_version}")
        self.held[obj.metadata.name] = obj.metadata.resource_version
        if obj.metadata.name == "boom":
            raise RuntimeError("no")

    def delete(self, obj: Any) -> None:
        self.heard.append(f"-{obj.metadata.name}@{obj.metadata.resource_version}")
        assert self.held.pop(obj.metadata.name) == obj.metadata.resource_version


class Watching:
    def __init__(self, reflector: Reflector[Any], ledger: Ledger, broken: list[str]) -> None:
        self.reflector, self.ledger, self.broken = reflector, ledger, broken


@asynccontextmanager
async def watching(kube: Kube, watched: ApiKind[Any] = NODES) -> AsyncIterator[Watching]:
    ledger, broken = Ledger(), []

    def on_broken(error: ObjectError, raw: bytes) -> None:
        broken.append(f"{error.key}@{identity(raw).version}")

    reflector = Reflector(kube.transport, watched, ledger, kube.pauses.pacing, on_broken=on_broken)
    task = asyncio.create_task(reflector.run())
    try:
        yield Watching(reflector, ledger, broken)
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def heard(kube: Kube, *expected: str, watched: ApiKind[Any] = NODES) -> Watching:
    """Run a reflector and assert that its handler has exactly these calls."""
    async with watching(kube, watched) as run:
        await eventually(lambda: len(run.ledger.heard) >= len(expected))
        await asyncio.sleep(0.02)
        assert run.ledger.heard == list(expected)
        return run


def watch_versions(kube: Kube) -> list[str]:
    return [asked.query["resourceVersion"] for asked in kube.server.asked if "watch" in asked.query]
