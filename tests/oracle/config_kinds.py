"""What a configuration changes, read off it, and how often that bites.

Knows nothing of how configurations are generated. A kind of change bites where kube-scheduler's own record is another
one than under the configuration that most cases use.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from .compare import differences
from .configs import DISABLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Thing: TypeAlias = dict[str, Any]
Record: TypeAlias = dict[str, Any]


def kinds(config: Thing) -> set[str]:
    """Name what the first profile of a configuration changes."""
    profile = config["profiles"][0]
    found = {kind for point, plugins in profile["plugins"].items() for kind in _of_point(point, plugins)}
    for entry in profile.get("pluginConfig", ()):
        found.update(ARGUMENTS[entry["name"]](entry["args"]))
    return found


def _of_point(point: str, plugins: Thing) -> Iterator[str]:
    off = {entry["name"] for entry in plugins.get("disabled", ())}
    if "*" in off:
        yield f"everything disabled at {point}"
    if off - {"*", *DISABLED}:
        yield f"disabled at {point}"
    enabled = plugins.get("enabled", ())
    if enabled:
        yield f"enabled at {point}"
    if any(entry["name"] in off for entry in enabled):
        yield f"disabled and enabled at {point}"
    weights = [entry["weight"] for entry in enabled if "weight" in entry]
    yield from (name for name, holds in WEIGHTS.items() if any(holds(weight) for weight in weights))


WEIGHTS: dict[str, Callable[[int], bool]] = {
    "weight 0": lambda weight: weight == 0,
    "weight below 0": lambda weight: weight < 0,
    "weight": lambda weight: 0 < weight < 1_000_000,
    "weight too large for 32 bits": lambda weight: weight >= 30_000_000,
}


def _fit(args: Thing) -> Iterator[str]:
    for field in ("ignoredResources", "ignoredResourceGroups"):
        if args.get(field):
            yield f"NodeResourcesFit: {field}"
    strategy = args.get("scoringStrategy")
    if strategy is None:
        return
    resources = strategy.get("resources", ())
    yield f"NodeResourcesFit: {strategy['type']}"
    yield f"NodeResourcesFit: {strategy['type']} of {'other' if resources else 'the usual'} resources"
    if any(one.get("weight") == 0 for one in resources):
        yield "NodeResourcesFit: weight 0 of a resource"
    points = len((strategy.get("requestedToCapacityRatio") or {}).get("shape", ()))
    if points:
        yield f"NodeResourcesFit: a curve of {'one point' if points == 1 else 'several points'}"


def _balance(args: Thing) -> Iterator[str]:
    yield f"NodeResourcesBalancedAllocation: {len(args['resources'])} resources"


def _affinity(args: Thing) -> Iterator[str]:
    for field in args["addedAffinity"]:
        yield f"NodeAffinity: added {field.partition('During')[0]}"


def _any(plugin: str) -> Callable[[Thing], Iterator[str]]:
    return lambda args: (f"{plugin}: {field}" for field in args if field not in {"apiVersion", "kind"})


ARGUMENTS: dict[str, Callable[[Thing], Iterator[str]]] = {
    "NodeResourcesFit": _fit,
    "NodeResourcesBalancedAllocation": _balance,
    "NodeAffinity": _affinity,
    "PodTopologySpread": _any("PodTopologySpread"),
    "InterPodAffinity": _any("InterPodAffinity"),
    "VolumeBinding": _any("VolumeBinding"),
}


class Changes:
    """Counts the cases with a kind of change, and those whose record it is part of changing."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.bites: Counter[str] = Counter()

    def count(self, config: Thing, record: Record, usual: Record) -> None:
        """Count one case by kube-scheduler's record under its configuration and under the usual one."""
        found = kinds(config)
        self.cases.update(found)
        if differences(record, usual):
            self.bites.update(found)

    def table(self) -> str:
        """Lay out the counts as text."""
        lines = [f"{'change of the configuration':60} {'cases':>8} {'bites':>8}"]
        lines += [f"{kind:60} {self.cases[kind]:8} {self.bites[kind]:8}" for kind in sorted(self.cases)]
        return "\n".join(lines)
