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
    """What one scheduler did on one workload; None where there is nothing to say."""

    workload: str
    scheduler: str
    nodes: int
    pods: int
    """How many pods were to be placed."""
    bound: int
    """How many were, before time was up."""
    pods_per_second: float | None = None
    middle_per_second: float | None = None
    """Between 5 and 95 % of the pods."""
    told_per_second: float | None = None
    """From the first binding until the last event was stored."""
    told_behind: float | None = None
    """How long after the last binding that was."""
    cpu_ms: float | None = None
    """Of the scheduler, a pod, from the first binding until the last event."""
    servers_cpu_ms: float | None = None
    """Of the API server and etcd."""
    start_cpu: float | None = None
    """Of the scheduler until the first binding."""
    first_binding: float | None = None
    """After the start of the process."""
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    worst: float | None = None
    peak_mib: float | None = None
    end_mib: float | None = None
    quality: float | None = None
    """The mean of the chosen node's total over the best one's."""
    wrong: int | None = None
    """How many pods are where a filter would not have them."""
    foreign_cores: float | None = None
    """How many processors were busy with other things meanwhile."""
    quiet: bool = False
    """Whether the machine was quiet before."""

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Figures:
        """Read what `asdict` wrote."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in given.items() if key in known})


def middle_runs(figures: Iterable[Figures]) -> list[Figures]:
    """Keep one of the runs of each scheduler on each workload: the one in the middle, the slower one of two."""
    runs: dict[tuple[str, str], list[Figures]] = {}
    for one in figures:
        runs.setdefault((one.workload, one.scheduler), []).append(one)
    ordered = (sorted(several, key=lambda one: one.pods_per_second or -(one.p50 or 0.0)) for several in runs.values())
    return [several[(len(several) - 1) // 2] for several in ordered]


def throughput(
    seen: Observation, started: float, *, at_rate: bool, from_start: bool = False
) -> dict[str, float | None]:
    """Work out what the times of bindings and events come to.

    Args:
        seen: What was observed.
        started: When the scheduler was started.
        at_rate: Whether pods came at a steady rate, which says nothing of what could have been reached.
        from_start: Whether time counts from the scheduler's start instead of the first binding: much is done before it.
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
    """Say how many came a second; None of fewer than two."""
    return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 and times[-1] > times[0] else None


def latencies(seconds: Sequence[float]) -> dict[str, float | None]:
    """Say how long half, most and all took at most. Units: milliseconds."""
    if not seconds:
        return {}
    times = sorted(1000 * one for one in seconds)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "worst": 1.0}
    return {name: quantile(times, share) for name, share in shares.items()}


def quantile(ordered: Sequence[float], share: float) -> float:
    """Give the least value that so large a share of values does not exceed."""
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def at(samples: Sequence[Sample], when: float) -> Sample:
    """Say what had been used at a point in time, in proportion between two samples."""
    place = bisect_left(samples, when, key=lambda one: one.at)
    if place in (0, len(samples)):
        return samples[min(place, len(samples) - 1)]
    before, after = asdict(samples[place - 1]), asdict(samples[place])
    share = (when - before["at"]) / (after["at"] - before["at"])
    return Sample(**{name: value + share * (after[name] - value) for name, value in before.items()})


def between(samples: Sequence[Sample], first: float, last: float) -> dict[str, float]:
    """Say what was used from one point in time to another."""
    before, after = asdict(at(samples, first)), asdict(at(samples, last))
    return {name: after[name] - before[name] for name in before}


def ratio(one: float | None, other: float | None) -> float | None:
    """Divide, where there is something to divide."""
    return one / other if one is not None and other else None
