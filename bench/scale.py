"""How the time of a decision, the start and the memory grow with nodes, placed pods and policies.

    python -m bench.scale [--series NAME …] [--quick] [--no-start] [--name NAME]
    python -m bench.scale --publish bench/results/NAME.json

Each of three series varies one size: 1,000 to 50,000 nodes; 10 to 200,000 placed pods on 5,000 nodes; 1 to 500
policies. The first two have 20 policies of five rules. The policies of the third have three rules each, because 500
policies of five rules exceed the limit of units. Each size is measured in a process of its own.

- The engine alone decides pods of 20 classes in random order, with a placement between two decisions: time of a
  decision, of the first decision of a class, memory of a class.
- `bench.start` starts a scheduler with one pending pod: processor time until the binding, peak memory.

Times are processor time unless a column says otherwise. After each size, the figures so far are written to
bench/results/ as JSON and Markdown. `--publish` writes a run into docs/inside/performance.md and draws the plots.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bench import start
from bench.cluster.publish import DOCS, PAGE, replaced, save_plot, source_line
from bench.rules import apply, loaded, pod
from bench.workloads import decide
from policysched.app.configuration.profiles import default_profile
from policysched.model.policy import Policy, decode_policy
from policysched.rules.policy_set.store import PolicyStore
from policysched.schedule.cycle.engine import Engine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS: Final = Path(__file__).resolve().parent / "results"
CLASSES: Final = 20
SIZES: Final = {"nodes": 5_000, "placed pods": 10_000, "policies": 20}
"""Numbers of nodes, placed pods and policies in a series of measurements that does not vary them."""
SERIES: Final[dict[str, tuple[int, ...]]] = {
    "nodes": (1_000, 5_000, 20_000, 50_000),
    "placed pods": (10, 10_000, 50_000, 200_000),
    "policies": (1, 20, 100, 500),
}
SHORT: Final = 2
"""Number of sizes of each series with `--quick`."""
COLUMNS: Final = {
    "median": ("decision, median µs", 0),
    "p99": ("p99 µs", 0),
    "first": ("first of a class µs", 0),
    "MiB a class": ("MiB a class", 2),
    "start CPU": ("start, CPU s", 2),
    "start clock": ("by the clock s", 2),
    "start MiB": ("peak MiB", 0),
}
"""Title and number of decimals of each column."""
PLOTTED: Final = {
    "median": "decision, µs",
    "start CPU": "start, CPU s",
    "start MiB": "peak memory, MiB",
}
GROWTH: Final = (
    ("median", 1e3, "ns a decision"),
    ("start CPU", 1e6, "µs of the start"),
    ("start MiB", 1024.0, "KiB"),
)
"""Name, factor and unit of each figure whose growth is published."""
PLOT: Final = "scale"
BEGIN, END = "<!-- bench.scale writes from here -->", "<!-- bench.scale writes to here -->"
Row = dict[str, Any]


def policy(number: int, *, small: bool) -> dict[str, Any]:
    """Make a policy with its own constants: 2 filters and 1 score if small, else 3 filters and 2 scores."""
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
    return {"metadata": {"name": name, "generation": 1, "uid": name}, "spec": spec}


def policies(count: int, *, small: bool) -> list[Policy]:
    """Make `count` policies."""
    return [decode_policy(policy(number, small=small)) for number in range(count)]


def measure(series: str, size: int, decisions: int) -> Row:
    """Time decisions of one size. Units: microseconds of processor time; MiB."""
    sizes = SIZES | {series: size}
    cluster, store, rng = loaded(sizes["nodes"], sizes["placed pods"]), PolicyStore(), random.Random(7)
    for added in policies(sizes["policies"], small=series == "policies"):
        active = apply(store, added)
    engine = Engine(cluster, active.join(default_profile()), rng)
    cold = [decide(engine, pod(index, 10 + index), time.thread_time) for index in range(CLASSES)]
    warm = [pod(rng.randrange(CLASSES), 1_000 + number) for number in range(decisions)]
    for one in warm[: 2 * CLASSES]:
        decide(engine, one, time.thread_time)
    gc.collect()
    gc.freeze()
    took = [decide(engine, one, time.thread_time) for one in warm[2 * CLASSES :]]
    return {
        "series": series,
        "size": size,
        "median": statistics.median(took),
        "p99": statistics.quantiles(took, n=100)[98],
        "first": statistics.median(cold),
        "MiB a class": engine.classes.nbytes / CLASSES / 2**20,
    }


def start_of(series: str, size: int, passes: int) -> Row:
    """Measure the start of a process on a cluster of one size. Units: seconds, MiB."""
    sizes = SIZES | {series: size}
    in_force = [policy(number, small=series == "policies") for number in range(sizes["policies"])]
    found = start.measure(start.Sizes(sizes["nodes"], 1, sizes["placed pods"]), passes, in_force)
    cpu, clock = found["first binding, CPU"], found["first binding, clock"]
    return {"start CPU": cpu, "start clock": clock, "start MiB": found["peak"]}


def alone(work: Callable[..., Row], *given: Any) -> Row:
    """Run a measurement in a fresh process, so that no other measurement affects its memory."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as pool:
        return pool.submit(work, *given).result()


