"""What is said of every row to pods whose claims ask for the same: they are one pod class, as pods of a template are.

It is so where nothing in an answer is of one pod alone: no claim is allocated or for extended resources, no request has
alternatives, which score node by node, and no node answers with an error, which names the claim.

Shapes: N rows in use, R rows asked about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from policysched.framework import (
    NO_ROWS,
    SKIP,
    Cluster,
    Code,
    Codes,
    FilterPlugin,
    Incremental,
    Nothing,
    RowNumbers,
    Rows,
    ScorePlugin,
    Scores,
    Status,
)
from policysched.model.objects import Pod
from policysched.plugins.columns import row_count
from policysched.plugins.dynamic_resources.extended_resources import asks_for_classes
from policysched.plugins.dynamic_resources.pod_claims import INVALID_POOLS, NO_DEVICES
from policysched.state.tables.nodes import NodeTable

if TYPE_CHECKING:
    from policysched.devices import Allocator

NAME: Final = "DynamicResources"
_OF_ONE_POD: Final = Status(Code.ERROR, ("ResourceClaims cannot be allocated",))
"""What no pod is told: those that share answers are told apart once there are errors."""


def has_claims(pod: Pod, cluster: Cluster) -> bool:
    """Return whether a pod needs devices: by claims, or by extended resources that device classes stand for."""
    return bool(pod.spec.resource_claims) or asks_for_classes(pod, cluster)


class ClaimFinder(Protocol):
    """Who knows the claims of pods."""

    def shared_allocator(self, pod: Pod, cluster: Cluster) -> Allocator | None:
        """Return the allocator of a pod's claims, None where their answers are the pod's own."""


class SharedRows:
    """The answers for claims of certain specs, and up to when it was told which of them changed."""

    def __init__(self, allocator: Allocator, nodes: NodeTable) -> None:
        self._allocator, self._nodes = allocator, nodes
        self._revision = allocator.answers().revision
        self._size = nodes.size

    def codes(self, rows: Rows) -> Codes:
        """Return the answers on rows. Shapes: (R,)."""
        return self._allocator.answers().on_rows(self._nodes.size)[rows].astype(np.int32)

    def moved(self) -> RowNumbers:
        """Return the rows whose answers may be others than when this was asked last."""
        answers, size = self._allocator.answers(), self._nodes.size
        before, self._revision = self._revision, answers.revision
        grown, self._size = size != self._size, size
        if before == answers.revision and not grown:
            return NO_ROWS
        rows = answers.rows_since(before)
        if rows is None or grown:
            return np.arange(size)
        return np.array(rows, np.int64)


class SharedFilter(FilterPlugin[SharedRows], Incremental[SharedRows]):
    """Filters the pods that share answers."""

    name = NAME
    follows_changes = True

    def __init__(self, finder: ClaimFinder) -> None:
        self._finder = finder

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> SharedRows | Nothing:
        """Take part with pods that share answers with others."""
        allocator = self._finder.shared_allocator(pod, cluster)
        return SKIP if allocator is None else SharedRows(allocator, cluster.nodes)

    def filter(self, state: SharedRows, rows: Rows) -> Codes:
        """Reject rows where the claims cannot be had."""
        return state.codes(rows)

    def affected_rows(self, state: SharedRows, rows: RowNumbers) -> RowNumbers:
        """Add the rows whose devices changed, or are used by others, if that changes the result."""
        moved = state.moved()
        return np.concatenate((rows, moved)) if moved.size else rows

    def reason(self, state: SharedRows, code: int) -> Status:  # noqa: ARG002 - its reasons are the same for all
        """Return what stands against a row."""
        from policysched.devices import AllocationAnswer  # noqa: PLC0415 - a start needs none

        if code == AllocationAnswer.NO:
            return NO_DEVICES
        return INVALID_POOLS if code == AllocationAnswer.INVALID_POOLS else _OF_ONE_POD


class ScoreOfOthers(ScorePlugin[NodeTable]):
    """Scores 0 for the pods that need no devices, or share answers with others."""

    name = NAME

    def __init__(self, finder: ClaimFinder) -> None:
        self._finder = finder

    def prepare_score(self, pod: Pod, cluster: Cluster) -> NodeTable | Nothing:
        """Take part with every such pod."""
        is_own = has_claims(pod, cluster) and self._finder.shared_allocator(pod, cluster) is None
        return SKIP if is_own else cluster.nodes

    def score(self, state: NodeTable, rows: Rows) -> Scores:
        """Score every row 0."""
        return np.zeros(row_count(state, rows), np.int64)
