"""Queueing hints of a policy: decide whether a change can help a pod that the policy rejected.

For a rejected pod, a policy caches the rows that its filters accept. A change helps the pod if the filters accept
another row: a row that changed, or a row for which an aggregate or another shared value changed. Pods that the policy
cannot distinguish share one entry, which is evaluated once per change, whatever their number.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import ArrayLike

from policysched.framework import Action, Aspect, Change, Cluster, Hint, Mask, Resource, Rows, Status
from policysched.language.evaluation.time_transitions import next_transition
from policysched.language.ir.graph import Input, Typed
from policysched.language.ir.types import NODE_INFO, WELL_KNOWN_LABELS
from policysched.model.objects import Pod
from policysched.model.objects.meta import seconds_of
from policysched.rules.compile.policy import CompiledFilter
from policysched.rules.inputs import aspects_read
from policysched.rules.results.matrix import FilterMatrix
from policysched.rules.results.pod_independent import PodIndependentResults
from policysched.rules.shared_values.context import EvaluationContext
from policysched.rules.shared_values.derived import AffectedRows
from policysched.state.tables.columns import memory_of

MOST_PODS = 8192
"""Maximum number of rejected pods that a policy remembers; beyond it, the least recently used are dropped."""
REJECTIONS_BYTES = 64 * 1024 * 1024
"""Maximum memory of the `RejectedPods` of a policy; beyond it, the least recently used are dropped. Units: bytes."""
BYTES_PER_REJECTED = 6144
"""Memory of a `RejectedPods` without its pod and its arrays. Units: bytes."""
BYTES_PER_ENCODED = 6
"""Memory of a cached pod, per byte of the pod's encoded form. Units: bytes."""
_ENCODER = msgspec.msgpack.Encoder()
METRICS_AGAIN = 30.0
"""Time after which a pod is retried because metric values may have become too old. Units: seconds."""
NODE_ACTIONS = {
    "labels": Action.UPDATE_NODE_LABEL,
    "annotations": Action.UPDATE_NODE_ANNOTATION,
    "addresses": Action.UPDATE_NODE_INFO,
    "conditions": Action.UPDATE_NODE_CONDITION,
    "ready": Action.UPDATE_NODE_CONDITION,
    "cordoned": Action.UPDATE_NODE_TAINT,
    "taints": Action.UPDATE_NODE_TAINT,
    "allocatable": Action.UPDATE_NODE_ALLOCATABLE,
    "free": Action.UPDATE_NODE_ALLOCATABLE,
    "cached_image_bytes": Action.UPDATE_NODE_IMAGES,
    **dict.fromkeys(WELL_KNOWN_LABELS, Action.UPDATE_NODE_LABEL),
    **dict.fromkeys(NODE_INFO, Action.UPDATE_NODE_INFO),
}
_POD_ACTIONS = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_SCALE_DOWN | Action.UPDATE_OTHER
Decide = Callable[[Pod, Change, Cluster], bool]


class RejectedPods:
    """The nodes that a policy's filters accepted for rejected pods with equal results, to compare after changes.

    Args:
        context: The context of the policies on the cluster.
        reads: The aspects of rows that the filters read.
        rules: The filters that apply to the pods: None if no filter applies, a status if all nodes are rejected
            because the filters depend on an unknown namespace.
    """

    __slots__ = ("__weakref__", "_accepted", "_affected", "_context", "_last", "_position", "_reads", "_rules",
                 "nbytes")  # fmt: skip

    def __init__(self, context: EvaluationContext, reads: Aspect, rules: FilterMatrix | Status | None) -> None:
        self._context = context
        self._rules = rules
        self._affected = AffectedRows(rules.dependencies[0]) if isinstance(rules, FilterMatrix) else None
        self._reads = int(reads | Aspect.PRESENCE)
        self._accepted: Mask = np.zeros(0, np.bool_)
        self._position = -1
        self._last: tuple[object, bool] = (None, False)
        """The last result of `may_help`, with the value of the context's stamp for which it is valid."""
        self.nbytes = 0
        """Memory of this object with the first of its pods; 0 before `measure`. Units: bytes."""

    def measure(self, pod: Pod) -> None:
        """Compute the memory of this object.

        Args:
            pod: The pod for which the entry was created.
        """
        encoded = BYTES_PER_ENCODED * len(_ENCODER.encode(pod))
        arrays = self._rules.arrays if isinstance(self._rules, FilterMatrix) else 0
        rows = self._context.cluster.nodes.columns.capacity
        self.nbytes = BYTES_PER_REJECTED + encoded + rows + memory_of(arrays, rows)

    def may_help(self) -> bool:
        """Return whether, after the last change, the filters accept one more node, or no filter applies any more."""
        stamp = self._context.stamp
        if self._last[0] != stamp:
            self._last = (stamp, self._rules is None or self._accepts_another_row())
        return self._last[1]

    def record(self) -> None:
        """Store which nodes the filters accept now, to compare later changes with them."""
        self.may_help()
        self._last = (self._context.stamp, self._rules is None)

    def start_from(self, other: RejectedPods) -> None:
        """Copy the accepted nodes of the pod's earlier rejection, unless nodes were already evaluated."""
        if self._position < 0:
            self._accepted = other._accepted.copy()

    def _accepts_another_row(self) -> bool:
        """Evaluate the affected nodes; return whether the filters accept a node that they rejected before."""
        nodes, journal = self._context.cluster.nodes, self._context.cluster.journal
        changed: Rows | None = None
        if self._position >= 0:
            changed, _ = self._context.changed(self._position, self._reads)
        if changed is None or self._accepted.size != nodes.columns.capacity:
            changed = slice(0, nodes.size)
            self._accepted = np.resize(
                np.append(self._accepted, np.zeros(nodes.columns.capacity, np.bool_)), nodes.columns.capacity
            )
        self._position = journal.position
        rows = changed if self._affected is None else self._affected.extend(changed)
        accepted: Mask = np.zeros(1, np.bool_)
        if isinstance(self._rules, FilterMatrix):
            accepted = self._rules.evaluate(rows)[0] == 0
        accepted = accepted & nodes.present.data[rows]
        found = bool((accepted & ~self._accepted[rows]).any())
        self._accepted[rows] = accepted
        return found


