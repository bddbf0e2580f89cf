"""Interfaces of PostFilter and of VictimGuard, which protects pods from preemption.

A PostFilter plugin receives the failed decision and returns a result without changing anything. Requests such as
evictions are returned as `act`, so that a dry-run can call the same plugin without them.

Source: k8s.io/kube-scheduler/framework/interface.go (PostFilterPlugin, PostFilterResult, NominatingInfo).
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework.binding import Handle
from policysched.framework.cycle_state import CycleState
from policysched.framework.extender import Extender
from policysched.framework.plugin import Codes, Mask, Plugin
from policysched.framework.status import Code, Status
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.tables.columns import RowNumbers
from policysched.state.what_if import ChangedRows


class WhatIf(Protocol):
    """A simulation of one node with other pods, for the pod of a failed decision; the cluster does not change."""

    def remove(self, pod: Pod) -> None:
        """Remove a pod that is placed on the node or was added before."""

    def add(self, pod: Pod) -> None:
        """Add a pod that was removed before, or that is not placed."""

    def verdict(self) -> Status | None:
        """Return the status that rejects the simulated node, or None if the pod fits.

        As in kube-scheduler, the pod must fit both with and without the pods of equal or higher priority that are
        nominated to the node.
        """


@dataclass(frozen=True, slots=True)
class RowVerdicts:
    """The results of all filters for many rows.

    Shapes: fits (R,).
    """

    fits: Mask
    """The rows that pass every filter."""
    status_of: Callable[[int], Status | None]
    """Returns the status of the row at an index, or None if it passes."""

    def over(self, other: RowVerdicts) -> RowVerdicts:
        """Return both results combined; the statuses of this result take precedence."""
        return RowVerdicts(self.fits & other.fits, lambda index: self.status_of(index) or other.status_of(index))


@dataclass(frozen=True, slots=True)
class Protection:
    """The result of a guard for placed pods.

    Shapes: codes (V,).
    """

    codes: Codes
    """0 for a pod that may be a victim; protected pods have a positive code per reason."""
    reason_of: Callable[[int], str]
    """Returns the reason for a code."""
    values_of: Callable[[int], str]
    """Returns the values that the guard read of the pod at an index; empty if it read none."""


class VictimGuard(Plugin, ABC):
    """A plugin that protects placed pods from preemption; its `events` can end the protection."""

    @abstractmethod
    def protected(self, pod: Pod, cluster: Cluster, slots: RowNumbers) -> Protection | None:
        """Return which pods are protected.

        Args:
            pod: The preemptor.
            cluster: The cluster.
            slots: Pods of lower priority, by their slots in the pod table. Shapes: (V,).

        Returns:
            None if the guard does not apply to the preemptor.
        """


class FailedDecision(Protocol):
    """A decision without a feasible node. Its methods are valid until the cluster changes."""

    @property
    def pod(self) -> Pod:
        """The pod."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def state(self) -> CycleState:
        """The state that plugins share in the attempt."""

    @property
    def rng(self) -> random.Random:
        """The generator that draws among equal candidates."""

    @property
    def extenders(self) -> Sequence[Extender]:
        """The extenders that are interested in the pod and take part in preemption."""

    @property
    def victim_guards(self) -> Sequence[VictimGuard]:
        """The guards of placed pods; a pod may be evicted if no guard protects it."""

    def rows_with(self, code: Code) -> RowNumbers:
        """Return the rows of the nodes that were rejected with a code, in ascending order."""

    def status_of(self, node: str) -> Status | None:
        """Return the status that rejects a node; None if there is no node of the name."""

    def pre_filtered(self, plugin: str) -> bool:
        """Return whether a plugin ran at PreFilter; plugins after one that rejects do not."""

    def trial(self, row: int) -> WhatIf:
        """Return a simulation of a node with other pods."""

    def verdicts(self, changed: ChangedRows) -> RowVerdicts | None:
        """Return the results of all filters for changed rows; None if a filter can evaluate one node only."""

    def most_pods(self, rows: RowNumbers) -> NDArray[np.int64]:
        """Return the highest number of other pods on each row with which the pod may fit.

        Shapes: (R,).
        """


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """Result of a plugin at PostFilter."""

    status: Status | None = None
    """None or a success if the plugin makes the pod fit; else a rejection or an error. Its reasons end the pod's
    message."""
    nominated_node: str | None = None
    """The nominated node; empty to clear the nomination, None to keep it."""
    act: Callable[[Handle], Awaitable[bool | None]] | None = None
    """Starts writes to the API server and returns an awaitable; False as its result means failure. Not called in a
    dry-run."""
    victims: Sequence[Pod] = ()
    """The victims."""
    details: Any = None
    """Details of the plugin for decision records."""
    rejectors: frozenset[str] = frozenset()
    """Plugins other than filters that prevented success; the pod is also retried when their hints match."""
    rejecting_anyway: frozenset[str] = frozenset()
    """Filters that reject the pod on some node even if room is made; their hints apply, too."""
    cleanups: tuple[Callable[[Handle], Coroutine[Any, Any, None]], ...] = ()
    """Writes to the API server that run whatever other plugins return. Not called in a dry-run."""
    ask: Callable[[], Awaitable[PostFilterResult]] | None = None
    """Calls extenders and returns the result that replaces this one. The cluster may change meanwhile."""

    @property
    def succeeded(self) -> bool:
        """Whether the plugin makes the pod fit."""
        return self.status is None or self.status.code is Code.SUCCESS


class PostFilterPlugin(Plugin, ABC):
    """A plugin that runs when no node was feasible."""

    @abstractmethod
    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Look for a way to make the pod fit.

        Args:
            pod: The pod as it is known now, perhaps newer than the one that was decided about.
            failed: The decision.
        """
