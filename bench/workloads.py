"""Shared parts of the benchmarks of the engine: pods of templates, decided and placed one by one."""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import msgspec
from rich.console import Console
from rich.table import Table

from policysched.app.configuration.profiles import default_profile
from policysched.model.decode import decode_pod
from policysched.model.objects import Pod
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

CLASSES = 20
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


class Workload(Protocol):
    """Interface of a benchmark: a cluster with placed pods, and a source of pods of one template."""

    cluster: Cluster
    rng: random.Random

    def of_template(self) -> Pod:
        """Return a new pod of a class of the template."""

    def plain(self) -> Pod:
        """Return a new pod that the template's plugin ignores."""


def node(index: int, zones: int) -> dict[str, Any]:
    """Return a node as the API server returns it."""
    labels = {HOST: f"node-{index}", ZONE: f"zone{index % zones + 1}"}
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{index}", "labels": labels},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(identity: int, namespace: str, labels: dict[str, str], **spec: Any) -> Pod:
    """Return a pod with one small container as the API server returns it; `spec` adds fields."""
    amounts = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": amounts}}
    name = f"p-{identity}"
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": labels}
    return decode_pod(
        {"metadata": metadata, "spec": {"schedulerName": "policysched", "containers": [container], **spec}}
    )


def decide(engine: Engine, one: Pod, clock: Callable[[], float] = time.thread_time) -> float:
    """Decide and place a pod; return the time of the decision, by default processor time of the thread.

    Units: microseconds.
    """
    started = clock()
    decision = engine.decide(one)
    took = (clock() - started) * 1e6
    if decision.row < 0:
        raise SystemExit(f"a pod of the benchmark found no node: {decision.fit_error()}")
    engine.cluster.assume(one, decision.row, decision.evaluation.pod_resources)
    return took


def measure(template: str, work: Workload, decisions: int) -> dict[str, Any]:
    """Measure decisions of pods of a template, with occasional plain pods in between.

    Units: microseconds.
    """
    engine = Engine(work.cluster, default_profile(), work.rng)
    warm = [work.of_template() if index % 5 else work.plain() for index in range(10 * CLASSES)]
    cold = [decide(engine, one) for one in warm]
    pods = [work.of_template() for _ in range(decisions)]
    plain = [work.plain() for _ in range(decisions // 10)]
    gc.collect()
    gc.freeze()
    took = []
    for index, one in enumerate(pods):
        if index % 10 == 0 and plain:
            decide(engine, plain.pop())
        took.append(decide(engine, one))
    return {
        "template": template,
        "median": statistics.median(took),
        "p99": statistics.quantiles(took, n=100)[98],
        "first": cold[1],
    }


def lowest(passes: int, names: Sequence[Any], make: Callable[[Any], dict[str, Any]]) -> list[dict[str, Any]]:
    """Measure everything several times, and keep the lowest of each figure, because interference only adds time.

    Args:
        passes: Number of passes.
        names: Names of the cases.
        make: Function that measures a case.
    """
    rows = [[make(name) for name in names] for _ in range(passes)]
    return [{key: min(row[key] for row in same) for key in same[0]} for same in zip(*rows, strict=True)]


def run(description: str | None, templates: Collection[str], zones: int, make: Callable[..., Workload]) -> None:
    """Read the command line, measure each template, and print a table, or JSON with `--json`.

    Args:
        description: Description of the benchmark for the help.
        templates: Names of all templates.
        zones: Default number of zones.
        make: Function that returns the workload of (template, nodes, placed pods, zones).
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes")
    parser.add_argument("--placed", type=int, default=50000, help="number of placed pods")
    parser.add_argument("--decisions", type=int, default=1500, help="number of timed decisions")
    parser.add_argument("--zones", type=int, default=zones, help="number of zones")
    parser.add_argument(
        "--template", choices=templates, nargs="*", default=list(templates), help="templates to measure"
    )
    parser.add_argument("--passes", type=int, default=3, help="number of passes; the lowest figures are printed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()

    def once(name: str) -> dict[str, Any]:
        return measure(name, make(name, given.nodes, given.placed, given.zones), given.decisions)

    rows = lowest(given.passes, given.template, once)
    if given.json:
        print(msgspec.json.encode(rows).decode())
        return
    _show(rows, f"{given.nodes:,} nodes, {given.placed:,} placed pods, zones: {given.zones}; µs a decision")


def _show(rows: Sequence[dict[str, Any]], title: str) -> None:
    table = Table(title=title)
    table.add_column("template")
    for column in ("median", "p99", "first pod"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row["template"], *(f"{row[name]:,.0f}" for name in ("median", "p99", "first")))
    Console().print(table)
