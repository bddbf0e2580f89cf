"""Enabled plugins of each extension point with order and weights, by kube-scheduler's rules.

This module knows names, points and weights, but not plugins and arguments. It takes the enabled and disabled plugins of
a completed profile; `SchedulingPolicy` stands for all policies, at Filter and Score.

Source: framework/runtime/framework.go (NewFramework, updatePluginList, expandMultiPointPlugins, getValidScoreWeights),
v1.36, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from policysched.app.configuration.model import ALL, POLICIES, ListedPlugin, Plugins, PluginSet
from policysched.errors import UsageError
from policysched.model.release import DEFAULT, Release
from policysched.plugins.arguments import Fault
from policysched.plugins.registry import MULTI_POINT, points_of_defaults

PointsByPlugin: TypeAlias = Mapping[str, frozenset[str]]
NOWHERE: Final[frozenset[str]] = frozenset()
WEIGHTED: Final = ("score", "placementScore")
"""The extension points whose plugins have weights."""


@dataclass(frozen=True, slots=True)
class Lists:
    """The plugins of a profile at each extension point, with weights."""

    points: Mapping[str, tuple[str, ...]]
    """Plugins by extension point, in calling order."""
    weights: Mapping[str, Mapping[str, int]]
    """Weights of the plugins, by the points with weights: score and placementScore."""


def known_points(release: Release = DEFAULT) -> PointsByPlugin:
    """Return the extension points of each default plugin, and of policies, by plugin name."""
    return {**points_of_defaults(release), POLICIES: frozenset({"filter", "score"})}


def plugin_lists(plugins: Plugins, acts_at: PointsByPlugin, release: Release = DEFAULT) -> Lists:
    """Return the enabled plugins of a profile at each extension point, with weights.

    Args:
        plugins: Enabled and disabled plugins of the completed profile.
        acts_at: Extension points of each existing plugin, by name.
        release: The release whose rules apply.

    Raises:
        UsageError: kube-scheduler would reject the profile.
    """
    for place, why in list_faults(plugins, acts_at, release):
        raise UsageError(f"{place}: {why}")
    weights = {point: dict(_weights(point, plugins, acts_at)) for point in WEIGHTED}
    return Lists({point: tuple(_expanded(point, plugins, acts_at)) for point in _sets(plugins)}, weights)


def list_faults(plugins: Plugins, acts_at: PointsByPlugin, release: Release = DEFAULT) -> Iterator[Fault]:
    """Yield the invalid fields of a profile's plugin lists, with reasons."""
    yield from _name_faults(plugins, acts_at)
    points = {point: _expanded(point, plugins, acts_at) for point in _sets(plugins)}
    yield from _repeats(points)
    if len(sorting := points["queueSort"]) != 1:
        named = f": {', '.join(sorting)}" if sorting else ""
        yield "plugins.queueSort", f"exactly one queueSort plugin is required, got {len(sorting)}{named}"
    if not points["bind"]:
        yield "plugins.bind", "at least one bind plugin is required"
    if release.one_placement_generator and len(points["placementGenerate"]) > 1:
        yield "plugins.placementGenerate", "at most one placementGenerate plugin is allowed"
    for point in WEIGHTED:
        yield from _weight_faults(point, _weights(point, plugins, acts_at))


def _sets(plugins: Plugins) -> dict[str, PluginSet]:
    return {point: own for point, own in plugins.by_point().items() if point != MULTI_POINT}


def _name_faults(plugins: Plugins, acts_at: PointsByPlugin) -> Iterator[Fault]:
    for point, own in plugins.by_point().items():
        seen: set[str] = set()
        for position, one in enumerate(own.enabled):
            place = f"plugins.{point}.enabled[{position}]"
            if one.name not in acts_at:
                yield place, f'unknown plugin "{one.name}"{_meant(one.name, acts_at)}'
            elif one.name == POLICIES and one.weight:
                yield place, f"{POLICIES} has no weight; set spec.weight of each policy"
            elif point != MULTI_POINT and point not in acts_at[one.name]:
                yield place, f"{one.name} does not implement {point}"
            elif point != MULTI_POINT and one.name in seen:
                yield place, f"{one.name} is listed twice"
            seen.add(one.name)


def _meant(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown plugin name, as the end of a sentence."""
    close = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {close[0]}?" if close else "; run `policysched plugins` to list all plugins"


def _repeats(points: Mapping[str, list[str]]) -> Iterator[Fault]:
    """Yield an error for each plugin that multiPoint enables twice."""
    found = {name for names in points.values() for name in names if names.count(name) > 1}
    for name in sorted(found):
        yield f"plugins.{MULTI_POINT}.enabled", f"{name} is listed twice"


def _expanded(point: str, plugins: Plugins, acts_at: PointsByPlugin) -> list[str]:
    """Return a point's plugins in calling order: enabled at point and multiPoint, at multiPoint only, at point only."""
    own = _sets(plugins)[point]
    specific = list(dict.fromkeys(one.name for one in own.enabled))
    if own.disables(ALL):
        return specific
    everywhere = [one.name for one in plugins.multi_point.enabled if point in acts_at.get(one.name, NOWHERE)]
    everywhere = [name for name in everywhere if not own.disables(name)]
    first = [name for name in specific if name in everywhere]
    alone = [name for name in everywhere if name not in specific]
    return [*first, *alone, *(name for name in specific if name not in everywhere)]


def _weights(point: str, plugins: Plugins, acts_at: PointsByPlugin) -> Iterator[tuple[str, int]]:
    """Yield plugins with weights at a point: the weight of the point's list, else of multiPoint, else 1."""
    seen: set[str] = set()
    stated: Iterable[ListedPlugin] = (*_sets(plugins)[point].enabled, *plugins.multi_point.enabled)
    for one in stated:
        if one.name != POLICIES and point in acts_at.get(one.name, NOWHERE) and one.name not in seen:
            seen.add(one.name)
            yield one.name, one.weight or 1


def _weight_faults(point: str, weights: Iterable[tuple[str, int]]) -> Iterator[Fault]:
    """Yield an error if the running sum of weights falls below 0."""
    total = 0
    for name, weight in weights:
        if total < 0:
            yield f"plugins.{point}", f"sum of the weights before {name} is less than 0"
            return
        total += weight
