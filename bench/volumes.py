"""Time of a decision for pods with volumes, engine alone.

Templates are those of Kubernetes' scheduler_perf (volumes): each pod has its own volume and claim, bound (in-tree,
migrated, CSI) or unbound. 2,000 pods are decided and placed one by one on 1,000 nodes. Every node is evaluated.
Prints a table, or JSON with `--json`. Unit: µs of processor time.
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

from bench import workloads
from policysched.app.configuration.profiles import default_profile
from policysched.framework import AssumedPod
from policysched.model.decode import decode_node
from policysched.model.kinds import KINDS
from policysched.model.objects import Pod
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

DRIVER = "ebs.csi.aws.com"
ZONES = ("a", "b", "c")
ZONE = "topology.kubernetes.io/zone"
TEMPLATES = ("CSI volumes", "in-tree volumes", "migrated in-tree volumes", "volumes to be bound", "volumes to be made")


def node(index: int) -> dict[str, Any]:
    """Return a node of one of three zones."""
    labels = {
        "kubernetes.io/hostname": f"node-{index}",
        ZONE: ZONES[index % 3],
        f"topology.{DRIVER}/zone": ZONES[index % 3],
    }
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{index}", "labels": labels},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def volume(index: int, template: str) -> dict[str, Any]:
    """Return the volume of a pod."""
    source: dict[str, Any] = {"csi": {"driver": DRIVER, "volumeHandle": f"vol-{index}"}}
    if "in-tree" in template:
        source = {"awsElasticBlockStore": {"volumeID": f"vol-{index}"}}
    key = ZONE if "in-tree" in template else f"topology.{DRIVER}/zone"
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [ZONES[index % 3]]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "waits",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return {"metadata": {"name": f"v-{index}"}, "spec": spec | source, "status": {"phase": "Available"}}


def claim(index: int, *, bound: bool) -> dict[str, Any]:
    """Return the claim of a pod."""
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "waits",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    metadata: dict[str, Any] = {"name": f"c-{index}", "namespace": "default", "uid": f"c-{index}"}
    if bound:
        spec["volumeName"] = f"v-{index}"
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return {"metadata": metadata, "spec": spec}


def pod(index: int) -> Pod:
    """Return a pod that uses its claim."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": f"c-{index}"}}]
    return workloads.pod(index, "default", {}, volumes=volumes)


def cluster(template: str, nodes: int, pods: int) -> Cluster:
    """Return a cluster with nodes, and with a volume and a claim for each pod."""
    made = Cluster()
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    annotations = migrated if template.startswith("migrated") else {}
    drivers = [{"name": DRIVER, "allocatable": {"count": 39}}]
    for index in range(nodes):
        made.set_node(decode_node(node(index)))
        raw = {"metadata": {"name": f"node-{index}", "annotations": annotations}, "spec": {"drivers": drivers}}
        made.set_stored(KINDS["CSINode"].decode(raw))
    waits = {"metadata": {"name": "waits"}, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}
    made.set_stored(KINDS["StorageClass"].decode(waits))
    bound = template.endswith("volumes")
    for index in range(pods):
        if template != "volumes to be made":
            made.set_stored(KINDS["PersistentVolume"].decode(volume(index, template)))
        made.set_stored(KINDS["PersistentVolumeClaim"].decode(claim(index, bound=bound)))
    return made


def place(engine: Engine, one: Pod) -> tuple[float, float]:
    """Decide, reserve and place a pod; return the times of deciding and reserving.

    Units: microseconds.
    """
    started = time.thread_time()
    decision = engine.decide(one)
    decided = time.thread_time()
    if decision.row < 0:
        raise SystemExit(f"a pod of the benchmark found no node: {decision.error() or decision.fit_error()}")
    begun = time.thread_time()
    assumed = AssumedPod(one, decision.node, engine.cluster)
    for plugin in engine.profile.reserves:
        plugin.reserve(assumed)
    reserved = time.thread_time()
    engine.cluster.assume(one, decision.row, decision.evaluation.pod_resources)
    return (decided - started) * 1e6, (reserved - begun) * 1e6


def measure(template: str, nodes: int, pods: int) -> dict[str, Any]:
    """Measure decisions of one template.

    Units: microseconds.
    """
    engine = Engine(cluster(template, nodes, pods), default_profile(), random.Random(7))
    wanted = [pod(index) for index in range(pods)]
    gc.collect()
    gc.freeze()
    times, reserves = [], []
    for one in wanted:
        deciding, reserving = place(engine, one)
        times.append(deciding)
        reserves.append(reserving)
    return {
        "template": template,
        "nodes": nodes,
        "pods": pods,
        "median": statistics.median(times),
        "p99": statistics.quantiles(times, n=100)[98],
        "reserve": statistics.median(reserves),
    }


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table(title="engine alone, pods with volumes, all nodes evaluated")
    for column in ("template", "nodes", "pods", "median µs", "p99 µs", "reserving µs"):
        table.add_column(column, justify="left" if column == "template" else "right")
    for row in rows:
        figures = (row["median"], row["p99"], row["reserve"])
        table.add_row(row["template"], f"{row['nodes']:,}", f"{row['pods']:,}", *(f"{one:,.0f}" for one in figures))
    Console().print(table)


def main() -> None:
    """Measure each template and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="number of nodes")
    parser.add_argument("--pods", type=int, default=2000, help="number of pods")
    parser.add_argument("--templates", nargs="*", default=TEMPLATES, choices=TEMPLATES, help="templates to measure")
    parser.add_argument("--passes", type=int, default=3, help="number of passes; the lowest figures are printed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    rows = workloads.lowest(given.passes, given.templates, lambda name: measure(name, given.nodes, given.pods))
    print(msgspec.json.encode(rows).decode()) if given.json else show(rows)


if __name__ == "__main__":
    main()
