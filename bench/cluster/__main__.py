"""Run schedulers one after another on a real API server: `make bench-cluster`.

    python -m bench.cluster [--quick] [--workload NAME …] [--scheduler NAME …] [--nodes N] [--pods N] [-o json]

The report is written to bench/results/ as Markdown and JSON, named by version and date or by `--name`. The exit code
is 1 if a run failed, and 130 after Ctrl-C; the figures so far are written.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.cluster.client import RequestError
from bench.cluster.figures import Figures, middle_runs
from bench.cluster.machine import Patience
from bench.cluster.report import Report, as_markdown, tables
from bench.cluster.running import Terms, run
from bench.cluster.state import State, control_plane
from bench.cluster.workloads import MAIN, QUICK, SCHEDULERS, WORKLOADS, Workload
from bench.start import compile_modules
from policysched import __version__
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import console, print_parts
from tests.controlplane.golang import BuildError
from tests.controlplane.programs import ProgramError

RESULTS: Final = Path(__file__).resolve().parents[1] / "results"
SECONDS, QUICK_SECONDS = 12.0, 5.0
QUICK_NODES, QUICK_PODS = 500, 400
INTERRUPTED: Final = 130
SETTLING: Final = 5.0
"""Longest wait for an idle machine before a run, once the API server is ready; then the run starts anyway. Units:
seconds."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen schedulers and workloads, print the tables and write the report. Returns the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    chosen = list(_chosen(given))
    if not chosen:
        parser.error("none of the workloads is for these schedulers")
    words = sys.argv[1:] if arguments is None else arguments
    report = Report([], shlex.join(["python", "-m", "bench.cluster", *words]))
    began, code = time.monotonic(), 0
    try:
        _measure(chosen, given, report)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (BuildError, ProgramError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    report.figures = _in_order(middle_runs(report.figures))
    report.minutes = round((time.monotonic() - began) / 60, 1)
    if report.figures:
        _write(report, given)
    return code or int(bool(report.failures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster", description="Run schedulers one after another on a real API server."
    )
    quick = f"{len(QUICK)} workloads with {QUICK_NODES} nodes, below 5 minutes"
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument(
        "--workload",
        nargs="+",
        metavar="NAME",
        choices=[one.name for one in WORKLOADS],
        help="workloads to run; default: all",
    )
    parser.add_argument(
        "--scheduler", nargs="+", metavar="NAME", choices=SCHEDULERS, help="scheduler to run; default: all"
    )
    parser.add_argument("--nodes", type=_count, help="number of nodes instead of the workload's")
    parser.add_argument("--pods", type=_count, help="largest number of measured pods")
    parser.add_argument("--seconds", type=float, help="longest run from the first binding")
    parser.add_argument("--passes", type=_count, default=1, help="runs of each scheduler; the median run is reported")
    parser.add_argument("--wait", type=float, default=120.0, metavar="SECONDS", help="longest wait for an idle machine")
    parser.add_argument(
        "--no-wait", dest="wait", action="store_const", const=0.0, help="do not wait for an idle machine"
    )
    parser.add_argument("--name", help="name of the report")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the report")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="format of the output")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not above 0")
    return number


def _chosen(given: argparse.Namespace) -> Iterator[tuple[Workload, list[str]]]:
    """Yield each chosen workload at its size, with the schedulers to run on it."""
    nodes, pods = given.nodes, given.pods
    if given.quick:
        nodes, pods = nodes or QUICK_NODES, pods or QUICK_PODS
    workloads = given.workload or (QUICK if given.quick else [one.name for one in WORKLOADS])
    for one in WORKLOADS:
        wanted = given.scheduler or (MAIN if given.quick else SCHEDULERS)
        if not (given.scheduler and given.workload):
            wanted = [name for name in one.schedulers if name in wanted]
        if one.name in workloads and wanted:
            yield one.sized(nodes, pods), list(wanted)


def _measure(chosen: Sequence[tuple[Workload, list[str]]], given: argparse.Namespace, report: Report) -> None:
    """Run all workloads; the order of the schedulers is reversed with each workload and each pass."""
    seconds = given.seconds or (QUICK_SECONDS if given.quick else SECONDS)
    compile_modules()
    Patience(given.wait).wait()
    total = given.passes * sum(len(names) for _, names in chosen)
    groups = any(one.has_groups for one, _ in chosen)
    with _progress(total) as shown, control_plane(groups=groups) as state:
        terms = Terms(seconds, min(given.wait, SETTLING), shown.bound)
        for turn, (workload, names) in enumerate(chosen):
            shown.say(f"{workload.name}: objects")
            if not _made(workload, state, report):
                continue
            for round_ in range(given.passes):
                for name in names if (turn + round_) % 2 == 0 else reversed(names):
                    shown.begin(workload, name)
                    _one(workload, name, state, terms, report)
                    shown.done()


def _in_order(figures: Iterable[Figures]) -> list[Figures]:
    workloads = [one.name for one in WORKLOADS]
    return sorted(figures, key=lambda one: (workloads.index(one.workload), SCHEDULERS.index(one.scheduler)))


def _made(workload: Workload, state: State, report: Report) -> bool:
    """Create the objects of a workload; return whether that succeeded."""
    try:
        state.make(workload)
    except (ExceptionGroup, RequestError, OSError, RuntimeError, AssertionError) as error:
        first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        report.failures.append(f"{workload.name}: {first}")
        return False
    return True


def _one(workload: Workload, name: str, state: State, terms: Terms, report: Report) -> None:
    try:
        report.figures.append(run(workload, name, state, terms))
    except (RuntimeError, OSError, AssertionError) as error:
        report.failures.append(f"{workload.name}, {name}: {error}")


class _Shown:
    """The progress display: one line for each run, and on a terminal the number of bound pods."""

    def __init__(self, bar: Progress, total: int) -> None:
        self._bar = bar
        self._runs = bar.add_task("runs", total=total)
        self._pods = bar.add_task("pods", total=None)
        self._line = ""

    def say(self, text: str) -> None:
        """Show the current step."""
        self._line = text
        self._bar.update(self._pods, description=text, completed=0, total=None)

    def begin(self, workload: Workload, scheduler: str) -> None:
        """Show that a run begins."""
        self.say(f"{workload.name}: {scheduler}")

    def bound(self, bound: int, pods: int) -> None:
        """Show how many of the pods are bound."""
        self._bar.update(self._pods, completed=bound, total=pods)

    def done(self) -> None:
        """Count a run as complete, and print its line if the output is no terminal."""
        self._bar.advance(self._runs)
        if not self._bar.console.is_terminal:
            self._bar.console.print(f"{datetime.now(UTC):%H:%M:%S} {self._line}")


@contextmanager
def _progress(total: int) -> Iterator[_Shown]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    out = console(stderr=True)
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        yield _Shown(bar, total)


def _write(report: Report, given: argparse.Namespace) -> None:
    name = given.name or f"{__version__}-{datetime.now(UTC):%Y-%m-%d}" + ("-quick" if given.quick else "")
    given.results.mkdir(parents=True, exist_ok=True)
    for suffix, text in (("md", as_markdown(report)), ("json", report.as_json() + "\n")):
        (given.results / f"{name}.{suffix}").write_text(text, "utf-8")
    if given.output == "json":
        sys.stdout.write(report.as_json() + "\n")
        return
    parts = tables(report, brief=True)
    print_parts([plain_table(title, heads, rows, range(2, len(heads))) for title, heads, rows in parts])
    for failure in report.failures:
        sys.stderr.write(f"{failure}\n")
    sys.stderr.write(f"written: {given.results / name}.md and .json\n")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
