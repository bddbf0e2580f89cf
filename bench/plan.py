"""Time of `policysched.plan` for 5,000 nodes and 50,000 pods of 100 workloads, by kind of change.

Decoding of the objects is included. Times are processor time. Prints a table, or JSON with `--json`.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

import policysched
from bench.arguments import make_parser

Object = dict[str, Any]
WORKLOADS: Final = 100
ZONES: Final = 3


def node(number: int, generation: str = "old") -> Object:
    """Return a node with a zone and a pool."""
    labels = {
        "kubernetes.io/hostname": f"{generation}-{number}",
        "topology.kubernetes.io/zone": f"zone-{number % ZONES}",
        "pool": f"pool-{number % 7}",
    }
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"{generation}-{number}", "labels": labels},
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
    }  # fmt: skip


def pod(number: int, place: str) -> Object:
    """Return a pod of a Deployment, on a node."""
    workload = f"app-{number % WORKLOADS}"
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{workload}-1",
        "uid": workload,
        "controller": True,
    }
    labels = {"app": workload, "pod-template-hash": "1", "team": f"team-{number % 10}"}
    metadata = {
        "name": f"{workload}-1-{number}", "namespace": f"ns-{number % 20}", "uid": f"u{number}", "labels": labels,
        "ownerReferences": [owner],
    }  # fmt: skip
    requests = {"cpu": f"{100 + 50 * (number % 5)}m", "memory": f"{1 + number % 4}Gi"}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    spec = {"schedulerName": "policysched", "nodeName": place, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def policy(name: str, zone: int = 0, **spec: Any) -> Object:
    """Return a policy with a filter, and a score that prefers a zone."""
    rules = {
        "filters": [{"name": "pool", "require": 'node.labels["pool"] != "pool-6"'}],
        "scores": [{"name": "zone", "cases": [f'node.zone == "zone-{zone}" → 100', "else → 0"]}],
    }
    made = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": name}}
    return {**made, "spec": {**rules, **spec}}


def changes(nodes: int) -> Mapping[str, Mapping[str, Any]]:
    """Return the changes to plan, by description."""
    few = {"podSelector": {"matchLabels": {"team": "team-3"}}}
    return {
        "the same policy again": {"policies": [policy("there")]},
        "a policy for a tenth of the pods": {"policies": [policy("few", 1, **few)]},
        "a policy for all pods": {"policies": [policy("all", 1, weight=5)]},
        "another weight of a policy for all": {"policies": [policy("there", weight=3)]},
        "10 nodes more": {"nodes": [node(number, "new") for number in range(10)]},
        "10 nodes less": {"without_nodes": [f"old-{number}" for number in range(10)]},
        "1,000 replicas more": {"replicas": {"ns-1/app-1": nodes // 10 + 1000}},
    }


def cluster(nodes: int, pods: int) -> list[Object]:
    """Return nodes, pods on random nodes, and a policy that applies to a few pods."""
    chance = random.Random(1)
    placed = (pod(number, f"old-{chance.randrange(nodes)}") for number in range(pods))
    return [*(node(number) for number in range(nodes)), *placed, policy("there")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each kind of change and print the figures."""
    parser = make_parser("bench.plan", __doc__)
    parser.add_argument("--pods", type=int, default=50_000, help="number of pods")
    parser.add_argument("--only", help="change to plan; default: all")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    given = parser.parse_args(arguments)
    objects, rows = cluster(given.nodes, given.pods), []
    for name, change in changes(given.nodes).items():
        if given.only is None or given.only in name:
            began = time.process_time()
            told = policysched.plan(objects, now="2026-01-01T00:00:00Z", **change)
            rows.append({"change": name, "seconds": round(time.process_time() - began, 1), "said": told.summary})
    if given.json:
        print(json.dumps(rows))
        return 0
    table = Table(title=f"a plan of {given.nodes:,} nodes and {given.pods:,} pods, s of processor time")
    for title in ("change", "s", "what it says"):
        table.add_column(title, justify="right" if title == "s" else "left")
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
