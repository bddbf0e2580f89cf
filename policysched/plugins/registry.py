"""The default plugins by name, and which of them are enabled in which order.

Knows every plugin of the package and nothing of profiles. The order decides which of several rejections a node is
given, so it is kube-scheduler's.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policysched.errors import UsageError
from policysched.framework import Plugin
from policysched.plugins import arguments, unported
from policysched.plugins.arguments import Arguments
from policysched.plugins.dynamic_resources import DynamicResources
from policysched.plugins.image_locality import ImageLocality
from policysched.plugins.node_declared_features import NodeDeclaredFeatures
from policysched.plugins.node_name import NodeName
from policysched.plugins.node_ports import NodePorts
from policysched.plugins.node_unschedulable import NodeUnschedulable
from policysched.plugins.priority_sort import PrioritySort
from policysched.plugins.scheduling_gates import SchedulingGates
from policysched.plugins.taint_toleration import TaintToleration

DEFAULT_PREEMPTION: Final = "DefaultPreemption"
DEFAULT_BINDER: Final = "DefaultBinder"


@dataclass(frozen=True, slots=True)
class EnginePart:
    """The place in the order of a plugin whose work the engine does itself."""

    name: str


@dataclass(frozen=True, slots=True)
class Enabled:
    """A plugin with the weight of its scores, 0 for one that does not score."""

    plugin: Plugin
    weight: int = 0


def _without_arguments(make: Callable[[], Plugin]) -> Callable[[Arguments], Plugin]:
    return lambda _: make()


FACTORIES: Final[Mapping[str, Callable[[Arguments], Plugin]]] = {
    "SchedulingGates": _without_arguments(SchedulingGates),
    "PrioritySort": _without_arguments(PrioritySort),
    "NodeUnschedulable": _without_arguments(NodeUnschedulable),
    "NodeName": _without_arguments(NodeName),
    "TaintToleration": _without_arguments(TaintToleration),
    "NodeAffinity": arguments.node_affinity,
    "NodePorts": _without_arguments(NodePorts),
    "NodeResourcesFit": arguments.node_resources_fit,
    "VolumeRestrictions": _without_arguments(unported.volume_restrictions),
    "NodeVolumeLimits": _without_arguments(unported.node_volume_limits),
    "VolumeBinding": _without_arguments(unported.volume_binding),
    "VolumeZone": _without_arguments(unported.volume_zone),
    "PodTopologySpread": _without_arguments(unported.pod_topology_spread),
    "InterPodAffinity": _without_arguments(unported.inter_pod_affinity),
    "DynamicResources": _without_arguments(DynamicResources),
    DEFAULT_PREEMPTION: lambda _: EnginePart(DEFAULT_PREEMPTION),
    "NodeResourcesBalancedAllocation": arguments.balanced_allocation,
    "ImageLocality": _without_arguments(ImageLocality),
    DEFAULT_BINDER: lambda _: EnginePart(DEFAULT_BINDER),
    "NodeDeclaredFeatures": _without_arguments(NodeDeclaredFeatures),
}
"""Makers of the plugins, in the default order."""

WEIGHTS: Final[Mapping[str, int]] = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
"""Default weights of the plugins that score."""


def plugin_named(name: str, args: Mapping[str, Any] | None = None) -> Plugin:
    """Make a default plugin.

    Args:
        name: its name in configurations.
        args: its arguments as the configuration's `pluginConfig` states them; plugins without any overlook them.

    Raises:
        UsageError: there is no such plugin, or its arguments are not valid.
    """
    factory = FACTORIES.get(name)
    if factory is None:
        raise UsageError(f"plugin {name!r} is not known; known are {', '.join(sorted(FACTORIES))}")
    return factory(args or {})


def default_plugins() -> list[Enabled]:
    """Make the plugins that are enabled where a configuration says nothing, in their order."""
    return [Enabled(plugin_named(name), WEIGHTS.get(name, 0)) for name in FACTORIES]
