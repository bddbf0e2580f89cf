"""What a plugin may have beside the methods of its extension points: each is looked for, and does without where absent.

The functions look for attributes, the protocols are asked with `isinstance`. Shapes are those of the module `plugin`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from policysched.framework.plugin import Codes, FilterPlugin, Plugin, ScorePlugin
from policysched.framework.status import Status
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.tables.columns import RowNumbers, Rows
from policysched.state.what_if import ChangedRow, ChangedRows

PerPod: TypeAlias = Callable[[Pod, Cluster], bool]
"""Says whether a pod has things of its own that a plugin reads."""


def per_pod(plugin: Plugin) -> PerPod | None:
    """Return a plugin's `per_pod`, None where it has none and its answers are those of a whole pod class.

    A plugin that reads what belongs to one pod alone, as its claims do, has a method `per_pod(pod, cluster)`: whether
    the pod has such things. About such pods its filter is prepared and asked for all rows in every cycle, and nothing
    of it is kept; about others it has nothing to say. So it is with its score, and at Reserve.
    """
    asked: PerPod | None = getattr(plugin, "per_pod", None)
    return asked


def class_score(plugin: ScorePlugin) -> ScorePlugin | None:
    """Return what scores whole pod classes: the plugin, or what a per-pod one has as `class_score`; None for nothing.

    That part scores in the plugin's name the pods that have nothing of their own or a shared key, and skips the others.
    """
    part: ScorePlugin | None = plugin if per_pod(plugin) is None else getattr(plugin, "class_score", None)
    return part


SharedKey: TypeAlias = Callable[[Pod, Cluster], Hashable | None]
"""Says what pods have in common about whose own things a plugin answers alike."""


def shared_key(plugin: Plugin) -> SharedKey | None:
    """Return a per-pod plugin's `shared_key`, None where it has none.

    It returns a key that pods have in common whose own things need not be told apart at the moment, None for others. It
    becomes part of the class of such pods, and what filters and scores the class is asked instead of the plugin.
    """
    asked: SharedKey | None = getattr(plugin, "shared_key", None)
    return asked


def class_filter(plugin: FilterPlugin) -> FilterPlugin | None:
    """Return what filters whole pod classes: the plugin, or what a per-pod one has as `class_filter`; None for nothing.

    That part filters in the plugin's name the pods that have a shared key, and skips the others.
    """
    part: FilterPlugin | None = plugin if per_pod(plugin) is None else getattr(plugin, "class_filter", None)
    return part


def is_lasting(plugin: Plugin) -> bool:
    """Return whether a plugin has `lasting = True`: its generation is always the same, and need not be asked for."""
    return bool(getattr(plugin, "lasting", False))


def reads_own_namespace(plugin: Plugin) -> bool:
    """Return whether a plugin has `reads_own_namespace = True`.

    Other labels of a pod's own namespace then make all that is prepared for the pod's class anew.
    """
    return bool(getattr(plugin, "reads_own_namespace", False))


def outdated_check(plugin: Plugin) -> Callable[[Any], bool] | None:
    """Return a plugin's `is_outdated`, None where it has none.

    It returns whether labels of namespaces made a prepared state of one class stale, where `generation` would make
    those of all classes anew. It is asked at cycles of the class after namespaces changed, and has to say so again
    until the class is made anew.
    """
    asked: Callable[[Any], bool] | None = getattr(plugin, "is_outdated", None)
    return asked


def tier_of(plugin: Plugin) -> int:
    """Return a plugin's `tier`, 0 where it has none: its scores decide before those of lower tiers."""
    tier: int = getattr(plugin, "tier", 0)
    return tier


def together_of(state: Any) -> Together | None:
    """Return what gives a state's answers together with those of other plugins, None where it answers by itself.

    Such a state has it as `together`, the same object for all of them, and as `place` its own place among the answers.
    """
    found: Together | None = getattr(state, "together", None)
    return found


@runtime_checkable
class FilterAffecting(Protocol):
    """A filter whose answer on a row depends on other rows too."""

    def filter_affected(self, state: Any, rows: RowNumbers) -> Rows:
        """Name the rows whose answers may have changed.

        Args:
            state: A prepared state; it may keep what it saw last, because it is asked at each change, in order.
            rows: The rows that changed in an aspect that the filter reads, some of them perhaps twice.
        """


@runtime_checkable
class FilterFollowing(Protocol):
    """A filter whose answers change with more than the aspects of rows, and which knows on which rows they did."""

    def filter_moved(self, state: Any) -> RowNumbers:
        """Name the rows whose answers may have changed since this was asked last; it is asked at every cycle."""


