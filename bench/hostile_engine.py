"""What pods cost that are as large as an API server lets them be, engine alone: no network, no queue.

Each shape is a pod that states very many of one thing. Prints how long the first decision for it takes, one more after
a placement, one for an ordinary pod before and after the large one is placed, and how much memory there is then and
when it is gone.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from bench.workloads import HOST, ZONE, node, pod
from policysched.app.profiles import default_profile
from policysched.model.decode import decode_node, decode_pod
from policysched.model.objects import Pod
from policysched.schedule.engine import Engine
from policysched.state.cluster import Cluster

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MEBIBYTE = 1 << 20
Spec = dict[str, Any]


def _expression(key: str, operator: str, *values: str) -> Spec:
    return {"key": key, "operator": operator, "values": list(values)}


def _node_affinity(terms: list[Spec]) -> Spec:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def _liked(preferences: list[Spec]) -> Spec:
    weighted = [{"weight": 1 + index % 100, "preference": one} for index, one in enumerate(preferences)]
    return {"affinity": {"nodeAffinity": {PREFERRED: weighted}}}


def _peers(kind: str, sort: str, terms: list[Spec]) -> Spec:
    weighted = [{"weight": 1 + index % 100, "podAffinityTerm": one} for index, one in enumerate(terms)]
    return {"affinity": {kind: {sort: terms if sort == REQUIRED else weighted}}}


def _term(key: str, labels: dict[str, str], **more: Any) -> Spec:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def _spread(count: int, *, own: bool = False, action: str = "DoNotSchedule") -> Spec:
    selector = {"matchLabels": {"app": "web"}}
    made = [
        {"maxSkew": 1, "topologyKey": f"k{index}", "whenUnsatisfiable": action, "labelSelector":
         {"matchLabels": {f"l{index}": "v"}} if own else selector} for index in range(count)
    ]  # fmt: skip
    return {"topologySpreadConstraints": made}


def _containers(count: int, each: Callable[[int], Spec]) -> Spec:
    return {"containers": [{"name": f"c{index}", "image": "i", **each(index)} for index in range(count)]}


def _ports(count: int) -> Spec:
    return _containers(1, lambda _: {"ports": [{"containerPort": n, "hostPort": n} for n in range(1, count + 1)]})


EVERY = {"labelSelector": {}, "namespaceSelector": {}}
SHAPES: dict[str, Callable[[], Spec]] = {
    "ordinary": dict,
    "100,000 nodeSelector keys": lambda: {"nodeSelector": {f"k{index}": "v" for index in range(100_000)}},
    "10,000 node affinity terms": lambda: _node_affinity(
        [{"matchExpressions": [_expression(f"k{index}", "In", "v")]} for index in range(10_000)]
    ),
    "10,000 terms on a known key": lambda: _node_affinity(
        [{"matchExpressions": [_expression(ZONE, "In", f"v{index}", "w")]} for index in range(10_000)]
    ),
    "10,000 terms, Gt on host": lambda: _node_affinity(
        [{"matchExpressions": [_expression(HOST, "Gt", str(index))]} for index in range(10_000)]
    ),
    "50,000 requirements": lambda: _node_affinity(
        [{"matchExpressions": [_expression(f"k{index}", "DoesNotExist") for index in range(50_000)]}]
    ),
    "50,000 NotIn on hosts": lambda: _node_affinity(
        [{"matchExpressions": [_expression(HOST, "NotIn", f"v{index}") for index in range(50_000)]}]
    ),
    "100,000 values": lambda: _node_affinity(
        [{"matchExpressions": [_expression(HOST, "NotIn", *(f"v{index}" for index in range(100_000)))]}]
    ),
    "3,000 matchFields terms": lambda: _node_affinity(
        [{"matchFields": [_expression("metadata.name", "In", f"node-{index}")]} for index in range(3000)]
    ),
    "10,000 matchFields NotIn": lambda: _node_affinity(
        [{"matchFields": [_expression("metadata.name", "NotIn", f"node-{index}") for index in range(10_000)]}]
    ),
    "5,000 preferred node terms": lambda: _liked(
        [{"matchExpressions": [_expression(f"k{index}", "In", "v")]} for index in range(5000)]
    ),
    "5,000 preferred, known key": lambda: _liked(
        [{"matchExpressions": [_expression(HOST, "In", f"node-{index}")]} for index in range(5000)]
    ),
    "2,500 spread constraints": lambda: _spread(2500),
    "10,000 spread constraints": lambda: _spread(10_000),
    "10,000 soft constraints": lambda: _spread(10_000, action="ScheduleAnyway", own=True),
    "3,000 anti-affinity terms": lambda: _peers(
        "podAntiAffinity", REQUIRED, [{"topologyKey": f"k{index}", **EVERY} for index in range(3000)]
    ),
    "3,000 terms by zone": lambda: _peers(
        "podAntiAffinity", REQUIRED,
        [_term(ZONE, {"app": "w"}, namespaces=[f"n{index}"], namespaceSelector={}) for index in range(3000)]
    ),
    "3,000 terms matching none": lambda: _peers(
        "podAntiAffinity", REQUIRED, [_term(ZONE, {f"l{index}": "v"}) for index in range(3000)]
    ),
    "3,000 required affinity": lambda: _peers(
        "podAffinity", REQUIRED, [_term(ZONE, {f"l{index}": "v"}) for index in range(3000)]
    ),
    "3,000 preferences": lambda: _peers(
        "podAffinity", PREFERRED, [{"topologyKey": f"k{index}", **EVERY} for index in range(3000)]
    ),
    "3,000 preferences by zone": lambda: _peers(
        "podAffinity", PREFERRED,
        [{"topologyKey": ZONE, "labelSelector": {}, "namespaces": [f"n{index}", "default"]} for index in range(3000)]
    ),
    "3,000 preferences by host": lambda: _peers(
        "podAntiAffinity", PREFERRED,
        [{"topologyKey": HOST, "labelSelector": {}, "namespaces": [f"n{index}", "default"]} for index in range(3000)]
    ),
    "20,000 namespaces": lambda: _peers(
        "podAntiAffinity", REQUIRED,
        [_term(ZONE, {"app": "w"}, namespaces=[f"n{index}" for index in range(20_000)])]
    ),
    "40,000 selector labels": lambda: _peers(
        "podAntiAffinity", REQUIRED, [_term(ZONE, {f"l{index}": "v" for index in range(40_000)})]
    ),
    "50,000 labels": lambda: {"labels": {f"l{index}": "v" for index in range(50_000)}},
    "10,000 tolerations": lambda: {
        "tolerations": [{"key": f"t{index}", "operator": "Exists"} for index in range(10_000)]
    },
    "10,000 host ports": lambda: _ports(10_000),
    "10,000 images": lambda: _containers(10_000, lambda index: {"image": f"registry/i{index}:1"}),
    "10,000 owners": lambda: {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Thing", "name": f"o{index}", "uid": f"u{index}"} for index in range(10_000)
        ]
    },
    "10,000 volumes": lambda: {
        "volumes": [{"name": f"v{index}", "emptyDir": {}} for index in range(10_000)]
    },
    "2,000 claims": lambda: {
        "volumes": [
            {"name": f"v{index}", "persistentVolumeClaim": {"claimName": f"c{index}"}} for index in range(2000)
        ]
    },
}  # fmt: skip


def hostile(spec: Spec) -> Pod:
    """Make the pod of a shape."""
    labels = spec.pop("labels", {"app": "w"})
    owners = spec.pop("ownerReferences", None)
    made = pod(0, "default", labels, **spec)
    if owners:
        metadata = {"name": "p-0", "namespace": "default", "uid": "p-0", "labels": labels, "ownerReferences": owners}
        made = replace(made, metadata=decode_pod({"metadata": metadata}).metadata)
    return made


class Bench:
    """One shape over a cluster of its own."""

    def __init__(self, nodes: int) -> None:
        self.cluster = Cluster()
        for index in range(nodes):
            self.cluster.set_node(decode_node(node(index, 3)))
        self.engine = Engine(self.cluster, default_profile(), random.Random(7))
        self.serial = 0

    def ordinary(self, count: int = 20) -> float:
        """Decide for ordinary pods of a few classes and place them; give the CPU time of the costliest decision.

        Units: milliseconds.
        """
        took = []
        for _ in range(count):
            self.serial += 1
            one = pod(self.serial, "default", {"app": f"a{self.serial % 5}"})
            took.append(self._decide(one))
        return max(took)

    def decide(self, one: Pod) -> float:
        """Decide for a pod, without placing it."""
        return self._timed(lambda: self.engine.decide(one))

    def place(self, one: Pod) -> float:
        """Place a pod on the first node; give how long that takes."""
        placed = replace(one, spec=replace(one.spec, node_name="node-0"))
        return self._timed(lambda: self.cluster.set_pod(placed))

    def remove(self, one: Pod) -> float:
        """Take it away."""
        return self._timed(lambda: self.cluster.remove_pod(one.metadata.uid))

    def _decide(self, one: Pod) -> float:
        found: list[Any] = []
        took = self._timed(lambda: found.append(self.engine.decide(one)))
        if found[0].row >= 0:
            self.cluster.assume(one, found[0].row)
        return took

    @staticmethod
    def _timed(action: Callable[[], object]) -> float:
        started = time.process_time()
        action()
        return (time.process_time() - started) * 1e3


def measure(shape: str, nodes: int, *, memory: bool) -> list[str]:
    """Measure a shape."""
    bench = Bench(nodes)
    bench.ordinary()
    one = hostile(SHAPES[shape]())
    gc.collect()
    if memory:
        tracemalloc.start()
    held = [0.0]

    def note() -> None:
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0] / MEBIBYTE if memory else 0)

    first = bench.decide(one)
    behind = bench.ordinary(5)
    again = bench.decide(one)
    note()
    placed = bench.place(one)
    beside = bench.ordinary()
    with_it = bench.decide(one)
    note()
    gone = bench.remove(one)
    after = bench.ordinary()
    note()
    bench.engine.use(bench.engine.profile)
    note()
    tracemalloc.stop()
    return [f"{figure:,.1f}" for figure in (first, behind, again, placed, beside, with_it, gone, after, *held[1:])]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--shape", nargs="*", default=list(SHAPES))
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    table = Table(title=f"{given.nodes:,} nodes; CPU ms, MiB")
    table.add_column("shape")
    columns = ("first", "behind", "again", "placing", "beside", "again beside", "removing", "after",
               "MiB", "MiB placed", "MiB gone", "MiB cleared")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="right")
    for shape in given.shape:
        row = measure(shape, given.nodes, memory=given.memory)
        print(shape, row, flush=True)
        table.add_row(shape, *row)
    Console(width=180).print(table)


if __name__ == "__main__":
    main()