def slopes(rows: Sequence[Row], figure: str) -> dict[str, float]:
    """Return the growth of a figure per unit of each series, from its first to its last size."""
    found = {}
    for series in SERIES:
        own = [row for row in rows if row["series"] == series and figure in row]
        if len(own) > 1:
            found[series] = (own[-1][figure] - own[0][figure]) / (own[-1]["size"] - own[0]["size"])
    return found


def as_markdown(rows: Sequence[Row]) -> str:
    """Write the page of results, with a table for each series."""
    title = "# Growth with nodes, placed pods and policies"
    return "\n".join([title, "", *(line for series in SERIES for line in _table(series, rows))])


def _table(series: str, rows: Sequence[Row]) -> Iterable[str]:
    own = [row for row in rows if row["series"] == series]
    if not own:
        return
    named = [name for name in COLUMNS if name in own[0]]
    yield f"| {series} | " + " | ".join(COLUMNS[name][0] for name in named) + " |"
    yield "|" + "--:|" * (1 + len(named))
    for row in own:
        yield f"| {row['size']:,} | " + " | ".join(f"{row[name]:,.{COLUMNS[name][1]}f}" for name in named) + " |"
    yield ""


def publish(rows: Sequence[Row], source: str) -> None:
    """Write the rate of growth into docs/inside/performance.md, the tables into bench/results/, and draw the plots.

    Raises:
        ValueError: the page lacks the markers.
    """
    image = f"![Time of a decision, start and memory by nodes, placed pods and policies]({PLOT}.svg)"
    page = replaced(PAGE.read_text("utf-8"), BEGIN, END, [image, "", *growth(rows), "", source_line(source)])
    PAGE.write_text(page, "utf-8")
    (RESULTS / source).with_suffix(".md").write_text(as_markdown(rows), "utf-8")
    save_plot(lambda figure: _draw(figure, rows), DOCS / PLOT, 8.5)


def growth(rows: Sequence[Row]) -> Iterable[str]:
    """Write a table of the growth per node, placed pod and policy, line by line."""
    yield f"| per | range | {' | '.join(unit for _, _, unit in GROWTH)} |"
    yield "|---|---|" + "--:|" * len(GROWTH)
    for series, name in (("nodes", "node"), ("placed pods", "placed pod"), ("policies", "policy")):
        sizes = [row["size"] for row in rows if row["series"] == series]
        more = [slopes(rows, figure).get(series) for figure, _, _ in GROWTH]
        cells = [
            "–" if of is None else f"{round(of * factor, 1) + 0.0:,.1f}"
            for of, (_, factor, _) in zip(more, GROWTH, strict=True)
        ]
        if len(sizes) > 1:
            yield f"| {name} | {sizes[0]:,}–{sizes[-1]:,} | {' | '.join(cells)} |"


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw each figure over each size, with a logarithmic axis of sizes."""
    grid = figure.subplots(len(PLOTTED), len(SERIES), squeeze=False, sharex="col", sharey="row")
    for line, (name, title) in zip(grid, PLOTTED.items(), strict=True):
        line[0].set_ylabel(title)
        for axes, series in zip(line, SERIES, strict=True):
            own = [row for row in rows if row["series"] == series and name in row]
            axes.plot([row["size"] for row in own], [row[name] for row in own], "o-", color="#0969da", markersize=3)
            axes.set_xscale("log")
            axes.grid(visible=True, alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
        line[0].set_ylim(0, 1.08 * max(row[name] for row in rows if name in row))
    for axes, series in zip(grid[-1], SERIES, strict=True):
        axes.set_xlabel(series)


def run(given: argparse.Namespace, say: Callable[[str], object]) -> list[Row]:
    """Measure all sizes; write the figures so far after each size."""
    rows: list[Row] = []
    for series in given.series:
        for size in SERIES[series][: SHORT if given.quick else None]:
            row = alone(measure, series, size, given.decisions)
            if given.start:
                row |= alone(start_of, series, size, given.passes)
            rows.append(row)
            say(f"{datetime.now(UTC):%H:%M:%S} {series}: {size:,}\n")
            given.results.mkdir(parents=True, exist_ok=True)
            (given.results / f"{given.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
            (given.results / f"{given.name}.md").write_text(as_markdown(rows), "utf-8")
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print, or publish a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", choices=SERIES, nargs="*", default=list(SERIES), help="series to measure")
    parser.add_argument("--decisions", type=int, default=400, help="decisions per size")
    parser.add_argument("--passes", type=int, default=1, help="starts per size; the lowest figures are reported")
    parser.add_argument("--quick", action="store_true", help="measure only the two smallest sizes of each series")
    parser.add_argument("--no-start", dest="start", action="store_false", help="measure the engine only")
    parser.add_argument("--name", default="scale", help="name of the result files")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the result files")
    parser.add_argument("--publish", type=Path, metavar="JSON", help="write a run into the documents")
    given = parser.parse_args(arguments)
    if given.publish is not None:
        publish(msgspec.json.decode(given.publish.read_bytes()), given.publish.name)
        return
    print(as_markdown(run(given, sys.stderr.write)))


if __name__ == "__main__":
    main()
