"""Decisions with two HTTP extenders that filter and score, beside kube-scheduler.

kube-scheduler and policysched run in turn, each in a fresh process with the default plugins, on a real API server.
The extenders run in this process and accept every node. They delay the first answer until all pods exist, then the
time until the last request is measured: once with node names, once with whole nodes.

    python -m bench.extenders [--nodes 50] [--pods 200] [-o json]

Requires the Kubernetes programs that `make test` builds. Units: decisions a second, requests a pod, ms of processor
time a pod.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml
from aiohttp import web

from bench.hostile import cpu_ms
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import print_parts
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import Program, Warden
from tests.e2e.objects import Json, node, pod
from tests.fake_server import posts_served
from tests.requeueing.control_plane import KubeScheduler, bare_plane

ROOT = Path(__file__).resolve().parent.parent
ME = "default-scheduler"
VERBS = ("first/filter", "second/filter", "first/prioritize", "second/prioritize")
PATIENCE = 300.0
"""Longest wait for the bindings. Units: seconds."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one scheduler."""

    scheduler: str
    told: str
    decisions_a_second: float
    requests_a_pod: float
    cpu_ms_a_pod: float


@dataclass
class Extenders:
    """Two HTTP extenders that accept every node."""

    go: threading.Event = field(default_factory=threading.Event)
    asked: Counter[str] = field(default_factory=Counter)
    last: float = 0.0
    """Time of the last request."""

    async def respond(self, request: web.Request) -> web.Response:
        """Respond to a request of a scheduler."""
        verb = request.match_info["verb"]
        question = msgspec.json.decode(await request.read())
        while not self.go.is_set():
            await asyncio.sleep(0.001)
        self.asked[verb] += 1
        self.last = time.monotonic()
        names = question["NodeNames"] or [one["metadata"]["name"] for one in question["Nodes"]["items"]]
        answer: Any = {"NodeNames": question["NodeNames"], "Nodes": question["Nodes"]}
        if verb.endswith("prioritize"):
            answer = [{"Host": name, "Score": len(name) % 10} for name in names]
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


@contextmanager
def served(extenders: Extenders) -> Iterator[str]:
    """Serve the extenders in a thread during the block; yield the URL."""
    ready, over, urls = threading.Event(), threading.Event(), list[str]()

    async def serve() -> None:
        async with posts_served("/{verb:.*}", extenders.respond) as url:
            urls.append(url)
            ready.set()
            while not over.is_set():
                await asyncio.sleep(0.05)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait(30)
    try:
        yield urls[0]
    finally:
        extenders.go.set()
        over.set()
        thread.join()


class Policysched:
    """A policysched process with a configuration."""

    def __init__(self, plane: ControlPlane, configuration: Json) -> None:
        self._warden = Warden(plane.logs)
        path = plane.folder / "policysched.yaml"
        connection = {"kubeconfig": str(plane.kubeconfig()), "qps": 1000, "burst": 1000}
        whole = configuration | {"clientConnection": connection, "leaderElection": {"leaderElect": False}}
        path.write_text(yaml.safe_dump(whole), "utf-8")
        start = "from policysched.cli import main; main()"
        command = [sys.executable, "-c", start, "run", f"--config={path}"]
        self.program = Program("policysched", command, plane.logs / "policysched.log", self._warden)
        self.program.environment["PYTHONPATH"] = str(ROOT)

    def __enter__(self) -> Policysched:
        self.program.start()
        self.program.wait(lambda: any(line.endswith(" scheduling") for line in self._lines()))
        return self

    def __exit__(self, *_: object) -> None:
        self.program.stop()
        self._warden.dismiss()

    def _lines(self) -> list[str]:
        log = self.program.log
        return log.read_text("utf-8", "replace").splitlines() if log.exists() else []


SCHEDULERS: Mapping[str, Any] = {"kube-scheduler": KubeScheduler, "policysched": Policysched}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the schedulers and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.extenders", description="Measure decisions with two HTTP extenders."
    )
    parser.add_argument("--nodes", type=int, default=50, help="number of nodes")
    parser.add_argument("--pods", type=int, default=200, help="number of pods")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="format of the output")
    given = parser.parse_args(arguments)
    with bare_plane() as plane:
        found = [
            measure(name, plane, given.nodes, given.pods, by_name=by_name)
            for by_name in (True, False)
            for name in SCHEDULERS
        ]
    if given.output == "json":
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        report(found, given.nodes, given.pods)


def measure(name: str, plane: ControlPlane, nodes: int, pods: int, *, by_name: bool) -> Measured:
    """Run one scheduler on all pods, and return its figures."""
    told = "names" if by_name else "whole nodes"
    print(name, told, file=sys.stderr, flush=True)
    extenders, api = Extenders(), plane.api
    for number in range(nodes):
        api.create(node(f"n{number}"))
    with served(extenders) as url, SCHEDULERS[name](plane, configuration(url, by_name=by_name)) as scheduler:
        for number in range(pods):
            api.create(pod(f"p{number}", scheduler=ME))
        before, began = cpu_ms(scheduler.program.pid), time.monotonic()
        extenders.go.set()
        until(lambda: all(extenders.asked[verb] >= pods for verb in VERBS), "all pods asked about", PATIENCE)
        until(lambda: all(one["spec"].get("nodeName") for one in api.objects("Pod", "default")), "bound", PATIENCE)
        cpu = cpu_ms(scheduler.program.pid) - before
    plane.wipe()
    requests = sum(extenders.asked.values())
    return Measured(name, told, pods / (extenders.last - began), requests / pods, cpu / pods)


def configuration(url: str, *, by_name: bool) -> Json:
    """Return a configuration with both extenders."""
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1, "httpTimeout": "120s"}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": ME}],
        "extenders": [
            {"urlPrefix": f"{url}/{name}", "nodeCacheCapable": by_name, **verbs} for name in ("first", "second")
        ],
    }


def report(found: Sequence[Measured], nodes: int, pods: int) -> None:
    """Print one line for each run."""
    heads = ["told of", "scheduler", "decisions/s", "requests a pod", "CPU ms a pod"]
    rows = [
        [
            one.told,
            one.scheduler,
            f"{one.decisions_a_second:.0f}",
            f"{one.requests_a_pod:.1f}",
            f"{one.cpu_ms_a_pod:.1f}",
        ]
        for one in found
    ]
    print_parts([plain_table(None, heads, rows, range(2, len(heads)))])
    print(f"two extenders that filter and score; {nodes} nodes, {pods} pods")


if __name__ == "__main__":
    main()
