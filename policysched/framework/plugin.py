"""Plugin interfaces from PreEnqueue to NormalizeScore: one state per pod class, all nodes per call.

A pod class is a set of pods that are equal in all fields that scheduling reads. `prepare_filter` and `prepare_score`
return a state for one class, which the scheduler reuses in many cycles. So `filter` and `score` may read only the
state and the declared aspects of the nodes. After a change, they are called again for the rows that changed in a
declared aspect; all other results are reused. If results depend on

- other rows, `filter_affected` and `score_affected` return the rows to evaluate again;
- values outside the rows, `generation` returns a value: if it changes, all classes are prepared again;
- labels of namespaces, `is_outdated` or `reads_own_namespace` limits this to the classes that read the labels.

All of these except `generation` are optional, see `optional_interfaces`.

Shapes: N rows in use; `rows` selects R of them, as a slice for all or as an array of row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

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
MAX_NODE_SCORE = 100
PREFIX = "SchedulingPolicy/"
"""What the names of policies' plugins begin with."""


def plugin_name(policy: PolicyKey) -> str:
    """Return the plugin name of a policy."""
    return PREFIX + policy


class Nothing(Enum):
    """The result of a plugin that does not apply to a pod."""

    SKIP = "Skip"


SKIP = Nothing.SKIP


@dataclass(frozen=True, slots=True)
class Narrow:
    """A prepared state and the names of the only nodes that can match; all other nodes are rejected."""

    state: Any
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The state of a filter that returns the same status for every node."""

    status: Status


@dataclass(frozen=True, slots=True)
class HintIndex:
    """An index of waiting pods by key, to find the pods that a change may help without evaluating all hints.

    Every pod that the hint would queue must have a key that the change leads to. The hint is still evaluated for the
    pods found.
    """

    filed_under: Callable[[Pod], Iterable[Hashable]]
    """Returns the keys of a waiting pod. They may depend only on its spec, labels, namespace and the claim names in its
    status. If there are too many, the scheduler stops reading them and treats the pod as not indexed."""
    leads_to: Callable[[Change, Collection[Hashable]], Collection[Hashable] | None]
    """Returns the keys of a change, out of the keys in use; None means all keys."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A cluster event that can make a pod schedulable which the plugin rejected.

    `helps(pod, change, cluster)` returns whether to queue the pod for a change; without it, every such event queues the
    pod. All hints of a plugin with an index must share one index.
    """

    resource: Resource | CustomResource
    actions: Action
    helps: Callable[[Pod, Change, Cluster], bool] | None = None
    index: HintIndex | None = None


ANY_CHANGE = tuple(Hint(resource, Action.ALL) for resource in Resource if resource is not Resource.TIME)
"""The hints of a plugin without `events`: every change of an object or metric retries the pod."""


class Plugin(Protocol):
    """The members of all plugins."""

    @property
    def name(self) -> str:
        """The plugin's name in configurations, statuses and decision records."""


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """A plugin at PreFilter and Filter that evaluates all nodes in one call."""

    @property
    def filter_reads(self) -> Aspect:
        """The aspects that `filter` reads: a node is filtered again if one of them or PRESENCE changes."""

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Return a state for `filter`, a Narrow, SKIP, or a Status that rejects the pod on every node.

        A rejection should have code UNSCHEDULABLE_AND_UNRESOLVABLE, because without a state preemption cannot be
        simulated.
        """

    def filter(self, state: Any, rows: Rows) -> Codes:
        """Return 0 for each feasible row, else a positive reason code, which `reason` translates.

        Shapes: (R,) int32.
        """

    def reason(self, state: Any, code: int) -> Status:
        """Return the status for a reason code of this state."""

    def events(self) -> Sequence[Hint]:
        """Return the events that can make a rejected pod schedulable."""

    def generation(self, cluster: Cluster) -> Hashable:
        """Return a value; if it changes, all classes are prepared again."""


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """A plugin at PreScore, Score and NormalizeScore that evaluates all nodes in one call."""

    @property
    def score_reads(self) -> Aspect:
        """The aspects that `score` reads: a node is scored again if one of them or PRESENCE changes."""

    @property
    def normalizes(self) -> bool:
        """Whether the final score depends on which nodes are feasible."""

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Return a state for `score`, SKIP, or a Status with code ERROR."""

    def score(self, state: Any, rows: Rows) -> Scores:
        """Return the scores of rows, feasible or not; 0 to 100 unless the plugin normalizes.

        Shapes: (R,) int64.
        """

    def normalize(self, state: Any, scores: Scores, feasible: Mask) -> Scores | None:
        """Return the final scores of all rows, 0 to 100, computed from the feasible rows; None if all are 0.

        If all scores are 0, all final scores must be equal.

        Shapes: scores (N,), feasible (N,) -> (N,); values of infeasible rows are ignored.
        """

    def generation(self, cluster: Cluster) -> Hashable:
        """Return a value; if it changes, all classes are prepared again."""


class PreEnqueuePlugin(Plugin, Protocol):
    """A plugin at PreEnqueue, which decides whether a pod may enter the active queue."""

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Return None to admit the pod, or a status that keeps it out (gated)."""

    def events(self) -> Sequence[Hint]:
        """Return the events that can admit a gated pod."""


class QueueSortPlugin(Plugin, Protocol):
    """The plugin at QueueSort, which orders the active queue."""

    def key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        """Return the sort key; the pod with the smallest key is scheduled first."""


def default_normalize(scores: Scores, feasible: Mask, *, reverse: bool) -> Scores:
    """Scale scores to 0 to 100 by their maximum over the feasible rows; `reverse` inverts them.

    Source: plugins/helper/normalize_score.go.
    """
    highest = int(scores.max(initial=0, where=feasible))
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    scaled = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled
