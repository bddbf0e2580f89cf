"""PreFilter and PreScore: plugins prepare data once for all equal pods, reject the pod, or exclude nodes.

`ClassResults` calls the plugins with these states for rows, at each decision.

Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunPreScorePlugins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policysched.framework import SKIP, Code, FilterPlugin, Narrow, PluginBlock, ScorePlugin, Status, unresolvable
from policysched.framework.partial_plugins import Everywhere, EverywhereFilter, ZeroScore
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.results.carried_over import EarlierResults
from policysched.schedule.cycle.results.plugin_results import (
    NARROWED,
    FilterResults,
    NarrowedNodes,
    ScoreResults,
    member_names,
)
from policysched.schedule.timing import PRE_FILTER, PRE_SCORE, CycleTimes, timed
from policysched.state.cluster import Cluster


class PreFilter:
    """The outcome of PreFilter: prepared filters, the only possible nodes, or a rejection of the pod.

    Args:
        places: The places of the filters in the order of Filter, by name.
    """

    def __init__(self, places: Mapping[str, int]) -> None:
        self.filters: list[FilterResults] = []
        """The results of the filters that do not skip the pod; after `settle`, in the order of Filter."""
        self.outcomes: list[tuple[int, str, Status | frozenset[str]]] = []
        """For each plugin with a status or possible nodes at PreFilter: place, name, and status or nodes."""
        self.narrowing: tuple[str, ...] = ()
        """The names of the plugins that excluded nodes at PreFilter, sorted."""
        self.rejection: Status | None = None
        """The PreFilter status that rejects the pod; of several that preemption can resolve, the last one."""
        self.ended_at: int | None = None
        """The place of the plugin, in the order of PreFilter, whose rejection ended PreFilter."""
        self._allowed: frozenset[str] | None = None
        self._places = places

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        profile: Profile,
        pod: Pod,
        times: CycleTimes | None = None,
        earlier: EarlierResults | None = None,
    ) -> PreFilter:
        """Run PreFilter of the plugins whose results all equal pods share, and return the outcome.

        Args:
            cluster: The cluster.
            profile: The plugins.
            pod: A pod of the class.
            times: Measures the plugins.
            earlier: Results to reuse; their filters are not called.
        """
        made = cls(profile.places)
        for place, plugin in profile.class_filters:
            if earlier is not None and earlier.has(plugin):
                state = earlier.filter_state(plugin)
            else:
                prepare = plugin.prepare_filter if earlier is None else earlier.prepare_filter(plugin)
                state = timed(times, member_names(plugin), PRE_FILTER, prepare, pod, cluster)
            if made.ends(place, plugin, state):
                return made
        made.settle(cluster)
        return made

    def settle(self, cluster: Cluster) -> None:
        """Sort the filters into the order of Filter, and insert a filter for the nodes that PreFilter excluded."""
        self.filters.sort(key=lambda one: one.place)
        if self._allowed is not None and self.rejection is None:
            narrowed = FilterResults(
                NarrowedNodes(self.narrowing), NarrowedNodes.prepare(self._allowed, cluster), NARROWED
            )
            self.filters.insert(0, narrowed)

    def ends(self, place: int, plugin: FilterPlugin[Any], state: Any) -> bool:
        """Record what a plugin returned at PreFilter; return True if PreFilter ends because of a rejection."""
        if state is SKIP:
            return False
        if isinstance(state, Status):
            if plugin.pre_filters:
                return self.ends_with(place, state.plugin if isinstance(plugin, PluginBlock) else plugin.name, state)
            filter_ = EverywhereFilter(plugin.name)
            self.filters.append(FilterResults(filter_, Everywhere(state), self._places[plugin.name]))
            return False
        if isinstance(state, Narrow):
            if self.ends_with(place, plugin.name, state.nodes):
                return True
            state = state.state
        if plugin.name in self._places:
            self.filters.append(FilterResults(plugin, state, self._places[plugin.name]))
        return False

    def ends_with(self, place: int, name: str, outcome: Status | frozenset[str]) -> bool:
        """Record a plugin's PreFilter status or its possible nodes; return True if PreFilter ends by a rejection."""
        self.outcomes.append((place, name, outcome))
        if isinstance(outcome, Status):
            self.rejection = outcome.by(name)
            ended = outcome.code is not Code.UNSCHEDULABLE
        else:
            self.narrowing = tuple(sorted({*self.narrowing, name}))
            self._allowed = outcome if self._allowed is None else self._allowed & outcome
            ended = not self._allowed
            if ended:
                self.rejection = unresolvable(_narrowed_to_nothing(self.narrowing))
        if ended:
            self.ended_at = place
        return ended


def _narrowed_to_nothing(plugins: tuple[str, ...]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"


def prepare_scores(
    plugins: Sequence[tuple[ScorePlugin[Any], int | None]],
    pod: Pod,
    cluster: Cluster,
    times: CycleTimes | None = None,
    earlier: EarlierResults | None = None,
) -> tuple[list[ScoreResults], Status | None]:
    """Run PreScore; return the results of plugins that do not skip the pod, or the status of a failed plugin.

    Args:
        plugins: The plugins with their weights; None for a plugin that is enabled at PreScore only.
        pod: A pod of the class.
        cluster: The cluster.
        times: Measures the plugins.
        earlier: Results to reuse; their plugins are not called.
    """
    found: list[ScoreResults] = []
    for plugin, weight in plugins:
        if earlier is not None and earlier.has(plugin):
            state = earlier.score_state(plugin)
        else:
            prepare = plugin.prepare_score if earlier is None else earlier.prepare_score(plugin)
            state = timed(times, member_names(plugin), PRE_SCORE, prepare, pod, cluster)
        if isinstance(state, Status):
            return [], state.by(plugin.name)
        if weight is None:
            continue
        if state is not SKIP:
            found.append(ScoreResults(plugin, weight, state))
        elif not plugin.pre_scores:
            found.append(ScoreResults(ZeroScore(plugin.name), weight, cluster.nodes))
    return found, None