class _PodEntry(NamedTuple):
    """Weak references to a pod and its `RejectedPods`, with the value of `stamp` for which these are valid."""

    pod: weakref.ref[Pod]
    stamp: Hashable
    entry: weakref.ref[RejectedPods]


class Rejections:
    """The rejected pods of one policy: for each, which nodes the policy's filters accept (`RejectedPods`)."""

    def __init__(self, context: EvaluationContext) -> None:
        self.independent = PodIndependentResults(context)
        """A cache of results without rules: hints evaluate filters on affected nodes only, so nothing is cached."""
        self._by_pod: LRUCache[int, _PodEntry] = LRUCache(MOST_PODS)
        self._by_key: LRUCache[Hashable, RejectedPods] = LRUCache(REJECTIONS_BYTES, getsizeof=attrgetter("nbytes"))

    def of(
        self, pod: Pod, stamp: Hashable, prepare: Callable[[], tuple[Hashable, Callable[[], RejectedPods]]]
    ) -> RejectedPods:
        """Return the `RejectedPods` of a pod, which pods with equal results share; create it if needed.

        Args:
            pod: The pod.
            stamp: Changes if other rules apply to the pod, or if they read other values of it.
            prepare: Returns the key of the pod's entry, and a function that creates the entry.
        """
        known = self._by_pod.get(id(pod))
        before = known.entry() if known is not None and known.pod() is pod else None
        if known is not None and before is not None and known.stamp == stamp:
            return before
        key, make = prepare()
        entry = self._by_key.get(key)
        if entry is None:
            entry = make()
            entry.measure(pod)
            if entry.nbytes <= self._by_key.maxsize:
                self._by_key[key] = entry
        if before is not None:
            entry.start_from(before)
        self._by_pod[id(pod)] = _PodEntry(weakref.ref(pod), stamp, weakref.ref(entry))
        return entry


def changes_read(
    filters: Iterable[CompiledFilter], inputs: Sequence[Input], timed: bool
) -> tuple[tuple[Resource, Action], ...]:
    """Return the kinds of changes (resource, action) that can change filter results, in the order of the hints.

    Args:
        filters: The filters.
        inputs: The inputs of the whole policy.
        timed: Whether elapsed time can change the policy's results.
    """
    roots = [rule.require.root for rule in filters]
    read = [item for root in roots for item in root.inputs]
    aspects = aspects_read(read)
    reaches = any(not root.local for root in roots) or any(item.root == "cluster" for item in read)
    found = [(Resource.NODE, _of_nodes(read) | (Action.DELETE if reaches else Action.NONE))]
    if aspects & (Aspect.PODS | Aspect.USAGE):
        found.append((Resource.ASSIGNED_POD, _POD_ACTIONS))
    if aspects & Aspect.METRICS:
        found.append((Resource.METRICS, Action.UPDATE_OTHER))
    if timed:
        found.append((Resource.TIME, Action.UPDATE_OTHER))
    if any(item.path[0] == "storage_classes" for item in inputs):
        found.append((Resource.CLAIM, Action.ALL))
    found.append((Resource.PENDING_POD, Action.UPDATE))
    if any(item.path[0] == "image_bytes" for item in inputs):
        found.append((Resource.NODE, Action.DELETE | Action.UPDATE_NODE_IMAGES))
    return tuple(found)


def _of_nodes(read: Iterable[Input]) -> Action:
    """Return the actions on nodes, such as UPDATE_NODE_LABEL, that can change the given inputs."""
    actions = Action.ADD
    for item in read:
        if item.root == "node":
            actions |= NODE_ACTIONS.get(item.path[0], Action.NONE)
    return actions


def hints(changes: Iterable[tuple[Resource, Action]], decide: Decide) -> list[Hint]:
    """Return queueing hints for changes; an update of the pod itself always helps, others if `decide` returns True."""
    return [
        Hint(resource, actions, is_own if resource is Resource.PENDING_POD else decide) for resource, actions in changes
    ]


def next_time(roots: Sequence[Typed], pod: Pod, cluster: Cluster) -> float | None:
    """Return when elapsed time alone can next change the value of an expression for a pod.

    Units: seconds since 1970.
    """
    now = cluster.time.seconds
    created = seconds_of(pod.metadata.creation_timestamp)

    def ages(item: Input) -> ArrayLike:
        if item.root == "node":
            return cluster.ages.held().exact(now)
        if item.root == "peer":
            return cluster.pod_ages.held().exact(now)
        return math.inf if created is None else now - created

    times = [time for root in roots if (time := next_transition(root, ages, now)) is not None]
    if any(item.root == "metrics" for root in roots for item in root.inputs):
        times.append(now + METRICS_AGAIN)
    return min(times, default=None)


def is_own(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - the hint's shape
    """Return whether a change is an update of the waiting pod itself."""
    return isinstance(change.new, Pod) and change.new.metadata.uid == pod.metadata.uid
