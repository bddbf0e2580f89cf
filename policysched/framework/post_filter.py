"""Interfaces of PostFilter plugins and of victim guards, which protect pods from preemption.

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
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.columns import RowNumbers
from policysched.state.what_if import ChangedRows


class WhatIf(Protocol):
    """A simulation of one node on which pods are added or removed, for the pod of a failed decision."""

    def remove(self, pod: Pod) -> None:
        """Remove from the simulated node a pod that is placed on the node or was added to the simulation."""

    def add(self, pod: Pod) -> None:
        """Add to the simulated node a pod that was removed from the simulation or is placed on no node."""

    def remove_elsewhere(self, pod: PlacedPod) -> None:
        """Remove a pod that is placed on another node than the simulated node."""

    def restore_elsewhere(self, pod: PlacedPod) -> None:
        """Restore a pod that `remove_elsewhere` removed."""

    def verdict(self) -> Status | None:
        """Return the status that rejects the simulated node, or None if the pod fits.

        As in kube-scheduler, the pod must fit both with and without the pods of equal or higher priority that are
        nominated to the node.
        """


@dataclass(frozen=True, slots=True)
class RowVerdicts:
    """The results of all filters on many simulated rows.

    Shapes: fits (R,).
    """

    fits: Mask
    """Mask of the rows that pass every filter."""
    status_of: Callable[[int], Status | None]
    """Function that returns the status that rejects the row at an index; None if the row passes."""

    def over(self, other: RowVerdicts) -> RowVerdicts:
        """Return the combination with the results `other` of other filters; statuses of this object take precedence."""
        return RowVerdicts(self.fits & other.fits, lambda index: self.status_of(index) or other.status_of(index))


@dataclass(frozen=True, slots=True)
class Protection:
    """The placed pods that a guard protects from eviction, with the reasons.

    Shapes: codes (V,).
    """

    codes: Codes
    """For each placed pod, 0 if the pod may be evicted, else the reason code of the protection."""
    reason_of: Callable[[int], str]
    """Function that returns the text of a reason code."""
    values_of: Callable[[int], str]
    """Function that returns the values that the guard read of the pod at an index; empty without values."""


class VictimGuard(Plugin, ABC):
    """A plugin that protects placed pods from preemption; its `events` name the changes that can end a protection."""

    @abstractmethod
    def protected(self, pod: Pod, cluster: Cluster, slots: RowNumbers) -> Protection | None:
        """Return which of some placed pods the guard protects from the preemptor.

        Args:
            pod: The preemptor.
            cluster: The cluster.
            slots: Pods of lower priority, by their slots in the pod table. Shapes: (V,).

        Returns:
            None if the guard does not apply to the preemptor.
        """


class FailedDecision(Protocol):
    """A decision without a feasible node; the methods are valid until the cluster changes."""

    @property
    def pod(self) -> Pod:
        """The pod that does not fit on any node."""

    @property
    def cluster(self) -> Cluster:
        """The cluster in which the pod does not fit."""

    @property
    def state(self) -> CycleState:
        """The CycleState that plugins share in the scheduling attempt."""

    @property
    def rng(self) -> random.Random:
        """The random generator that chooses between equal candidates."""

    @property
    def extenders(self) -> Sequence[Extender]:
        """The extenders that are interested in the pod and take part in preemption."""

    @property
    def victim_guards(self) -> Sequence[VictimGuard]:
        """The guards that protect placed pods; a pod may be evicted if no guard protects the pod."""

    def rows_with(self, code: Code) -> RowNumbers:
        """Return the rows that were rejected with a given status code, in ascending order."""

    def status_of(self, node: str) -> Status | None:
        """Return the status that rejects a node; None if no node has this name."""

    def pre_filtered(self, plugin: str) -> bool:
        """Return whether a plugin's PreFilter was called; a rejection at PreFilter ends the calls."""

    def trial(self, row: int) -> WhatIf:
        """Return a what-if of a node: pods can be added to or removed from the node."""

    def verdicts(self, changed: ChangedRows) -> RowVerdicts | None:
        """Return the results of all filters on changed rows; None if a filter can only simulate single rows."""

    def most_pods(self, rows: RowNumbers) -> NDArray[np.int64]:
        """Return for each row the highest number of further pods with which the pod may still fit.

        Shapes: (R,).
        """


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of a plugin at PostFilter."""

    status: Status | None = None
    """None or a success if the plugin makes the pod fit; else a rejection or an error.

    The status's reasons end the pod's message.
    """
    nominated_node: str | None = None
    """The name of the nominated node; empty to clear the nomination, None to keep it."""
    act: Callable[[Handle], Awaitable[bool | None]] | None = None
    """Function that starts writes to the API server; its result, once awaited, is False after a failure.

    A dry-run does not call the function.
    """
    victims: Sequence[Pod] = ()
    """The pods to evict."""
    details: Any = None
    """Details of the plugin for decision records."""
    rejectors: frozenset[str] = frozenset()
    """Plugins other than filters that prevented success; their hints also retry the pod."""
    rejecting_anyway: frozenset[str] = frozenset()
    """Filters that reject the pod on some node whatever pods are evicted; their hints also retry the pod."""
    cleanups: tuple[Callable[[Handle], Coroutine[Any, Any, None]], ...] = ()
    """Writes to the API server that run regardless of the results of later plugins. Not called in a dry-run."""
    ask: Callable[[], Awaitable[PostFilterResult]] | None = None
    """Calls extenders and returns the PostFilterResult that replaces this one. The cluster may change meanwhile."""
    violations: int = 0
    """Number of victims whose eviction violates a disruption budget."""

    @property
    def succeeded(self) -> bool:
        """Whether the plugin makes the pod fit."""
        return self.status is None or self.status.code is Code.SUCCESS


class PostFilterPlugin(Plugin, ABC):
    """A plugin that is called if no node is feasible."""

    @abstractmethod
    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Return how the pod can be made to fit, or why not.

        Args:
            pod: The pod as it is known now, perhaps newer than the one that was decided about.
            failed: The decision.
        """
