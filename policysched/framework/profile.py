"""A profile: which plugins run for the pods of one scheduler name, in which order and with which weights.

Policies come after the configured plugins of a point. A profile is immutable; another policy set makes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from policysched.framework.binding import BindPlugin, PermitPlugin, PostBindPlugin, PreBindPlugin, ReservePlugin
from policysched.framework.extender import EXTENDER, Extender
from policysched.framework.optional_interfaces import (
    FilterOfChangedRow,
    PerPod,
    PuttingOff,
    SharedKey,
    Successor,
    class_filter,
    class_score,
    is_lasting,
    per_pod,
    reads_own_namespace,
    shared_key,
)
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.partial_plugins import FilterOnly
from policysched.framework.plugin import (
    ANY_CHANGE,
    FilterPlugin,
    Hint,
    Plugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ScorePlugin,
)
from policysched.framework.post_filter import PostFilterPlugin, VictimGuard
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.tables.journal import ABOUT_PODS


class PerPodPlugins(NamedTuple):
    """The plugins that have answers of one pod's own."""

    filters: tuple[tuple[int, FilterPlugin], ...]
    """Each with its place where they are prepared."""
    scores: tuple[tuple[ScorePlugin, int | None], ...]
    """With their weights, None for those at PreScore alone; in the order of PreScore."""


