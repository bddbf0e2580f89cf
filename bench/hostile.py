"""Ordinary pods beside hostile objects, for kube-scheduler and policysched: wait and memory.

A real API server with real nodes. For each object, both schedulers run in turn, each in a fresh process. The object
is created, then five ordinary pods, one after another; the figure is the wait of the slowest. Then the object is
deleted and memory is measured again. The first row has no object. With several rounds, figures are medians.

    python -m bench.hostile [--nodes 1000] [--only NAME …] [--rounds N] [-o json]

Requires the Kubernetes programs that `make test` builds. Units: milliseconds, MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import yaml

from bench.cluster.client import Client, RequestError
from bench.cluster.schedulers import GATE
from bench.cluster.state import SERVING_GROUPS
from bench.hostile_groups import GROUPS, HOSTILE_GROUPS
from bench.hostile_objects import HOSTILE, Hostile, Object, node, ordinary
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import print_parts
from tests.controlplane.api import MERGE_PATCH, Api
from tests.controlplane.build import binary
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import Program, Warden, free_port

ROOT = Path(__file__).resolve().parent.parent
SCHEDULERS = ("kube-scheduler", "policysched")
CONTROLLERS = ("serviceaccount-controller", "namespace-controller", "node-lifecycle-controller")
PODS = 5
PATIENCE = 60.0
"""Longest wait for an ordinary pod; then it counts as never bound. Units: seconds."""
EVERY = (*HOSTILE, *HOSTILE_GROUPS)
SETTLING = 3.0
"""Wait before the second measurement of memory, in which a process can release it. Units: seconds."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one scheduler with one hostile object.

    Units: milliseconds; MiB. A wait of None: the pod was not bound within a minute, or the process ended.
    """

    hostile: str
    scheduler: str
    wait_ms: float | None
    cpu_ms: float
    grown_mib: float
    kept_mib: float
    ended: bool


class Scheduler:
    """One scheduler process, with its processor time and memory."""

    def __init__(self, name: str, plane: ControlPlane, warden: Warden, *, groups: bool = False) -> None:
        kubeconfig = f"--kubeconfig={plane.kubeconfig()}"
        if name == "kube-scheduler":
            command = [str(binary(name)), kubeconfig, "--leader-elect=false", f"--secure-port={free_port()}"]
            command += ["--bind-address=127.0.0.1", "--kube-api-qps=5000", "--kube-api-burst=5000"]
        else:
            start = "from policysched.cli import main; main()"
            command = [sys.executable, "-c", start, "run", kubeconfig, "--scheduler-name", "default-scheduler"]
        command += [f"--feature-gates={GATE}"] if groups else []
        self._program = Program(name, command, plane.logs / f"{name}.log", warden)
        self._program.environment["PYTHONPATH"] = str(ROOT)

    def __enter__(self) -> Scheduler:
        self._program.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._program.running:
            self._program.stop()

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._program.running

    def memory_mib(self) -> float:
        """Return resident memory; 0 if the process has ended."""
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{self._program.pid}/status").read_text("utf-8").splitlines()
            return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)
        return 0.0

    def cpu_ms(self) -> float:
        """Return the processor time used so far; 0 if the process has ended."""
        return cpu_ms(self._program.pid)


def cpu_ms(pid: int) -> float:
    """Return the processor time of a process; 0 if it has ended. Units: milliseconds."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
    return 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table; return 1 if policysched ended or did not bind an ordinary pod."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.hostile", description="Measure ordinary pods beside hostile objects."
    )
    parser.add_argument("--nodes", type=int, default=1000, help="number of nodes")
    parser.add_argument(
        "--only", action="append", choices=[one.name for one in EVERY], help="objects to create; default: all"
    )
    parser.add_argument("--scheduler", choices=SCHEDULERS, help="scheduler to run; default: both")
    parser.add_argument(
        "--rounds", type=int, default=1, help="rounds of each object with each scheduler; figures are medians"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="format of the output")
    given = parser.parse_args(arguments)
    chosen = [one for one in EVERY if not given.only or one.name in given.only]
    schedulers = [given.scheduler] if given.scheduler else SCHEDULERS
    if given.rounds < 1:
        parser.error("--rounds: at least 1")
    outcomes = list(measure(chosen, schedulers, given.nodes, given.rounds))
    if given.output == "json":
        print(json.dumps([asdict(one) for one in outcomes], indent=2))
    else:
        report(outcomes, given.nodes, given.rounds)
    return int(any(one.scheduler == "policysched" and one.wait_ms is None for one in outcomes))


