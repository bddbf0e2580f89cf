"""Targets for the ratios between schedulers, and the distance of a run to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from bench.cluster.figures import Figures
from bench.cluster.report import Report
from bench.cluster.workloads import KUBE, NULL, OURS

NOT_PLACING: Final = frozenset(("basic", "start-50000-placed", "gated", "preemption", "preemption-churn"))
"""Workloads that are left out of the lowest ratio to the null scheduler; some have their own target."""
PEERS: Final = {
    "pod-affinity": ("required affinity", 11.7),
    "pod-anti-affinity": ("required anti-affinity", 9.7),
    "topology-spreading": ("topology spread", 9.3),
    "preferred-pod-affinity": ("preferred affinity", 6.8),
}
"""Workloads of pods with affinity or spreading, each with its target as a multiple of kube-scheduler's rate."""
DEVICES: Final = ("claims", "extended-resources")
"""Prefixes of the names of workloads with devices."""
Measure = Callable[[Report], float | None]


@dataclass(frozen=True, slots=True)
class Target:
    """A figure and its target."""

    name: str
    bound: float
    measured: Measure
    at_least: bool = False
    """Whether the target is a lower bound."""
    unit: str = ""

    def missed_by(self, value: float) -> float:
        """Return the relative distance of a value from the target; 0 if it is met."""
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


def _lowest(other: str, *, devices: bool) -> Measure:
    """Return a function of a report: the lowest ratio of workloads without separate targets, with or without devices.

    Workloads without devices count only if the null scheduler's placements pass the filters.
    """

    def measured(report: Report) -> float | None:
        found = []
        for one in report.figures:
            if one.scheduler != OURS or one.p50 is not None or one.workload.startswith(DEVICES) is not devices:
                continue
            null = report.find(one.workload, NULL)
            if devices or (one.workload not in {*NOT_PLACING, *PEERS} and null is not None and not null.wrong):
                found.append(report.compared(one, other, "pods_per_second"))
        return min((share for share in found if share is not None), default=None)

    return measured


def _of_peers() -> Iterator[Target]:
    for workload, (name, times) in PEERS.items():
        yield Target(f"{name}, pods/s, × kube-scheduler", times, _beside(workload, KUBE, RATE), at_least=True)
        yield Target(f"{name}, pods/s, of the null scheduler", 0.9, _beside(workload, NULL, RATE), at_least=True)
        yield Target(f"{name}, CPU a pod above it", 0.3, _ours(workload, _above_null), unit=" ms")


RATE, TOLD_RATE = "pods_per_second", "told_per_second"
TARGETS: Final = (
    Target("basic, pods/s, × kube-scheduler", 3.2, _beside("basic", KUBE, RATE), at_least=True),
    Target("basic, pods/s, of the null scheduler", 0.95, _beside("basic", NULL, RATE), at_least=True),
    Target("basic, events/s, × kube-scheduler", 2.5, _beside("basic", KUBE, TOLD_RATE), at_least=True),
    Target("basic, events/s, of the null scheduler", 0.95, _beside("basic", NULL, TOLD_RATE), at_least=True),
    Target("basic, CPU a pod above the null scheduler", 0.15, _ours("basic", _above_null), unit=" ms"),
    *_of_peers(),
    Target(
        "the other workloads, pods/s, of the null scheduler, lowest", 0.9, _lowest(NULL, devices=False), at_least=True
    ),
    Target("with devices, pods/s, × kube-scheduler, lowest", 3.0, _lowest(KUBE, devices=True), at_least=True),
    Target("with devices, pods/s, of the null scheduler, lowest", 0.85, _lowest(NULL, devices=True), at_least=True),
    Target(
        "20 policies of five rules, pods/s, of none",
        0.85,
        _without("apps-20-policies", RATE),
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
    """Yield the lines of the table of targets that the run has figures for."""
    yield "| | target | measured | missed by |"
    yield "| --- | --: | --: | --: |"
    for one in TARGETS:
        value = one.measured(report)
        if value is not None:
            sign, missed = "≥" if one.at_least else "≤", one.missed_by(value)
            told = f"{100 * missed:.0f} %" if missed >= 0.005 else "–"
            yield f"| {one.name} | {sign} {one.bound:g}{one.unit} | {value:.2f}{one.unit} | {told} |"
