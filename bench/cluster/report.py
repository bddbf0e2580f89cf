"""The report of a run: tables as Markdown and on the terminal, and all figures as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.cluster.figures import Figures, ratio
from bench.cluster.machine import Machine
from bench.cluster.workloads import KUBE, NULL, OURS, WORKLOADS
from policysched import __version__
from tests.controlplane.releases import chosen

NONE: Final = "–"
_AGAINST: Final = {one.name: one.against for one in WORKLOADS if one.against}
Cell = tuple[str, Callable[["Report", Figures], str]]


def commit_here() -> str:
    """Return the commit of this checkout, with a `+` if files differ from it; empty without a repository."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip()


@dataclass(slots=True)
class Report:
    """Figures of a run, and the conditions of their measurement."""

    figures: list[Figures]
    command: str = ""
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
    commit: str = field(default_factory=commit_here)
    version: str = __version__
    kubernetes: str = chosen().version
    machine: Machine = field(default_factory=Machine.here)
    minutes: float = 0.0
    failures: list[str] = field(default_factory=list)
    """Runs that failed, each with its reason."""

    def find(self, workload: str, scheduler: str) -> Figures | None:
        """Return the figures of a scheduler on a workload."""
        found = (one for one in self.figures if (one.workload, one.scheduler) == (workload, scheduler))
        return next(found, None)

    def compared(self, one: Figures, other: str, name: str) -> float | None:
        """Divide a figure by the figure of another scheduler on the same workload."""
        same = self.find(one.workload, other)
        if same is one:
            return None
        return ratio(getattr(one, name), getattr(same, name, None))

    def against(self, one: Figures, name: str) -> float | None:
        """Divide a figure by the figure of the same scheduler on the workload's baseline workload."""
        return ratio(getattr(one, name), getattr(self.find(_AGAINST.get(one.workload, ""), one.scheduler), name, None))

    def as_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read a report that `as_json` wrote."""
        given: dict[str, Any] = json.loads(text)
        figures = [Figures.from_dict(one) for one in given.pop("figures")]
        return cls(figures, **given | {"machine": Machine(**given["machine"])})


def _times(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _number(value: float | None, digits: int = 0) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def _over(other: str, name: str) -> Callable[[Report, Figures], str]:
    return lambda report, one: _times(report.compared(one, other, name))


def _before(name: str) -> Callable[[Report, Figures], str]:
    return lambda report, one: _times(report.against(one, name))


def _of(name: str, digits: int = 0) -> Callable[[Report, Figures], str]:
    return lambda _, one: _number(getattr(one, name), digits)


def _above_null(report: Report, one: Figures) -> str:
    null = report.find(one.workload, NULL)
    if null is None or null is one or one.cpu_ms is None or null.cpu_ms is None:
        return NONE
    return _number(one.cpu_ms - null.cpu_ms, 2)


def _bound(_: Report, one: Figures) -> str:
    return f"{one.bound:,}" if one.bound == one.pods else f"{one.bound:,} of {one.pods:,}"


def _foreign(_: Report, one: Figures) -> str:
    return _number(one.foreign_cores, 2) + ("" if one.quiet else " *")


_FIRST: Final[Sequence[Cell]] = (("workload", lambda _, one: one.workload), ("scheduler", lambda _, one: one.scheduler))
_LAST: Final[Sequence[Cell]] = (
    ("CPU ms", _of("cpu_ms", 2)),
    ("above null", _above_null),
    ("server CPU ms", _of("servers_cpu_ms", 2)),
    ("peak MiB", _of("peak_mib")),
    ("end MiB", _of("end_mib")),
    ("bound", _bound),
    ("foreign", _foreign),
)
DRAINED: Final[Sequence[Cell]] = (
    *_FIRST,
    ("× kube", _over(KUBE, "pods_per_second")),
    ("of null", _over(NULL, "pods_per_second")),
    ("events × kube", _over(KUBE, "told_per_second")),
    ("events of null", _over(NULL, "told_per_second")),
    ("of without", _before("pods_per_second")),
    ("pods/s", _of("pods_per_second")),
    ("5–95 %", _of("middle_per_second")),
    ("events/s", _of("told_per_second")),
    ("behind s", _of("told_behind", 2)),
    ("first s", _of("first_binding", 2)),
    ("start CPU s", _of("start_cpu", 2)),
    ("quality", _of("quality", 4)),
    ("wrong", _of("wrong")),
    *_LAST,
)
STEADY: Final[Sequence[Cell]] = (
    *_FIRST,
    ("p50 of kube's", _over(KUBE, "p50")),
    ("p99", _over(KUBE, "p99")),
    ("worst", _over(KUBE, "worst")),
    ("p50 of without", _before("p50")),
    ("p99", _before("p99")),
    ("p50 ms", _of("p50", 1)),
    ("p90 ms", _of("p90", 1)),
    ("p99 ms", _of("p99", 1)),
    ("worst ms", _of("worst", 1)),
    *_LAST,
)


_LONG: Final = frozenset(("5–95 %", "behind s", "start CPU s", "wrong", "end MiB", "bound", "p90 ms"))
"""Columns that are left out on a terminal."""


def tables(report: Report, *, brief: bool = False) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return title, heads and rows of each table that has rows, without columns that have no figure.

    Args:
        report: The figures.
        brief: Whether to leave out columns for which a terminal has no room.
    """
    drained = [one for one in report.figures if one.p50 is None]
    steady = [one for one in report.figures if one.p50 is not None]
    named = (("Backlog", DRAINED, drained), ("Creation to binding at 100 pods a second", STEADY, steady))
    return [(title, *_table(report, cells, figures, brief=brief)) for title, cells, figures in named if figures]


