"""How the time of a decision grows: with nodes, with placed pods, with policies; engine alone.

Three series, each with one size that moves and the others as they are: 1,000 to 50,000 nodes, 10 to 200,000 placed pods
on 5,000 nodes, both with 20 policies of five rules; 1 to 500 policies of three rules, of five so many may not be in
force. All have constants of their own. Pods are of 20 classes. It tells what a decision in random order of classes with
a placement before it takes, the first of a class, and the memory that a class takes. Times are those of the processor.
Prints a table, or JSON with `--json`; `--output FILE` writes that as well.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.rules import apply, loaded, pod
from bench.workloads import decide
from policysched.app.configuration.profiles import default_profile
from policysched.model.policy import Policy, decode_policy
from policysched.rules.policy_set.store import PolicyStore
from policysched.schedule.cycle.engine import Engine

CLASSES = 20
NODES, PODS, POLICIES = 5_000, 10_000, 20
"""The sizes of those that do not move."""
SERIES: dict[str, tuple[int, ...]] = {
    "nodes": (1_000, 5_000, 20_000, 50_000),
    "placed pods": (10, 10_000, 50_000, 200_000),
    "policies": (1, 20, 100, 500),
}
SHORT = 2
"""How many sizes of a series are measured with `--quick`."""


def policy(number: int, *, small: bool) -> Policy:
    """Make a policy with constants of its own about names, room and usage; unless small, pods of the app and zones."""
    filters = (
        f'node.name != "bad-{number}"',
        f"node.free.memory - pod.requests.memory >= {number + 1}Mi",
        f'node.pods.count(peer.labels["app"] == pod.labels["app"]) < {number + 1000}',
    )
    scores = (
        f"100 - scale(node.requested.cpu / node.allocatable.cpu, 0%, {number % 50 + 50}%)",
        f'if(node.zone == "zone-{number % 3}", {number % 100}, 0)',
    )
    spec = {
        "filters": [{"name": f"f{place}", "require": text} for place, text in enumerate(filters[: 2 if small else 3])],
        "scores": [{"name": f"s{place}", "value": text} for place, text in enumerate(scores[: 1 if small else 2])],
    }
    name = f"policy-{number}"
    return decode_policy({"metadata": {"name": name, "generation": 1, "uid": name}, "spec": spec})


def measure(series: str, size: int, decisions: int) -> dict[str, Any]:
    """Time decisions of one size. Units: microseconds of processor time; MiB."""
    sizes = {"nodes": NODES, "placed pods": PODS, "policies": POLICIES} | {series: size}
    cluster, store, rng = loaded(sizes["nodes"], sizes["placed pods"]), PolicyStore(), random.Random(7)
    for number in range(sizes["policies"]):
        active = apply(store, policy(number, small=series == "policies"))
    engine = Engine(cluster, active.join(default_profile()), rng)
    cold = [decide(engine, pod(index, 10 + index), time.thread_time) for index in range(CLASSES)]
    warm = [pod(rng.randrange(CLASSES), 1_000 + number) for number in range(decisions)]
    for one in warm[: 2 * CLASSES]:
        decide(engine, one, time.thread_time)
    gc.collect()
    gc.freeze()
    took = [decide(engine, one, time.thread_time) for one in warm[2 * CLASSES :]]
    gc.unfreeze()
    return {
        "series": series,
        "size": size,
        "median": statistics.median(took),
        "p99": statistics.quantiles(took, n=100)[98],
        "first": statistics.median(cold),
        "MiB a class": engine.kept_bytes / CLASSES / 2**20,
    }


def slopes(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return by how much a decision grows from the first to the last size of each series. Units: ns for each more."""
    found = {}
    for series in SERIES:
        own = [row for row in rows if row["series"] == series]
        if len(own) > 1:
            found[series] = 1000 * (own[-1]["median"] - own[0]["median"]) / (own[-1]["size"] - own[0]["size"])
    return found


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table and the slopes."""
    table = Table(title="engine alone, µs of processor time a decision, all nodes evaluated")
    for title in ("series", "size", "median", "p99", "first of a class", "MiB a class"):
        table.add_column(title, justify="right")
    for row in rows:
        times = (f"{row[name]:,.0f}" for name in ("median", "p99", "first"))
        table.add_row(row["series"], f"{row['size']:,}", *times, f"{row['MiB a class']:.2f}")
    console = Console()
    console.print(table)
    for series, slope in slopes(rows).items():
        console.print(f"{series}: {slope:.1f} ns for each more")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", choices=SERIES, nargs="*", default=list(SERIES))
    parser.add_argument("--decisions", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="only the smaller sizes of each series")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--output", type=Path, help="a file to write the JSON to")
    given = parser.parse_args()
    sizes = [(name, size) for name in given.series for size in SERIES[name][: SHORT if given.quick else None]]
    rows = [measure(name, size, given.decisions) for name, size in sizes]
    found = msgspec.json.encode({"rows": rows, "ns for each more": slopes(rows)})
    if given.output is not None:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_bytes(found)
    print(found.decode()) if given.json else show(rows)


if __name__ == "__main__":
    main()
