"""Base classes of PostFilter plugins, and of victim guards, which protect pods from preemption.

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
    """A simulation of one node to which pods are added or from which they are removed, for a pod that fits no node."""

    def remove(self, pod: Pod) -> None:
        """Remove from the simulated node a pod that is placed on the node or was added to the simulation."""

    def add(self, pod: Pod) -> None:
        """Add to the simulated node a pod that was removed from the simulation or is placed on no node."""

    def remove_elsewhere(self, pod: PlacedPod) -> None:
        """Remove, in the simulation, a pod that is placed on another node than the simulated node."""

    def restore_elsewhere(self, pod: PlacedPod) -> None:
        """Restore, in the simulation, a pod that `remove_elsewhere` removed."""

    def verdict(self) -> Status | None:
        """Return the status that rejects the pod on the simulated node; None if the pod fits.

        As in kube-scheduler, the pod must fit both with and without the pods of equal or higher priority that are
        nominated to the node.
        """


@dataclass(frozen=True, slots=True)
class RowVerdicts:
    """The results of all filters for many simulated nodes.

    Shapes: fits (R,).
    """

    fits: Mask
    """Mask of the simulated nodes that pass every filter."""
    status_of: Callable[[int], Status | None]
    """Function that returns the status that rejects the node at an index; None if the node passes."""

    def over(self, other: RowVerdicts) -> RowVerdicts:
        """Return the results of both these filters and the filters of `other`; statuses of this object come first."""
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
    """Function that returns the values that the guard read for the pod at an index; empty if it read none."""


class VictimGuard(Plugin, ABC):
    """A plugin that protects placed pods from preemption; its hints name the changes that can end a protection."""

    @abstractmethod
    def protected(self, pod: Pod, cluster: Cluster, slots: RowNumbers) -> Protection | None:
        """Return which placed pods, given by index, the guard protects from preemption by a pod.

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
        """The random generator that chooses between equally good candidate nodes."""

    @property
    def extenders(self) -> Sequence[Extender]:
        """The extenders that are interested in the pod and take part in preemption."""

    @property
    def victim_guards(self) -> Sequence[VictimGuard]:
        """The guards that protect placed pods; a pod may be evicted if no guard protects the pod."""

    def rows_with(self, code: Code) -> RowNumbers:
        """Return the rows of the nodes that were rejected with a given status code, in ascending order."""

    def status_of(self, node: str) -> Status | None:
        """Return the status that rejects a node; None if no node has this name."""

    def pre_filtered(self, plugin: str) -> bool:
        """Return whether a plugin's PreFilter was called; a rejection at PreFilter ends the calls of plugins."""

    def trial(self, row: int) -> WhatIf:
        """Return a simulation of one node, in which pods can be added or removed."""

    def verdicts(self, changed: ChangedRows) -> RowVerdicts | None:
        """Return the results of all filters for simulated nodes; None if a filter can only simulate single nodes."""

    def most_pods(self, rows: RowNumbers) -> NDArray[np.int64]:
        """Return for each node the highest number of other pods beside which the pod may still fit.

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
    """Details about the plugin's search, for decision records."""
    rejectors: frozenset[str] = frozenset()
    """Plugins, besides the filters that rejected the pod, that prevented success; their hints retry the pod too."""
    rejecting_anyway: frozenset[str] = frozenset()
    """Filters that reject the pod on some node even if all victims are evicted; their hints retry the pod too."""
    cleanups: tuple[Callable[[Handle], Coroutine[Any, Any, None]], ...] = ()
    """API writes that are executed whatever later PostFilter plugins return. Not executed in a dry-run."""
    ask: Callable[[], Awaitable[PostFilterResult]] | None = None
    """Calls extenders and returns the PostFilterResult to use instead of this one. The cluster may change meanwhile."""
    violations: int = 0
    """Number of victims whose eviction violates a disruption budget."""

    @property
    def succeeded(self) -> bool:
        """Whether the plugin makes the pod fit."""
        return self.status is None or self.status.code is Code.SUCCESS


class PostFilterPlugin(Plugin, ABC):
    """A plugin that is called for a pod that fits no node."""

    @abstractmethod
    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Return how the pod can be made to fit, or why not.

        Args:
            pod: The pod as it is known now, perhaps newer than the one that was decided about.
            failed: The decision.
        """
