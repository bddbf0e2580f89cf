"""Time and memory of a scheduler from its start to its first binding.

    python -m bench.start [--nodes N] [--waiting N] [--placed N] [--passes N] [--json]

This process is the API server: it serves prepared lists over HTTP on loopback, page by page. It reads the processor
time of the scheduler at the first request (imports done), at the last page of each list, and at the first binding.
Objects are those of scheduler_perf with `managedFields`. Prints the lowest figures of several passes. Units: seconds,
MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec
import yaml
from rich.console import Console
from rich.table import Table

from bench.cluster import templates
from bench.cluster.machine import memory_of
from policysched.model.kinds import KINDS, NODES, PODS, POLICIES

ROOT: Final = Path(__file__).resolve().parents[1]
START: Final = "from policysched.cli import main; main()"
ME: Final = "default-scheduler"
PODS_PER_NODE: Final = 30
"""Largest number of placed pods per node of scheduler_perf's size, which is full with 40; above it, nodes are large."""
PATIENCE: Final = 240.0
"""Longest wait for the first binding; then the run fails. Units: seconds."""
VERSION: Final = "1000"
_CREATED: Final = "2026-11-01T00:00:00Z"
_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_FIELDS: Final = {
    "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:generateName": {}, "f:ownerReferences": {".": {}}},
    "f:spec": {
        "f:containers": {
            'k:{"name":"pause"}': {
                **{f"f:{name}": {} for name in ("image", "imagePullPolicy", "name", "terminationMessagePath")},
                "f:ports": {".": {}, 'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                "f:resources": {
                    ".": {},
                    "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}},
                    "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}},
                },
            }
        },
        **{f"f:{name}": {} for name in ("dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName")},
    },
}
"""`managedFields` of a pod, as the API server returns them."""
_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_FILLED: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "securityContext": {},
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
    "schedulerName": ME,
    "tolerations": [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ],
}
"""Fields of a pod spec that the API server sets by default."""


def compile_modules() -> None:
    """Compile the package's modules to bytecode, as an installation does, so that no run has to."""
    compileall.compile_dir(ROOT / "policysched", quiet=1)


def node(index: int, *, large: bool = False) -> dict[str, Any]:
    """Return a node as an API server returns it, of scheduler_perf's size or with room for 250 pods."""
    made = templates.node(f"scheduler-perf-{index:05}", f"zone{index % 3}")
    if large:
        made["status"]["capacity"] = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    made["metadata"] |= _identity(f"n{index}") | {"managedFields": _managed("kubelet")}
    made["status"]["allocatable"] = made["status"]["capacity"]
    return made


def pod(index: int, on: str = "") -> dict[str, Any]:
    """Return a pod as an API server returns it, pending or running on a node."""
    made = templates.pod("pod-default", f"pod-{index:06}", "default", {"app": "perf"})
    made["metadata"] |= _identity(f"p{index}") | {"generateName": "pod-", "managedFields": _managed("kubectl")}
    made["spec"] = _FILLED | made["spec"]
    made["status"] = {"phase": "Pending", "qosClass": "Guaranteed"}
    if on:
        made["spec"]["nodeName"] = on
        made["status"] = _running(index)
    return made


