"""`Profile`: the plugins that run for the pods of one scheduler name, with their order and weights.

The plugins of policies come after the configured plugins of a point. A profile is immutable; another policy set makes
another profile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from policysched.framework.binding import BindPlugin, PermitPlugin, PostBindPlugin, PreBindPlugin, ReservePlugin
from policysched.framework.extender import EXTENDER, Extender
from policysched.framework.optional_interfaces import Incremental, PerPod, PluginBlock, RetryControl, WhatIfFilter
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.plugin import (
    ANY_CHANGE,
    FilterPlugin,
    Hint,
    Plugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ScorePlugin,
)
from policysched.framework.pod_groups import (
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupPostFilterPlugin,
)
from policysched.framework.post_filter import PostFilterPlugin, VictimGuard
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.tables.journal import ABOUT_PODS

Filter: TypeAlias = FilterPlugin[Any] | OutOfTreePlugin
Score: TypeAlias = ScorePlugin[Any] | OutOfTreePlugin

FIRST_PLACE: Final = 3
"""Place of a profile's first filter in the order of filters; lower places stand for rejections without a plugin."""


class PerPodPlugins(NamedTuple):
    """The plugins whose results for a certain pod cannot be shared with equal pods, so that it is evaluated alone."""

    filters: tuple[tuple[int, Filter], ...]
    """The filters that evaluate the pod alone, each with its place in the order of PreFilter."""
    scores: tuple[tuple[Score, int | None], ...]
    """The score plugins in the order of PreScore, with their weights; None for a plugin enabled at PreScore only."""


