"""Puts a run into the documents: the tables of docs/inside/performance.md and the plots, as SVG and PNG.

    python -m bench.cluster.publish bench/results/NAME.json [bench/results/LATER.json]

A later run of some workloads stands below the first with tables of its own; of targets the later figures count. The
plots need matplotlib, which `pip install --group dev` brings.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.cluster.figures import Figures
from bench.cluster.report import Report, body
from bench.cluster.targets import table
from bench.cluster.workloads import KUBE, MAIN, NULL, OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOCS: Final = Path(__file__).resolve().parents[2] / "docs" / "inside"
PAGE, README = DOCS / "performance.md", DOCS.parents[1] / "README.md"
LINK: Final = "(docs/inside/performance.md#beside-kube-scheduler).\n"
"""The end of the README's sentence, behind which its plot stands."""
IMAGE: Final = "\n![Pods a second of the schedulers until the last event is stored](docs/inside/throughput-short.svg)\n"
BEGIN, END = "<!-- what bench.cluster.publish writes begins here -->", "<!-- and ends here -->"
TARGETS_BEGIN: Final = "<!-- what bench.cluster.publish writes of targets begins here -->"
TARGETS_END: Final = "<!-- what it writes of targets ends here -->"
COLORS: Final = {KUBE: "#8c959f", NULL: "#d0d7de", OURS: "#0969da"}
FEW: Final = (
    "basic",
    "node-affinity",
    "preferred-pod-affinity",
    "topology-spreading",
    "pod-anti-affinity",
    "pod-affinity",
)
"""The workloads of the short plot."""
PLOTS: Final = {
    "throughput": "Pods a second until the last event is stored",
    "latency": "From creation to binding at 100 pods a second",
}
"""What the page shows."""
STARTS: Final = frozenset(("start-50000-placed",))
"""Workloads that say nothing of speed: what is measured is the start."""
_SHARES: Final = ("p50", "p90", "p99", "worst")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables and the plots."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster.publish", description="Put a run into the documents."
    )
    parser.add_argument("run", type=Path, metavar="JSON", help="what a run of all workloads has written")
    parser.add_argument("later", type=Path, metavar="LATER", nargs="?", help="and a later one of some")
    given = parser.parse_args(arguments)
    report = Report.from_json(given.run.read_text("utf-8"))
    later = Report.from_json(given.later.read_text("utf-8")) if given.later else None
    page = with_tables(PAGE.read_text("utf-8"), report, given.run.name)
    if later:
        page = with_later(page, later, given.later.name)
    PAGE.write_text(with_targets(page, newest(report, later) if later else report), "utf-8")
    README.write_text(with_plot(README.read_text("utf-8")), "utf-8")
    draw(report, DOCS)
    return 0


def with_plot(readme: str) -> str:
    """Put the short plot behind the sentence about it, where it is not there yet."""
    return readme if IMAGE in readme else readme.replace(LINK, LINK + IMAGE, 1)


def with_tables(page: str, report: Report, name: str) -> str:
    """Replace the tables of a page by those of a run.

    Raises:
        ValueError: the page has no place for them.
    """
    plots = [f"![{title}]({name}.svg)\n" for name, title in PLOTS.items() if name in drawn(report)]
    return replaced(page, BEGIN, END, [*plots, *body(report, 3), "", source_line(name)])


def with_later(page: str, report: Report, name: str) -> str:
    """Put the tables of a later run below those of a page, under a heading of their own."""
    told = ["", "### A later run of some", "", *body(report, 4, notes=False), "", source_line(name)]
    return page.replace(f"\n{END}", "\n" + "\n".join(told) + f"\n{END}")


def newest(report: Report, later: Report) -> Report:
    """Return a report with the figures of the later one in place of its own."""
    again = {(one.workload, one.scheduler) for one in later.figures}
    kept = [one for one in report.figures if (one.workload, one.scheduler) not in again]
    return replace(report, figures=[*kept, *later.figures])


