"""Publishes a run: the tables of docs/inside/performance.md, the plots, and bench/results/targets.md.

    python -m bench.cluster.publish bench/results/NAME.json [bench/results/LATER.json]

If a later run of some workloads is given, its figures replace those of the first run. The plots are written as SVG and
PNG; they need matplotlib, which `pip install --group dev` installs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.cluster.figures import Figures
from bench.cluster.report import Report, heading, latencies, ratios
from bench.cluster.targets import table
from bench.cluster.workloads import KUBE, MAIN, NULL, OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs" / "inside"
PAGE, README = DOCS / "performance.md", ROOT / "README.md"
TARGETS_PAGE: Final = ROOT / "bench" / "results" / "targets.md"
LINK: Final = "(docs/inside/performance.md#beside-kube-scheduler).\n"
"""End of the README's sentence before the plot."""
IMAGE: Final = "\n![Pods a second of the schedulers until the last event is stored](docs/inside/throughput-short.svg)\n"
BEGIN, END = "<!-- bench.cluster.publish writes from here -->", "<!-- bench.cluster.publish writes to here -->"
TARGETS_BEGIN: Final = "<!-- bench.cluster.publish writes targets from here -->"
TARGETS_END: Final = "<!-- bench.cluster.publish writes targets to here -->"
COLORS: Final = {KUBE: "#8c959f", NULL: "#d0d7de", OURS: "#0969da"}
FEW: Final = (
    "basic",
    "node-affinity",
    "preferred-pod-affinity",
    "topology-spreading",
    "pod-anti-affinity",
    "pod-affinity",
)
"""Workloads in the plot of throughput."""
PLOTS: Final = {
    "throughput-short": "Pods a second until the last event is stored, by workload and scheduler",
    "latency": "Milliseconds from creation to binding at 100 pods a second, by scheduler",
}
"""File names of the plots on the page, with their descriptions."""
HEIGHT: Final = 4.6
"""Height of the plots. Unit: inches."""
_SHARES: Final = ("p50", "p90", "p99", "worst")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables and the plots."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster.publish", description="Write a run into the documents."
    )
    parser.add_argument("run", type=Path, metavar="JSON", help="figures of a run of all workloads")
    parser.add_argument("later", type=Path, metavar="LATER", nargs="?", help="figures of a later run of some workloads")
    given = parser.parse_args(arguments)
    runs = {path.name: Report.from_json(path.read_text("utf-8")) for path in (given.run, given.later) if path}
    report = newest(runs.values())
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), runs), "utf-8")
    TARGETS_PAGE.write_text(with_targets(TARGETS_PAGE.read_text("utf-8"), report), "utf-8")
    README.write_text(with_plot(README.read_text("utf-8")), "utf-8")
    draw(report, DOCS)
    return 0


def with_plot(readme: str) -> str:
    """Add the plot of throughput after the sentence about it, unless the README has it."""
    return readme if IMAGE in readme else readme.replace(LINK, LINK + IMAGE, 1)


def with_tables(page: str, runs: Mapping[str, Report]) -> str:
    """Replace the plots and tables of a page by plots and tables of runs, by file name; later figures win.

    Raises:
        ValueError: the page lacks the markers.
    """
    report = newest(runs.values())
    plots = [f"![{title}]({name}.svg)\n" for name, title in PLOTS.items() if name in drawn(report)]
    sources = [f"\n{heading(one)} {source_line(name)}" for name, one in runs.items()]
    return replaced(page, BEGIN, END, [*plots, *ratios(report), "", *latencies(report), *sources])


def newest(reports: Iterable[Report]) -> Report:
    """Return the first report with its figures replaced by figures of later reports."""
    first, *others = reports
    figures = {(one.workload, one.scheduler): one for report in (first, *others) for one in report.figures}
    return replace(first, figures=list(figures.values()))


