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
    """What a plugin at PostFilter found."""

    status: Status | None = None
    """None where the pod is to fit soon; a rejection, or a failure. Its reasons end the pod's message."""
    nominated_node: str | None = None
    """The node that is kept for the pod from now on; empty where none is any more, None where nothing changes."""
    act: Callable[[Handle], Awaitable[bool | None]] | None = None
    """Begins at once what is to be done outside, and returns what to wait for, which may be False to say that it went
    wrong; nobody calls it in a dry-run."""
    victims: Sequence[Pod] = ()
    """The pods that are to make room."""
    details: Any = None
    """What the plugin tells records of how it came to that."""
    rejectors: frozenset[str] = frozenset()
    """The plugins beside filters that kept it from finding a way: the pod is tried again when they say so."""
    rejecting_anyway: frozenset[str] = frozenset()
    """The filters that reject the pod somewhere even if room is made: those that listen are asked about changes too."""
    cleanups: tuple[Callable[[Handle], Coroutine[Any, Any, None]], ...] = ()
    """What is to be done outside whatever other plugins find; nobody calls it in a dry-run."""
    ask: Callable[[], Awaitable[PostFilterResult]] | None = None
    """Asks extenders, or looks on with pauses, before anything holds, and gives the result in place of this one."""


class PostFilterPlugin(Plugin, Protocol):
    """A plugin that runs when no node was feasible."""

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Look for a way to make the pod fit.

        Args:
            pod: The pod as it is known now, perhaps newer than the one that was decided about.
            failed: The decision.
        """
