"""Time of preemption for one pod, engine alone: decision, search for victims, choice of the node.

Every node is full of pods of lower priority. One node changes before each attempt. Pods: plain, with disruption
budgets for half of the victims, beside a thousand nominated pods, with anti-affinity, without possible victims.
Prints a table, or JSON with `--json`. Times are processor time.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from policysched.app.configuration.profiles import default_profile
from policysched.model.decode import decode_node, decode_pod
from policysched.model.kinds import KINDS
from policysched.model.objects import Pod
from policysched.model.policy import decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, at_once, run_post_filters
from policysched.state.cluster import Cluster

PODS_PER_NODE = 4
HIGH = 1000
SIZES = (500, 5_000)
NAME = "default-scheduler"


def node(index: int) -> dict[str, Any]:
    """Return a node with 4 cores."""
    labels = {"kubernetes.io/hostname": f"node-{index}"}
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {"metadata": {"name": f"node-{index}", "labels": labels}, "status": {"allocatable": amounts}}


def pod(name: str, priority: int, cpu: str, **spec: Any) -> Pod:
    """Return a pod; half of the pods are of an app that budgets select."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "500Mi"}}}
    return decode_pod(
        {
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": f"app-{len(name) % 2}"}},
            "spec": {"priority": priority, "schedulerName": NAME, "containers": [container], **spec},
        }
    )


class Full:
    """A cluster whose nodes are all full."""

    def __init__(self, nodes: int) -> None:
        self.cluster = Cluster()
        self.cluster.time.move(1_800_000_000)
        self.rng = random.Random(1)
        for index in range(nodes):
            self.cluster.set_node(decode_node(node(index)))
        low = pod("low", 0, "1")
        for index in range(nodes * PODS_PER_NODE):
            self.cluster.set_pod(self._placed(low, index, f"node-{index % nodes}"))

    def _placed(self, low: Pod, index: int, on: str) -> Pod:
        name = f"low-{index}"
        started = f"2026-01-{1 + index % 28:02}T{index % 24:02}:{index % 60:02}:00Z"
        labels, created = {"app": f"app-{index % 2}"}, f"2027-01-15T0{index % 8}:00:00Z"
        metadata = replace(low.metadata, name=name, uid=name, labels=labels, creation_timestamp=created)
        spec, status = replace(low.spec, node_name=on), replace(low.status, start_time=started)
        return replace(low, metadata=metadata, spec=spec, status=status)

    def disturb(self, number: int) -> None:
        """Delete and add a pod on one node, so that no cached result is valid for the node."""
        index = number * 7919 % self.cluster.nodes.count
        placed = self.cluster.pods.on_row(index)[0].pod
        self.cluster.remove_pod(placed.metadata.uid)
        self.cluster.set_pod(placed)


def plain(full: Full) -> Pod:  # noqa: ARG001 - every case is handed the cluster
    """Return a pod that requests three of a node's four cores."""
    return pod("high", HIGH, "3")


def guarded(full: Full) -> Pod:
    """Add disruption budgets that allow no eviction of half of the pods, and return the pod to place."""
    kind = KINDS["PodDisruptionBudget"]
    for app in ("app-0", "app-2"):
        metadata = {"name": app, "namespace": "default"}
        selector = {"matchLabels": {"app": app}}
        full.cluster.take(kind.decode({"metadata": metadata, "spec": {"selector": selector}}))
    return pod("high", HIGH, "3")


def beside_nominated(full: Full) -> Pod:
    """Add nominations for at most a thousand nodes, and return the pod to place."""
    for index in range(min(1000, full.cluster.nodes.count)):
        full.cluster.nominations.set(pod(f"promised-{index}", HIGH, "3"), f"node-{index}")
    return pod("high", HIGH, "3")


def apart(full: Full) -> Pod:  # noqa: ARG001 - as above
    """Return a pod with anti-affinity to an app."""
    term = {"labelSelector": {"matchLabels": {"app": "app-1"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod("high", HIGH, "3", affinity=rule)


def hopeless(full: Full) -> Pod:  # noqa: ARG001 - as above
    """Return a pod of the same priority as the placed pods, so that there are no victims."""
    return pod("high", 0, "3")


CASES: dict[str, Callable[[Full], Pod]] = {
    "plain": plain,
    "disruption budgets": guarded,
    "nominated pods": beside_nominated,
    "anti-affinity": apart,
    "nobody to preempt": hopeless,
    "guard by age and label": plain,
    "guard that keeps all": plain,
}


GUARDS = {
    "guard by age and label": 'victim.age < 1h or victim.labels["app"] == "app-0"',
    "guard that keeps all": "victim.priority < 0",
}
"""Victim guard of each case that has one."""


def _policies(require: str | None) -> Iterator[CompiledPolicy]:
    if require is not None:
        spec = {"preemption": {"require": require}}
        compiled = compile_policy(decode_policy({"metadata": {"name": "keep"}, "spec": spec})).policy
        if compiled is None:
            raise ValueError(require)
        yield compiled


def measure(nodes: int, case: str, rounds: int) -> dict[str, Any]:
    """Measure one case. Times are in milliseconds."""
    full = Full(nodes)
    high = CASES[case](full)
    profile = PolicySet.of(_policies(GUARDS.get(case))).join(default_profile(NAME))
    engine = Engine(full.cluster, profile, full.rng)
    times: list[float] = []
    victims = 0
    gc.collect()
    for number in range(rounds + 1):
        full.disturb(number)
        begin = time.process_time()
        decision = engine.decide(high)
        failed = FailedCycle(decision, full.rng, (), profile.victim_guards)
        result = at_once(run_post_filters(profile.post_filters, high, failed))
        times.append(time.process_time() - begin)
        victims = len(result.victims)
    first, rest = times[0], times[1:]
    return {
        "nodes": nodes,
        "pods": nodes * PODS_PER_NODE,
        "case": case,
        "victims": victims,
        "first_ms": 1e3 * first,
        "median_ms": 1e3 * statistics.median(rest),
        "worst_ms": 1e3 * max(rest),
    }


def main() -> None:
    """Measure every case at every size and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=list(SIZES), help="number of nodes")
    parser.add_argument("--rounds", type=int, default=20, help="number of rounds")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    found = [measure(nodes, case, options.rounds) for nodes in options.nodes for case in CASES]
    console = Console()
    if options.json:
        console.print_json(msgspec.json.encode(found).decode())
        return
    table = Table(title="preemption of one pod, engine alone, CPU ms")
    for name in ("nodes", "pods", "case", "victims", "first ms", "median ms", "worst ms"):
        table.add_column(name, justify="left" if name == "case" else "right")
    for one in found:
        times = [f"{one[key]:,.1f}" for key in ("first_ms", "median_ms", "worst_ms")]
        table.add_row(f"{one['nodes']:,}", f"{one['pods']:,}", one["case"], str(one["victims"]), *times)
    console.print(table)


if __name__ == "__main__":
    main()
