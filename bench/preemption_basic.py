"""PreemptionBasic of scheduler_perf on a real API server, beside kube-scheduler.

kube-scheduler and policysched run in turn, each in a fresh process with the default plugins. Every node has four pods
of low priority, three of which are evicted for one pod of high priority. There are no kubelets: deletion is
immediate. All pods exist before the scheduler starts. Measured from the first nomination to the last binding: pods a
second, processor time, evicted pods.

    python -m bench.preemption_basic [--nodes 500] [--pods 500] [--scheduler NAME] [-o json]

Requires the Kubernetes programs that `make test` builds.

Source: test/integration/scheduler_perf/misc/performance-config.yaml (PreemptionBasic),
templates/pod-low-priority.yaml, pod-high-priority.yaml, v1.36.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass

from bench.hostile import SCHEDULERS, Scheduler
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import print_parts
from tests.controlplane.api import Api
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import Warden
from tests.e2e.objects import Json, node, pod
from tests.requeueing.control_plane import bare_plane

ME = "default-scheduler"
PER_NODE = 4
CONNECTIONS = 4
PATIENCE = 900.0
"""Longest wait for a step; then the run fails. Units: seconds."""
PODS = "/api/v1/namespaces/default/pods?limit=1&fieldSelector="
UNBOUND, NOMINATED = "spec.nodeName%3D", "status.nominatedNodeName%21%3D"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one scheduler."""

    scheduler: str
    pods_per_second: float
    seconds: float
    cpu_seconds: float
    evicted: int


def low(number: int, nodes: int) -> Json:
    """Return a pod of low priority on its node."""
    requests = {"cpu": "900m", "memory": "500Mi"}
    on = f"n{number % nodes}"
    return pod(f"low-{number}", requests=requests, scheduler=ME, nodeName=on, terminationGracePeriodSeconds=0)


def high(number: int) -> Json:
    """Return a pending pod of high priority."""
    requests = {"cpu": "3", "memory": "500Mi"}
    return pod(f"high-{number}", requests=requests, scheduler=ME, priorityClassName="high")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the schedulers and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.preemption_basic", description="Measure preemption on a real API server."
    )
    parser.add_argument("--nodes", type=int, default=500, help="number of nodes")
    parser.add_argument("--pods", type=int, default=500, help="pods of high priority")
    parser.add_argument("--scheduler", choices=SCHEDULERS, help="scheduler to run; default: both")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="format of the output")
    given = parser.parse_args(arguments)
    schedulers = [given.scheduler] if given.scheduler else SCHEDULERS
    with bare_plane() as plane:
        prepare(plane, given.nodes)
        warden = Warden(plane.logs)
        outcomes = [measure(name, plane, warden, given.nodes, given.pods) for name in schedulers]
        warden.dismiss()
    if given.output == "json":
        print(json.dumps([asdict(one) for one in outcomes], indent=2))
    else:
        report(outcomes, given.nodes, given.pods)


def prepare(plane: ControlPlane, nodes: int) -> None:
    """Create the nodes and the priority class."""
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    plane.api.create(head | {"value": 10})
    create(plane, (node(f"n{number}") for number in range(nodes)))


def measure(name: str, plane: ControlPlane, warden: Warden, nodes: int, pods: int) -> Outcome:
    """Fill the nodes, run one scheduler until all pods are bound, and delete the pods."""
    print(name, file=sys.stderr, flush=True)
    create(plane, (low(number, nodes) for number in range(nodes * PER_NODE)))
    create(plane, map(high, range(pods)))
    with Scheduler(name, plane, warden) as scheduler:
        until(lambda: is_any(plane.api, NOMINATED), "the first nomination", PATIENCE)
        began, used = time.monotonic(), scheduler.cpu_ms()
        until(lambda: not is_any(plane.api, UNBOUND), "all pods bound", PATIENCE)
        seconds = time.monotonic() - began
        cpu = (scheduler.cpu_ms() - used) / 1000
    names = [one["metadata"]["name"] for one in plane.api.objects("Pod", "default")]
    for one in names:
        plane.api.delete("Pod", one, gracePeriodSeconds=0)
    until(lambda: not plane.api.objects("Pod", "default"), "no pods", PATIENCE)
    left = sum(one.startswith("low-") for one in names)
    return Outcome(name, pods / seconds, seconds, cpu, nodes * PER_NODE - left)


def is_any(api: Api, selected: str) -> bool:
    """Return whether any pod matches a field selector."""
    return bool(api.call("GET", PODS + selected)["items"])


def create(plane: ControlPlane, objects: Iterable[Json]) -> None:
    """Create objects over several connections."""
    port, tls, token = int(plane.url.rpartition(":")[2]), plane.identities.tls(), plane.identities.token()
    with ExitStack() as stack:
        apis = [stack.enter_context(closing(Api(port, tls, token))) for _ in range(CONNECTIONS)]
        pool = stack.enter_context(ThreadPoolExecutor(CONNECTIONS))
        list(pool.map(lambda one: apis[one[0] % CONNECTIONS].create(one[1]), enumerate(objects)))


def report(outcomes: Sequence[Outcome], nodes: int, pods: int) -> None:
    """Print one line for each scheduler."""
    heads = ["scheduler", "pods/s", "seconds", "CPU seconds", "pods that went"]
    rows = [
        [one.scheduler, f"{one.pods_per_second:.1f}", f"{one.seconds:.1f}", f"{one.cpu_seconds:.1f}", str(one.evicted)]
        for one in outcomes
    ]
    print_parts([plain_table(None, heads, rows, range(1, len(heads)))])
    print(f"{nodes} nodes, {nodes * PER_NODE} pods of low priority, {pods} of high priority")


if __name__ == "__main__":
    main()
