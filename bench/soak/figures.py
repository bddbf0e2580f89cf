"""Figures of the soak: what each hour counted and measured, and their tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.cluster.figures import quantile

SHARES: Final = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
GROWTH: Final = 1.05
"""Largest factor between the last six hours and the six hours half a day earlier, for each of `SIZES`."""
SIZES: Final = {"mib": "memory", "blocks": "number of allocated blocks"}
"""Figures of the end of an hour that must not grow, with their names in texts."""
INTRODUCTION: Final = """\
`python -m bench.soak` plays a cluster in simulated time: processor time passes, idle time is skipped. The scheduler is
the whole process without HTTP; the API server, its kubelets and controllers are in the same Python process. On are
20 policies, an edit every 15 minutes of which every fourth does not compile, pods with device claims, gangs of 2 to
64 pods of which half must be in one rack or zone, priorities, PodDisruptionBudgets, drains, taints and new nodes,
waves of batch pods, and a takeover every three hours: after an orderly end, with what both processes know and 20
decisions compared, or after a crash during a wave.

Milliseconds of attempts and of groups are processor time from the pop to the start of the binding. `bind` is
simulated time from the creation of a pod to its binding, for single pods without claims that the first attempt
placed. `pending` is the queue at the end of the hour. MiB is resident memory of the whole process, with the API
server (60 MiB at the start with 5,000 nodes) and the cached results of pod classes (`cache`); `blocks` is the number of
blocks of memory that Python objects use.

Memory grows ever more slowly, for three reasons. Pods live 11 hours on average, and the pods of the start are more
alike than the pods that replace them. More pod classes have cached results, up to their limit. At an orderly takeover,
two schedulers are in the process; Python keeps some of the memory that the first one frees, which is in MiB but not in
`blocks`. A scheduler without takeovers keeps none: with `--nodes 1000 --takeover-every 999`, memory grows by 3 % from
hour 36 to hour 72. So a run has 36 hours, and its last six hours are compared with the six hours half a day earlier."""
HEADS: Final = (
    "hour",
    *("created", "bound", "attempts", "groups", "evicted", "edits", "takeovers"),
    *("pending", "retried"),
    *("p50 ms", "p99 ms", "p99.9 ms", "worst ms"),
    *("group p50", "group p99", "group worst"),
    *("bind p50", "bind p99", "bind p99.9"),
    *("CPU s", "MiB", "cache MiB", "1000 blocks"),
)


@dataclass
class Hour:
    """The figures of one simulated hour."""

    hour: int
    counts: Counter[str] = field(default_factory=Counter)
    attempts: list[float] = field(default_factory=list)
    """Processor time of each attempt of a single pod, until its binding starts. Units: milliseconds."""
    group_attempts: list[float] = field(default_factory=list)
    """Processor time of each attempt of a pod group. Units: milliseconds."""
    bindings: list[float] = field(default_factory=list)
    """Simulated time from the creation of a single pod to its binding, if its first attempt placed it.
    Units: milliseconds."""

    def ended(self, **more: Any) -> dict[str, Any]:
        """Return the figures as a dict, with figures of the end of the hour."""
        spread = {name: spread_of(getattr(self, name)) for name in ("attempts", "group_attempts", "bindings")}
        return {"hour": self.hour, "counts": dict(sorted(self.counts.items())), **spread, **more}


class Meter:
    """The figures of the current hour."""

    def __init__(self) -> None:
        self.hour = Hour(1)
        self.retried: set[str] = set()
        """Names of pending pods with more than one attempt."""

    def tried(self, name: str, seconds: float, *, is_first: bool) -> None:
        """Add an attempt of a pod and its processor time in seconds."""
        self.hour.counts["attempts"] += 1
        self.hour.attempts.append(1000 * seconds)
        if not is_first:
            self.hour.counts["retried"] += 1
            self.retried.add(name)

    def bound(self, name: str, seconds: float, *, waits: bool) -> None:
        """Add the binding of a pod some simulated seconds after its creation.

        Args:
            name: Name of the pod.
            seconds: The simulated time.
            waits: Whether the pod waits for the creation of a claim or of other members of its group.
        """
        self.hour.counts["bound"] += 1
        if name in self.retried:
            self.retried.discard(name)
        elif not waits:
            self.hour.bindings.append(1000 * seconds)


def spread_of(values: Sequence[float]) -> dict[str, float]:
    """Return count, quantiles and the worst of some values."""
    ordered = sorted(values)
    if not ordered:
        return {"count": 0}
    found = {name: round(quantile(ordered, share), 2) for name, share in SHARES.items()}
    return {"count": len(ordered), **found, "worst": round(ordered[-1], 2)}


def growth(hours: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return each of `SIZES` in the last six hours divided by that half a day earlier; empty for less than a day."""
    if len(hours) < 24:
        return {}
    windows = hours[-18:-12], hours[-6:]
    sums = {size: [sum(float(one[size]) for one in window) for window in windows] for size in SIZES}
    return {size: last / before for size, (before, last) in sums.items()}


def rows(hours: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the table's rows, one for each hour."""
    return [_row(one) for one in hours]


def _row(one: Mapping[str, Any]) -> list[str]:
    counts, queue = Counter(one["counts"]), one["queue"]
    numbers = [
        counts[name] for name in ("created", "bound", "attempts", "groups placed", "evicted", "edits", "takeovers")
    ]
    numbers += [sum(queue.values()), counts["retried"]]
    own, groups, bindings = one["attempts"], one["group_attempts"], one["bindings"]
    times = [own.get(name) for name in (*SHARES, "worst")]
    times += [groups.get(name) for name in ("p50", "p99", "worst")]
    times += [bindings.get(name) for name in SHARES]
    sizes = (one["cpu"], one["mib"], one["cache_mib"], one["blocks"] / 1000)
    return [
        str(one["hour"]),
        *(f"{number:,}" for number in numbers),
        *(f"{math.nan if value is None else value:.1f}" for value in times),
        *(f"{value:.0f}" for value in sizes),
    ]


def as_markdown(found: Mapping[str, Any]) -> str:
    """Return the page of a run: its table, totals and checks."""
    hours = found["hours"]
    lines = [f"# {len(hours)} hours with everything on, {found['nodes']:,} nodes", "", INTRODUCTION, ""]
    lines += ["| " + " | ".join(HEADS) + " |", "|" + "--:|" * len(HEADS)]
    lines += ["| " + " | ".join(row) + " |" for row in rows(hours)]
    return "\n".join([*lines, "", *map("- {}".format, remarks(found)), ""])


def remarks(found: Mapping[str, Any]) -> list[str]:
    """Return totals and results of the checks, one sentence each."""
    total: Counter[str] = Counter()
    for one in found["hours"]:
        total.update(one["counts"])
    said = [", ".join(f"{count:,} {name}" for name, count in sorted(total.items()))]
    said += [
        f"{SIZES[size]} of the last six hours: {grown:.3f} of that half a day earlier"
        for size, grown in found["growth"].items()
    ]
    said += [
        f"takeover at {one['at'] / 3600:.1f} h ({one['kind']}): {one['listing']:.1f} s of processor time until ready, "
        f"{one['compared']:,} values and {one['decisions']} decisions compared, {len(one['differences'])} differences"
        for one in found["takeovers"]
    ]
    problems = found["problems"] or ["none"]
    return [*said, *(f"problem: {one}" for one in problems)]
