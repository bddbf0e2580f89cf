"""Time of a decision by number of nodes and rules, engine alone: no network, no queue.

Pods of 200 classes in random order, one placement between two decisions, every node evaluated. Nodes have three sizes
and three zones, a tenth have a taint. Pods differ in requests, node selectors and tolerations. Prints a table, or
JSON with `--json`. Unit: µs of processor time.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import statistics
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.workloads import decide, lowest
from policysched.app.configuration.profiles import default_profile
from policysched.model.decode import decode_node, decode_pod
from policysched.model.objects import Pod
from policysched.model.policy import decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

CLASSES = 200
ZONES = ("a", "b", "c")
SIZES = ((4, 32), (16, 64), (64, 256))
WARM_DECISIONS = 2000
RULES = (
    'node.labels["disk"] != "floppy{n}"',
    "node.free.memory >= pod.requests.memory",
    'node.zone in ["a", "b", "c", "z{n}"]',
)
SCORES = (
    "scale(node.requested.cpu / node.allocatable.cpu, 0%, 100%)",
    'if(node.labels["disk"] == "ssd", {n} + 10, 0)',
)


def node(index: int) -> dict[str, Any]:
    """Return a node as the API server returns it."""
    cpu, memory = SIZES[index % len(SIZES)]
    labels = {
        "kubernetes.io/hostname": f"node-{index}",
        "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
        "disk": "ssd" if index % 2 else "hdd",
    }
    taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if index % 10 == 0 else []
    amounts = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": f"node-{index}", "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(index: int, identity: int) -> Pod:
    """Return a pod of a class; `identity` distinguishes pods of the same class."""
    spec: dict[str, Any] = {
        "schedulerName": "policysched",
        "containers": [
            {
                "name": "main",
                "image": f"registry.example/app-{index % 20}:1",
                "resources": {"requests": {"cpu": f"{10 + index % 7}m", "memory": f"{8 + index % 5}Mi"}},
            }
        ],
    }
    if index % 4 == 0:
        spec["nodeSelector"] = {"disk": "ssd"}
    if index % 5 == 0:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    metadata = {"name": f"p-{identity}", "namespace": "default", "uid": f"u-{identity}", "labels": {"app": f"a{index}"}}
    return decode_pod({"metadata": metadata, "spec": spec})


def policies(rules: int) -> PolicySet:
    """Return policies of at most five rules each, with their own constants."""
    compiled = []
    for start in range(0, rules, 5):
        count = min(5, rules - start)
        filters = [{"name": f"f{n}", "require": RULES[n].format(n=start + n)} for n in range(min(count, len(RULES)))]
        scores = [{"name": f"s{n}", "value": SCORES[n].format(n=start % 50)} for n in range(count - len(filters))]
        raw = {
            "metadata": {"name": f"policy-{start}", "generation": 1},
            "spec": {"filters": filters, "scores": scores},
        }
        result = compile_policy(decode_policy(raw))
        if result.policy is None:
            raise SystemExit(f"a policy of the benchmark does not compile: {result.diagnostics}")
        compiled.append(result.policy)
    return PolicySet.of(compiled)


def measure(nodes: int, rules: int, decisions: int) -> dict[str, float]:
    """Measure decisions in a cluster.

    Units: microseconds, memory in MiB.
    """
    cluster = Cluster()
    for index in range(nodes):
        cluster.set_node(decode_node(node(index)))
    rng = random.Random(7)
    engine = Engine(cluster, policies(rules).join(default_profile()), rng)
    cold = [decide(engine, pod(index, index)) for index in range(CLASSES)]
    for identity in range(CLASSES, CLASSES + WARM_DECISIONS // 10):
        decide(engine, pod(rng.randrange(CLASSES), identity))
    gc.collect()
    gc.freeze()
    first = 10 * CLASSES
    pods = [pod(rng.randrange(CLASSES), identity) for identity in range(first, first + decisions)]
    warm = [decide(engine, one) for one in pods]
    return {
        "nodes": nodes,
        "rules": rules,
        "median": statistics.median(warm),
        "p99": statistics.quantiles(warm, n=100)[98],
        "first": statistics.median(cold),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def show(rows: Sequence[dict[str, float]]) -> None:
    """Print the table."""
    table = Table(title="engine alone, µs a decision, all nodes evaluated")
    for column in ("nodes", "rules", "median µs", "p99 µs", "first of a class µs", "peak MiB"):
        table.add_column(column, justify="right")
    for row in rows:
        figures = (row["median"], row["p99"], row["first"], row["memory"])
        table.add_row(f"{row['nodes']:,}", str(row["rules"]), *(f"{figure:,.0f}" for figure in figures))
    Console().print(table)


def main() -> None:
    """Measure all sizes and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1000, 5000, 50000], help="number of nodes")
    parser.add_argument("--rules", type=int, nargs="*", default=[1, 10, 100], help="number of rules")
    parser.add_argument("--decisions", type=int, default=WARM_DECISIONS, help="number of timed decisions")
    parser.add_argument("--passes", type=int, default=1, help="number of passes; the lowest figures are printed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    sizes = [(nodes, rules) for nodes in given.nodes for rules in given.rules]
    rows = lowest(given.passes, sizes, lambda size: measure(size[0], size[1], given.decisions))
    print(msgspec.json.encode(rows).decode()) if given.json else show(rows)


if __name__ == "__main__":
    main()
