"""Queueing hints of a policy: when a change can help a pod that it rejected.

A policy remembers of the pods it rejected where its rules held then. A change helps such a pod if they hold on a
row where they did not: a row that changed itself, or one that sees another aggregate or another value for all. Pods
that are alike to the policy are looked at once a change, however many wait.
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
REJECTIONS_BYTES = 64 * 1024 * 1024
"""How much memory what a policy remembers of pods that it rejected may take. Units: bytes."""
BYTES_PER_REJECTED = 6144
"""What an entry takes beside its pod and its arrays. Units: bytes."""
BYTES_PER_ENCODED = 6
"""What a pod takes for each byte of its encoded form."""
_ENCODER = msgspec.msgpack.Encoder()
METRICS_AGAIN = 30.0
"""How often is looked whether values of metrics have become too old. Units: seconds."""
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
    """Where the rules held for pods that are alike to a policy, when they were last looked at.

    Args:
        context: What policies share on the cluster.
        reads: The aspects of rows that the rules read.
        rules: The results of the rules that speak for the pods; None where none does, and a status where all nodes
            are kept out because a namespace is not known that the rules depend on.
    """

    __slots__ = ("__weakref__", "_affected", "_context", "_held", "_position", "_reads", "_rules", "_told", "nbytes")

    def __init__(self, context: EvaluationContext, reads: Aspect, rules: FilterMatrix | Status | None) -> None:
        self._context = context
        self._rules = rules
        self._affected = AffectedRows(rules.dependencies[0]) if isinstance(rules, FilterMatrix) else None
        self._reads = int(reads | Aspect.PRESENCE)
        self._held: Mask = np.zeros(0, np.bool_)
        self._position = -1
        self._told: tuple[object, bool] = (None, False)
        self.nbytes = 0
        """The memory that it takes, with the pod for which it was made, once that is known. Units: bytes."""

    def measure(self, pod: Pod) -> None:
        """Count the memory."""
        encoded = BYTES_PER_ENCODED * len(_ENCODER.encode(pod))
        arrays = self._rules.arrays if isinstance(self._rules, FilterMatrix) else 0
        rows = self._context.cluster.nodes.columns.capacity
        self.nbytes = BYTES_PER_REJECTED + encoded + rows + memory_of(arrays, rows)

    def look(self) -> bool:
        """Return whether the rules hold on a row where they did not before the last change, or speak no more."""
        version = self._context.version
        if self._told[0] != version:
            self._told = (version, self._rules is None or self._gained())
        return self._told[1]

    def note(self) -> None:
        """Remember where the rules hold now."""
        self.look()
        self._told = (self._context.version, self._rules is None)

    def follow(self, other: RejectedPods) -> None:
        """Begin where another one is, for pods to which the policy says something else by now."""
        if self._position < 0:
            self._held = other._held.copy()

    def _gained(self) -> bool:
        """Compare the results on affected rows with what held there before."""
        nodes, journal = self._context.cluster.nodes, self._context.cluster.journal
        changed: Rows | None = None
        if self._position >= 0:
            changed, _ = self._context.changed(self._position, self._reads)
        if changed is None or self._held.size != nodes.columns.capacity:
            changed = slice(0, nodes.size)
            self._held = np.resize(
                np.append(self._held, np.zeros(nodes.columns.capacity, np.bool_)), nodes.columns.capacity
            )
        self._position = journal.position
        rows = changed if self._affected is None else self._affected.extend(changed)
        holds: Mask = np.zeros(1, np.bool_)
        if isinstance(self._rules, FilterMatrix):
            holds = self._rules.evaluate(rows)[0] == 0
        holds = holds & nodes.present.data[rows]
        gained = bool((holds & ~self._held[rows]).any())
        self._held[rows] = holds
        return gained


class _Known(NamedTuple):
    pod: weakref.ref[Pod]
    version: Hashable
    alike: weakref.ref[RejectedPods]


class Rejections:
    """What a policy remembers of the pods that it rejected; of their number none is kept alive by that."""

    def __init__(self, context: EvaluationContext) -> None:
        self.independent = PodIndependentResults(context)
        """None: the rules are evaluated where a hint is asked for, and no results of all nodes are kept for it."""
        self._by_pod: LRUCache[int, _Known] = LRUCache(MOST_PODS)
        self._by_key: LRUCache[Hashable, RejectedPods] = LRUCache(REJECTIONS_BYTES, getsizeof=attrgetter("nbytes"))

    def of(
        self, pod: Pod, version: Hashable, prepare: Callable[[], tuple[Hashable, Callable[[], RejectedPods]]]
    ) -> RejectedPods:
        """Return what is remembered of a pod and those that are alike.

        Args:
            pod: The pod.
            version: What its rules and their values of it depend on, beside the pod itself.
            prepare: Says by what pods are alike to the policy, and gives what makes an entry for them.
        """
        known = self._by_pod.get(id(pod))
        before = known.alike() if known is not None and known.pod() is pod else None
        if known is not None and before is not None and known.version == version:
            return before
        key, make = prepare()
        alike = self._by_key.get(key)
        if alike is None:
            alike = make()
            alike.measure(pod)
            if alike.nbytes <= self._by_key.maxsize:
                self._by_key[key] = alike
        if before is not None:
            alike.follow(before)
        self._by_pod[id(pod)] = _Known(weakref.ref(pod), version, weakref.ref(alike))
        return alike


def changes_read(
    filters: Iterable[CompiledFilter], inputs: Sequence[Input], timed: bool
) -> tuple[tuple[Resource, Action], ...]:
    """Name the changes of what some filters read, in the order of their hints.

    Args:
        filters: The rules.
        inputs: What the whole policy reads.
        timed: Whether time changes what it says.
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
    """Name the changes of a node that inputs read."""
    actions = Action.ADD
    for item in read:
        if item.root == "node":
            actions |= NODE_ACTIONS.get(item.path[0], Action.NONE)
    return actions


def hints(changes: Iterable[tuple[Resource, Action]], decide: Decide) -> list[Hint]:
    """Make the hints of changes: of the pod itself any one helps, of the others `decide` says which."""
    return [
        Hint(resource, actions, is_own if resource is Resource.PENDING_POD else decide) for resource, actions in changes
    ]


def next_time(roots: Sequence[Typed], pod: Pod, cluster: Cluster) -> float | None:
    """Return the time at which time alone can change what graphs say of a pod. Units: seconds since 1970."""
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
    """Return whether a change is one of the pod itself."""
    return isinstance(change.new, Pod) and change.new.metadata.uid == pod.metadata.uid
