"""The registry of a release's default plugins, with order, extension points, weights and arguments.

The order is kube-scheduler's: if several plugins reject a node, the first one is reported. A configuration enables
plugins by extension point. If a plugin has no such point, the configuration is refused. So entries also list points
that have no effect without a feature gate, such as `placementScore`.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, pkg/scheduler/framework/runtime/framework.go
(getExtensionPoints), framework/plugins, v1.36, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

from policysched.errors import UsageError
from policysched.framework import Plugin
from policysched.framework.registry import PluginRegistry
from policysched.model.quantity import exact_value, value
from policysched.model.release import DEFAULT, Release
from policysched.plugins.arguments import PluginArguments, converted
from policysched.plugins.default_binder import DefaultBinder
from policysched.plugins.default_preemption.budgets import BudgetRules
from policysched.plugins.default_preemption.for_groups import GroupRules
from policysched.plugins.default_preemption.plugin import DefaultPreemption, PreemptionArguments
from policysched.plugins.default_preemption.search import SearchRules
from policysched.plugins.dynamic_resources.plugin import DynamicResourcesArguments, dynamic_resources
from policysched.plugins.gang_scheduling import GangScheduling, WaitingGangScheduling
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
from policysched.plugins.pod_group_placements import PodGroupPodsCount, TopologyPlacementGenerator
from policysched.plugins.pod_topology_spread.plugin import SpreadArguments, pod_topology_spread
from policysched.plugins.queue_plugins import PrioritySort, SchedulingGates
from policysched.plugins.volumes.node_volume_limits import NodeVolumeLimits
from policysched.plugins.volumes.volume_binding import ScoringArguments, VolumeBindingArguments, volume_binding
from policysched.plugins.volumes.volume_restrictions import VolumeRestrictions
from policysched.plugins.volumes.volume_zone import VolumeZone

MULTI_POINT: Final = "multiPoint"
"""The configuration field that enables a plugin at all its extension points."""
DEFAULT_ORIGIN: Final = "default"
"""The origin, in messages, of the plugins of this package; other packages' plugins have the package's name."""


@dataclass(frozen=True, slots=True)
class EnginePart(Plugin):
    """Placeholder for a plugin of kube-scheduler whose work the engine does itself.

    Plugins for pod groups are placeholders, too: while kube-scheduler's feature gates disable pod groups, these plugins
    have no work.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Enabled:
    """An enabled plugin with the weight of its scores; the weight of a plugin without Score is 0."""

    plugin: Plugin
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """The registry's entry for one of kube-scheduler's plugins."""

    points: str
    """The plugin's extension points; `filter+` includes PreFilter, and `score+` includes PreScore."""
    make: Callable[..., Plugin] | None = None
    """Function that creates the plugin, from its arguments if it has any; None if the engine does its work."""
    arguments: type[PluginArguments] | None = None
    weight: int = 0
    """The default weight of the plugin's scores; 0 for a plugin without Score."""
    is_default: bool = True
    """Whether the plugin is enabled by default."""
    disabled_at: tuple[str, ...] = ()
    """The extension points at which the plugin is disabled by default."""


@lru_cache(maxsize=8)
def plugin_entries(release: Release = DEFAULT) -> Mapping[str, PluginEntry]:
    """Return a release's plugin entries in their default order, then the plugins that are disabled by default."""
    return {
        "SchedulingGates": PluginEntry("preEnqueue", SchedulingGates),
        "PrioritySort": PluginEntry("queueSort", PrioritySort),
        **_node_entries(release),
        "NodeAffinity": PluginEntry("filter+ score+", node_affinity, NodeAffinityArguments, weight=2),
        "NodePorts": PluginEntry("filter+", NodePorts),
        "NodeResourcesFit": _node_resources_fit(release),
        **_volume_entries(release),
        "PodTopologySpread": _pod_topology_spread(release),
        "InterPodAffinity": _inter_pod_affinity(release),
        "DynamicResources": _dynamic_resources(release),
        "DefaultPreemption": _default_preemption(release),
        "NodeResourcesBalancedAllocation": PluginEntry("score+", balanced_allocation, BalanceArguments, weight=1),
        "ImageLocality": _image_locality(release),
        "DefaultBinder": PluginEntry("bind", DefaultBinder),
        "NodeDeclaredFeatures": PluginEntry("filter+", NodeDeclaredFeatures),
        **_optional_entries(release),
    }


def _node_entries(release: Release) -> dict[str, PluginEntry]:
    """Return the entries of NodeUnschedulable, NodeName and TaintToleration in the order of the release."""
    narrows = release.node_name_narrows
    points = "filter+" if narrows else "filter"
    node_name = {"NodeName": PluginEntry(points, partial(NodeName, narrows=narrows))}
    unschedulable = {"NodeUnschedulable": PluginEntry(points, NodeUnschedulable)}
    return {
        **(node_name | unschedulable if release.node_name_is_first else unschedulable | node_name),
        "TaintToleration": PluginEntry(f"{points} score+", TaintToleration, weight=3),
    }


def _node_resources_fit(release: Release) -> PluginEntry:
    make = partial(
        node_resources_fit,
        scores_pod_level=release.fit_scores_pod_level,
        shrinking_wakes=release.shrinking_node_wakes,
    )
    return PluginEntry("filter+ score+ placementScore", make, FitArguments, weight=1)


def _volume_entries(release: Release) -> dict[str, PluginEntry]:
    """Return the entries of the plugins for volumes in their default order."""
    limits = partial(NodeVolumeLimits, requires_drivers=release.missing_driver_rejects)
    binding = partial(volume_binding, measure=exact_value if release.exact_capacities else value)
    arguments = ScoringArguments if release.scores_storage_capacity else VolumeBindingArguments
    return {
        "VolumeRestrictions": PluginEntry("filter+", VolumeRestrictions),
        "NodeVolumeLimits": PluginEntry("filter+", limits),
        "VolumeBinding": PluginEntry("filter+ score+ reserve preBind", binding, arguments),
        "VolumeZone": PluginEntry("filter+", VolumeZone),
    }