def measure(chosen: Sequence[Hostile], schedulers: Sequence[str], nodes: int, rounds: int) -> Iterator[Outcome]:
    """Measure each object with each scheduler on one control plane; the schedulers alternate in each round."""
    serving = SERVING_GROUPS if any(one.kind == GROUPS for one in chosen) else ()
    with ControlPlane(controllers=CONTROLLERS, kubelets=False, apiserver_flags=serving) as plane:
        api = plane.api
        plane.load([yaml.safe_load((ROOT / "crds" / "schedulingpolicies.yaml").read_text("utf-8"))])
        with ThreadPoolExecutor(1) as pool:
            list(pool.map(api.create, (node(number) for number in range(nodes))))
        until(lambda: all(not one["spec"].get("taints") for one in api.objects("Node")), "nodes without taints", 300)
        warden = Warden(plane.logs)
        for hostile in chosen:
            able = [one for one in schedulers if (hostile.kind, one) != ("SchedulingPolicy", "kube-scheduler")]
            found: dict[str, list[Outcome]] = {name: [] for name in able}
            for number in range(rounds):
                for name in able:
                    print(f"{hostile.name}: {name}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
                    found[name].append(one_outcome(hostile, name, plane, warden))
            yield from (median_outcome(outcomes) for outcomes in found.values() if outcomes)
        warden.dismiss()


def median_outcome(rounds: Sequence[Outcome]) -> Outcome:
    """Return the median of each figure; a pod not bound or a process that ended in one round shows in the result."""
    waits = [one.wait_ms for one in rounds if one.wait_ms is not None]
    return Outcome(
        rounds[0].hostile,
        rounds[0].scheduler,
        median(waits) if len(waits) == len(rounds) else None,
        median(one.cpu_ms for one in rounds),
        median(one.grown_mib for one in rounds),
        median(one.kept_mib for one in rounds),
        any(one.ended for one in rounds),
    )


def one_outcome(hostile: Hostile, name: str, plane: ControlPlane, warden: Warden) -> Outcome:
    """Measure one scheduler with one attack: the wait of ordinary pods, processor time and memory."""
    api = plane.api
    with Scheduler(name, plane, warden, groups=hostile.kind == GROUPS) as scheduler:
        bound(api, scheduler, "warm-up", 120.0)
        time.sleep(1.0)
        memory, cpu = scheduler.memory_mib(), scheduler.cpu_ms()
        made = created(plane, hostile.objects())
        with edited(plane, hostile):
            waits = [bound(api, scheduler, f"ordinary-{number}", PATIENCE) for number in range(PODS)]
        used, grown = scheduler.cpu_ms() - cpu, scheduler.memory_mib() - memory
        for one in made:
            removed(api, one)
        time.sleep(SETTLING)
        bound(api, scheduler, "after", PATIENCE)
        kept = scheduler.memory_mib() - memory
        ended = not scheduler.running
    clear(api)
    wait = None if None in waits else max(one for one in waits if one is not None)
    return Outcome(hostile.name, name, wait, used, grown, kept, ended)


def created(plane: ControlPlane, objects: Sequence[Object]) -> Sequence[Object]:
    """Create objects, the first one before the others; an object that the API server rejects ends the run."""

    async def create() -> None:
        async with Client(plane.kubeconfig()) as client:
            await client.create_all(objects[:1])
            await client.create_all(objects[1:])

    try:
        asyncio.run(create())
    except* RequestError as errors:
        raise SystemExit(f"the API server refuses an object: {str(errors.exceptions[0])[:500]}") from errors
    return objects


@contextlib.contextmanager
def edited(plane: ControlPlane, hostile: Hostile) -> Iterator[None]:
    """Edit an object of an attack every 10 ms during the block, if the attack has edits."""
    if hostile.edits is None:
        yield
        return
    path, patch = hostile.edits
    end = threading.Event()

    def edit() -> None:
        api, turn = Api(int(plane.url.rpartition(":")[2]), plane.identities.tls(), plane.identities.token()), 0
        while not end.wait(0.01):
            api.call("PATCH", path, patch(turn), MERGE_PATCH)
            turn += 1
        api.close()

    thread = threading.Thread(target=edit, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def bound(api: Api, scheduler: Scheduler, name: str, seconds: float) -> float | None:
    """Create an ordinary pod, and return the time until it has a node; None if it gets none. Units: milliseconds."""
    began = time.perf_counter()
    api.create(ordinary(name))
    while time.perf_counter() - began < seconds and scheduler.running:
        if api.get("Pod", name)["spec"].get("nodeName"):
            return (time.perf_counter() - began) * 1000
        time.sleep(0.002)
    return None


def removed(api: Api, obj: Object) -> None:
    """Delete an object without grace period; no controller removes the finalizer of a pod group."""
    kind, name, namespace = obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", "default")
    if kind == GROUPS:
        api.patch(kind, name, {"metadata": {"finalizers": None}}, namespace)
    api.delete(kind, name, namespace, gracePeriodSeconds=0)


def clear(api: Api) -> None:
    """Delete all pods."""
    for pod in api.objects("Pod", "default"):
        removed(api, pod | {"kind": "Pod"})
    until(lambda: not api.objects("Pod", "default"), "no pods")


def report(outcomes: Sequence[Outcome], nodes: int, rounds: int) -> None:
    """Print one line for each object."""
    found = {(one.hostile, one.scheduler): one for one in outcomes}
    rows: list[list[str]] = []
    for name in dict.fromkeys(one.hostile for one in outcomes):
        row = [name]
        for show in (wait, lambda one: f"{one.cpu_ms:,.0f}", lambda one: f"{one.grown_mib:.0f} → {one.kept_mib:.0f}"):
            row += [cell(found.get((name, scheduler)), show) for scheduler in SCHEDULERS]
        rows.append(row)
    heads = [f"{what} {who}" for what in ("wait ms", "CPU ms", "MiB") for who in ("kube-scheduler", "policysched")]
    table = plain_table(None, ["object", *heads], rows, range(1, 7))
    print_parts([table])
    print(f"{nodes} nodes; the slowest of {PODS} ordinary pods; memory with the object and after its deletion", end="")
    print(f"; medians of {rounds} rounds" if rounds > 1 else "")


def cell(outcome: Outcome | None, show: Callable[[Outcome], str]) -> str:
    """Return the text of a figure, or a dash if it is absent."""
    return "–" if outcome is None else show(outcome)


def wait(one: Outcome) -> str:
    """Return the wait of the slowest ordinary pod as text."""
    if one.ended:
        return "the process ended"
    return "never bound" if one.wait_ms is None else f"{one.wait_ms:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
