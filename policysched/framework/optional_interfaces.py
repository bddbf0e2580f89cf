"""Optional base classes of plugins: `Incremental`, `WhatIfFilter`, `PerPod`, `RetryControl` and `PluginBlock`.

A plugin inherits those that it needs. Each base has defaults, so a plugin overrides only some of its members. Shapes
are those of the module `plugin`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework.plugin import Codes, FilterPlugin, Plugin, PreparedFilter, ScorePlugin, StateT
from policysched.framework.status import Status
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.columns import RowNumbers, Rows
from policysched.state.tables.journal import Aspect
from policysched.state.what_if import ChangedRow, ChangedRows


class Incremental(Plugin, Generic[StateT]):
    """A plugin whose results for a node depend on more than the pod and the node, such as on other nodes.

    The scheduler reuses results until something changes, so the plugin says which results a change invalidates:

    - Results on other rows, such as the rows of a topology domain: `affected_rows` returns them.
    - All results of one class, if labels of namespaces changed: `is_current`, or `reads_own_namespace`.
    - All results of all classes: `stamp` returns a different value.

    A plugin that filters and scores gets the state of either method.
    """

    follows_changes: bool = False
    """Whether results may change although no node changed, as with devices.

    `affected_rows` is then called in every cycle, sometimes without rows.
    """
    reads_own_namespace: bool = False
    """Whether the data that the plugin prepares depends on the labels of the pod's own namespace.

    If these labels change, the plugin prepares the pod's class again.
    """

    def affected_rows(self, state: StateT, rows: RowNumbers) -> Rows:  # noqa: ARG002 - for subclasses
        """Return the rows of nodes whose results a change of the nodes `rows` may have changed; by default `rows`.

        Args:
            state: A prepared state. It may store what it saw last: it gets each change once, in order.
            rows: The rows that changed in a declared aspect, some perhaps twice.
        """
        return rows

    def is_current(self, state: StateT) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether the data that the plugin prepared is still valid after labels of namespaces changed.

        It returns False until the class is prepared again.
        """
        return True

    def stamp(self, cluster: Cluster) -> Hashable:  # noqa: ARG002 - for subclasses
        """Return a value that identifies the plugin's inputs; if it changes, the plugin prepares again for all pods."""
        return 0

    def prepare_after(
        self,
        before: StateT,  # noqa: ARG002 - for subclasses
        pod: Pod,  # noqa: ARG002 - for subclasses
        cluster: Cluster,  # noqa: ARG002 - for subclasses
    ) -> PreparedFilter[StateT] | None:
        """Prepare for a pod, given the data that this plugin's predecessor in an earlier profile prepared for it.

        Args:
            before: The earlier state; its results are current.
            pod: A pod of the class.
            cluster: The cluster.

        Returns:
            What `prepare_filter` or `prepare_score` returns; for the earlier state, its results are reused. None to
            call that method.
        """
        return None


