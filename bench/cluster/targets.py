"""What schedulers side by side aim at, and by how much a run misses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from bench.cluster.figures import Figures
from bench.cluster.report import Report
from bench.cluster.workloads import KUBE, NULL, OURS

NOT_PLACING: Final = frozenset(("basic", "start-50000-placed", "gated", "preemption", "preemption-churn"))
"""Workloads whose share of the null scheduler is a target of its own, or none."""
Measure = Callable[[Report], float | None]


@dataclass(frozen=True, slots=True)
class Target:
    """A figure with its bound."""

    name: str
    bound: float
    measured: Measure
    at_least: bool = False
    """Whether more is better."""
    unit: str = ""

    def missed_by(self, value: float) -> float:
        """Return by which share of the bound a value misses it, 0 where it does not."""
        return max(0.0, (self.bound - value if self.at_least else value - self.bound) / self.bound)


def _ours(workload: str, of: Callable[[Report, Figures], float | None]) -> Measure:
    def measured(report: Report) -> float | None:
        one = report.find(workload, OURS)
        return None if one is None else of(report, one)

    return measured


def _beside(workload: str, other: str, name: str) -> Measure:
    return _ours(workload, lambda report, one: report.compared(one, other, name))


def _without(workload: str, name: str) -> Measure:
    return _ours(workload, lambda report, one: report.against(one, name))


def _above_null(report: Report, one: Figures) -> float | None:
    null = report.find(one.workload, NULL)
    return None if null is None or null.cpu_ms is None or one.cpu_ms is None else one.cpu_ms - null.cpu_ms


def _lowest_of_null(report: Report) -> float | None:
    """Return the lowest share of the null scheduler among workloads where that one places as the filters have it."""
    found = []
    for one in report.figures:
        null = report.find(one.workload, NULL)
        if one.scheduler == OURS and one.workload not in NOT_PLACING and null is not None and not null.wrong:
            share = report.compared(one, NULL, "pods_per_second")
            found += [] if share is None or one.p50 is not None else [share]
    return min(found, default=None)


TARGETS: Final = (
    Target("basic, pods/s, × kube-scheduler", 3.2, _beside("basic", KUBE, "pods_per_second"), at_least=True),
    Target("basic, pods/s, of the null scheduler", 0.95, _beside("basic", NULL, "pods_per_second"), at_least=True),
    Target("basic, CPU a pod above the null scheduler", 0.15, _ours("basic", _above_null), unit=" ms"),
    Target("the other workloads, pods/s, of the null scheduler, lowest", 0.9, _lowest_of_null, at_least=True),
    Target(
        "20 policies of five rules, pods/s, of none",
        0.85,
        _without("apps-20-policies", "pods_per_second"),
        at_least=True,
    ),
    Target("steady 100 pods/s, p50, of kube-scheduler's", 0.7, _beside("steady", KUBE, "p50")),
    Target("steady 100 pods/s, p99, of kube-scheduler's", 0.7, _beside("steady", KUBE, "p99")),
    Target("steady 100 pods/s, worst, of kube-scheduler's", 0.7, _beside("steady", KUBE, "worst")),
    Target("one policy edited each second, p50, of no edits", 1.2, _without("steady-20-policies-edited", "p50")),
    Target("one policy edited each second, p99, of no edits", 1.2, _without("steady-20-policies-edited", "p99")),
    Target("start to first binding", 0.8, _ours("basic", lambda _, one: one.first_binding), unit=" s"),
    Target(
        "the same with 50,000 pods placed, of kube-scheduler's",
        1.0,
        _beside("start-50000-placed", KUBE, "first_binding"),
    ),
    Target("peak memory with them, of kube-scheduler's", 0.7, _beside("start-50000-placed", KUBE, "peak_mib")),
)


def table(report: Report) -> Iterator[str]:
    """Write each target that the run says something of, with its bound and by how much it is missed, line by line."""
    yield "| | target | measured | missed by |"
    yield "| --- | --: | --: | --: |"
    for one in TARGETS:
        value = one.measured(report)
        if value is not None:
            sign, missed = "≥" if one.at_least else "≤", one.missed_by(value)
            told = f"{100 * missed:.0f} %" if missed >= 0.005 else "–"
            yield f"| {one.name} | {sign} {one.bound:g}{one.unit} | {value:.2f}{one.unit} | {told} |"