def _table(
    report: Report, cells: Sequence[Cell], figures: Sequence[Figures], *, brief: bool
) -> tuple[list[str], list[list[str]]]:
    columns = [(head, [show(report, one) for one in figures]) for head, show in cells if not (brief and head in _LONG)]
    told = [(head, values) for head, values in columns if any(value != NONE for value in values)]
    return [head for head, _ in told], [list(row) for row in zip(*(values for _, values in told), strict=True)]


def as_markdown(report: Report) -> str:
    """Write the report as a page."""
    return "\n".join([f"# Schedulers side by side, {report.date}", "", *body(report)]) + "\n"


def body(report: Report) -> Iterator[str]:
    """Write the conditions of the run, the meaning of the columns and the tables, line by line."""
    yield from (heading(report), "", *_NOTES)
    for title, heads, rows in tables(report):
        yield from ("", f"## {title}", "")
        yield _line(heads)
        yield _line(["---", "---", *["--:"] * (len(heads) - 2)])
        yield from map(_line, rows)
    if report.failures:
        yield from ("", "## Not measured", "", *(f"- {one}" for one in report.failures))


def heading(report: Report) -> str:
    """Return versions, machine, date and command of a run."""
    machine = report.machine
    return (
        f"policysched {report.version} ({report.commit}), Kubernetes {report.kubernetes}; {machine.cores} cores of "
        f"{machine.processor}, {machine.memory_gib:g} GiB, Linux {machine.kernel}, Python {machine.python}; "
        f"{report.date}, {report.minutes:.0f} minutes.\n`{report.command}`."
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_NOTES: Final = (
    "Each scheduler runs alone on its own copy of the same state, beside etcd and kube-apiserver. The first columns",
    "are ratios to kube-scheduler, to the null scheduler, and to the same workload without policies or edits.",
    "",
    "| column | meaning |",
    "| --- | --- |",
    "| `pods/s` | pods bound from the first to the last binding; for `preemption` from the start of the process |",
    "| `5–95 %` | the same, between 5 and 95 % of the pods |",
    "| `events/s` | pods bound from the first binding until the API server has stored the last event |",
    "| `behind s` | time from the last binding until the last event |",
    "| `first s`, `start CPU s` | time and processor time from the start of the process to its first binding |",
    "| `quality` | mean ratio of the chosen node's total score to the best total score over all nodes |",
    "| `wrong` | pods on a node that a filter rejects |",
    "| `CPU ms`, `above null` | processor time of the scheduler for each pod, and its distance to the null scheduler |",
    "| `server CPU ms` | processor time of kube-apiserver and etcd for each pod |",
    "| `peak MiB`, `end MiB` | resident memory of the scheduler |",
    "| `foreign` | cores that other processes used during the run; `*`: the machine was busy before the run |",
)


@dataclass(frozen=True, slots=True)
class _Ratio:
    """A column of the table of ratios: one figure of policysched divided by that of another scheduler."""

    head: str
    other: str
    figure: str

    def of(self, report: Report, workload: str) -> str:
        ours = report.find(workload, OURS)
        return NONE if ours is None else _times(report.compared(ours, self.other, self.figure))


RATIOS: Final = (
    _Ratio("pods/s: ratio to kube-scheduler", KUBE, "pods_per_second"),
    _Ratio("pods/s: ratio to null", NULL, "pods_per_second"),
    _Ratio("events/s: ratio to kube-scheduler", KUBE, "told_per_second"),
    _Ratio("CPU: ratio to kube-scheduler", KUBE, "cpu_ms"),
    _Ratio("memory: ratio to kube-scheduler", KUBE, "peak_mib"),
)
_SHARES: Final = ("p50", "p99", "worst")


def ratios(report: Report) -> Iterator[str]:
    """Write the table of ratios, a row for each workload with a backlog, line by line."""
    heads = ["workload", "nodes", "kube-scheduler pods/s", "policysched pods/s", *(one.head for one in RATIOS)]
    yield _line(heads)
    yield _line(["---", *["--:"] * (len(heads) - 1)])
    nodes = {one.workload: one.nodes for one in report.figures if one.p50 is None}
    for workload, count in nodes.items():
        rates = (report.find(workload, scheduler) for scheduler in (KUBE, OURS))
        cells = [_number(one.pods_per_second if one else None) for one in rates]
        yield _line([workload, _number(count), *cells, *(one.of(report, workload) for one in RATIOS)])


def latencies(report: Report) -> Iterator[str]:
    """Write the table of latencies at a steady rate, a row for each workload and scheduler, line by line."""
    steady = [one for one in report.figures if one.p50 is not None]
    if steady:
        yield _line(["workload", "nodes", "scheduler", *(f"{name} ms" for name in _SHARES)])
        yield _line(["---", "--:", "---", *["--:"] * len(_SHARES)])
    for one in steady:
        yield _line(
            [one.workload, _number(one.nodes), one.scheduler, *(_number(getattr(one, name), 1) for name in _SHARES)]
        )
