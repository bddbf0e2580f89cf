"""Figures of one run, and the choice between several runs.

Units: pods a second, milliseconds of processor time a pod, seconds, MiB; latencies in milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from bench.cluster.observation import Observation, Sample


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one scheduler on one workload; None for a figure that was not measured."""

    workload: str
    scheduler: str
    nodes: int
    pods: int
    """Number of measured pods."""
    bound: int
    """Number of pods bound before the time limit."""
    pods_per_second: float | None = None
    middle_per_second: float | None = None
    """Rate between the 5th and the 95th percentile of bindings. Units: pods a second."""
    told_per_second: float | None = None
    """Rate of events, from the first binding to the last stored event. Units: pods a second."""
    told_behind: float | None = None
    """Time from the last binding to the last stored event. Units: seconds."""
    cpu_ms: float | None = None
    """Processor time of the scheduler per pod, from the first binding to the last event. Units: milliseconds."""
    servers_cpu_ms: float | None = None
    """Processor time of the API server and etcd per pod, in the same time. Units: milliseconds."""
    start_cpu: float | None = None
    """Processor time of the scheduler until the first binding. Units: seconds."""
    first_binding: float | None = None
    """Time from the start of the process to the first binding. Units: seconds."""
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    worst: float | None = None
    peak_mib: float | None = None
    end_mib: float | None = None
    quality: float | None = None
    """Mean of the chosen node's total score divided by the best node's; 1 is perfect."""
    wrong: int | None = None
    """Number of pods on a node that a filter rejects."""
    foreign_cores: float | None = None
    """Mean number of processors that other programs used during the run."""
    quiet: bool = False
    """Whether the machine was idle before the run."""

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Figures:
        """Return figures from the dict that `asdict` made; unknown keys are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in given.items() if key in known})


def middle_runs(figures: Iterable[Figures]) -> list[Figures]:
    """Return the median run of each scheduler on each workload; of two, the slower."""
    runs: dict[tuple[str, str], list[Figures]] = {}
    for one in figures:
        runs.setdefault((one.workload, one.scheduler), []).append(one)
    ordered = (sorted(several, key=lambda one: one.pods_per_second or -(one.p50 or 0.0)) for several in runs.values())
    return [several[(len(several) - 1) // 2] for several in ordered]


def throughput(
    seen: Observation, started: float, *, at_rate: bool, from_start: bool = False
) -> dict[str, float | None]:
    """Return rates, delays and processor times from an observation.

    Args:
        seen: The observation.
        started: Start time of the scheduler.
        at_rate: Whether pods were created at a steady rate; then latencies are returned instead of rates.
        from_start: Whether to measure from the scheduler's start instead of the first binding.
    """
    if not seen.bound:
        return {}
    bound, told = sorted(seen.bound.values()), sorted(seen.told.values())
    began = started if from_start else bound[0]
    last = max(bound[-1], told[-1] if told else 0.0)
    cpu, count = between(seen.samples, began, last), len(bound)
    ours = cpu["scheduler"] + cpu["servers"] + cpu["bench"]
    found: dict[str, float | None] = {
        "cpu_ms": cpu["scheduler"] * 1000 / count,
        "servers_cpu_ms": cpu["servers"] * 1000 / count,
        "foreign_cores": max(0.0, cpu["all"] - ours) / max(last - began, 1e-3),
    }
    if at_rate:
        return found | latencies([seen.bound[pod] - at for pod, at in seen.created.items() if pod in seen.bound])
    return found | {
        "pods_per_second": rate([started, *bound] if from_start else bound),
        "middle_per_second": rate(bound[int(0.05 * count) : max(1, int(0.95 * count))]),
        "told_per_second": (len(told) - 1) / (told[-1] - began) if len(told) > 1 else None,
        "told_behind": told[-1] - bound[-1] if told else None,
        "start_cpu": at(seen.samples, bound[0]).scheduler,
        "first_binding": bound[0] - started,
    }


def rate(times: Sequence[float]) -> float | None:
    """Return the rate of events per second; None for fewer than two."""
    return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 and times[-1] > times[0] else None


def latencies(seconds: Sequence[float]) -> dict[str, float | None]:
    """Return the percentiles of latencies. Units: milliseconds."""
    if not seconds:
        return {}
    times = sorted(1000 * one for one in seconds)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "worst": 1.0}
    return {name: quantile(times, share) for name, share in shares.items()}


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the ordered values does not exceed."""
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def at(samples: Sequence[Sample], when: float) -> Sample:
    """Return the processor time used until a point in time, interpolated between two samples."""
    place = bisect_left(samples, when, key=lambda one: one.at)
    if place in (0, len(samples)):
        return samples[min(place, len(samples) - 1)]
    before, after = asdict(samples[place - 1]), asdict(samples[place])
    share = (when - before["at"]) / (after["at"] - before["at"])
    return Sample(**{name: value + share * (after[name] - value) for name, value in before.items()})


def between(samples: Sequence[Sample], first: float, last: float) -> dict[str, float]:
    """Return the processor time used between two points in time."""
    before, after = asdict(at(samples, first)), asdict(at(samples, last))
    return {name: after[name] - before[name] for name in before}


def ratio(one: float | None, other: float | None) -> float | None:
    """Return the quotient of two figures, or None if one is absent."""
    return one / other if one is not None and other else None