def _running(index: int) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": _CREATED} for kind in _CONDITIONS]
    address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    state = {"name": "pause", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": _CREATED}}}
    return {
        "phase": "Running",
        "qosClass": "Guaranteed",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _CREATED,
        "conditions": conditions,
        "containerStatuses": [state],
    }


def _identity(uid: str) -> dict[str, Any]:
    return {"uid": uid, "resourceVersion": VERSION, "creationTimestamp": _CREATED}


def _managed(manager: str) -> list[dict[str, Any]]:
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": _CREATED, "fieldsType": "FieldsV1"}
    return [entry | {"fieldsV1": _FIELDS}, entry | {"fieldsV1": {"f:status": _FIELDS}, "subresource": "status"}]


def _without_items(path: str) -> str:
    """Return the kind of an empty list, which clients check."""
    found = next((one.kind for one in KINDS.values() if one.path == path), "Nothing")
    return f"{found}List"


class Sizes(NamedTuple):
    """The size of a cluster."""

    nodes: int
    waiting: int
    """Number of pending pods."""
    placed: int
    """Number of running pods."""


class Lists:
    """The encoded objects of the server, from which pages are joined."""

    def __init__(self, sizes: Sizes, policies: Iterable[Mapping[str, Any]] = ()) -> None:
        encode = msgspec.json.encode
        large = sizes.placed > PODS_PER_NODE * sizes.nodes
        made = [node(index, large=large) for index in range(sizes.nodes)]
        names = [one["metadata"]["name"] for one in made]
        running = (pod(index, names[index % sizes.nodes]) for index in range(sizes.placed))
        waiting = (pod(sizes.placed + index) for index in range(sizes.waiting))
        self._items = {
            NODES.path: [encode(one) for one in made],
            PODS.path: [encode(one) for one in chain(running, waiting)],
            POLICIES.path: [encode(one) for one in policies],
        }

    def page(self, path: str, limit: int, begin: int) -> tuple[bytes, bool]:
        """Return a page of a list, and whether it is the last."""
        items = self._items.get(path, [])
        end = begin + limit if limit else len(items)
        metadata: dict[str, str] = {"resourceVersion": VERSION}
        if end < len(items):
            metadata["continue"] = str(end)
        head = msgspec.json.encode({"kind": _without_items(path), "apiVersion": "v1", "metadata": metadata})
        return head[:-1] + b',"items":[' + b",".join(items[begin:end]) + b"]}", end >= len(items)


class Server:
    """An API server with just enough function for a scheduler to bind its first pod."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self.pid = 0
        self.began = 0.0
        self.marks: dict[str, tuple[float, float]] = {}
        """Time of each mark since the start, and the scheduler's processor time then, by name."""
        self.bound = asyncio.Event()
        self._serving: set[asyncio.Task[Any] | None] = set()
        """Tasks that serve connections, referenced here so that they are not garbage-collected."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self._serving.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, target, _ = head.split(b" ", 2)
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                await self._answer(method.decode(), target.decode(), body, writer)
        self._serving.discard(asyncio.current_task())
        writer.close()

    async def _answer(self, method: str, target: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self._mark("first request")
        if "watch" in query:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            await writer.drain()
            await self.watch(parts.path, query, writer)
        elif method != "GET":
            self.written(parts.path, body)
            _write(writer, b"{}", "201 Created")
        elif parts.path == "/version":
            _write(writer, b"{}")
        else:
            page, last = self._lists.page(parts.path, int(query.get("limit", 0)), int(query.get("continue", 0)))
            if last and parts.path in (NODES.path, PODS.path):
                self._mark(f"{parts.path.rpartition('/')[2]} told")
            _write(writer, page)
        await writer.drain()

    async def watch(self, path: str, query: Mapping[str, str], writer: asyncio.StreamWriter) -> None:  # noqa: ARG002
        """Keep a watch open without events."""
        await asyncio.Event().wait()

    def written(self, path: str, body: bytes) -> None:  # noqa: ARG002 - what is bound to which node changes nothing
        """Record a write of the scheduler; the first binding ends the run."""
        if path.endswith("/binding"):
            self._mark("first binding")
            self.bound.set()

    def _mark(self, name: str) -> None:
        self.marks.setdefault(name, (time.monotonic() - self.began, cpu_of(self.pid)))


def _write(writer: asyncio.StreamWriter, body: bytes, status: str = "200 OK") -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


def cpu_of(pid: int) -> float:
    """Return the processor time of the live threads of a process. Units: seconds."""
    total = 0
    for one in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            total += int((one / "schedstat").read_text("utf-8").split()[0])
    return total / 1e9


async def once(lists: Lists) -> dict[str, float]:
    """Run a scheduler until its first binding; return the times and the peak memory until then.

    Raises:
        RuntimeError: the scheduler bound nothing.
    """
    server = Server(lists)
    async with scheduler(server) as pid:
        await asyncio.sleep(0.1)
        peak, _ = memory_of(pid)
    found = {"peak": peak}
    for name, (wall, cpu) in server.marks.items():
        found |= {f"{name}, CPU": cpu, f"{name}, clock": wall}
    return found


@asynccontextmanager
async def scheduler(server: Server) -> AsyncIterator[int]:
    """Start a scheduler, wait for its first binding, and yield its process ID; kill it at the end of the block.

    Raises:
        RuntimeError: the scheduler bound nothing.
    """
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=1 << 20)
    port = listening.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        flags = [f"--kubeconfig={_kubeconfig(Path(folder), port)}", f"--scheduler-name={ME}", "--leader-elect=false"]
        line = [sys.executable, "-c", START, "run", *flags, "--secure-port=0"]
        log = Path(folder) / "log"
        with log.open("wb") as told:
            server.began = time.monotonic()
            process = await asyncio.create_subprocess_exec(*line, stdout=told, stderr=told)
            server.pid = process.pid
            try:
                await asyncio.wait_for(server.bound.wait(), PATIENCE)
                yield process.pid
            except TimeoutError as error:
                raise RuntimeError(f"no pod was bound:\n{log.read_text('utf-8')[-2000:]}") from error
            finally:
                process.send_signal(signal.SIGKILL)
                await process.wait()
                listening.close()


def _kubeconfig(folder: Path, port: int) -> Path:
    name = "bench"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": name, "user": {"token": "none"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content), "utf-8")
    return path


def measure(sizes: Sizes, passes: int, policies: Iterable[Mapping[str, Any]] = ()) -> dict[str, float]:
    """Start a scheduler several times; return the lowest of each figure."""
    compile_modules()
    lists = Lists(sizes, policies)
    rows = [asyncio.run(once(lists)) for _ in range(passes)]
    return {name: min(row[name] for row in rows) for name in rows[0]}


def show(title: str, found: dict[str, float]) -> None:
    """Print the times of each mark until the first binding, and the peak memory."""
    table = Table(title=title)
    for head in ("until", "CPU s", "clock s"):
        table.add_column(head, justify="left" if head == "until" else "right")
    for name in (name.removesuffix(", CPU") for name in found if name.endswith(", CPU")):
        table.add_row(name, f"{found[f'{name}, CPU']:.2f}", f"{found[f'{name}, clock']:.2f}")
    console = Console()
    console.print(table)
    console.print(f"peak memory: {found['peak']:.0f} MiB")


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes")
    parser.add_argument("--waiting", type=int, default=4000, help="number of waiting pods")
    parser.add_argument("--placed", type=int, default=0, help="number of placed pods")
    parser.add_argument("--passes", type=int, default=3, help="number of passes; the lowest figures are printed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    found = measure(Sizes(given.nodes, given.waiting, given.placed), given.passes)
    title = f"{given.nodes:,} nodes, {given.placed:,} placed pods, {given.waiting:,} waiting"
    print(msgspec.json.encode(found).decode()) if given.json else show(title, found)


if __name__ == "__main__":
    main()
