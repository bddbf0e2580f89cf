"""The pods that wait for a change, found by the plugin that has to say that it helps.

The index makes a change cost only the pods it may concern: a gated pod stands under its gate alone, because nothing
else can let it in; the others under every plugin that rejected them. It knows nothing of hints.

Source: pkg/scheduler/backend/queue/unschedulable_pods.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from policysched.schedule.queued import QueuedPod


class WaitingPods:
    """Unschedulable and gated pods by identity and by (profile, plugin)."""

    __slots__ = ("_by_plugin", "_listed_under", "_pods", "gated")

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._listed_under: dict[str, tuple[str, Iterable[str], bool]] = {}
        self._by_plugin: dict[tuple[str, str], dict[str, QueuedPod]] = {}
        self.gated = 0

    def add(self, queued: QueuedPod) -> None:
        """Add a pod, or list it anew where its plugins changed."""
        self.discard(queued.identity)
        plugins = frozenset((queued.gated_by,)) if queued.gated_by else queued.rejectors | queued.pending
        self._pods[queued.identity] = queued
        self._listed_under[queued.identity] = (queued.profile, plugins, bool(queued.gated_by))
        self.gated += bool(queued.gated_by)
        for plugin in plugins:
            self._by_plugin.setdefault((queued.profile, plugin), {})[queued.identity] = queued

    def discard(self, identity: str) -> None:
        """Drop a pod if it is here."""
        if self._pods.pop(identity, None) is None:
            return
        profile, plugins, gated = self._listed_under.pop(identity)
        self.gated -= gated
        for plugin in plugins:
            pods = self._by_plugin[profile, plugin]
            del pods[identity]
            if not pods:
                del self._by_plugin[profile, plugin]

    def held_by(self, profile: str, plugin: str) -> Mapping[str, QueuedPod]:
        """Give the pods that wait for a word of this plugin, by identity."""
        return self._by_plugin.get((profile, plugin), {})

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)