def source_line(name: str) -> str:
    """Say which file a page has its figures from."""
    return f"All figures are in [{name}](../bench/results/{name})."


def with_targets(page: str, report: Report) -> str:
    """Replace the table of targets of a page by that of a run.

    Raises:
        ValueError: the page has no place for it.
    """
    return replaced(page, TARGETS_BEGIN, TARGETS_END, [*table(report)])


def replaced(page: str, begins: str, ends: str, lines: Iterable[str]) -> str:
    """Replace what stands between two lines of a page.

    Raises:
        ValueError: the page has no place for it.
    """
    before, begin, rest = page.partition(begins)
    _, end, after = rest.partition(ends)
    if not (begin and end):
        raise ValueError("the page has no place for tables")
    return f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}"


def drawn(report: Report) -> dict[str, tuple[Callable[[Axes], None], float]]:
    """Say which plots there is something for: what fills each, and its height in inches."""
    rates = [one for one in report.figures if one.pods_per_second is not None and one.workload not in STARTS]
    names = list(dict.fromkeys(one.workload for one in rates))
    few = [name for name in FEW if name in names]
    found: dict[str, tuple[Callable[[Axes], None], float]] = {}
    if names:
        found["throughput"] = partial(_throughput, report=report, names=names), 1.5 + 0.42 * len(names)
    if few:
        found["throughput-short"] = partial(_throughput, report=report, names=few), 3.6
    if any(one.p50 is not None for one in report.figures):
        found["latency"] = partial(_latency, report=report), 3.6
    return found


def draw(report: Report, folder: Path) -> None:
    """Draw all plots into a folder, each as SVG and as PNG."""
    for name, (fill, height) in drawn(report).items():
        save_plot(lambda figure, fill=fill: fill(figure.subplots()), folder / name, height)


def save_plot(fill: Callable[[Figure], None], path: Path, height: float) -> None:
    """Draw one plot; it is the same again for the same figures. Units: inches."""
    from matplotlib import rc_context  # noqa: PLC0415 - tables can be written without it
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    settings: dict[Any, Any] = {"svg.hashsalt": "policysched", "svg.fonttype": "none", "font.size": 9}
    with rc_context(settings):
        figure = NewFigure(figsize=(8, height), layout="constrained", facecolor="white")
        fill(figure)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), dpi=120)


def _throughput(axes: Axes, report: Report, names: Sequence[str]) -> None:
    axes.set_xlabel("pods/s until the last event is stored, more is better")
    _bars(axes, names, MAIN, lambda name, of: _figure(report.find(name, of), "told_per_second"))


def _latency(axes: Axes, report: Report) -> None:
    axes.set_xlabel("created → bound at a steady 100 pods/s, ms; less is better")
    _bars(axes, _SHARES, MAIN, lambda name, of: _figure(report.find("steady", of), name))


def _figure(one: Figures | None, name: str) -> float:
    return (getattr(one, name) or 0.0) if one is not None else 0.0


def _told(number: float) -> str:
    """Write a number beside its bar; nothing where there is none."""
    return f"{number:,.1f}" if 0 < number < 10 else f"{number:,.0f}" if number else ""


def _bars(axes: Axes, groups: Sequence[str], schedulers: Iterable[str], value: Callable[[str, str], float]) -> None:
    """Draw a group of bars for each name, from top to bottom, a bar for each scheduler, with its number."""
    kept = [one for one in schedulers if any(value(name, one) for name in groups)]
    thick = 0.8 / max(1, len(kept))
    for place, scheduler in enumerate(kept):
        at = [row + (place - (len(kept) - 1) / 2) * thick for row in range(len(groups))]
        bars = axes.barh(
            at, [value(name, scheduler) for name in groups], thick, label=scheduler, color=COLORS[scheduler]
        )
        axes.bar_label(bars, fmt=_told, padding=2, fontsize=7)
    axes.set_yticks(range(len(groups)), groups)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.margins(x=0.08)
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.legend(loc="outside upper center", ncols=len(kept), frameon=False)


if __name__ == "__main__":
    sys.exit(main())
