"""Very many waiting pods, each with its own pod affinity, beside kube-scheduler.

kube-scheduler and policysched run in turn, each in a fresh process, on a real API server with real nodes. Pods that
need a missing neighbour are rejected once. Then ordinary pods arrive one after another: wait of the slowest,
processor time of each. Then a node arrives that could help all waiting pods, and an ordinary pod after it: its wait,
and processor time until the scheduler is idle.

    python -m bench.waiting [--nodes 1000] [--waiting 10000] [--gated] [--scheduler NAME] [-o json]

`--gated` uses pods with a scheduling gate instead of affinity. Requires the Kubernetes programs that `make test`
builds. Unit: milliseconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from bench.hostile import CONTROLLERS, SCHEDULERS, Scheduler, bound, removed
from bench.hostile_objects import Object, affinity, node, pod
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import print_parts
from tests.controlplane.api import Api
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import Warden

ORDINARY = 20
PATIENCE = 600.0
"""Longest wait for a step; then the step counts as failed. Units: seconds."""
CALM = 3
"""Number of consecutive seconds in which a process must be idle."""
IDLE_MS = 60.0
"""Largest processor time per second by which a process counts as idle. Units: milliseconds."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one scheduler.

    Units: milliseconds. A wait of None: the pod was not bound in time.
    """

    scheduler: str
    first_cpu_ms: float
    ordinary_wait_ms: float | None
    ordinary_cpu_ms: float
    node_wait_ms: float | None
    node_cpu_ms: float


def needing(number: int) -> Object:
    """Return a pod with affinity to a pod that does not exist."""
    term = {"labelSelector": {"matchLabels": {"app": f"absent-{number}"}}, "topologyKey": "topology.kubernetes.io/zone"}
    return pod(f"waiting-{number}", affinity=affinity("podAffinity", "required", [term]))


def gated(number: int) -> Object:
    """Return a pod with a scheduling gate."""
    return pod(f"waiting-{number}", schedulingGates=[{"name": "example.com/later"}])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the schedulers and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.waiting", description="Measure ordinary pods beside very many waiting pods."
    )
    parser.add_argument("--nodes", type=int, default=1000, help="number of nodes")
    parser.add_argument("--waiting", type=int, default=10_000, help="number of waiting pods")
    parser.add_argument("--gated", action="store_true", help="pods with a scheduling gate in place of affinity")
    parser.add_argument("--scheduler", choices=SCHEDULERS, help="scheduler to run; default: both")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="format of the output")
    given = parser.parse_args(arguments)
    schedulers = [given.scheduler] if given.scheduler else SCHEDULERS
    outcomes = measure(schedulers, given.nodes, given.waiting, gated if given.gated else needing)
    if given.output == "json":
        print(json.dumps([asdict(one) for one in outcomes], indent=2))
    else:
        report(outcomes, given.nodes, given.waiting)


def measure(
    schedulers: Sequence[str], nodes: int, waiting: int, make: Callable[[int], Object] = needing
) -> list[Outcome]:
    """Measure the schedulers in turn on one control plane, on which the waiting pods have been rejected once."""
    with ControlPlane(controllers=CONTROLLERS, kubelets=False) as plane:
        api = plane.api
        for number in range(nodes):
            api.create(node(number))
        until(lambda: all(not one["spec"].get("taints") for one in api.objects("Node")), "nodes without taints", 300)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(api.create, map(make, range(waiting))))
        warden = Warden(plane.logs)
        with Scheduler(schedulers[0], plane, warden) as first:
            print(f"conditions: {schedulers[0]}", file=sys.stderr, flush=True)
            at_rest(first)
            until(lambda: all(map(turned_away, api.objects("Pod", "default"))), "conditions", PATIENCE)
        outcomes = [one_outcome(name, plane, warden, nodes + turn) for turn, name in enumerate(schedulers)]
        warden.dismiss()
        return outcomes


def turned_away(one: Object) -> bool:
    """Return whether a scheduler has tried a pod and written the result into the pod's status."""
    return any(each["type"] == "PodScheduled" for each in one["status"].get("conditions", ()))


def one_outcome(name: str, plane: ControlPlane, warden: Warden, node_number: int) -> Outcome:
    """Measure one scheduler with very many waiting pods: the wait of ordinary pods and processor time."""
    api = plane.api
    print(name, file=sys.stderr, flush=True)
    with Scheduler(name, plane, warden) as scheduler:
        bound(api, scheduler, "warm-up", PATIENCE)
        first = at_rest(scheduler)
        waits = [come_and_go(api, scheduler, f"ordinary-{number}") for number in range(ORDINARY)]
        ordinary = scheduler.cpu_ms() - first
        calm = at_rest(scheduler)
        api.create(node(node_number))
        wait = bound(api, scheduler, "behind", PATIENCE)
        moved = at_rest(scheduler) - calm
        for left in ("warm-up", "behind"):
            removed(api, {"kind": "Pod", "metadata": {"name": left}})
    slowest = None if None in waits else max(one for one in waits if one is not None)
    return Outcome(name, first, slowest, ordinary / ORDINARY, wait, moved)


def come_and_go(api: Api, scheduler: Scheduler, name: str) -> float | None:
    """Create an ordinary pod and delete it once it is bound; return its wait. Units: milliseconds."""
    wait = bound(api, scheduler, name, PATIENCE)
    removed(api, {"kind": "Pod", "metadata": {"name": name}})
    return wait


def at_rest(scheduler: Scheduler) -> float:
    """Wait until a process is idle; return its processor time so far. Units: milliseconds."""
    calm, before, began = 0, scheduler.cpu_ms(), time.monotonic()
    while calm < CALM and time.monotonic() - began < PATIENCE:
        time.sleep(1.0)
        now = scheduler.cpu_ms()
        calm = calm + 1 if now - before < IDLE_MS else 0
        before = now
    return before


def report(outcomes: Sequence[Outcome], nodes: int, waiting: int) -> None:
    """Print one line for each scheduler."""
    heads = ["scheduler", "start CPU ms", "ordinary pod: wait ms", "CPU ms", "node comes: wait ms", "CPU ms"]
    rows = [[cell(value) for value in asdict(one).values()] for one in outcomes]
    print_parts([plain_table(None, heads, rows, range(1, len(heads)))])
    print(f"{nodes} nodes, {waiting} waiting pods; the slowest of {ORDINARY} ordinary pods, and one behind the node")


def cell(value: str | float | None) -> str:
    """Return the text of a figure, or a dash if it is absent."""
    if isinstance(value, str):
        return value
    return "–" if value is None else f"{value:,.0f}"


if __name__ == "__main__":
    main()
