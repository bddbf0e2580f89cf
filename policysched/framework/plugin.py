"""Base classes of plugins from PreEnqueue to NormalizeScore; a plugin evaluates many nodes per call.

A plugin inherits the base class of each extension point at which it acts. A pod class is a set of pods that are equal
in all fields that scheduling reads. `prepare_filter` and `prepare_score` return a state for one class, which the
scheduler reuses in many cycles. So `filter` and `score` may read only the state and the declared aspects of the nodes.
After a change, they are called again for the rows that changed in a declared aspect; all other results are reused.

A plugin that needs more inherits a base of `optional_interfaces`: `Incremental` if its results depend on more than
that, `WhatIfFilter`, `PerPod` or `RetryControl`.

The memory of a state is estimated from the size of the pod. A state with more memory has an attribute `arrays`, its
number of arrays over all rows, or `nbytes`, the bytes that depend on the cluster.

Shapes: N rows in use; `rows` selects R of them, as a slice for all or as an array of row numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework.status import Status
from policysched.model.kinds import CustomResource, Resource
from policysched.model.objects import Pod
from policysched.model.policy import PolicyKey
from policysched.state.cluster import Cluster
from policysched.state.cluster_events import Action, Change
from policysched.state.tables.columns import Rows
from policysched.state.tables.journal import Aspect

Codes = NDArray[np.int32]
Scores = NDArray[np.int64]
Mask = NDArray[np.bool_]
StateT = TypeVar("StateT")
MAX_NODE_SCORE = 100
PREFIX = "SchedulingPolicy/"
"""Prefix of a policy's plugin name, which the policy's name follows."""


def plugin_name(policy: PolicyKey) -> str:
    """Return the plugin name that a policy has in statuses and records."""
    return PREFIX + policy


class Nothing(Enum):
    """The type of SKIP, which a plugin returns at PreFilter or PreScore if it does not apply to a pod."""

    SKIP = "Skip"


SKIP = Nothing.SKIP


@dataclass(frozen=True, slots=True)
class Narrow(Generic[StateT]):
    """A result of `prepare_filter` that excludes nodes: data for `filter`, and the names of the only possible nodes."""

    state: StateT
    nodes: frozenset[str]


PreparedFilter: TypeAlias = StateT | Narrow[StateT] | Nothing | Status
"""The result of `prepare_filter`: data for `filter`, a Narrow, SKIP or a rejection."""
PreparedScore: TypeAlias = StateT | Nothing | Status
"""The result of `prepare_score`: data for `score`, SKIP or an error status."""


@dataclass(frozen=True, slots=True)
class HintIndex:
    """An index of waiting pods: at a change, hints are called only for pods that share a key with the change.

    Every pod that the hint would queue must have a key that the change leads to. The hint is still evaluated for the
    pods found.
    """

    filed_under: Callable[[Pod], Iterable[Hashable]]
    """Function that returns the index keys of a waiting pod.

    The keys may depend only on the pod's spec, labels, namespace and the claim names in its status. If there are too
    many, the scheduler stops reading them and treats the pod as not indexed.
    """
    leads_to: Callable[[Change, Collection[Hashable]], Collection[Hashable] | None]
    """Function that returns those index keys in use whose pods a change may help; None means all keys."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A queueing hint: a kind of change that can make a pod schedulable that the plugin rejected; a check is optional.

    `helps(pod, change, cluster)` returns whether to queue the pod for a change; without it, every such event queues the
    pod. All hints of a plugin with an index must share one index.
    """

    resource: Resource | CustomResource
    actions: Action
    helps: Callable[[Pod, Change, Cluster], bool] | None = None
    index: HintIndex | None = None


ANY_CHANGE = tuple(Hint(resource, Action.ALL) for resource in Resource if resource is not Resource.TIME)
"""The default queueing hints of a plugin: every change of an object or metric retries the pods that it rejected."""


class SizedState:
    """Data that a plugin prepared for a pod, and that reports its memory, so that caches can be limited.

    The memory of data of other classes is estimated from the size of the pod alone. Data that several pod classes share
    is counted for each of these classes.
    """

    __slots__ = ()

    def memory(self, rows: int) -> int:  # noqa: ARG002 - for subclasses
        """Estimate the memory of the data, without the part that grows with the pod; 0 by default. Units: bytes.

        Args:
            rows: Number of elements of each array with one element per node.
        """
        return 0


class Plugin:
    """The base class of all plugins, with their name and queueing hints."""

    name: str
    """The plugin's name in configurations, statuses and decision records."""
    hints: Sequence[Hint] = ANY_CHANGE
    """The queueing hints that `events` returns; by default, every change retries the pods that the plugin rejected."""

    def events(self) -> Sequence[Hint]:
        """Return queueing hints: the changes that can make a pod schedulable that the plugin rejected."""
        return self.hints

    def take_over(self, before: Plugin) -> None:
        """Continue the unfinished work of the plugin of the same name in the profile that is replaced."""