def source_line(name: str) -> str:
    """Return the link to the file that has all figures of a run."""
    return f"All figures: [{name}](../../bench/results/{name})."


def with_targets(page: str, report: Report) -> str:
    """Replace the table of targets of a page by the table of a run.

    Raises:
        ValueError: the page lacks the markers.
    """
    return replaced(page, TARGETS_BEGIN, TARGETS_END, [*table(report)])


def replaced(page: str, begins: str, ends: str, lines: Iterable[str]) -> str:
    """Replace the text between two markers of a page.

    Raises:
        ValueError: the page lacks the markers.
    """
    before, begin, rest = page.partition(begins)
    _, end, after = rest.partition(ends)
    if not (begin and end):
        raise ValueError(f"the page has no {begins!r} followed by {ends!r}")
    return f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}"


def drawn(report: Report) -> dict[str, Callable[[Axes], None]]:
    """Return the plots that a report has figures for, with the functions that draw them."""
    few = [name for name in FEW if any(one.workload == name and one.pods_per_second for one in report.figures)]
    found: dict[str, Callable[[Axes], None]] = {}
    if few:
        found["throughput-short"] = partial(_throughput, report=report, names=few)
    if any(one.p50 is not None for one in report.figures):
        found["latency"] = partial(_latency, report=report)
    return found


def draw(report: Report, folder: Path) -> None:
    """Draw all plots into a folder, each as SVG and as PNG."""
    for name, fill in drawn(report).items():
        save_plot(partial(_fill, fill), folder / name, HEIGHT)


def save_plot(fill: Callable[[Figure], None], path: Path, height: float) -> None:
    """Draw one plot on an opaque background; the same figures give the same bytes. Unit of the height: inches."""
    from matplotlib import rc_context  # noqa: PLC0415 - the tables do not need it
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    settings: dict[Any, Any] = {"svg.hashsalt": "policysched", "svg.fonttype": "none", "font.size": 10.5}
    with rc_context(settings):
        figure = NewFigure(figsize=(8, height), layout="constrained", facecolor="white")
        fill(figure)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), dpi=120)


def _fill(fill: Callable[[Axes], None], figure: Figure) -> None:
    fill(figure.subplots())


def _throughput(axes: Axes, report: Report, names: Sequence[str]) -> None:
    axes.set_xlabel("pods/s until the last event is stored, more is better")
    _bars(axes, names, MAIN, lambda name, of: _figure(report.find(name, of), "told_per_second"))


def _latency(axes: Axes, report: Report) -> None:
    axes.set_xlabel("created → bound at a steady 100 pods/s, ms; less is better")
    _bars(axes, _SHARES, MAIN, lambda name, of: _figure(report.find("steady", of), name))


def _figure(one: Figures | None, name: str) -> float:
    return (getattr(one, name) or 0.0) if one is not None else 0.0


def _label(number: float) -> str:
    """Format the number at the end of a bar; an absent figure has none."""
    return f"{number:,.1f}" if 0 < number < 10 else f"{number:,.0f}" if number else ""


def _bars(axes: Axes, groups: Sequence[str], schedulers: Iterable[str], value: Callable[[str, str], float]) -> None:
    """Draw a group of bars for each name, from top to bottom, with one labelled bar for each scheduler."""
    kept = [one for one in schedulers if any(value(name, one) for name in groups)]
    thick = 0.8 / max(1, len(kept))
    for place, scheduler in enumerate(kept):
        at = [row + (place - (len(kept) - 1) / 2) * thick for row in range(len(groups))]
        bars = axes.barh(
            at, [value(name, scheduler) for name in groups], thick, label=scheduler, color=COLORS[scheduler]
        )
        axes.bar_label(bars, fmt=_label, padding=2, fontsize=10)
    axes.set_yticks(range(len(groups)), groups)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.margins(x=0.08)
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.legend(loc="outside upper center", ncols=len(kept), frameon=False)


if __name__ == "__main__":
    sys.exit(main())
