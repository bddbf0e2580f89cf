"""Filter and score results under an earlier profile, reused under the profile that replaced it.

An edit of a policy changes few results. The plugins of the profile stay the same objects, so their states and results
are reused. The policies reuse the results of policies that stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from policysched.framework import SKIP, FilterPlugin, Incremental, Narrow, ScorePlugin, Status
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.results.plugin_results import FilterResults, ScoreResults
from policysched.state.cluster import Cluster

Prepare = Callable[[Pod, Cluster], Any]


class EarlierResults:
    """Up-to-date filter and score results under an earlier profile, in which no plugin failed or rejected the pod.

    Args:
        profile: The earlier profile.
        filters: The results of the filters that apply to the class.
        scores: The results of the scores that apply to the class.
        narrowed: The node names that PreFilter plugins returned, with place and name of the plugin.
        scored: Whether the scores are current, too.
    """

    def __init__(
        self,
        profile: Profile,
        filters: Iterable[FilterResults],
        scores: Iterable[ScoreResults],
        narrowed: Iterable[tuple[int, str, Status | frozenset[str]]],
        *,
        scored: bool,
    ) -> None:
        self._plugins = {id(plugin) for _, plugin in profile.class_filters}
        self._plugins |= {id(plugin) for plugin, _ in profile.class_scores}
        self._filters = {one.plugin_name: one for one in filters}
        self._scores = {one.plugin.name: one for one in scores}
        self._narrowed = {name: nodes for _, name, nodes in narrowed if isinstance(nodes, frozenset)}
        self._scored = scored
        self._kept: set[int] = set()
        """The identities (`id`) of prepared data that a replacing plugin returned unchanged."""

    def has(self, plugin: FilterPlugin[Any] | ScorePlugin[Any]) -> bool:
        """Return whether the earlier profile had the same plugin object, so that its prepared data can be reused."""
        return id(plugin) in self._plugins

    def filter_state(self, plugin: FilterPlugin[Any]) -> Any:
        """Return what a plugin returned at PreFilter under the earlier profile, which had the same plugin object."""
        found = self._filters.get(plugin.name)
        state = SKIP if found is None else found.state
        return Narrow(state, self._narrowed[plugin.name]) if plugin.name in self._narrowed else state

    def score_state(self, plugin: ScorePlugin[Any]) -> Any:
        """Return what a plugin returned at PreScore under the earlier profile, which had the same plugin object."""
        found = self._scores.get(plugin.name)
        return SKIP if found is None else found.state

    def prepare_filter(self, plugin: FilterPlugin[Any]) -> Prepare:
        """Return a function that runs a new plugin's PreFilter, reusing its predecessor's data if possible."""
        return self._preparing(plugin, plugin.prepare_filter, self._filters.get(plugin.name))

    def prepare_score(self, plugin: ScorePlugin[Any]) -> Prepare:
        """Return a function that runs a new plugin's PreScore, reusing its predecessor's data if possible."""
        return self._preparing(plugin, plugin.prepare_score, self._scores.get(plugin.name) if self._scored else None)

    def reuse_codes(self, results: FilterResults) -> bool:
        """Copy a filter's earlier reason codes if its prepared data is the same; return whether it is."""
        before = self._filters.get(results.plugin_name)
        if before is None or not self._is_same(results, before):
            return False
        results.take_over(before)
        return True

    def reuse_scores(self, results: ScoreResults) -> bool:
        """Copy a plugin's earlier scores if its data and weight are the same; return whether they are."""
        before = self._scores.get(results.plugin.name) if self._scored else None
        return before is not None and self._is_same(results, before) and results.take_over(before)

    def _preparing(self, plugin: object, prepare: Prepare, before: FilterResults | ScoreResults | None) -> Prepare:
        if before is None or not isinstance(plugin, Incremental):
            return prepare

        def prepare_after(pod: Pod, cluster: Cluster) -> Any:
            found = plugin.prepare_after(before.state, pod, cluster)
            if found is before.state:
                self._kept.add(id(found))
            return prepare(pod, cluster) if found is None else found

        return prepare_after

    def _is_same(self, results: FilterResults | ScoreResults, before: FilterResults | ScoreResults) -> bool:
        is_kept = results.plugin is before.plugin or id(results.state) in self._kept
        return is_kept and results.state is before.state