class RowFilter(ABC, Generic[StateT]):
    """Base class of filters, which evaluate many nodes in one call with data that they prepared for the pod."""

    name: str
    filter_reads: Aspect = Aspect.NONE
    """The parts of a node, such as labels, that `filter` reads: a node is filtered again if one of them changes."""

    @abstractmethod
    def filter(self, state: StateT, rows: Rows) -> Codes:
        """Return for each node (row) 0 if the pod fits, else a positive reason code, which `reason` translates.

        Shapes: (R,) int32.
        """

    @abstractmethod
    def reason(self, state: StateT, code: int) -> Status:
        """Return the status that a reason code of `filter` stands for."""


class FilterPlugin(Plugin, RowFilter[StateT]):
    """A plugin at PreFilter and Filter that evaluates all nodes in one call."""

    filters_alone: bool = False
    """Whether Filter works while a configuration disables the plugin's PreFilter; if not, Filter then fails."""
    pre_filters: bool = True
    """Whether the configuration enables PreFilter. If not, a status of `prepare_filter` rejects each node at Filter."""

    @abstractmethod
    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[StateT]:
        """Return data for `filter`, a Narrow, SKIP, or a Status that rejects the pod on every node (PreFilter).

        A rejection should have code UNSCHEDULABLE_AND_UNRESOLVABLE, because without a state preemption cannot be
        simulated.
        """


class RowScore(ABC, Generic[StateT]):
    """Base class of score plugins, which evaluate many nodes in one call with data that they prepared for the pod."""

    name: str
    score_reads: Aspect = Aspect.NONE
    """The parts of a node, such as labels, that `score` reads: a node is scored again if one of them changes."""
    normalizes: bool = False
    """Whether a node's final score depends on which other nodes are feasible, so that `normalize` is called."""
    tier: int = 0
    """The tier of the scores: scores of a higher tier decide before scores of lower tiers."""

    @abstractmethod
    def score(self, state: StateT, rows: Rows) -> Scores:
        """Return the score of each node (row), feasible or not; 0 to 100 unless the plugin normalizes.

        Shapes: (R,) int64.
        """

    def normalize(self, state: StateT, scores: Scores, feasible: Mask) -> Scores | None:  # noqa: ARG002 - for subclasses
        """Return the final scores of all nodes, 0 to 100, computed from the feasible nodes; None if all are 0.

        If all scores are 0, all final scores must be equal.

        Shapes: scores (N,), feasible (N,) -> (N,); values of infeasible rows are ignored.
        """
        return scores

    def stays_in_range(self, state: StateT) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether every final score is certainly within 0 to 100; otherwise, the scheduler checks the scores.

        Called after each `score` if the plugin does not normalize, else after `prepare_score`.
        """
        return False

    def leaves_out(self, state: StateT) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether kube-scheduler would skip the plugin at PreScore; all scores are 0, and records omit them."""
        return False


class ScorePlugin(Plugin, RowScore[StateT]):
    """A plugin at PreScore, Score and NormalizeScore that evaluates all nodes in one call."""

    scores_alone: bool = False
    """Whether Score works while a configuration disables the plugin's PreScore; if not, Score then fails."""
    scores_after_pre_filter: bool = False
    """Whether Score fails while a configuration disables the plugin's PreFilter."""
    scores_after_filter: bool = False
    """Whether all scores are 0 while a configuration disables the plugin's Filter."""
    pre_scores: bool = True
    """Whether the configuration enables PreScore. If not, SKIP of `prepare_score` scores all nodes 0."""

    @abstractmethod
    def prepare_score(self, pod: Pod, cluster: Cluster) -> PreparedScore[StateT]:
        """Return data for `score`, SKIP, or a Status with code ERROR (PreScore)."""


class PreEnqueuePlugin(Plugin, ABC):
    """A plugin at PreEnqueue, which decides whether a pod may enter the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Return None to admit the pod, or a status with which the pod stays gated."""


class QueueSortPlugin(Plugin, ABC):
    """The plugin at QueueSort, which orders the active queue."""

    @abstractmethod
    def key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        """Return the sort key; the pod with the smallest key is scheduled first."""


def default_normalize(scores: Scores, feasible: Mask, *, reverse: bool) -> Scores:
    """Return scores scaled to 0 to 100 by their maximum over the feasible nodes; `reverse` inverts the scores.

    Source: plugins/helper/normalize_score.go.
    """
    highest = int(scores.max(initial=0, where=feasible))
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    scaled = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled
