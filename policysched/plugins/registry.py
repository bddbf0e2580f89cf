"""The registry of the default plugins: their order, extension points, weights and arguments.

The order is kube-scheduler's: if several plugins reject a node, the first one is reported. A configuration enables
plugins by extension point. If a plugin has no such point, the configuration is refused. So entries also list points of
kube-scheduler that have no effect in policysched, such as `placementScore`.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, pkg/scheduler/framework/runtime/framework.go
(getExtensionPoints), framework/plugins, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from policysched.errors import UsageError
from policysched.framework import Plugin
from policysched.framework.registry import PluginRegistry
from policysched.plugins.arguments import PluginArguments, converted
from policysched.plugins.default_binder import DefaultBinder
from policysched.plugins.default_preemption.plugin import DefaultPreemption, PreemptionArguments
from policysched.plugins.dynamic_resources.plugin import DynamicResourcesArguments, dynamic_resources
from policysched.plugins.inter_pod_affinity.plugin import AffinityArguments, inter_pod_affinity
from policysched.plugins.node_resources.balanced_allocation import BalanceArguments, balanced_allocation
from policysched.plugins.node_resources.fit import FitArguments, node_resources_fit
from policysched.plugins.nodes.image_locality import ImageLocality
from policysched.plugins.nodes.node_affinity import NodeAffinityArguments, node_affinity
from policysched.plugins.nodes.node_filters import (
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
)
from policysched.plugins.pod_topology_spread.plugin import SpreadArguments, pod_topology_spread
from policysched.plugins.queue_plugins import PrioritySort, SchedulingGates
from policysched.plugins.volumes.node_volume_limits import NodeVolumeLimits
from policysched.plugins.volumes.volume_binding import VolumeBindingArguments, volume_binding
from policysched.plugins.volumes.volume_restrictions import VolumeRestrictions
from policysched.plugins.volumes.volume_zone import VolumeZone

MULTI_POINT: Final = "multiPoint"
"""Where a configuration enables plugins at all the points where they act."""
DEFAULT_ORIGIN: Final = "default"
"""Where the plugins of this package come from, beside those of others."""


@dataclass(frozen=True, slots=True)
class EnginePart(Plugin):
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


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin of kube-scheduler."""

    points: str
    """Where it acts; `filter+` and `score+` are those points with the one before."""
    make: Callable[..., Plugin] | None = None
    """Makes it, of its arguments where it has some; None for what the engine does itself."""
    arguments: type[PluginArguments] | None = None
    weight: int = 0
    """What its scores weigh by default, 0 where it does not score."""
    is_default: bool = True
    """Whether it is enabled where a configuration says nothing."""


PLUGINS: Final[Mapping[str, PluginEntry]] = {
    "SchedulingGates": PluginEntry("preEnqueue", SchedulingGates),
    "PrioritySort": PluginEntry("queueSort", PrioritySort),
    "NodeUnschedulable": PluginEntry("filter", NodeUnschedulable),
    "NodeName": PluginEntry("filter", NodeName),
    "TaintToleration": PluginEntry("filter score+", TaintToleration, weight=3),
    "NodeAffinity": PluginEntry("filter+ score+", node_affinity, NodeAffinityArguments, weight=2),
    "NodePorts": PluginEntry("filter+", NodePorts),
    "NodeResourcesFit": PluginEntry("filter+ score+ placementScore", node_resources_fit, FitArguments, weight=1),
    "VolumeRestrictions": PluginEntry("filter+", VolumeRestrictions),
    "NodeVolumeLimits": PluginEntry("filter+", NodeVolumeLimits),
    "VolumeBinding": PluginEntry("filter+ score+ reserve preBind", volume_binding, VolumeBindingArguments),
    "VolumeZone": PluginEntry("filter+", VolumeZone),
    "PodTopologySpread": PluginEntry("filter+ score+", pod_topology_spread, SpreadArguments, weight=2),
    "InterPodAffinity": PluginEntry("filter+ score+", inter_pod_affinity, AffinityArguments, weight=2),
    "DynamicResources": PluginEntry(
        "preEnqueue filter+ postFilter score reserve preBind",
        dynamic_resources,
        DynamicResourcesArguments,
        weight=2,
    ),
    "DefaultPreemption": PluginEntry("preEnqueue postFilter", DefaultPreemption, PreemptionArguments),
    "NodeResourcesBalancedAllocation": PluginEntry("score+", balanced_allocation, BalanceArguments, weight=1),
    "ImageLocality": PluginEntry("score", ImageLocality, weight=1),
    "DefaultBinder": PluginEntry("bind", DefaultBinder),
    "NodeDeclaredFeatures": PluginEntry("filter+", NodeDeclaredFeatures),
    "GangScheduling": PluginEntry("preEnqueue permit", is_default=False),
    "TopologyPlacementGenerator": PluginEntry("placementGenerate", is_default=False),
    "PodGroupPodsCount": PluginEntry("placementScore", is_default=False),
}
"""The plugins in the default order; those for groups of pods are not enabled by default."""


def _points(text: str) -> frozenset[str]:
    return frozenset(text.replace("filter+", "preFilter filter").replace("score+", "preScore score").split())


ACTS_AT: Final[Mapping[str, frozenset[str]]] = {name: _points(entry.points) for name, entry in PLUGINS.items()}
DEFAULTS: Final = tuple(name for name, entry in PLUGINS.items() if entry.is_default)
"""The plugins that are enabled where a configuration says nothing, in their order."""
WEIGHTS: Final[Mapping[str, int]] = {name: entry.weight for name, entry in PLUGINS.items() if entry.weight}
"""Default weights of the plugins that score."""


def plugin_named(name: str, args: Any = None) -> Plugin:
    """Make a default plugin.

    Args:
        name: its name in configurations.
        args: its arguments as the configuration's `pluginConfig` states them; plugins without any overlook them.

    Raises:
        UsageError: there is no such plugin, or its arguments are not valid.
    """
    entry = PLUGINS.get(name)
    if entry is None:
        raise UsageError(f'unknown plugin "{name}"; the plugins are {", ".join(sorted(PLUGINS))}')
    if entry.make is None:
        return EnginePart(name)
    return entry.make() if entry.arguments is None else entry.make(converted(name, args, entry.arguments))


def default_registry() -> PluginRegistry:
    """Make the registry of kube-scheduler's plugins."""
    made = PluginRegistry()
    for name in PLUGINS:
        made.register(name, partial(_without_handle, name), origin=DEFAULT_ORIGIN)
    return made


def _without_handle(name: str, args: Any, _handle: Any) -> Plugin:
    return plugin_named(name, args)


def default_plugins() -> list[Enabled]:
    """Make the plugins that are enabled where a configuration says nothing, in their order."""
    return [Enabled(plugin_named(name), WEIGHTS.get(name, 0)) for name in DEFAULTS]
