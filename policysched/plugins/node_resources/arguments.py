"""The arguments of the plugins that look at resources, turned into these plugins.

Knows the shapes of the two `pluginConfig` entries and what kube-scheduler accepts in them.

Source: pkg/scheduler/apis/config/v1/defaults.go, apis/config/validation/validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from policysched.model.selection.names import is_qualified_name
from policysched.plugins.arguments import Arguments, Given, Int32, Int64, PluginArguments, converted, refusal
from policysched.plugins.node_resources.allocation import CPU_AND_MEMORY, ResourceWeight, Strategy
from policysched.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.node_resources.strategies import (
    FULL,
    HIGHEST_POINT,
    Point,
    RequestedToCapacityRatio,
    least_allocated,
    most_allocated,
)

FIT: Final = NodeResourcesFit.name
BALANCE: Final = NodeResourcesBalancedAllocation.name
RATIO: Final = "RequestedToCapacityRatio"
SIMPLE: Final[dict[str, Strategy]] = {"LeastAllocated": least_allocated, "MostAllocated": most_allocated}
"""The strategies without parameters."""


class ScoredResource(Given, frozen=True):
    """A resource with its weight; one of 0 counts as 1."""

    name: str = ""
    weight: Int64 = 0


class ShapePoint(Given, frozen=True):
    """A point of a curve."""

    utilization: Int32 = 0
    score: Int32 = 0


class RatioParameters(Given, frozen=True):
    """The parameters of RequestedToCapacityRatio."""

    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Given, frozen=True):
    """How NodeResourcesFit scores."""

    type: str = ""
    resources: tuple[ScoredResource, ...] = ()
    requested_to_capacity_ratio: RatioParameters | None = None


class FitArguments(PluginArguments, frozen=True):
    """The arguments of NodeResourcesFit."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")


class BalanceArguments(PluginArguments, frozen=True):
    """The arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ScoredResource, ...] = ()


def node_resources_fit(arguments: Arguments) -> NodeResourcesFit:
    """Make NodeResourcesFit.

    Raises:
        UsageError: an argument is not valid.
    """
    given = converted(FIT, arguments, FitArguments)
    for index, name in enumerate(given.ignored_resources):
        if not is_qualified_name(name):
            raise refusal(FIT, f"ignoredResources[{index}]", f'"{name}" is not a name of a resource')
    for index, name in enumerate(given.ignored_resource_groups):
        if "/" in name or not is_qualified_name(name):
            raise refusal(FIT, f"ignoredResourceGroups[{index}]", f'"{name}" is not a prefix of resources')
    return NodeResourcesFit(
        _weighted(given.scoring_strategy.resources),
        strategy=_strategy(given.scoring_strategy),
        ignored=frozenset(given.ignored_resources),
        ignored_groups=frozenset(given.ignored_resource_groups),
    )


def balanced_allocation(arguments: Arguments) -> NodeResourcesBalancedAllocation:
    """Make NodeResourcesBalancedAllocation.

    Raises:
        UsageError: an argument is not valid.
    """
    resources = converted(BALANCE, arguments, BalanceArguments).resources
    for index, one in enumerate(resources):
        if one.weight not in (0, 1):
            raise refusal(BALANCE, f"resources[{index}].weight", f"{one.weight} is not 1: balance knows no weights")
        if one.name in {other.name for other in resources[:index]}:
            raise refusal(BALANCE, f"resources[{index}].name", f'"{one.name}" is there twice')
    return NodeResourcesBalancedAllocation(_weighted(resources))


def _strategy(given: ScoringStrategy) -> Strategy:
    _check_weights(given.resources)
    parameters = given.requested_to_capacity_ratio
    if given.type == RATIO:
        return RequestedToCapacityRatio(_points(parameters.shape if parameters else ()))
    if given.type not in SIMPLE:
        known = ", ".join(sorted((*SIMPLE, RATIO)))
        raise refusal(FIT, "scoringStrategy.type", f'"{given.type}" is not a strategy; there are {known}')
    if parameters is not None:
        raise refusal(FIT, "scoringStrategy.requestedToCapacityRatio", f"is only for the type {RATIO}")
    return SIMPLE[given.type]


def _check_weights(resources: Sequence[ScoredResource]) -> None:
    for index, one in enumerate(resources):
        if not 0 <= one.weight <= 100:
            field = f"scoringStrategy.resources[{index}].weight"
            raise refusal(FIT, field, f"{one.weight} is not between 1 and 100")


def _points(shape: Sequence[ShapePoint]) -> list[Point]:
    """Give the points of a valid curve."""
    field = "scoringStrategy.requestedToCapacityRatio.shape"
    if not shape:
        raise refusal(FIT, field, "at least one point is needed")
    last = -1
    for index, one in enumerate(shape):
        if not 0 <= one.utilization <= FULL:
            raise refusal(FIT, f"{field}[{index}].utilization", f"{one.utilization} is not between 0 and {FULL}")
        if not 0 <= one.score <= HIGHEST_POINT:
            raise refusal(FIT, f"{field}[{index}].score", f"{one.score} is not between 0 and {HIGHEST_POINT}")
        if one.utilization <= last:
            raise refusal(FIT, f"{field}[{index}].utilization", f"{one.utilization} does not rise from {last}")
        last = one.utilization
    return [Point(one.utilization, one.score) for one in shape]


def _weighted(resources: Sequence[ScoredResource]) -> tuple[ResourceWeight, ...]:
    return tuple(ResourceWeight(one.name, one.weight or 1) for one in resources) or CPU_AND_MEMORY
