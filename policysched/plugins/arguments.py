"""The arguments of plugins, as a configuration file states them, turned into plugins.

Knows the shapes of `pluginConfig` entries and the constructors. Arguments that cannot be used are the user's
mistake and end in one line that names the plugin and the field.

Source: pkg/scheduler/apis/config/v1 (types, defaults.go), validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from policysched.errors import UsageError
from policysched.model import objects
from policysched.model.selectors import SelectorError
from policysched.plugins.allocation import CPU_AND_MEMORY, ResourceWeight
from policysched.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from policysched.plugins.node_affinity import NodeAffinity
from policysched.plugins.node_resources_fit import NodeResourcesFit

Arguments = Mapping[str, Any]
LEAST_ALLOCATED = "LeastAllocated"


class Given(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The base of what a configuration gives: a field that nobody knows is a mistake."""


class PluginArguments(Given, frozen=True):
    """The base of a plugin's arguments, which may say what they are."""

    api_version: str = ""
    kind: str = ""


class NodeAffinityArguments(PluginArguments, frozen=True):
    """The arguments of NodeAffinity."""

    added_affinity: objects.NodeAffinity | None = None


class ScoredResource(Given, frozen=True):
    """A resource with its weight; one of 0 counts as 1."""

    name: str
    weight: int = 1


class ScoringStrategy(Given, frozen=True):
    """How NodeResourcesFit scores."""

    type: str = LEAST_ALLOCATED
    resources: tuple[ScoredResource, ...] = ()


class FitArguments(PluginArguments, frozen=True):
    """The arguments of NodeResourcesFit."""

    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class BalanceArguments(PluginArguments, frozen=True):
    """The arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ScoredResource, ...] = ()


def node_affinity(arguments: Arguments) -> NodeAffinity:
    """Make NodeAffinity.

    Raises:
        UsageError: the added affinity is not valid.
    """
    added = _converted("NodeAffinity", arguments, NodeAffinityArguments).added_affinity
    try:
        return NodeAffinity(added)
    except SelectorError as error:
        raise UsageError(f"NodeAffinity: addedAffinity: {error}") from error


def node_resources_fit(arguments: Arguments) -> NodeResourcesFit:
    """Make NodeResourcesFit.

    Raises:
        UsageError: an argument is not valid, or the strategy is not LeastAllocated.
    """
    given = _converted("NodeResourcesFit", arguments, FitArguments)
    if given.scoring_strategy.type != LEAST_ALLOCATED:
        raise UsageError(
            f"NodeResourcesFit: scoringStrategy.type: policysched does not support {given.scoring_strategy.type} yet"
        )
    return NodeResourcesFit(
        _weights("NodeResourcesFit", given.scoring_strategy.resources),
        ignored=given.ignored_resources,
        ignored_groups=given.ignored_resource_groups,
    )


def balanced_allocation(arguments: Arguments) -> NodeResourcesBalancedAllocation:
    """Make NodeResourcesBalancedAllocation.

    Raises:
        UsageError: an argument is not valid.
    """
    given = _converted("NodeResourcesBalancedAllocation", arguments, BalanceArguments)
    return NodeResourcesBalancedAllocation(_weights("NodeResourcesBalancedAllocation", given.resources))


def _weights(plugin: str, resources: Sequence[ScoredResource]) -> tuple[ResourceWeight, ...]:
    for one in resources:
        if not 0 <= one.weight <= 100:
            raise UsageError(f"{plugin}: weight of {one.name}: {one.weight} is not between 1 and 100")
    return tuple(ResourceWeight(one.name, one.weight or 1) for one in resources) or CPU_AND_MEMORY


def _converted(plugin: str, arguments: Arguments, shape: type[Any]) -> Any:
    try:
        return msgspec.convert(dict(arguments), shape)
    except msgspec.ValidationError as error:
        raise UsageError(f"{plugin}: {error}") from error