@dataclass(frozen=True)
class Profile:
    """The plugins of a scheduler name, by extension point."""

    scheduler_name: str
    queue_sort: QueueSortPlugin
    pre_enqueue: tuple[PreEnqueuePlugin, ...] = ()
    filters: tuple[FilterPlugin, ...] = ()
    """Filters in their order: of those that reject a node the first reports."""
    pre_filters: tuple[FilterPlugin, ...] | None = None
    """The order in which filters are prepared, where it is another one. It has every filter, and those plugins too
    of which only PreFilter is enabled."""
    scores: tuple[tuple[ScorePlugin, int], ...] = ()
    """Score plugins with their weights."""
    pre_scores: tuple[ScorePlugin, ...] = ()
    """The plugins of which only PreScore is enabled."""
    pre_score_order: tuple[str, ...] = ()
    """The names of the plugins at PreScore, in their order there."""
    post_filters: tuple[PostFilterPlugin, ...] = ()
    victim_guards: tuple[VictimGuard, ...] = ()
    """What keeps pods from being victims of preemption: policies."""
    shadow_guards: tuple[VictimGuard, ...] = ()
    """What would keep pods from being victims, and is only counted: policies in Shadow mode."""
    reserves: tuple[ReservePlugin, ...] = ()
    permits: tuple[PermitPlugin, ...] = ()
    pre_binds: tuple[PreBindPlugin, ...] = ()
    binds: tuple[BindPlugin, ...] = ()
    """The plugins that bind pods: each is asked until one does not skip the pod."""
    post_binds: tuple[PostBindPlugin, ...] = ()
    extenders: tuple[Extender, ...] = ()
    """The services outside that take part in decisions, in the order in which they are asked."""
    policies_filter: bool = True
    policies_score: bool = True
    """Whether SchedulingPolicies act at these points."""
    handle: PluginHandle | None = None
    """What its out-of-tree plugins reach the scheduler with."""
    extra_key: Callable[[Pod, Cluster], Hashable] | None = None
    """What policies read of a pod beyond the fields that always make its class, and what they make of the time."""

    def __post_init__(self) -> None:
        """Check what every filter owes to those who ask what would be with other pods on a node.

        Raises:
            TypeError: A filter reads pods and does not answer for changed rows.
        """
        for plugin in self.filters:
            if plugin.filter_reads & ABOUT_PODS and not isinstance(plugin, FilterOfChangedRow):
                raise TypeError(f"{plugin.name} reads the pods of nodes and has no filter_changed")

    def with_policies(
        self,
        filters: tuple[FilterPlugin, ...],
        scores: tuple[tuple[ScorePlugin, int], ...],
        extra_key: Callable[[Pod, Cluster], Hashable] | None,
        victim_guards: tuple[VictimGuard, ...] = (),
        shadow_guards: tuple[VictimGuard, ...] = (),
    ) -> Profile:
        """Return this profile with policies behind its plugins."""
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
    def prepared(self) -> tuple[FilterPlugin, ...]:
        """The filters in the order in which they are prepared."""
        return self.filters if self.pre_filters is None else self.pre_filters

    @cached_property
    def pre_filter_names(self) -> tuple[str, ...]:
        """The names of the plugins at PreFilter, as they are prepared; an empty one for a filter not enabled there."""
        return tuple("" if isinstance(plugin, FilterOnly) else plugin.name for plugin in self.prepared)

    @property
    def plugin_names(self) -> frozenset[str]:
        """The names of the plugins that are enabled at any point."""
        plugins = (
            *self.pre_enqueue, *self.prepared, *self.filters, *self.pre_scores, *self.post_filters,
            *self.reserves, *self.permits, *self.pre_binds, *self.binds, *self.post_binds,
        )  # fmt: skip
        return frozenset((self.queue_sort.name, *(one.name for one in plugins), *(one.name for one, _ in self.scores)))

    @cached_property
    def places(self) -> dict[str, int]:
        """The places of the filters in their order, by name."""
        return {plugin.name: place for place, plugin in enumerate(self.filters)}

    @cached_property
    def class_filters(self) -> tuple[tuple[int, FilterPlugin], ...]:
        """The filters whose answers hold for a whole pod class, each with its place where they are prepared."""
        parts = ((place, class_filter(plugin)) for place, plugin in enumerate(self.prepared))
        return tuple((place, plugin) for place, plugin in parts if plugin is not None)

    def has_plugins_of(self, other: Profile) -> bool:
        """Return whether the same plugins decide in scheduling cycles, in the same order, perhaps by other weights."""
        return self.deciding == other.deciding

    @cached_property
    def deciding(self) -> tuple[object, ...]:
        """The identity of the plugins and of all else that decides, except weights; comparable while plugins exist."""
        scores = tuple(plugin for plugin, _ in self.scores)
        points = (self.prepared, self.filters, scores, self.pre_scores, self.extenders)
        return (*(tuple(map(id, plugins)) for plugins in points), self.pre_score_order, self.extra_key)

    def take_over(self, before: Profile) -> None:
        """Let plugins go on with what those of the same names have under way in a profile that this one replaces."""
        old = {plugin.name: plugin for plugin in (*before.pre_enqueue, *before.post_filters)}
        for plugin in (*self.pre_enqueue, *self.post_filters):
            if isinstance(plugin, Successor) and plugin.name in old:
                plugin.take_over(old[plugin.name])

    def reserving(self, pod: Pod, cluster: Cluster) -> tuple[ReservePlugin, ...]:
        """Return the Reserve plugins that have to do with a pod, in their order."""
        return tuple([plugin for plugin, asked in self._reserving if asked is None or asked(pod, cluster)])

    @cached_property
    def _reserving(self) -> tuple[tuple[ReservePlugin, PerPod | None], ...]:
        return tuple((plugin, per_pod(plugin)) for plugin in self.reserves)

    @cached_property
    def hints(self) -> dict[str, Sequence[Hint]]:
        """The changes that can help pods which plugins rejected, by plugin.

        One at Reserve or Permit that names none is helped by every change, and so is an extender. A policy that guards
        victims and filters, too, has one name for both.
        """
        rejecting = (*self.pre_enqueue, *self.prepared, *self.reserves, *self.permits)
        named = {plugin.name: plugin.events() if hasattr(plugin, "events") else ANY_CHANGE for plugin in rejecting}
        guards = {guard.name: (*named.get(guard.name, ()), *guard.events()) for guard in self.victim_guards}
        return named | guards | ({EXTENDER: ANY_CHANGE} if self.extenders else {})

    @cached_property
    def _prepared_scores(self) -> tuple[tuple[ScorePlugin, int | None], ...]:
        """The plugins at PreScore with their weights, None for those that are not at Score; none where none scores."""
        return (*self.scores, *((plugin, None) for plugin in self.pre_scores)) if self.scores else ()

    @cached_property
    def class_scores(self) -> tuple[tuple[ScorePlugin, int | None], ...]:
        """Those whose answers hold for a whole pod class."""
        parts = ((class_score(plugin), weight) for plugin, weight in self._prepared_scores)
        return tuple((plugin, weight) for plugin, weight in parts if plugin is not None)

    def per_pod_plugins(self, pod: Pod, cluster: Cluster) -> PerPodPlugins | None:
        """Return the plugins that have answers of the pod's own, None where there is none."""
        asked = tuple(
            [
                check(pod, cluster) and (share is None or share(pod, cluster) is None)
                for check, share in self._per_pod_checks
            ]
        )
        if asked not in self._per_pod:
            self._per_pod[asked] = self._chosen(dict(zip(self._per_pod_checks, asked, strict=True)))
        return self._per_pod[asked]

    @cached_property
    def _per_pod_checks(self) -> tuple[tuple[PerPod, SharedKey | None], ...]:
        """What plugins with answers of a pod's own ask of it, each question once, and what they find pods to share."""
        plugins = (*self.prepared, *(plugin for plugin, _ in self._prepared_scores))
        asked = ((per_pod(plugin), shared_key(plugin)) for plugin in plugins)
        return tuple(dict.fromkeys((check, share) for check, share in asked if check is not None))

    def shared_keys(self, pod: Pod, cluster: Cluster) -> tuple[Hashable, ...]:
        """Return what a pod shares with others about whose own things plugins answer alike."""
        found: tuple[Hashable, ...] = ()
        shares = False
        for share in self._sharing:
            one = share(pod, cluster)
            shares = shares or one is not None
            found = (*found, one)
        return found if shares else ()

    @cached_property
    def _sharing(self) -> tuple[SharedKey, ...]:
        return tuple(share for _, share in self._per_pod_checks if share is not None)

    @cached_property
    def _per_pod(self) -> dict[tuple[bool, ...], PerPodPlugins | None]:
        """Those plugins, by what the questions were answered."""
        return {}

    def _chosen(self, answers: Mapping[tuple[PerPod, SharedKey | None], bool]) -> PerPodPlugins | None:
        order = {name: place for place, name in enumerate(self.pre_score_order)}
        ordered = sorted(self._prepared_scores, key=lambda one: order.get(one[0].name, len(order)))

        def has(plugin: FilterPlugin | ScorePlugin) -> bool:
            asked = per_pod(plugin)
            return asked is not None and answers[asked, shared_key(plugin)]

        filters = tuple((place, plugin) for place, plugin in enumerate(self.prepared) if has(plugin))
        scores = tuple((plugin, weight) for plugin, weight in ordered if has(plugin))
        return PerPodPlugins(filters, scores) if filters or scores else None

    def put_off_by(self, pod: Pod, cluster: Cluster) -> str:
        """Return the name of a plugin for which the pod is to be tried later, empty for none: see `PuttingOff`."""
        return next((plugin.name for plugin in self._putting_off if plugin.puts_off(pod, cluster)), "")

    @cached_property
    def _putting_off(self) -> tuple[PuttingOff, ...]:
        return tuple(plugin for plugin in self.prepared if isinstance(plugin, PuttingOff))

    def _preparing(self) -> Iterable[Plugin]:
        """List the plugins that filter or score, each once."""
        return {id(one): one for one in (*self.prepared, *(plugin for plugin, _ in self._prepared_scores))}.values()

    @cached_property
    def out_of_tree_cycle(self) -> frozenset[str]:
        """The names of the out-of-tree plugins that act before a node is chosen."""
        plugins = (*self.prepared, *(plugin for plugin, _ in self._prepared_scores))
        return frozenset(plugin.name for plugin in plugins if isinstance(plugin, OutOfTreePlugin))

    def extending(self, pod: Pod) -> list[Extender]:
        """Return the extenders that are interested in a pod."""
        return [one for one in self.extenders if one.is_interested(pod)]

    def generations(self, cluster: Cluster) -> Hashable:
        """Return a value whose change makes prepared states stale."""
        return tuple([plugin.generation(cluster) for plugin in self._moving])

    @cached_property
    def reads_own_namespace(self) -> bool:
        """Whether labels of a pod's own namespace decide about what some plugin prepares for it."""
        return any(reads_own_namespace(one) for one in self._preparing())

    @cached_property
    def _moving(self) -> tuple[FilterPlugin | ScorePlugin, ...]:
        """The plugins whose prepared states can go stale as a whole, each once."""
        plugins: tuple[FilterPlugin | ScorePlugin, ...] = (
            *self.prepared, *(plugin for plugin, _ in self.scores), *self.pre_scores
        )  # fmt: skip
        return tuple({id(plugin): plugin for plugin in plugins if not is_lasting(plugin)}.values())
