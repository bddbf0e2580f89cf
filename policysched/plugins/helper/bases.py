"""Base classes of plugins, each of one or two members, and what queueing hints have in common: taking a change apart.

They know nothing of any plugin, so that a plugin states only what is its own. Pods are compared by identity (UID, else
name), because an update carries another version of the same pod.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from policysched.framework import Change, Cluster, Codes, Hint, Mask, Rows, Scores, Status
from policysched.model.objects import Node, Pod
from policysched.plugins.helper.columns import codes_where
from policysched.state.placed.pods import pod_id
from policysched.state.placed.selector_index import index_keys_met


class OwnRowOnly:
    """A plugin whose answers depend on their own row alone, so prepared states never go stale as a whole."""

    lasting = True

    def generation(self, cluster: Cluster) -> Hashable:  # noqa: ARG002 - the protocol's signature
        """Return the same value always."""
        return 0


class HintTable:
    """A plugin whose queueing hints are a table."""

    hints: ClassVar[Sequence[Hint]] = ()

    def events(self) -> Sequence[Hint]:
        """Return the changes that can help a pod which the plugin rejected."""
        return self.hints


class RejectedRows(Protocol):
    """The state of a filter that has one reason."""

    def rejects(self, rows: Rows) -> Mask:
        """Return which rows are rejected. Shapes: (R,)."""


@dataclass(frozen=True, slots=True)
class RowTest:
    """A state made of a function, and of what that keeps."""

    rejects: Callable[[Rows], Mask]
    keeps: Any = None

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return int(getattr(self.keeps, "nbytes", 0))


class OneReasonFilter(OwnRowOnly, HintTable):
    """A filter with one reason: `prepare_filter` gives a state that tells the rejected rows."""

    rejection: ClassVar[Status]

    def filter(self, state: RejectedRows, rows: Rows) -> Codes:
        """Give the one reason's code to rejected rows."""
        return codes_where(state.rejects(rows))

    def reason(self, state: Any, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the only reason."""
        return self.rejection


class ScoresInRange:
    """A score plugin whose final scores are 0 to 100 whatever objects say."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return True."""
        return True


class FinalScores:
    """A score plugin without normalisation."""

    normalizes = False

    def normalize(self, state: object, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - as above
        """Return the scores as they are."""
        return scores


def nodes_of(change: Change) -> tuple[Node | None, Node | None]:
    """Return the old and the new version of a node."""
    old, new = change.old, change.new
    return old if isinstance(old, Node) else None, new if isinstance(new, Node) else None


def pods_of(change: Change) -> tuple[Pod | None, Pod | None]:
    """Return the old and the new version of a pod."""
    old, new = change.old, change.new
    return old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None


def index_keys_of_change(change: Change, filed: Collection[Hashable]) -> set[Hashable]:
    """Find the index keys, of those under which anything is filed, of a pod that changed, before and after."""
    pods = [one.metadata for one in pods_of(change) if one is not None]
    return {key for one in pods for key in index_keys_met(one.namespace, one.labels, filed)}


def updates_itself(pod: Pod, change: Change, cluster: Cluster | None = None) -> bool:  # noqa: ARG001 - may be a hint
    """Return whether the change is an update of the pod that waits."""
    new = pods_of(change)[1]
    return new is not None and pod_id(new) == pod_id(pod)


def leaves_a_place(pod: Pod) -> bool:
    """Return whether a deleted pod had a node, or one kept for it."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
