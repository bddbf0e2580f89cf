"""Queueing hints: whether a change is worth another attempt for a pod that was rejected.

A pod is only tried again when a plugin that rejected it says that the change can help; whoever cannot say (an
exception, no rejector known) counts as yes, because a pod tried in vain costs little and a forgotten one all.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec

from policysched.framework import (
    Action,
    Change,
    Clock,
    Cluster,
    CustomResource,
    Hint,
    HintIndex,
    PreEnqueuePlugin,
    Resource,
    RetryControl,
)
from policysched.model.objects import Pod
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.timing import Timing

log = logging.getLogger(__name__)
SHARE: Final = 0.1
"""How much of the time asking may take."""
MOST: Final = 0.1
"""How long may be asked at once. Units: seconds."""
LARGEST: Final = 1 << 15
"""How much the waiting pod and the changed one may state together. Units: bytes of JSON."""
_ENCODER: Final = msgspec.json.Encoder()
NOBODY: Mapping[str, RetryControl] = MappingProxyType({})
Matching = Mapping[str, Sequence[Hint]]
"""Plugin names and their hints that match a change's resource and action."""


class QueueingStrategy(Enum):
    """What a change means for a waiting pod: it may stay, or is queued again."""

    SKIP = "the change cannot help"
    AFTER_BACKOFF = "the change may help: retry after the backoff"
    IMMEDIATELY = "a plugin for which the pod is pending returned Queue: retry at once"


class Interests:
    """What the plugins of one profile ask of the queue: their gates and their hints."""

    __slots__ = ("_hints", "_matching", "indexes", "listeners", "pre_enqueue")

    def __init__(
        self,
        pre_enqueue: Sequence[PreEnqueuePlugin] = (),
        hints: Mapping[str, Sequence[Hint]] | None = None,
        listeners: Mapping[str, RetryControl] = NOBODY,
    ) -> None:
        self.pre_enqueue = {plugin.name: plugin for plugin in pre_enqueue}
        self._hints: dict[str, Sequence[Hint]] = {plugin.name: plugin.events() for plugin in pre_enqueue}
        self._hints.update(hints or {})
        self.listeners = listeners
        """The filters that hear which pods they rejected, by name."""
        self.indexes = {
            plugin: hint.index for plugin, hints in self._hints.items() for hint in hints if hint.index is not None
        }
        """What finds the pods that a plugin may say yes about, by the plugin's name."""
        self._matching: dict[tuple[Resource | CustomResource, Action], Matching] = {}

    def matching(self, change: Change) -> Matching:
        """Select the hints that are about such a change, by plugin."""
        kind = (change.resource, change.action)
        found = self._matching.get(kind)
        if found is None:
            found = self._matching[kind] = self._select(*kind)
        return found

    def _select(self, resource: Resource | CustomResource, action: Action) -> Matching:
        selected = {
            plugin: tuple(hint for hint in hints if hint.resource == resource and hint.actions & action)
            for plugin, hints in self._hints.items()
        }
        return {plugin: hints for plugin, hints in selected.items() if hints}


NO_INTERESTS = Interests()


def index_of(hints: Sequence[Hint]) -> HintIndex | None:
    """Return the index of one plugin's hints, None where one of them has none."""
    indexes = [hint.index for hint in hints]
    return None if None in indexes else indexes[0]


def judge(
    queued: QueuedPod,
    change: Change,
    matching: Matching,
    cluster: Cluster,
    *,
    asks: bool = True,
    timing: Timing | None = None,
) -> QueueingStrategy:
    """Say what a change means for a pod, given the matching hints of its profile.

    Without asking them, each that matches says that the change helps.
    """
    if not queued.rejectors and not queued.pending:
        return QueueingStrategy.AFTER_BACKOFF
    if not asks:
        return (
            QueueingStrategy.SKIP
            if matching.keys().isdisjoint(queued.rejectors | queued.pending)
            else QueueingStrategy.AFTER_BACKOFF
        )
    if any(_helps(queued, plugin, change, matching, cluster, timing) for plugin in queued.pending):
        return QueueingStrategy.IMMEDIATELY
    if any(_helps(queued, plugin, change, matching, cluster, timing) for plugin in queued.rejectors):
        return QueueingStrategy.AFTER_BACKOFF
    return QueueingStrategy.SKIP


def _helps(
    queued: QueuedPod, plugin: str, change: Change, matching: Matching, cluster: Cluster, timing: Timing | None
) -> bool:
    for hint in matching.get(plugin, ()):
        if hint.helps is None:
            return True
        began = 0.0 if timing is None else timing.now()
        try:
            outcome = "Queue" if hint.helps(queued.pod, change, cluster) else "QueueSkip"
        except KeyboardInterrupt:
            raise
        except BaseException:
            log.exception(
                'the queueing hint of plugin "%s" failed for pod "%s"; the pod is retried', plugin, queued.pod.key
            )
            outcome = "Error"
        if timing is not None:
            timing.hint(plugin, label(change), outcome, timing.now() - began)
        if outcome != "QueueSkip":
            return True
    return False


def label(change: Change) -> str:
    """Name a change as kube-scheduler's metrics do.

    Source: k8s.io/kube-scheduler/framework/types.go (ClusterEvent.Label).
    """
    return _label(change.resource, change.action)


@lru_cache(256)
def _label(resource: Resource | CustomResource, action: Action) -> str:
    names = [part.name for part in action if part.name]
    single = names[0] if len(names) == 1 and action is not Action.UPDATE_OTHER else "UPDATE"
    return resource.value + "".join(word.capitalize() for word in single.split("_"))


class HintBudget:
    """How much plugins are asked whether a change helps: no more than a share of the time.

    A hint is cheaper than an attempt as long as neither pod nor change is large and not too many pods wait. Beyond that
    nobody is asked, and the change counts as one that helps: the pod is tried again once its backoff is over, and while
    it backs off no change costs anything for it. Begin with `start` for each change, and end with `stop`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left, self._since = MOST, clock.monotonic()
        self._change: Change | None = None
        self._size: int | None = None
        """How much the pods of the change state, None before somebody wants to know. Units: bytes."""

    def start(self, change: Change) -> None:
        """Begin with a change."""
        now = self._clock.monotonic()
        self._left = min(MOST, self._left + SHARE * (now - self._since))
        self._since = now
        if change is not self._change:
            self._change, self._size = change, None

    def permits(self, queued: QueuedPod) -> bool:
        """Return whether hints may be asked about a waiting pod; pods are measured while there is time for it."""
        self.stop()
        if self.is_spent or self._change is None:
            return False
        if self._size is None:
            self._size = sum(_size(one) for one in (self._change.old, self._change.new) if isinstance(one, Pod))
        if queued.measured is not queued.pod:
            queued.measured, queued.size = queued.pod, _size(queued.pod)
        return self._size + queued.size <= LARGEST

    @property
    def is_spent(self) -> bool:
        """Whether there is no time left for asking."""
        return self._left <= 0

    def stop(self) -> None:
        """Count the time since the last word."""
        now = self._clock.monotonic()
        self._left -= now - self._since
        self._since = now


def _size(pod: Pod) -> int:
    """Say how much a pod states that hints may look at."""
    return len(_ENCODER.encode((pod.metadata.labels, pod.spec)))