def _pod_topology_spread(release: Release) -> PluginEntry:
    make = partial(pod_topology_spread, empty_counts=release.empty_spreading_counts)
    return PluginEntry("filter+ score+", make, SpreadArguments, weight=2)


def _inter_pod_affinity(release: Release) -> PluginEntry:
    make = partial(inter_pod_affinity, merges_namespaces=release.merges_namespaces)
    return PluginEntry("filter+ score+", make, AffinityArguments, weight=2)


def _image_locality(release: Release) -> PluginEntry:
    return PluginEntry("score", partial(ImageLocality, volumes_count=release.image_volumes_count), weight=1)


def _dynamic_resources(release: Release) -> PluginEntry:
    make = partial(
        dynamic_resources,
        reports_no_deallocation=release.no_deallocation_is_reported,
        frees_for_constrained=not release.topology_aware,
    )
    points = f"preEnqueue filter+ {_post_filter(release)} score reserve preBind"
    return PluginEntry(points, make, DynamicResourcesArguments, weight=2)


def _default_preemption(release: Release) -> PluginEntry:
    reserve = ("reserve",) if release.preemption_reserves else ()
    made = partial(
        DefaultPreemption,
        rules=BudgetRules(release.budgets_stop_at_violation, release.empty_budget_selects_all),
        searching=SearchRules(
            uid_breaks_ties=release.uid_breaks_ties,
            ranks_members=release.members_rank_as_groups,
            extenders_add_victims=release.extenders_add_victims,
            evicts_first_unstarted=release.evicts_first_unstarted,
        ),
        reports_node=release.preempted_node_is_reported,
        retries_at_once=release.unbound_victim_retries,
        for_groups=GroupRules(
            lack_is_final=release.lack_of_victims_is_final,
            policy_comes_first=release.preemption_policy_comes_first,
            ranks_nodes=release.preemption_ranks_nodes,
            clears_nominations=release.group_preemption_clears_nominations,
        ),
    )
    points = " ".join(("preEnqueue", _post_filter(release), *reserve))
    return PluginEntry(points, made, PreemptionArguments, disabled_at=() if release.generic_workload else reserve)


def _post_filter(release: Release) -> str:
    """Return the PostFilter points of a release."""
    return "postFilter podGroupPostFilter" if "podGroupPostFilter" in release.configuration_fields else "postFilter"


def _optional_entries(release: Release) -> dict[str, PluginEntry]:
    """Return the entries of plugins that a release disables by default or enables only by a feature gate."""
    point = "placementFeasible" if "placementFeasible" in release.configuration_fields else "permit"
    is_on = release.generic_workload
    gangs = partial(
        WaitingGangScheduling if release.gangs_wait_at_permit else GangScheduling,
        names_group=release.messages_name_pod_group,
    )
    by_topology = release.topology_aware
    generator = partial(
        TopologyPlacementGenerator,
        empty_is_domain=release.empty_topology_is_domain,
        quotes=release.messages_name_pod_group,
    )
    deferred = {"DeferredPodScheduling": PluginEntry("filter+ permit", is_default=False)}
    return {
        "GangScheduling": PluginEntry(f"preEnqueue {point}", gangs if is_on else None, is_default=is_on),
        "TopologyPlacementGenerator": PluginEntry(
            "placementGenerate", generator if by_topology else None, is_default=by_topology
        ),
        "PodGroupPodsCount": PluginEntry(
            "placementScore", PodGroupPodsCount if by_topology else None, weight=1, is_default=by_topology
        ),
        **(deferred if release.has_deferred_pod_scheduling else {}),
    }


def points_of_defaults(release: Release = DEFAULT) -> Mapping[str, frozenset[str]]:
    """Return the extension points of each of a release's plugins, by plugin name."""
    return {name: _points(entry.points) for name, entry in plugin_entries(release).items()}


def _points(text: str) -> frozenset[str]:
    return frozenset(text.replace("filter+", "preFilter filter").replace("score+", "preScore score").split())


def plugin_named(name: str, args: Any = None, release: Release = DEFAULT) -> Plugin:
    """Create one of the default plugins, by its name.

    Args:
        name: its name in configurations.
        args: its arguments as the configuration's `pluginConfig` states them; plugins without any overlook them.
        release: the release that it follows.

    Raises:
        UsageError: there is no such plugin, or its arguments are not valid.
    """
    entries = plugin_entries(release)
    entry = entries.get(name)
    if entry is None:
        raise UsageError(f'unknown plugin "{name}"; the plugins are {", ".join(sorted(entries))}')
    if entry.make is None:
        return EnginePart(name)
    return entry.make() if entry.arguments is None else entry.make(converted(name, args, entry.arguments))


def default_registry(release: Release = DEFAULT) -> PluginRegistry:
    """Return the registry of a release's default plugins, by name."""
    made = PluginRegistry()
    for name in plugin_entries(release):
        made.register(name, partial(_without_handle, name, release), origin=DEFAULT_ORIGIN)
    return made


def _without_handle(name: str, release: Release, args: Any, _handle: Any) -> Plugin:
    return plugin_named(name, args, release)


def default_plugins(release: Release = DEFAULT) -> list[Enabled]:
    """Return new plugins of the kinds that are enabled by default, in their order."""
    entries = plugin_entries(release).items()
    return [Enabled(plugin_named(name, release=release), entry.weight) for name, entry in entries if entry.is_default]
