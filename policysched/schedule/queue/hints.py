"""Queueing hints: functions that decide whether a cluster change may make a rejected pod schedulable.

A pod is retried only if a plugin that rejected it reports that the change can help. If a hint fails, or no rejector is
known, the pod is retried: a useless attempt is cheap, a forgotten pod is not.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing), pkg/scheduler/scheduler.go
(buildQueueingHintMap), v1.36 and v1.37.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache, reduce
from operator import or_
from types import MappingProxyType
from typing import Final

from policysched.framework import (
    Action,
    Change,
    Cluster,
    CustomResource,
    Hint,
    HintIndex,
    PreEnqueuePlugin,
    Resource,
    RetryControl,
)
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.timing import Timing

log = logging.getLogger(__name__)
NOBODY: Mapping[str, RetryControl] = MappingProxyType({})
ANY_TAINT_UPDATE: Final = Hint(Resource.NODE, Action.UPDATE_NODE_TAINT)
Matching = Mapping[str, Sequence[Hint]]
"""For one change: its matching queueing hints (resource and action are equal), by plugin name."""


class QueueingStrategy(Enum):
    """The verdict of queueing hints: whether a cluster change requeues a waiting pod, at once or after its backoff."""

    SKIP = "the change cannot help"
    AFTER_BACKOFF = "the change may help: retry after the backoff"
    IMMEDIATELY = "a plugin for which the pod is pending returned Queue: retry at once"


class Interests:
    """The PreEnqueue plugins of a profile, and the queueing hints of its plugins.

    Args:
        pre_enqueue: The gates.
        hints: The hints by plugin name.
        listeners: By name, the filters whose `on_rejected` receives the pods that they rejected.
        taint_updates_wake_all: Whether a change of taints retries the pods of each plugin, other than the listeners,
            that has a hint for added nodes.
    """

    __slots__ = ("_hints", "_matching", "indexes", "listeners", "pre_enqueue")

    def __init__(
        self,
        pre_enqueue: Sequence[PreEnqueuePlugin] = (),
        hints: Mapping[str, Sequence[Hint]] | None = None,
        listeners: Mapping[str, RetryControl] = NOBODY,
        *,
        taint_updates_wake_all: bool = False,
    ) -> None:
        self.pre_enqueue = {plugin.name: plugin for plugin in pre_enqueue}
        self._hints: dict[str, Sequence[Hint]] = {plugin.name: plugin.events() for plugin in pre_enqueue}
        self._hints.update(hints or {})
        self.listeners = listeners
        if taint_updates_wake_all:
            self._hints |= {
                name: (*known, ANY_TAINT_UPDATE)
                for name, known in self._hints.items()
                if name not in listeners and _misses_taints(known)
            }
        self.indexes = {
            plugin: hint.index for plugin, hints in self._hints.items() for hint in hints if hint.index is not None
        }
        """For each plugin whose queueing hints have one, the index that finds the pods a change may help."""
        self._matching: dict[tuple[Resource | CustomResource, Action], Matching] = {}

    def matching(self, change: Change) -> Matching:
        """Return the queueing hints for a change's resource and action (such as Node, Add), by plugin name."""
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


def _misses_taints(hints: Sequence[Hint]) -> bool:
    """Return whether a plugin's queueing hints accept added nodes, but not changed taints of nodes."""
    matched = reduce(or_, (hint.actions for hint in hints if hint.resource is Resource.NODE), Action(0))
    return bool(matched & Action.ADD) and not matched & Action.UPDATE_NODE_TAINT


def index_of(hints: Sequence[Hint]) -> HintIndex | None:
    """Return the index of waiting pods that a plugin's hints share; None if any hint has no index."""
    indexes = [hint.index for hint in hints]
    return None if None in indexes else indexes[0]


def judge(
    queued: QueuedPod, change: Change, matching: Matching, cluster: Cluster, timing: Timing | None = None
) -> QueueingStrategy:
    """Call the queueing hints of the plugins that rejected a pod; return whether and when a change requeues the pod."""
    if not queued.rejectors and not queued.pending:
        return QueueingStrategy.AFTER_BACKOFF
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
    """Return the event name of a change, as in kube-scheduler's metrics.

    Source: k8s.io/kube-scheduler/framework/types.go (ClusterEvent.Label).
    """
    return _label(change.resource, change.action)


@lru_cache(256)
def _label(resource: Resource | CustomResource, action: Action) -> str:
    names = [part.name for part in action if part.name]
    single = names[0] if len(names) == 1 and action is not Action.UPDATE_OTHER else "UPDATE"
    return resource.value + "".join(word.capitalize() for word in single.split("_"))
