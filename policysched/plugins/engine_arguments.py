"""The arguments of VolumeBinding, and those of plugins whose work does not depend on them here, checked all the same.

Knows the shapes of their `pluginConfig` entries. A configuration that kube-scheduler would refuse must not pass only
because the part that would use the argument is not there.

Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

import re
from typing import Final

from policysched.plugins.arguments import Arguments, Int32, Int64, PluginArguments, converted, refusal
from policysched.plugins.volume_binding import VolumeBinding

SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART: Final = re.compile(r"(?<![0-9.])([0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h)")
_DURATION: Final = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")
_LONGEST: Final = 2**63 - 1


class PreemptionArguments(PluginArguments, frozen=True):
    """The arguments of DefaultPreemption."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class VolumeBindingArguments(PluginArguments, frozen=True):
    """The arguments of VolumeBinding."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[dict[str, int], ...] | None = None


class DynamicResourcesArguments(PluginArguments, frozen=True):
    """The arguments of DynamicResources."""

    filter_timeout: str = "10s"
    binding_timeout: str = "10m"


def check_preemption(arguments: Arguments) -> None:
    """Check the arguments of DefaultPreemption.

    Raises:
        UsageError: one is not valid.
    """
    plugin = "DefaultPreemption"
    given = converted(plugin, arguments, PreemptionArguments)
    percentage, absolute = given.min_candidate_nodes_percentage, given.min_candidate_nodes_absolute
    if not 0 <= percentage <= 100:
        raise refusal(plugin, "minCandidateNodesPercentage", f"{percentage} is not between 0 and 100")
    if absolute < 0:
        raise refusal(plugin, "minCandidateNodesAbsolute", f"{absolute} is below 0")
    if percentage == absolute == 0:
        raise refusal(plugin, "minCandidateNodesPercentage", "cannot be 0 together with minCandidateNodesAbsolute")


def volume_binding(arguments: Arguments) -> VolumeBinding:
    """Make VolumeBinding.

    Raises:
        UsageError: one is not valid.
    """
    plugin = "VolumeBinding"
    given = converted(plugin, arguments, VolumeBindingArguments)
    if given.bind_timeout_seconds < 0:
        raise refusal(plugin, "bindTimeoutSeconds", f"{given.bind_timeout_seconds} is below 0")
    if given.shape is not None:
        raise refusal(plugin, "shape", "scoring by storage capacity (the gate StorageCapacityScoring) is off")
    return VolumeBinding(float(given.bind_timeout_seconds))


def check_dynamic_resources(arguments: Arguments) -> None:
    """Check the arguments of DynamicResources.

    Raises:
        UsageError: one is not valid.
    """
    plugin = "DynamicResources"
    given = converted(plugin, arguments, DynamicResourcesArguments)
    for field, text, least in (
        ("filterTimeout", given.filter_timeout, 0),
        ("bindingTimeout", given.binding_timeout, SECOND),
    ):
        length = nanoseconds(text)
        if length is None:
            raise refusal(plugin, field, f'"{text}" is not a duration as 10s or 1m30s')
        if length < least:
            raise refusal(plugin, field, f'"{text}" is shorter than {least // SECOND}s')


def nanoseconds(text: str) -> int | None:
    """Read a duration as Go writes them, as `1h15m30.5s`; None where it is none."""
    if not _DURATION.fullmatch(text):
        return None
    total = sum(_scaled(number, _UNITS[unit]) for number, unit in _PART.findall(text))
    if total > _LONGEST:
        return None
    return -total if text.startswith("-") else total


def _scaled(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole or 0) * unit + (int(fraction or 0) * unit // 10 ** len(fraction) if fraction else 0)