class WhatIfFilter(FilterPlugin[StateT]):
    """A filter that reads the pods on nodes, and can be evaluated as if pods were added to or removed from nodes.

    Preemption and nominated pods need this of each filter with an aspect of `ABOUT_PODS` in `filter_reads`. A method
    returns what `filter` and `reason` would return if the pods really left and came. Neither the cluster nor the state
    changes, and the cost depends on the pods that leave and come, not on the number of nodes or pod classes.
    """

    def reads_other_rows(self, state: StateT) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether the filter's result for a node also depends on the pods on other nodes."""
        return True

    def is_affected_by(self, state: StateT, placed: PlacedPod) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether placing a pod may change the result for any node; called only if `reads_other_rows`.

        Args:
            state: A prepared state.
            placed: The pod; its signature is −1. The answer is the same for all pods of a signature.
        """
        return True

    @abstractmethod
    def filter_changed(self, state: StateT, changed: ChangedRow) -> Status | None:
        """Return the status that would reject the pod on a simulated node; None if the pod would fit.

        Args:
            state: A prepared state, up to date.
            changed: The row, with the pods that would leave and come.
        """

    def filter_changed_rows(self, state: StateT, changed: ChangedRows) -> Codes | None:  # noqa: ARG002 - for subclasses
        """Return the reason code (0 accepts) for each of many simulated nodes; None if only single nodes are supported.

        Shapes: (R,) int32.
        """
        return None

    def most_pods(self, state: StateT, rows: RowNumbers) -> NDArray[np.int64] | None:  # noqa: ARG002 - for subclasses
        """Return for each node the highest number of other pods beside which the pod may fit; None for no limit.

        Preemption does not try to keep more pods on a row.

        Shapes: (R,).
        """
        return None


class PerPod(Plugin):
    """A plugin that can evaluate a single pod instead of all equal pods at once, because it reads the pod's objects.

    For a pod with such objects, for example claims, Filter and Score are prepared and evaluated for all rows in each
    cycle, and their results are not stored. For other pods the plugin is skipped, also at Reserve.

    Pods whose objects need not be distinguished at the moment can share results: `shared_key` becomes part of their
    class, and `class_filter` and `class_score` evaluate the class in the name of the plugin.
    """

    class_filter: FilterPlugin[Any] | None = None
    """The plugin's filter for pods that have a `shared_key`; it returns SKIP for all other pods."""
    class_score: ScorePlugin[Any] | None = None
    """The score plugin for results that equal pods share: always 0, as results for a single pod replace them."""

    @staticmethod
    @abstractmethod
    def has_own_results(pod: Pod, cluster: Cluster) -> bool:
        """Return whether the pod uses objects that the plugin reads; several plugins can share this function."""

    def shared_key(self, pod: Pod, cluster: Cluster) -> Hashable | None:  # noqa: ARG002 - for subclasses
        """Return a key that is equal for pods which share the plugin's results; None if no other pod shares them."""
        return None


class RetryControl(Plugin):
    """A filter that decides when rejected pods are retried, in addition to its queueing hints."""

    def on_rejected(self, pod: Pod, cluster: Cluster) -> None:
        """Store data about a pod that the filter rejected, with which the plugin's hints evaluate later changes."""

    def retry_at(self, pod: Pod, cluster: Cluster) -> float | None:  # noqa: ARG002 - for subclasses
        """Return the time from which the plugin may accept a rejected pod without any event; None if there is none.

        At that time, the hints for the resource TIME are evaluated. Units: seconds since 1970, UTC.
        """
        return None

    def puts_off(self, pod: Pod, cluster: Cluster) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether to delay the pod's attempt, because another pod's binding is writing an object that it needs.

        The pod then waits, without a report, for a change that `events` names; that change has to come however the
        binding ends. A pod that is popped from the queue after it waited is tried even if it would have to wait again.
        """
        return False


class BlockMember(RetryControl):
    """One of the policies that a `PluginBlock` evaluates together; statuses and records have its own plugin name."""

    weight: int
    tier: int


class BlockRow(NamedTuple):
    """The results of one policy in a `PluginBlock`, for all nodes: reason codes, or scores without the weight."""

    member: BlockMember
    values: NDArray[Any]
    """The reason code or score of each node, by row. Shapes: (C,) for the capacity C of the columns."""


class PluginBlock(Incremental[StateT]):
    """One plugin that evaluates several policies (its members) together: all policies of a profile.

    Its statuses have the names of members. Its score is the sum of the members' scores times their weights.
    """

    @property
    @abstractmethod
    def members(self) -> Sequence[BlockMember]:
        """The policies that the block evaluates, in the order in which their filters report rejections."""

    @abstractmethod
    def members_of(self, state: StateT) -> Sequence[BlockMember]:
        """Return the policies of the block that apply to the pod for which a state was prepared."""

    @abstractmethod
    def rows_of(self, state: StateT) -> Sequence[BlockRow]:
        """Return the results of each policy; at Filter, only of policies that rejected any node."""

    @abstractmethod
    def reads_of(self, state: StateT) -> Aspect:
        """Return the parts of nodes (such as labels) that the policies which apply to the pod of a state read."""
