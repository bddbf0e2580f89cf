"""Which plugins act where: what a profile enables and disables, applied to the default plugins.

Knows names, points and weights, no plugin. The rules are kube-scheduler's, with one name more: `SchedulingPolicy`
stands for all policies, last of the default plugins, at filter and score. Errors name the point; whoever calls adds
the profile.

Source: pkg/scheduler/apis/config/v1/default_plugins.go (mergePlugins), framework/runtime/framework.go
(NewFramework, expandMultiPointPlugins, getValidScoreWeights), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import fields

from policysched.errors import UsageError
from policysched.plugins.arguments import Given, Int32
from policysched.plugins.registry import ACTS_AT, DEFAULTS, MULTI_POINT, WEIGHTS

POLICIES: Final = "SchedulingPolicy"
"""The name that stands for all policies."""
ALL: Final = "*"
POINTS_OF: Final = {**ACTS_AT, POLICIES: frozenset({"filter", "score"})}


class ListedPlugin(Given, frozen=True):
    """A plugin in a list; a weight of 0 is none."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Given, frozen=True):
    """What is enabled and disabled at one point, or at all (`multiPoint`)."""

    enabled: tuple[ListedPlugin, ...] = ()
    disabled: tuple[ListedPlugin, ...] = ()

    def disables(self, name: str) -> bool:
        """Tell whether a plugin is disabled by its name."""
        return any(one.name == name for one in self.disabled)


class Plugins(Given, frozen=True):
    """What a profile enables and disables, point by point."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def by_point(self) -> dict[str, PluginSet]:
        """Give the sets by the names of their points."""
        return {field.encode_name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Lists:
    """The plugins of a profile."""

    points: Mapping[str, tuple[str, ...]]
    """By point, in the order in which they act."""
    weights: Mapping[str, int]
    """Of the plugins that score."""
    enabled: frozenset[str]
    """Everything that is enabled anywhere, even where no point is left for it."""


DEFAULT: Final = PluginSet(
    enabled=(*(ListedPlugin(name=name, weight=WEIGHTS.get(name, 0)) for name in DEFAULTS), ListedPlugin(name=POLICIES))
)


def plugin_lists(given: Plugins) -> Lists:
    """Apply what a profile gives to the default plugins.

    Raises:
        UsageError: the profile would be refused.
    """
    multi = merged(DEFAULT, given.multi_point)
    sets = {point: own for point, own in given.by_point().items() if point != MULTI_POINT}
    _check_names(multi, sets)
    points = {point: tuple(_expanded(point, own, multi)) for point, own in sets.items()}
    _check_counts(points)
    weights = _weights("score", (*given.score.enabled, *multi.enabled))
    _weights("placementScore", (*given.placement_score.enabled, *multi.enabled))
    everywhere = (multi, *sets.values())
    return Lists(points, weights, frozenset(one.name for plugins in everywhere for one in plugins.enabled))


def merged(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Put what is custom over what is enabled by default.

    A default plugin that is enabled once more keeps its place and takes the new weight; what is enabled and disabled
    goes to the end.
    """
    latest = {one.name: (position, one) for position, one in enumerate(custom.enabled)}
    kept, used = [], set()
    for one in () if custom.disables(ALL) else default.enabled:
        if custom.disables(one.name):
            continue
        position, own = latest.get(one.name, (-1, one))
        used.add(position)
        kept.append(own)
    rest = (one for position, one in enumerate(custom.enabled) if position not in used)
    return PluginSet(enabled=(*kept, *rest), disabled=custom.disabled)


def _expanded(point: str, own: PluginSet, multi: PluginSet) -> list[str]:
    """List the plugins at a point: first those of its own that multiPoint has too, then those of multiPoint alone."""
    specific = [one.name for one in own.enabled]
    spread: list[str] = []
    overridden: set[str] = set()
    for one in () if own.disables(ALL) else multi.enabled:
        if point not in POINTS_OF[one.name] or own.disables(one.name):
            continue
        if one.name in specific:
            overridden.add(one.name)
            continue
        if one.name in spread:
            raise UsageError(f"plugins.{MULTI_POINT}.enabled: {one.name} is there twice")
        spread.append(one.name)
    first = [name for name in specific if name in overridden]
    return [*first, *spread, *(name for name in specific if name not in overridden)]


def _check_names(multi: PluginSet, sets: Mapping[str, PluginSet]) -> None:
    for point, plugins in ((MULTI_POINT, multi), *sets.items()):
        place = f"plugins.{point}.enabled"
        for position, one in enumerate(plugins.enabled):
            if one.name not in POINTS_OF:
                raise UsageError(f'{place}: there is no plugin "{one.name}"; there are {", ".join(sorted(POINTS_OF))}')
            if one.name == POLICIES and one.weight:
                raise UsageError(f"{place}: {POLICIES} takes no weight: every policy has its own")
            if point == MULTI_POINT:
                continue
            if point not in POINTS_OF[one.name]:
                raise UsageError(f"{place}: {one.name} does nothing at {point}")
            if one.name in {other.name for other in plugins.enabled[:position]}:
                raise UsageError(f"{place}: {one.name} is there twice")


def _check_counts(points: Mapping[str, tuple[str, ...]]) -> None:
    if len(points["queueSort"]) != 1:
        raise UsageError(f"plugins.queueSort: exactly one plugin has to sort the queue, not {len(points['queueSort'])}")
    if not points["bind"]:
        raise UsageError("plugins.bind: at least one plugin has to bind")
    if len(points["placementGenerate"]) > 1:
        raise UsageError("plugins.placementGenerate: at most one plugin can generate placements")


def _weights(point: str, plugins: Iterable[ListedPlugin]) -> dict[str, int]:
    """Give the weights at a point: that of its own list before that of multiPoint, and 1 where none is given.

    Raises:
        UsageError: on the way through them their sum falls below 0.
    """
    weights: dict[str, int] = {}
    for one in plugins:
        if point not in ACTS_AT.get(one.name, ()) or one.name in weights:
            continue
        if sum(weights.values()) < 0:
            raise UsageError(f"plugins.{point}: the weights before {one.name} add up to less than 0")
        weights[one.name] = one.weight or 1
    return weights
