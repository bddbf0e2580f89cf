"""Which plugins run for the pods of one scheduler name, in which order and with which weights.

Policies come after the configured plugins of a point. A profile is immutable; another policy set makes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property

from policysched.framework.plugin import (
    FilterPlugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    is_by_pod,
)
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster


@dataclass(frozen=True)
class Profile:
    """The plugins of a scheduler name, by extension point."""

    scheduler_name: str
    queue_sort: QueueSortPlugin
    pre_enqueue: tuple[PreEnqueuePlugin, ...] = ()
    filters: tuple[FilterPlugin, ...] = ()
    scores: tuple[tuple[ScorePlugin, int], ...] = ()
    """Score plugins with their weights."""
    post_filters: tuple[PostFilterPlugin, ...] = ()
    policies_filter: bool = True
    policies_score: bool = True
    """Whether SchedulingPolicies act at these points."""
    extra_key: Callable[[Pod, Cluster], Hashable] | None = None
    """What policies read of a pod beyond the fields that always make its class, and what they make of the time."""

    def with_policies(
        self,
        filters: tuple[FilterPlugin, ...],
        scores: tuple[tuple[ScorePlugin, int], ...],
        extra_key: Callable[[Pod, Cluster], Hashable] | None,
    ) -> Profile:
        """Give this profile with policies behind its plugins."""
        return replace(self, filters=self.filters + filters, scores=self.scores + scores, extra_key=extra_key)

    @cached_property
    def class_filters(self) -> tuple[tuple[int, FilterPlugin], ...]:
        """The filters whose answers hold for a whole pod class, each with its place among all filters."""
        return tuple((place, plugin) for place, plugin in enumerate(self.filters) if not is_by_pod(plugin))

    @cached_property
    def pod_filters(self) -> tuple[tuple[int, FilterPlugin], ...]:
        """The filters that are asked anew for every pod, each with its place among all filters."""
        return tuple((place, plugin) for place, plugin in enumerate(self.filters) if is_by_pod(plugin))

    @cached_property
    def reserves(self) -> tuple[ReservePlugin, ...]:
        """The plugins that hold something for a pod until it is bound."""
        return tuple(plugin for plugin in self.filters if isinstance(plugin, ReservePlugin))

    def epochs(self, cluster: Cluster) -> Hashable:
        """Give a value whose change makes prepared states stale."""
        return (
            tuple(plugin.epoch(cluster) for plugin in self.filters),
            tuple(plugin.epoch(cluster) for plugin, _ in self.scores),
        )
