"""Interfaces of PostFilter and of VictimGuard, which exempts pods from preemption.

A plugin is given the failed decision and answers what it found. It changes nothing by that: what is to be done outside
(deleting victims, say) it hands back as `act`, so that a dry-run can ask the same plugin and leave the work undone.

Source: k8s.io/kube-scheduler/framework/interface.go (PostFilterPlugin, PostFilterResult, NominatingInfo).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework.binding import Handle
from policysched.framework.cycle_state import CycleState
from policysched.framework.extender import Extender
from policysched.framework.plugin import Codes, Hint, Mask, Plugin
from policysched.framework.status import Code, Status
from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.pausing import Pausing
from policysched.state.cluster import Cluster
from policysched.state.tables.columns import RowNumbers
from policysched.state.what_if import ChangedRows


class WhatIf(Protocol):
    """One node with other pods than it has, for the pod of a failed decision; the cluster stays as it is."""

    def remove(self, pod: Pod) -> None:
        """Take a pod away that is placed on the node or was added here."""

    def add(self, pod: Pod) -> None:
        """Add a pod that was taken away here, or one that is placed nowhere."""

    def verdict(self) -> Status | None:
        """Return the status that would keep the node out, None where the pod could go there.

        Pods of equal or higher priority that are nominated to the node count as kube-scheduler counts them: the pod
        has to fit with them and without them.
        """


@dataclass(frozen=True, slots=True)
class RowVerdicts:
    """What filters say of many rows.

    Shapes: fits (R,).
    """

    fits: Mask
    """The rows that every filter lets pass."""
    status_of: Callable[[int], Status | None]
    """Gives the status of a row by its place among the rows, None where it fits."""

    def over(self, other: RowVerdicts) -> RowVerdicts:
        """Return what both say together, this one first."""
        return RowVerdicts(self.fits & other.fits, lambda index: self.status_of(index) or other.status_of(index))


@dataclass(frozen=True, slots=True)
class Protection:
    """What a guard says of placed pods.

    Shapes: codes (V,).
    """

    codes: Codes
    """0 for a pod that may go; pods that must stay for the same reason share another code."""
    reason_of: Callable[[int], str]
    """Says why pods of a code must stay."""
    values_of: Callable[[int], str]
    """Says what the guard read of one of the pods, by its place; empty where it read nothing of it."""


class VictimGuard(Plugin, Protocol):
    """A plugin that keeps placed pods from being victims of preemption."""

    units: int
    """What it takes to ask about a pod. Units: as what policies take together."""

    def protected(self, pod: Pod, cluster: Cluster, slots: RowNumbers) -> Protection | None:
        """Say which pods must stay.

        Args:
            pod: The pod that would take their place.
            cluster: The cluster.
            slots: Pods of lower priority, by their slots in the pod table. Shapes: (V,).

        Returns:
            None where it has nothing to say about the pod.
        """

    def events(self) -> Sequence[Hint]:
        """Name the changes after which pods may go that had to stay."""


class FailedDecision(Protocol):
    """A decision without a feasible node; it holds until the cluster changes, and so until the next pause."""

    @property
    def pod(self) -> Pod:
        """The pod."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def state(self) -> CycleState:
        """What plugins keep for the attempt."""

    @property
    def rng(self) -> random.Random:
        """What draws among equals."""

    @property
    def extenders(self) -> Sequence[Extender]:
        """The extenders that are interested in the pod and have a say in preemption."""

    @property
    def victim_guards(self) -> Sequence[VictimGuard]:
        """What keeps pods from being victims; a pod may go where all of them let it."""

    def rows_with(self, code: Code) -> RowNumbers:
        """Return the rows of the nodes that were rejected with a code, in the order of rows."""

    def status_of(self, node: str) -> Status | None:
        """Return the status that keeps a node out, None for a name that no node has."""

    def pre_filtered(self, plugin: str) -> bool:
        """Return whether a plugin was asked at PreFilter, rather than left out after another one's rejection."""

    def trial(self, row: int) -> WhatIf:
        """Return a what-if of a node."""

    @property
    def holds(self) -> bool:
        """Whether no node is feasible, and no plugin failed: other nodes may be by the end of a pause."""

    async def pause(self) -> bool:
        """Let others have their turn if it is time; return whether the cluster changed, and the decision with it."""

    def verdicts(self, changed: ChangedRows) -> RowVerdicts | None:
        """Return what would be said of many rows at once; None where only a what-if of each can tell."""

    def asking(self, changed: ChangedRows) -> Pausing[RowVerdicts | None]:
        """Do what `verdicts` does, pausing after each filter; it means nothing once the cluster has changed."""

    @property
    def filter_units(self) -> int:
        """What it takes to ask filters about many rows at once. Units: as what policies take together."""

    def most_pods(self, rows: RowNumbers) -> NDArray[np.int64]:
        """Return how many other pods may be on each row at most for the pod to go there, whichever they are.

        Shapes: (R,).
        """


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """Result of a plugin at PostFilter."""

    status: Status | None = None
    """None if the plugin makes the pod fit; else a rejection or an error, whose reasons end the pod's message."""
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
    """Continues with calls of extenders or with pauses, and returns the result that replaces this one."""


class PostFilterPlugin(Plugin, Protocol):
    """A plugin that runs when no node was feasible."""

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Look for a way to make the pod fit.

        Args:
            pod: The pod as it is known now, perhaps newer than the one that was decided about.
            failed: The decision.
        """
