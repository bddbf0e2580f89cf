"""Time of a decision for pods with resource claims: engine with Reserve, and the allocator alone.

Every node has a slice of ten devices with individual serial numbers. Every node is evaluated. Times are processor
time. Prints tables, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from bench import device_decisions
from bench.device_workloads import DEVICES, DRIVER, claim, device, device_class, selected, slices
from policysched.devices import AllocationAnswer, Allocator, DeviceTables
from policysched.model.decode import decode
from policysched.model.objects import ResourceClaim, ResourceSlice

FIGURES = ("first", "lowest", "median", "worst", "bytes")


def cluster(nodes: int, *, partitioned: bool = False) -> DeviceTables:
    """Return device tables with one class of all devices."""
    tables = DeviceTables()
    tables.set_class(device_class())
    for node in range(nodes):
        tables.set_node(node, f"node-{node}", {"kubernetes.io/hostname": f"node-{node}"})
        for one in slices(node, partitioned=partitioned):
            tables.set_slice(one)
    return tables


def timed(action: Callable[..., object], *arguments: Any) -> float:
    """Return the processor time of a call. Units: microseconds."""
    started = time.process_time()
    action(*arguments)
    return (time.process_time() - started) * 1e6


def place(tables: DeviceTables, make: Callable[[int], ResourceClaim], number: int) -> None:
    """Allocate the devices of a new claim on a node that has them."""
    one = make(number)
    allocator = Allocator(tables, [one])
    codes = allocator.answers().codes
    row = int(np.argmax(codes[: tables.row_count] == AllocationAnswer.YES))
    found = allocator.allocate(row, lambda: "share")
    if found is None:
        raise SystemExit("a claim of the benchmark found no node")
    tables.allocated.assume(one.metadata.uid, found[0])


MAKERS: dict[str, Callable[[int], ResourceClaim]] = {
    "one device": lambda number: claim(f"c{number}", {}),
    "one selected device": lambda number: claim(f"c{number}", selected()),
    "two of one NUMA node": lambda number: claim(
        f"c{number}", {}, {}, constraints=[{"matchAttribute": f"{DRIVER}/numa"}]
    ),
    "partitions, with backtracking": lambda number: claim(f"c{number}", {"count": 2}, {"count": 2}),
}


def measure(nodes: int, decisions: int) -> dict[str, dict[str, float]]:
    """Measure all workloads. Units: microseconds; bytes."""
    figures: dict[str, dict[str, float]] = {}
    for name, make in MAKERS.items():
        tables = cluster(nodes, partitioned="partitions" in name)
        tables.refresh()
        gc.collect()
        first = timed(place, tables, make, 0)
        each = [timed(place, tables, make, number) for number in range(1, decisions)]
        figures[name] = {"first": first, "median": statistics.median(each), "worst": max(each)}
    figures["a new slice"] = new_slices(nodes, decisions)
    figures["32 of 31 devices of a node"] = refused(nodes)
    figures["memory of a device"] = {"bytes": memory(nodes)}
    return figures


def new_slices(nodes: int, changes: int) -> dict[str, float]:
    """Measure the change of a slice together with the next decision."""
    tables = cluster(nodes)
    asked = Allocator(tables, [claim("c", selected())])
    asked.answers()

    def change(one: ResourceSlice) -> None:
        tables.set_slice(one)
        asked.answers()

    made = [slices((number * 7) % nodes, partitioned=False)[0] for number in range(changes)]
    each = [timed(change, one) for one in made]
    return {"median": statistics.median(each), "worst": max(each)}


def refused(nodes: int) -> dict[str, float]:
    """Measure a claim for one device more than any node has."""
    tables = cluster(0)
    for node in range(nodes):
        parts = [device(node, 1) | {"name": f"gpu-{place}"} for place in range(31)]
        spec: dict[str, Any] = {"driver": DRIVER, "nodeName": f"node-{node}", "devices": parts}
        spec["pool"] = {"name": f"node-{node}", "generation": 1, "resourceSliceCount": 1}
        tables.set_node(node, f"node-{node}", {})
        tables.set_slice(decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": f"s{node}"}, "spec": spec}))
    tables.refresh()
    constrained = claim("c", {"count": 16}, {"count": 16}, constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    return {"first": timed(Allocator(tables, [constrained]).answers)}


def memory(nodes: int) -> float:
    """Return the memory of the tables per device, after one decision. Units: bytes."""
    tracemalloc.start()
    tables = cluster(nodes)
    Allocator(tables, [claim("c", selected())]).answers()
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / (nodes * DEVICES)


def measured(nodes: int, decisions: int) -> dict[str, Any]:
    """Measure whole decisions, then the allocator alone."""
    whole = device_decisions.measure(nodes, decisions)
    return {"nodes": nodes, "decisions": whole, "allocator": measure(nodes, decisions)}


def show(title: str, figures: Mapping[str, Mapping[str, float]]) -> None:
    """Print a table."""
    table = Table(title=title)
    for column in ("", *FIGURES):
        table.add_column(column, justify="left" if not column else "right")
    for name, values in figures.items():
        table.add_row(name, *(f"{values[one]:,.0f}" if one in values else "" for one in FIGURES))
    Console().print(table)


def main() -> None:
    """Measure each size in its own process, so that the first pod includes imports, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[500, 5000], help="number of nodes")
    parser.add_argument("--decisions", type=int, default=300, help="number of timed decisions")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    found = []
    for nodes in options.nodes:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            found.append(pool.submit(measured, nodes, options.decisions).result())
    if options.json:
        print(msgspec.json.encode(found).decode())
        return
    for one in found:
        show(f"{one['nodes']:,} nodes: decision and Reserve, µs", one["decisions"])
        show(f"{one['nodes']:,} nodes: the allocator alone, µs", one["allocator"])


if __name__ == "__main__":
    main()
