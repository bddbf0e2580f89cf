"""Plugin interfaces from PreEnqueue to NormalizeScore: one state per pod class, all nodes per call.

A prepared state belongs to one pod class (pods equal in everything scheduling reads) and outlives many cycles. So
`filter` and `score` may read nothing of the pod but what `prepare_*` kept, and nothing of the cluster but the aspects
they declare: rows that changed in those are asked again, all others keep their answer. Where an answer depends on
other rows too, `filter_affected` and `score_affected` name the rows to ask again; where it depends on more than
rows, `generation` says so: another generation makes all classes anew; a plugin that knows which classes the labels of
namespaces concern has `is_outdated`, or `reads_own_namespace`. These methods are in `optional_interfaces`.

Shapes: N rows in use; `rows` selects R of them, as a slice for all or as an array of row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from policysched.framework.status import Status
from policysched.late_dataclass import dataclass
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
    """The answer of a plugin that has nothing to do with a pod."""

    SKIP = "Skip"


SKIP = Nothing.SKIP


@dataclass(frozen=True, slots=True)
class Narrow:
    """A prepared state together with the only nodes that can match, by name."""

    state: Any
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The state of a filter that has one status for every node that it is asked about."""

    status: Status


@dataclass(frozen=True, slots=True)
class HintIndex:
    """By what the waiting pods are found that a change may help, so that the others need not be asked about.

    A pod that the hint says yes to is filed under a key that the change leads to; it may say no to pods found so.
    """

    filed_under: Callable[[Pod], Iterable[Hashable]]
    """The keys of a waiting pod; they depend on nothing but its spec, labels, namespace and the names of claims in its
    status. Of very many not all are asked for."""
    leads_to: Callable[[Change, Collection[Hashable]], Collection[Hashable] | None]
    """The keys of a change among those under which any pod is filed; None stands for all of them."""


@dataclass(frozen=True, slots=True)
class Hint:
    """An event that may help a pod which the plugin rejected.

    `helps(pod, change, cluster)` decides for one pod and change; absent, every such event helps. All hints of a plugin
    that have an index have the same one.
    """

    resource: Resource | CustomResource
    actions: Action
    helps: Callable[[Pod, Change, Cluster], bool] | None = None
    index: HintIndex | None = None


ANY_CHANGE = tuple(Hint(resource, Action.ALL) for resource in Resource if resource is not Resource.TIME)
"""The hints of a plugin that names no changes."""


class Plugin(Protocol):
    """What all plugins have."""

    @property
    def name(self) -> str:
        """The name in configurations, statuses and decision records."""


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """A plugin at PreFilter and Filter."""

    @property
    def filter_reads(self) -> Aspect:
        """The aspects of a row that its filter reads, PRESENCE apart."""

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Return a state for `filter`, a Narrow, SKIP, or a Status that rejects the pod on every node.

        Nobody could be asked without a state, so the rejection should be one that preemption cannot help; those of
        kube-scheduler's default plugins are.
        """

    def filter(self, state: Any, rows: Rows) -> Codes:
        """Return 0 for each row where the pod may go, else a positive reason code of this plugin.

        Shapes: (R,) int32.
        """

    def reason(self, state: Any, code: int) -> Status:
        """Translate a reason code of this state."""

    def events(self) -> Sequence[Hint]:
        """Name the changes that can help a pod which this plugin rejected."""

    def generation(self, cluster: Cluster) -> Hashable:
        """Return a value whose change makes all prepared states stale."""


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """A plugin at PreScore, Score and NormalizeScore."""

    @property
    def score_reads(self) -> Aspect:
        """The aspects of a row that its score reads, PRESENCE apart."""

    @property
    def normalizes(self) -> bool:
        """Whether the final score depends on which nodes are feasible."""

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Return a state for `score`, SKIP, or a Status with code ERROR."""

    def score(self, state: Any, rows: Rows) -> Scores:
        """Score rows, feasible or not; without normalisation this is the final score, 0 to 100.

        Shapes: (R,) int64.
        """

    def normalize(self, state: Any, scores: Scores, feasible: Mask) -> Scores | None:
        """Turn all rows' scores into final ones, 0 to 100, looking at the feasible rows only; None where all are 0.

        Scores that are 0 on every row must give the same final score everywhere.

        Shapes: scores (N,), feasible (N,) -> (N,); values of other rows do not matter.
        """

    def generation(self, cluster: Cluster) -> Hashable:
        """Return a value whose change makes all prepared states stale."""


class PreEnqueuePlugin(Plugin, Protocol):
    """A plugin that may keep a pod out of the active queue."""

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Return a rejection, or None to let the pod in."""

    def events(self) -> Sequence[Hint]:
        """Name the changes that can let the pod in."""


class QueueSortPlugin(Plugin, Protocol):
    """The plugin that orders the active queue."""

    def key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        """Return the sort key: smaller goes first."""


def default_normalize(scores: Scores, feasible: Mask, *, reverse: bool) -> Scores:
    """Scale scores to 0..100 by their maximum over the feasible rows; `reverse` turns them around.

    Source: plugins/helper/normalize_score.go.
    """
    highest = int(scores.max(initial=0, where=feasible))
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    scaled = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled
