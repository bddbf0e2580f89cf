"""How long a decision takes for pods that look at other pods, engine alone: no network, no queue.

The templates are those of Kubernetes' scheduler_perf (affinity). 50,000 pods are placed, some of them of the template
at hand, the others plain; then pods of 20 classes of the template are decided and placed one by one, with a plain pod
now and then, all nodes evaluated every time. Prints a table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from policysched.app.profiles import default_profile
from policysched.model.decode import decode_namespace, decode_node, decode_pod
from policysched.model.objects import Pod
from policysched.schedule.engine import Engine
from policysched.state.cluster import Cluster

CLASSES = 20
TEAMS = 100
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMED = {"namespaces": ["sched-1", "sched-0"]}
SELECTED = {"namespaceSelector": {"matchLabels": {"team": "devops"}}}
TEMPLATES: dict[str, tuple[str, str, str, str, dict[str, Any], int]] = {
    "required affinity": ("podAffinity", REQUIRED, "blue", ZONE, NAMED, 5000),
    "required anti-affinity": ("podAntiAffinity", REQUIRED, "green", HOST, NAMED, 1000),
    "preferred affinity": ("podAffinity", PREFERRED, "red", HOST, NAMED, 5000),
    "preferred anti-affinity": ("podAntiAffinity", PREFERRED, "yellow", HOST, NAMED, 5000),
    "required affinity, NSSelector": ("podAffinity", REQUIRED, "blue", ZONE, SELECTED, 5000),
    "required anti-affinity, NSSelector": ("podAntiAffinity", REQUIRED, "green", HOST, SELECTED, 1000),
    "preferred affinity, NSSelector": ("podAffinity", PREFERRED, "red", HOST, SELECTED, 5000),
    "preferred anti-affinity, NSSelector": ("podAntiAffinity", PREFERRED, "yellow", HOST, SELECTED, 5000),
}
"""Kind, sort, color, topology key and namespaces of the term, and how many pods of it are placed before."""


def node(index: int, zones: int) -> dict[str, Any]:
    """Make a node of the benchmark."""
    labels = {HOST: f"node-{index}", ZONE: f"zone{index % zones + 1}"}
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{index}", "labels": labels},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(identity: int, namespace: str, labels: dict[str, str], affinity: dict[str, Any] | None) -> Pod:
    """Make a pod as the API server prints it."""
    amounts = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": amounts}}
    spec: dict[str, Any] = {"schedulerName": "policysched", "containers": [container]}
    if affinity:
        spec["affinity"] = affinity
    name = f"p-{identity}"
    return decode_pod({"metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels}, "spec": spec})


class Workload:
    """Pods of one template and the cluster that they are placed on."""

    def __init__(self, template: str, nodes: int, placed: int, zones: int) -> None:
        kind, sort, self._color, key, namespaces, self._before = TEMPLATES[template]
        term = {"topologyKey": key, "labelSelector": {"matchLabels": {"color": self._color}}, **namespaces}
        stated = term if sort == REQUIRED else {"weight": 1, "podAffinityTerm": term}
        self._affinity = {kind: {sort: [stated]}}
        self._teams = namespaces is SELECTED
        self._serial = 0
        self.rng = random.Random(7)
        self.cluster = Cluster()
        for index in range(TEAMS):
            labels = {"team": "devops"}
            self.cluster.set_namespace(decode_namespace({"metadata": {"name": f"init-ns-{index}", "labels": labels}}))
        self.cluster.set_namespace(decode_namespace({"metadata": {"name": "measure-ns-0", "labels": labels}}))
        for index in range(nodes):
            self.cluster.set_node(decode_node(node(index, zones)))
        self._place(placed, nodes)

    def _place(self, count: int, nodes: int) -> None:
        """Place pods round robin: those of the template on the first nodes, plain ones everywhere."""
        before = min(self._before, count, nodes)
        for index in range(before):
            self.cluster.assume(self.of_template(f"init-ns-{index % TEAMS}" if self._teams else "sched-0"), index)
        for index in range(count - before):
            self.cluster.assume(self.plain(), index % nodes)

    def of_template(self, namespace: str = "") -> Pod:
        """Make a pod of one of the template's classes."""
        self._serial += 1
        labels = {"color": self._color, "class": str(self.rng.randrange(CLASSES))}
        own = "measure-ns-0" if self._teams else "sched-1"
        return pod(self._serial, namespace or own, labels, self._affinity)

    def plain(self) -> Pod:
        """Make a pod without terms."""
        self._serial += 1
        return pod(self._serial, "default", {"app": f"a{self._serial % CLASSES}"}, None)


def measure(template: str, nodes: int, placed: int, decisions: int, zones: int) -> dict[str, Any]:
    """Time decisions.

    Units: microseconds.
    """
    work = Workload(template, nodes, placed, zones)
    engine = Engine(work.cluster, default_profile(), work.rng)
    warm = [work.of_template() if index % 5 else work.plain() for index in range(10 * CLASSES)]
    cold = [_decide(engine, one) for one in warm]
    pods = [work.of_template() for _ in range(decisions)]
    plain = [work.plain() for _ in range(decisions // 10)]
    gc.collect()
    gc.freeze()
    took = []
    for index, one in enumerate(pods):
        if index % 10 == 0 and plain:
            _decide(engine, plain.pop())
        took.append(_decide(engine, one))
    return {
        "template": template,
        "nodes": nodes,
        "zones": zones,
        "placed": placed,
        "median": statistics.median(took),
        "p99": statistics.quantiles(took, n=100)[98],
        "first": cold[1],
    }


def _decide(engine: Engine, one: Pod) -> float:
    started = time.perf_counter()
    decision = engine.decide(one)
    took = (time.perf_counter() - started) * 1e6
    if decision.row < 0:
        raise SystemExit(f"a pod of the benchmark found no node: {decision.fit_error()}")
    engine.cluster.assume(one, decision.row, decision.evaluation.footprint)
    return took


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table(title="engine alone, µs a decision, all nodes evaluated, a placement between any two")
    table.add_column("template")
    for column in ("nodes", "zones", "placed pods", "median µs", "p99 µs", "first pod µs"):
        table.add_column(column, justify="right")
    for row in rows:
        counts = (f"{row[name]:,}" for name in ("nodes", "zones", "placed"))
        table.add_row(row["template"], *counts, *(f"{row[name]:,.0f}" for name in ("median", "p99", "first")))
    Console().print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--placed", type=int, default=50000)
    parser.add_argument("--decisions", type=int, default=1500)
    parser.add_argument("--zones", type=int, default=1, help="1 as scheduler_perf has it")
    parser.add_argument("--template", choices=TEMPLATES, nargs="*", default=list(TEMPLATES))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    rows = [measure(name, given.nodes, given.placed, given.decisions, given.zones) for name in given.template]
    print(msgspec.json.encode(rows).decode()) if given.json else show(rows)


if __name__ == "__main__":
    main()
