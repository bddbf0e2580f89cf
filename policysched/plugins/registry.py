"""kube-scheduler's plugins by name, and which of them are enabled in which order.

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
from policysched.plugins.arguments import Arguments, converted, refusal
from policysched.plugins.default_binder import DefaultBinder
from policysched.plugins.default_preemption import check_preemption
from policysched.plugins.dynamic_resources import DynamicResources, check_dynamic_resources
from policysched.plugins.inter_pod_affinity.plugin import inter_pod_affinity
from policysched.plugins.node_resources import arguments as resource_arguments
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.nodes.image_locality import ImageLocality
from policysched.plugins.nodes.node_affinity import node_affinity
from policysched.plugins.nodes.node_declared_features import NodeDeclaredFeatures
from policysched.plugins.nodes.node_name import NodeName
from policysched.plugins.nodes.node_ports import NodePorts
from policysched.plugins.nodes.node_unschedulable import NodeUnschedulable
from policysched.plugins.nodes.taint_toleration import TaintToleration
from policysched.plugins.pod_topology_spread.plugin import pod_topology_spread
from policysched.plugins.priority_sort import PrioritySort
from policysched.plugins.scheduling_gates import SchedulingGates
from policysched.plugins.volumes.node_volume_limits import NodeVolumeLimits
from policysched.plugins.volumes.volume_binding import volume_binding
from policysched.plugins.volumes.volume_restrictions import VolumeRestrictions
from policysched.plugins.volumes.volume_zone import VolumeZone

DEFAULT_PREEMPTION: Final = "DefaultPreemption"
GROUP_PLUGINS: Final = ("GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")


@dataclass(frozen=True, slots=True)
class EnginePart:
    """The place in the order of a plugin that has no code of its own.

    The engine does its work itself, or there is none: the plugins for groups of pods have nothing to do with a pod
    that is in no group, and groups are off in kube-scheduler unless a feature gate turns them on.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Enabled:
    """A plugin with the weight of its scores, 0 for one that does not score."""

    plugin: Plugin
    weight: int = 0


Make = Callable[[Arguments], Plugin]


def _without_arguments(make: Callable[[], Plugin]) -> Make:
    return lambda _: make()


def _checking(check: Callable[[Arguments], None], make: Callable[[], Plugin]) -> Make:
    """Make a plugin that does not need its arguments, once they are known to be valid."""

    def made(arguments: Arguments) -> Plugin:
        check(arguments)
        return make()

    return made


def _engine_part(name: str) -> Make:
    return _without_arguments(lambda: EnginePart(name))


FACTORIES: Final[Mapping[str, Make]] = {
    "SchedulingGates": _without_arguments(SchedulingGates),
    "PrioritySort": _without_arguments(PrioritySort),
    "NodeUnschedulable": _without_arguments(NodeUnschedulable),
    "NodeName": _without_arguments(NodeName),
    "TaintToleration": _without_arguments(TaintToleration),
    "NodeAffinity": node_affinity,
    "NodePorts": _without_arguments(NodePorts),
    "NodeResourcesFit": resource_arguments.node_resources_fit,
    "VolumeRestrictions": _without_arguments(VolumeRestrictions),
    "NodeVolumeLimits": _without_arguments(NodeVolumeLimits),
    "VolumeBinding": volume_binding,
    "VolumeZone": _without_arguments(VolumeZone),
    "PodTopologySpread": pod_topology_spread,
    "InterPodAffinity": inter_pod_affinity,
    "DynamicResources": _checking(check_dynamic_resources, DynamicResources),
    DEFAULT_PREEMPTION: _checking(check_preemption, lambda: EnginePart(DEFAULT_PREEMPTION)),
    "NodeResourcesBalancedAllocation": resource_arguments.balanced_allocation,
    "ImageLocality": _without_arguments(ImageLocality),
    "DefaultBinder": _without_arguments(DefaultBinder),
    "NodeDeclaredFeatures": _without_arguments(NodeDeclaredFeatures),
    **{name: _engine_part(name) for name in GROUP_PLUGINS},
}
"""Makers of the plugins, in the default order; those for groups of pods are not enabled by default."""

DEFAULTS: Final = tuple(name for name in FACTORIES if name not in GROUP_PLUGINS)
"""The plugins that are enabled where a configuration says nothing, in their order."""
TAKING_ARGUMENTS: Final = frozenset(
    {
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    }
)
"""The plugins that have arguments; what is given for others means nothing."""
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


def plugin_named(name: str, args: Any = None) -> Plugin:
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
    return factory(_stated(name, args))


def check_arguments(name: str, args: Any) -> None:
    """Check the arguments of a plugin that is not enabled, or that may be none of kube-scheduler's.

    Of NodeResourcesFit only the shape is looked at then, as kube-scheduler does.

    Raises:
        UsageError: they are not valid.
    """
    if name == NodeResourcesFit.name:
        converted(name, _stated(name, args), resource_arguments.FitArguments)
    elif name in TAKING_ARGUMENTS:
        plugin_named(name, args)


def _stated(name: str, args: Any) -> Arguments:
    """Give arguments as an object; whatever stands there for a plugin that takes none is overlooked."""
    if args is None or name not in TAKING_ARGUMENTS:
        return {}
    if not isinstance(args, Mapping):
        raise refusal(name, "", "the arguments have to be an object")
    return args


def default_plugins() -> list[Enabled]:
    """Make the plugins that are enabled where a configuration says nothing, in their order."""
    return [Enabled(plugin_named(name), WEIGHTS.get(name, 0)) for name in DEFAULTS]
