"""Validation of a completed configuration, field by field, in kube-scheduler's order.

All errors are reported at once, as kube-scheduler does before it creates profiles. `plugin_lists` and `profiles` report
errors found later.

Source: pkg/scheduler/apis/config/validation/validation.go, component-base/config/validation/validation.go,
v1.36, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from policysched.app.configuration.model import Configuration, ExtenderConfig, LeaderElection, ProfileConfig
from policysched.model.release import DEFAULT, Release
from policysched.model.selection.name_validation import is_extended_resource_name, is_qualified_name
from policysched.plugins.arguments import Fault, PluginArguments
from policysched.plugins.registry import MULTI_POINT
from policysched.reading.durations import nanoseconds

REMOVED: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
"""Removed plugins that v1 must not contain."""
_PLACEMENT_POINTS: Final = ("placementGenerate", "placementScore")
_NEEDS_GATE: Final = "requires the feature gate TopologyAwareWorkloadScheduling"


def faults(configuration: Configuration, release: Release = DEFAULT) -> Iterator[Fault]:
    """Yield the invalid fields of a configuration, each with the reason."""
    if configuration.client_connection.burst < 0:
        yield "clientConnection.burst", f"{configuration.client_connection.burst} is less than 0"
    if configuration.leader_election.leader_elect:
        yield from election_faults(configuration.leader_election)
    if configuration.parallelism <= 0:
        yield "parallelism", f"{configuration.parallelism} is not greater than 0"
    unchecked = (MULTI_POINT, *(() if release.validates_placement_points else _PLACEMENT_POINTS))
    yield from _profiles_faults(configuration.profiles, unchecked, release)
    percentage = configuration.percentage_of_placements_to_score
    yield from _placements_faults("percentageOfPlacementsToScore", percentage, release)
    yield from _percentage_faults("percentageOfNodesToScore", configuration.percentage_of_nodes_to_score)
    yield from _backoff_faults(configuration)
    yield from _extenders_faults(configuration.extenders)


def election_faults(given: LeaderElection) -> Iterator[Fault]:
    """Yield the invalid fields of an enabled leader election with reasons."""
    lengths = {
        "leaseDuration": nanoseconds(given.lease_duration) or 0,
        "renewDeadline": nanoseconds(given.renew_deadline) or 0,
        "retryPeriod": nanoseconds(given.retry_period) or 0,
    }
    for name, length in lengths.items():
        if length <= 0:
            yield f"leaderElection.{name}", "is not greater than 0"
    if lengths["leaseDuration"] <= lengths["renewDeadline"]:
        why = f"{given.lease_duration} is not greater than renewDeadline {given.renew_deadline}"
        yield "leaderElection.leaseDuration", why
    if given.resource_lock != "leases":
        yield "leaderElection.resourceLock", f'"{given.resource_lock}" is not "leases"'


def _percentage_faults(place: str, percentage: int | None) -> Iterator[Fault]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield place, f"{percentage} is not between 0 and 100"


def _placements_faults(place: str, percentage: int | None, release: Release) -> Iterator[Fault]:
    if percentage is not None and not release.topology_aware:
        yield place, _NEEDS_GATE
    else:
        yield from _percentage_faults(place, percentage)


def _backoff_faults(given: Configuration) -> Iterator[Fault]:
    initial, longest = given.pod_initial_backoff_seconds, given.pod_max_backoff_seconds
    if initial <= 0:
        yield "podInitialBackoffSeconds", f"{initial} is not greater than 0"
    if longest < initial:
        yield "podMaxBackoffSeconds", f"{longest} is less than podInitialBackoffSeconds {initial}"


def _profiles_faults(profiles: Sequence[ProfileConfig], unchecked: Sequence[str], release: Release) -> Iterator[Fault]:
    """Yield invalid fields of profiles.

    Args:
        profiles: The profiles.
        unchecked: The points at which a removed plugin is only found when profiles are created.
        release: The release whose rules apply.
    """
    named: set[str] = set()
    for index, one in enumerate(profiles):
        place = f"profiles[{index}]"
        name = one.scheduler_name or ""
        if not name:
            yield f"{place}.schedulerName", "name is empty"
        yield from _percentage_faults(f"{place}.percentageOfNodesToScore", one.percentage_of_nodes_to_score)
        placements = one.percentage_of_placements_to_score
        yield from _placements_faults(f"{place}.percentageOfPlacementsToScore", placements, release)
        yield from _removed_faults(place, one, unchecked)
        yield from _arguments_faults(place, one)
        if name in named:
            yield f"{place}.schedulerName", f'duplicate profile "{name}"'
        named.add(name)
    yield from _queue_sort_faults(profiles)


def _removed_faults(place: str, profile: ProfileConfig, unchecked: Sequence[str]) -> Iterator[Fault]:
    for point, own in profile.plugins.by_point().items():
        for index, one in enumerate(() if point in unchecked else own.enabled):
            if one.name in REMOVED:
                yield f"{place}.plugins.{point}.enabled[{index}]", f"plugin {one.name} was removed from Kubernetes"


def _arguments_faults(place: str, profile: ProfileConfig) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, one in enumerate(profile.plugin_config):
        at = f"{place}.pluginConfig[{index}]"
        if one.name in seen:
            yield at, f"repeated config for plugin {one.name}"
        seen.add(one.name)
        if one.name in REMOVED:
            yield at, f"plugin {one.name} was removed from Kubernetes"
        elif isinstance(one.args, PluginArguments) and not one.args.checked_when_made:
            yield from ((f"{at}.args.{field}", why) for field, why in one.args.faults())


def _queue_sort_faults(profiles: Sequence[ProfileConfig]) -> Iterator[Fault]:
    """Yield errors if profiles have different QueueSort plugins or arguments as written in the configuration."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        yield "profiles[0].plugins.queueSort.enabled", "only one queueSort plugin is allowed"
    declared = first.enabled[0].name if first.enabled else ""
    arguments: Any = profiles[0].arguments.get(declared) if declared else None
    for index, one in enumerate(profiles[1:], 1):
        if one.plugins.queue_sort != first:
            yield f"profiles[{index}].plugins.queueSort", "must be the same in all profiles"
        for position, given in enumerate(one.plugin_config):
            if given.name == declared and given.args != arguments:
                yield (
                    f"profiles[{index}].pluginConfig[{position}].args",
                    "arguments of the queueSort plugin must be the same in all profiles",
                )


def _extenders_faults(extenders: Sequence[ExtenderConfig]) -> Iterator[Fault]:
    managed: set[str] = set()
    for index, one in enumerate(extenders):
        place = f"extenders[{index}]"
        if one.prioritize_verb and one.weight <= 0:
            yield f"{place}.weight", f"{one.weight} is not greater than 0"
        for position, resource in enumerate(one.managed_resources):
            at = f"{place}.managedResources[{position}].name"
            if not is_qualified_name(resource.name) or not is_extended_resource_name(resource.name):
                yield at, f'"{resource.name}" is not an extended resource name'
            if resource.name in managed:
                yield at, f'"{resource.name}" is listed twice'
            managed.add(resource.name)
    binders = sum(bool(one.bind_verb) for one in extenders)
    if binders > 1:
        yield "extenders", f"only one extender can have a bindVerb, got {binders}"
