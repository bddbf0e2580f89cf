"""Carries results of a pod class over when the policies change; only changed plugins run again.

An edit of a policy changes few answers: plugins of the profile stay the same objects, and so do most rules of policies.
The earlier evaluation is brought up to date once more; then the new one goes on with the states of the plugins that
stayed, and with the answers of all whose state says that they hold. Only the others are asked about nodes again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from policysched.framework import SKIP, FilterPlugin, Narrow, ScorePlugin, Status
from policysched.framework.profile import Profile
from policysched.schedule.cycle.results.plugin_results import FilterResults, ScoreResults


class EarlierResults:
    """The results of plugins for a pod class, up to date; none of them turned the pod away or failed.

    Args:
        profile: The plugins that were prepared.
        filters: The results of those that had something to say at Filter.
        scores: The results of those that had something to say at Score.
        narrowed: The nodes that were left at PreFilter, by plugin.
        scored: Whether the scores are up to date, too.
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
        self._prepared = {id(plugin) for _, plugin in profile.class_filters}
        self._pre_scored = {id(plugin) for plugin, _ in profile.class_scores}
        self._filters = {one.plugin_name: one for one in filters}
        self._scores = {one.plugin.name: one for one in scores}
        self._narrowed = {name: nodes for _, name, nodes in narrowed if isinstance(nodes, frozenset)}
        self._scored = scored

    def has_filter(self, plugin: FilterPlugin[Any]) -> bool:
        """Return whether a plugin was prepared at PreFilter."""
        return id(plugin) in self._prepared

    def filter_state(self, plugin: FilterPlugin[Any]) -> Any:
        """Return what such a plugin answered then."""
        found = self._filters.get(plugin.name)
        state = SKIP if found is None else found.state
        return Narrow(state, self._narrowed[plugin.name]) if plugin.name in self._narrowed else state

    def has_score(self, plugin: ScorePlugin[Any]) -> bool:
        """Return whether a plugin was prepared at PreScore."""
        return id(plugin) in self._pre_scored

    def score_state(self, plugin: ScorePlugin[Any]) -> Any:
        """Return what such a plugin answered then."""
        found = self._scores.get(plugin.name)
        return SKIP if found is None else found.state

    def answers_filter(self, results: FilterResults) -> bool:
        """Give a filter the answers that hold for its state; return whether there are any."""
        before = self._filters.get(results.plugin_name)
        if before is None or not _continues(results, before):
            return False
        results.take_over(before)
        return True

    def answers_score(self, results: ScoreResults) -> bool:
        """Give a plugin that scores the answers that hold for its state; return whether there are any."""
        before = self._scores.get(results.plugin.name) if self._scored else None
        return before is not None and _continues(results, before) and results.take_over(before)


def _continues(results: FilterResults | ScoreResults, before: FilterResults | ScoreResults) -> bool:
    """Return whether the answers of earlier results hold."""
    return results.plugin is before.plugin and results.state is before.state