@runtime_checkable
class FilterOfChangedRow(Protocol):
    """A filter that says what it would answer if other pods were on a row: every one that reads pods offers it.

    A filter reads pods where `filter_reads` has one of the aspects `ABOUT_PODS`.
    """

    def filter_changed(self, state: Any, changed: ChangedRow) -> Status | None:
        """Return the status that would keep the pod off the row, None where it could go there.

        It equals what `filter` and `reason` say after the pods really went and came. Nothing is changed by asking, and
        the cost is that of the pods that go and come, however many nodes and pod classes there are.

        Args:
            state: A prepared state, up to date.
            changed: The row, with the pods that would go and come.
        """


@runtime_checkable
class FilterOfChangedRows(Protocol):
    """A filter that answers so for many rows at once; what preemption may ask about is found sooner then."""

    def filter_changed_rows(self, state: Any, changed: ChangedRows) -> Codes | None:
        """Return the reason codes that the rows would have, None where this state has to be asked row by row.

        Shapes: (R,) int32.
        """


@runtime_checkable
class PodsBounding(Protocol):
    """A filter that lets a pod on no row where more than so many are; preemption need not try to keep more there."""

    def most_pods(self, state: Any, rows: RowNumbers) -> NDArray[np.int64]:
        """Return how many other pods may be on each row at most for the pod to go there, whichever they are.

        Shapes: (R,).
        """


@runtime_checkable
class ScoreAffecting(Protocol):
    """A score plugin whose answer on a row depends on other rows too."""

    def score_affected(self, state: Any, rows: RowNumbers) -> Rows:
        """Name the rows whose scores may have changed, as `filter_affected` does."""


@runtime_checkable
class LeavingOut(Protocol):
    """A score plugin that kube-scheduler would skip at PreScore depending on what the cluster holds just now."""

    def leaves_out(self, state: Any) -> bool:
        """Return whether records are to leave the plugin out; every score is 0 then."""


@runtime_checkable
class PuttingOff(Protocol):
    """A plugin that turns pods away as long as another pod's binding has not written what both use.

    Such a pod is not tried, and nobody is told of it, until a change that the plugin's `events` name. That has to come
    once the binding has ended, however it ends. Where the pod is popped and is still to be put off, it is tried.
    """

    name: str

    def puts_off(self, pod: Pod, cluster: Cluster) -> bool:
        """Return whether the pod has to wait for a binding that is under way; it costs next to nothing."""


class Together(Protocol):
    """What answers for several plugins at once: codes, or scores of 0 to 100 without normalising.

    Asked by itself each plugin says the same.
    """

    def __len__(self) -> int:
        """Return for how many."""

    def moves(self) -> int:
        """Return a number that grows whenever a plugin may see something else on rows that did not change."""

    def answers(self, rows: Rows) -> NDArray[Any]:
        """Return what all of them say of rows, which is not to be changed.

        Shapes: (P, R) for P plugins.
        """


@runtime_checkable
class InRange(Protocol):
    """A score plugin that knows when its final scores are 0 to 100; those of all others are checked."""

    def stays_in_range(self, state: Any) -> bool:
        """Return whether every final score that a state gave is one of 0 to 100.

        Without normalisation it is asked after each answer; with it, the answer is that of a state as it was prepared.
        """


@runtime_checkable
class RejectionListener(Protocol):
    """A filter that is told which pods it rejected, so that its hints can tell what a change gained."""

    def on_rejected(self, pod: Pod, cluster: Cluster) -> None:
        """Record that a pod goes to wait because of it, as the cluster is now."""

    def retry_at(self, pod: Pod, cluster: Cluster) -> float | None:
        """Return the time at which time alone can change its answer, None where it cannot.

        A change of the resource TIME is judged then. Units: seconds since 1970, UTC.
        """


@runtime_checkable
class FilterAlone(Protocol):
    """A filter that does without PreFilter; any other one fails where a configuration takes only PreFilter away."""

    def filter_alone(self, pod: Pod, cluster: Cluster) -> Any:
        """Return a state for `filter`, SKIP, or the status that every node gets which the filter is asked about."""


@runtime_checkable
class ScoreAlone(Protocol):
    """A score plugin that does without PreScore; any other one fails where a configuration takes only that away."""

    def score_alone(self, pod: Pod, cluster: Cluster) -> Any:
        """Return a state for `score`, a Status with code ERROR, or SKIP where every node scores 0."""


@runtime_checkable
class Successor(Protocol):
    """A plugin at PreEnqueue or PostFilter with work that outlasts the profile it stands in."""

    def take_over(self, before: Plugin) -> None:
        """Go on with what a plugin of the same name has under way, whose profile is replaced."""
