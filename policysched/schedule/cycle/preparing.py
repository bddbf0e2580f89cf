"""The start of an evaluation: every filter is prepared once, and may narrow the nodes or turn the pod away.

Knows the order of PreFilter and what ends it. What filters then say about rows is not known here.

Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins).
"""

from __future__ import annotations

from typing import Any

from policysched.framework import SKIP, Code, FilterPlugin, Narrow, Status, unresolvable
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.tracks import FilterTrack, Narrowing
from policysched.state.cluster import Cluster


class Preparing:
    """What became of a pod class at PreFilter."""

    def __init__(self, cluster: Cluster, profile: Profile, pod: Pod) -> None:
        self.tracks: list[FilterTrack] = []
        """The filters that have something to say, in the order of Filter."""
        self.narrowing: tuple[str, ...] = ()
        """The plugins that narrowed the nodes, sorted."""
        self.rejection: Status | None = None
        """The status that turned the pod away: of several that preemption could help, the last one's."""
        self.rejected_at = 0
        """The place of the plugin that gave it, in the order of PreFilter."""
        self._allowed: frozenset[str] | None = None
        self._places = profile.places
        for place, plugin in profile.class_filters:
            if self._ends(place, plugin, plugin.prepare_filter(pod, cluster)):
                return
        self._settle(cluster)

    def _settle(self, cluster: Cluster) -> None:
        """Put the filters in their order, behind the one for nodes that were narrowed away."""
        self.tracks.sort(key=lambda track: track.place)
        if self._allowed is not None and self.rejection is None:
            self.tracks.insert(0, FilterTrack(Narrowing(self.narrowing), Narrowing.prepare(self._allowed, cluster)))

    def _ends(self, place: int, plugin: FilterPlugin, state: Any) -> bool:
        """Take a plugin's answer, and tell whether the pod is turned away for good."""
        if state is SKIP:
            return False
        if isinstance(state, Status):
            self._reject(place, state.by(plugin.name))
            return state.code is not Code.UNSCHEDULABLE
        if isinstance(state, Narrow):
            if not self._narrow(place, plugin.name, state.nodes):
                return True
            state = state.state
        if plugin.name in self._places:
            self.tracks.append(FilterTrack(plugin, state, self._places[plugin.name]))
        return False

    def _narrow(self, place: int, name: str, nodes: frozenset[str]) -> bool:
        self.narrowing = tuple(sorted({*self.narrowing, name}))
        self._allowed = nodes if self._allowed is None else self._allowed & nodes
        if not self._allowed:
            self._reject(place, unresolvable(_narrowed_to_nothing(self.narrowing)))
        return bool(self._allowed)

    def _reject(self, place: int, status: Status) -> None:
        self.rejection, self.rejected_at = status, place


def _narrowed_to_nothing(plugins: tuple[str, ...]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