@dataclass(frozen=True)
class Profile:
    """The plugins for the pods of one scheduler name, by extension point."""

    scheduler_name: str
    queue_sort: QueueSortPlugin
    pre_enqueue: tuple[PreEnqueuePlugin, ...] = ()
    filters: tuple[Filter, ...] = ()
    """The filters in the order of Filter; of several filters that reject a node, the first is reported."""
    pre_filters: tuple[Filter, ...] | None = None
    """The filters in the order of PreFilter, with plugins enabled at PreFilter only; None if that is Filter's order."""
    scores: tuple[tuple[Score, int], ...] = ()
    """The score plugins in the order of Score, with their weights."""
    pre_scores: tuple[Score, ...] = ()
    """The plugins that are enabled at PreScore but not at Score."""
    pre_score_order: tuple[str, ...] = ()
    """The names of the plugins at PreScore, in their order."""
    post_filters: tuple[PostFilterPlugin, ...] = ()
    pod_group_post_filters: tuple[PodGroupPostFilterPlugin, ...] = ()
    placement_generate: tuple[PlacementGeneratePlugin, ...] = ()
    placement_feasible: tuple[PlacementFeasiblePlugin, ...] = ()
    placement_scores: tuple[tuple[PlacementScorePlugin, int], ...] = ()
    """The plugins that score placements of pod groups, with their weights."""
    placements_percentage: int = 0
    """The percentage of a pod group's placements that have to be feasible before they are scored; 0 means automatic.

    The automatic percentage falls with the number of nodes.
    """
    victim_guards: tuple[VictimGuard, ...] = ()
    """The guards of policies, which protect pods from preemption."""
    shadow_guards: tuple[VictimGuard, ...] = ()
    """The guards of policies in Shadow mode: pods that they would protect are only counted in metrics."""
    reserves: tuple[ReservePlugin, ...] = ()
    permits: tuple[PermitPlugin, ...] = ()
    pre_binds: tuple[PreBindPlugin, ...] = ()
    binds: tuple[BindPlugin, ...] = ()
    """The plugins at Bind, called in order until a plugin does not return SKIP."""
    post_binds: tuple[PostBindPlugin, ...] = ()
    extenders: tuple[Extender, ...] = ()
    """The extenders, in the order of their calls."""
    policies_filter: bool = True
    policies_score: bool = True
    """Whether any policy of the profile filters (`policies_filter`), and whether any policy scores."""
    handle: PluginHandle | None = None
    """The handle through which out-of-tree plugins access the scheduler; None without such plugins."""
    extra_key: Callable[[Pod, Cluster], Hashable] | None = None
    """Function that returns what policies read of a pod or of the time, as a part of the pod's cache key."""

    def __post_init__(self) -> None:
        """Check that each filter that reads the pods on nodes can evaluate simulated nodes.

        Raises:
            TypeError: a filter does not.
        """
        for plugin in self.filters:
            if plugin.filter_reads & ABOUT_PODS and not isinstance(plugin, WhatIfFilter | OutOfTreePlugin):
                raise TypeError(f"{plugin.name} reads the pods of nodes and is no WhatIfFilter")

    def with_policies(
        self,
        filters: tuple[FilterPlugin[Any], ...],
        scores: tuple[tuple[ScorePlugin[Any], int], ...],
        extra_key: Callable[[Pod, Cluster], Hashable] | None,
        victim_guards: tuple[VictimGuard, ...] = (),
        shadow_guards: tuple[VictimGuard, ...] = (),
    ) -> Profile:
        """Return a copy of this profile that runs the plugins of policies after the configured plugins."""
        return replace(
            self,
            filters=self.filters + filters,
            pre_filters=None if self.pre_filters is None else self.pre_filters + filters,
            scores=self.scores + scores,
            extra_key=extra_key,
            victim_guards=victim_guards,
            shadow_guards=shadow_guards,
        )

    @property
    def prepared(self) -> tuple[Filter, ...]:
        """The plugins in the order of PreFilter, including plugins that are enabled at PreFilter only."""
        return self.filters if self.pre_filters is None else self.pre_filters

    @cached_property
    def pre_filter_names(self) -> tuple[str, ...]:
        """The names of the filters in the order of PreFilter; an empty string for a filter without PreFilter."""
        enabled = (isinstance(plugin, OutOfTreePlugin) or plugin.pre_filters for plugin in self.prepared)
        return tuple(plugin.name if on else "" for plugin, on in zip(self.prepared, enabled, strict=True))

    @property
    def plugin_names(self) -> frozenset[str]:
        """The names of the plugins that are enabled at any point."""
        plugins: tuple[Plugin, ...] = (
            *self.pre_enqueue, *self.prepared, *self.filters, *self.pre_scores, *self.post_filters,
            *self.reserves, *self.permits, *self.pre_binds, *self.binds, *self.post_binds,
            *self.placement_generate, *self.placement_feasible,
        )  # fmt: skip
        scoring = (*self.scores, *self.placement_scores)
        return frozenset((self.queue_sort.name, *(one.name for one in plugins), *(one.name for one, _ in scoring)))

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each filter plugin in the order of Filter, by name; the first place is FIRST_PLACE."""
        return {plugin.name: place for place, plugin in enumerate(self.filters, FIRST_PLACE)}

    @cached_property
    def weights(self) -> dict[str, tuple[int, int]]:
        """The weight and tier of each score plugin, and of each policy, by plugin name."""
        found = {plugin.name: (weight, plugin.tier) for plugin, weight in self.scores}
        blocks = [plugin for plugin, _ in self.scores if isinstance(plugin, PluginBlock)]
        return found | {one.name: (one.weight, one.tier) for block in blocks for one in block.members}

    @cached_property
    def _prepared_scores(self) -> tuple[tuple[Score, int | None], ...]:
        """The plugins at PreScore with their weights; None for a plugin not enabled at Score; empty if none scores."""
        return (*self.scores, *((plugin, None) for plugin in self.pre_scores)) if self.scores else ()

    @cached_property
    def _cycle_plugins(self) -> tuple[Filter | Score, ...]:
        """The plugins at the points from PreFilter to Score, without duplicates."""
        plugins = (*self.prepared, *(plugin for plugin, _ in self._prepared_scores))
        return tuple({id(plugin): plugin for plugin in plugins}.values())

    @cached_property
    def class_filters(self) -> tuple[tuple[int, FilterPlugin[Any]], ...]:
        """The filters whose results equal pods share, each with its place in the order of PreFilter."""
        parts = (one.class_filter if isinstance(one, PerPod) else one for one in self.prepared)
        return tuple((place, plugin) for place, plugin in enumerate(parts) if plugin is not None)

    @cached_property
    def class_scores(self) -> tuple[tuple[ScorePlugin[Any], int | None], ...]:
        """The score plugins whose results equal pods share, with their weights."""
        parts = ((one.class_score if isinstance(one, PerPod) else one, weight) for one, weight in self._prepared_scores)
        return tuple((plugin, weight) for plugin, weight in parts if plugin is not None)

    @cached_property
    def _per_pod(self) -> tuple[PerPod, ...]:
        return tuple(one for one in self._cycle_plugins if isinstance(one, PerPod))

    @cached_property
    def _checks(self) -> frozenset[Callable[[Pod, Cluster], bool]]:
        return frozenset(one.has_own_results for one in self._per_pod)

    @cached_property
    def _sharing(self) -> tuple[PerPod, ...]:
        return tuple(one for one in self._per_pod if one.class_filter is not None or one.class_score is not None)

    def per_pod_plugins(self, pod: Pod, cluster: Cluster) -> PerPodPlugins | None:
        """Return the plugins whose results for a pod cannot be shared with equal pods; None if all can."""
        reading = {check for check in self._checks if check(pod, cluster)}
        if not reading:
            return None
        own = [one for one in self._per_pod if one.has_own_results in reading and one.shared_key(pod, cluster) is None]
        if not own:
            return None
        key = tuple(map(id, own))
        if key not in self._known_per_pod:
            self._known_per_pod[key] = self._ordered(own)
        return self._known_per_pod[key]

    @cached_property
    def _known_per_pod(self) -> dict[tuple[int, ...], PerPodPlugins]:
        return {}

    def _ordered(self, plugins: Collection[PerPod]) -> PerPodPlugins:
        order = {name: place for place, name in enumerate(self.pre_score_order)}
        scores = [(plugin, weight) for plugin, weight in self._prepared_scores if plugin in plugins]
        scores.sort(key=lambda one: order.get(one[0].name, len(order)))
        filters = tuple((place, plugin) for place, plugin in enumerate(self.prepared) if plugin in plugins)
        return PerPodPlugins(filters, tuple(scores))

    def shared_keys(self, pod: Pod, cluster: Cluster) -> tuple[Hashable, ...]:
        """Return the keys that plugins add to a pod's cache key, so that only pods with equal results share them."""
        keys = tuple([one.shared_key(pod, cluster) for one in self._sharing])
        return keys if any(key is not None for key in keys) else ()

    @cached_property
    def _reserves(self) -> tuple[tuple[ReservePlugin, Callable[[Pod, Cluster], bool] | None], ...]:
        """The Reserve plugins, each with a function that returns whether it applies to a pod; None if always."""
        own = ((plugin, plugin if isinstance(plugin, PerPod) else None) for plugin in self.reserves)
        return tuple((plugin, None if one is None else one.has_own_results) for plugin, one in own)

    def reserving(self, pod: Pod, cluster: Cluster) -> tuple[ReservePlugin, ...]:
        """Return the Reserve plugins that apply to a pod, in their order."""
        return tuple([plugin for plugin, applies in self._reserves if applies is None or applies(pod, cluster)])

    @cached_property
    def hints(self) -> dict[str, Sequence[Hint]]:
        """The queueing hints of each plugin that can reject pods, by plugin name.

        A policy that filters and guards victims has one name for both.
        """
        rejecting = members_of(
            (*self.pre_enqueue, *self.prepared, *self.reserves, *self.permits, *self.placement_feasible)
        )
        named = {plugin.name: plugin.events() for plugin in rejecting}
        guards = {guard.name: (*named.get(guard.name, ()), *guard.events()) for guard in self.victim_guards}
        return named | guards | ({EXTENDER: ANY_CHANGE} if self.extenders else {})

    def put_off_by(self, pod: Pod, cluster: Cluster) -> str:
        """Return the name of a plugin that delays the pod until another pod's binding ends; empty if none delays it."""
        return next((plugin.name for plugin in self.retry_controls if plugin.puts_off(pod, cluster)), "")

    @cached_property
    def retry_controls(self) -> tuple[RetryControl, ...]:
        """The filter plugins that decide themselves when a rejected pod is retried."""
        return tuple(plugin for plugin in members_of(self.prepared) if isinstance(plugin, RetryControl))

    @cached_property
    def _incremental(self) -> tuple[Incremental[Any], ...]:
        plugins: tuple[Plugin, ...] = self._cycle_plugins
        return tuple(plugin for plugin in plugins if isinstance(plugin, Incremental))

    def stamps(self, cluster: Cluster) -> Hashable:
        """Return a value that identifies what plugins read besides nodes and pod; if it changes, they prepare again."""
        return tuple([plugin.stamp(cluster) for plugin in self._incremental])

    @cached_property
    def reads_own_namespace(self) -> bool:
        """Whether the data that any plugin prepares for a pod depends on the labels of the pod's namespace."""
        return any(plugin.reads_own_namespace for plugin in self._incremental)

    @cached_property
    def out_of_tree_cycle(self) -> frozenset[str]:
        """The names of the out-of-tree plugins at the points from PreFilter to Score."""
        return frozenset(plugin.name for plugin in self._cycle_plugins if isinstance(plugin, OutOfTreePlugin))

    def extending(self, pod: Pod) -> list[Extender]:
        """Return the extenders that process a pod, according to their configuration."""
        return [one for one in self.extenders if one.is_interested(pod)]

    def take_over(self, before: Profile) -> None:
        """Let each plugin continue the work of the plugin of the same name in the profile that is replaced."""
        old = {plugin.name: plugin for plugin in (*before.pre_enqueue, *before.post_filters)}
        for plugin in (*self.pre_enqueue, *self.post_filters):
            if plugin.name in old:
                plugin.take_over(old[plugin.name])


def members_of(plugins: Iterable[Plugin]) -> Iterator[Plugin]:
    """Yield plugins, with each policy in place of the block that evaluates all policies."""
    for plugin in plugins:
        yield from plugin.members if isinstance(plugin, PluginBlock) else (plugin,)
