"""Cost of the largest pods that an API server accepts, engine alone: no network, no queue.

Each shape is a pod with very many entries of one kind. Printed are the time of its first and next decision, the
slowest decision for ordinary pods behind it, and the same after it is placed. `--memory` measures memory instead:
with the pod, after its deletion, and without any cached class.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from bench.hostile_shapes import SHAPES, hostile
from bench.workloads import node, pod
from policysched.app.configuration.profiles import default_profile
from policysched.model.decode import decode_node
from policysched.model.objects import Pod
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

MEBIBYTE: Final = 1 << 20
ZONES: Final = 3
TIMES: Final = ("first", "next", "behind", "placing", "beside", "removing", "after")
SIZES: Final = ("decided", "placed", "gone", "forgotten")


class Bench:
    """A cluster and an engine, which decide hostile pods of one shape and ordinary pods."""

    def __init__(self, nodes: int) -> None:
        self.cluster = Cluster()
        for index in range(nodes):
            self.cluster.set_node(decode_node(node(index, ZONES)))
        self.engine = Engine(self.cluster, default_profile(), random.Random(7))
        self._serial = 0

    def ordinary(self) -> float:
        """Decide and place ordinary pods of a few classes; return the time of the slowest decision."""
        took = []
        for _ in range(10):
            self._serial += 1
            one = pod(self._serial, "default", {"app": f"a{self._serial % 5}"})
            took.append(timed(partial(self.engine.decide, one)))
            self.cluster.assume(one, self.engine.decide(one).row)
        return max(took)

    def place(self, one: Pod) -> None:
        """Place a pod on the first node."""
        self.cluster.set_pod(replace(one, spec=replace(one.spec, node_name="node-0")))


def timed(action: Callable[[], object]) -> float:
    """Return the processor time of an action.

    Units: milliseconds.
    """
    started = time.process_time()
    action()
    return (time.process_time() - started) * 1e3


def measure(name: str, nodes: int, *, memory: bool) -> tuple[list[float], list[float]]:
    """Measure the decisions for hostile pods of one shape.

    Units: milliseconds, MiB.
    """
    bench = Bench(nodes)
    bench.ordinary()
    one = hostile(SHAPES[name].spec(SHAPES[name].count))
    sizes: list[float] = []

    def weigh() -> None:
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0] / MEBIBYTE)

    if memory:
        tracemalloc.start()
    times = [timed(lambda: bench.engine.decide(one)), timed(lambda: bench.engine.decide(one)), bench.ordinary()]
    weigh()
    times += [timed(lambda: bench.place(one)), bench.ordinary()]
    weigh()
    times += [timed(lambda: bench.cluster.remove_pod(one.metadata.uid)), bench.ordinary()]
    weigh()
    bench.engine.classes.forget()
    weigh()
    tracemalloc.stop()
    return times, sizes


def main() -> None:
    """Measure all shapes and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes")
    parser.add_argument("--shape", choices=SHAPES, nargs="*", default=list(SHAPES), help="shapes to measure")
    parser.add_argument("--memory", action="store_true", help="measure memory instead of time")
    given = parser.parse_args()
    table = Table(title=f"{given.nodes:,} nodes; {'MiB' if given.memory else 'ms of processor time'}")
    table.add_column("shape")
    for column in SIZES if given.memory else TIMES:
        table.add_column(column, justify="right")
    for name in given.shape:
        times, sizes = measure(name, given.nodes, memory=given.memory)
        figures = (f"{figure:,.1f}" for figure in (sizes if given.memory else times))
        table.add_row(f"{SHAPES[name].count:,} {name}", *figures)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
