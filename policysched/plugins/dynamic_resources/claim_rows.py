"""`ClaimRows`: the reason code and score of each row for one pod with resource claims.

An allocated claim states on which nodes it can be used; the allocator evaluates the other claims on all rows. For
extended resources of device classes, a row needs devices for the resources that its node does not provide itself.

Shapes: N rows in use.
Source: plugins/dynamicresources/dynamicresources.go (Filter, computeScore), v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from policysched.devices import (
    AllocationAnswer,
    AllocationAnswers,
    AllocationError,
    AllocationTimeoutError,
    Allocator,
    NodeAllocationError,
)
from policysched.framework import Cluster, Code, Codes, FailedDecision, Mask, RowNumbers, Scores, Status, unresolvable
from policysched.model.objects import NodeSelector, ResourceClaim
from policysched.model.selection.node_selectors import node_selector
from policysched.plugins.dynamic_resources.extended_resources import ExtendedRequests, ExtendedRows
from policysched.plugins.dynamic_resources.pod_claims import (
    NAME,
    NO_DEVICES,
    NOT_AVAILABLE,
    PodClaims,
    binding_failure,
    has_timed_out,
    is_ready_to_bind,
    results_of,
    waits_for_binding,
)
from policysched.plugins.nodes.node_selection import SelectorTest

MOST_FAILURES: Final = 64
"""Number of nodes that get their own error as status; further nodes with the same kind of error get the last error."""
MOST_ALTERNATIVES: Final = 8
"""Maximum number of alternatives of a device request; the first alternative scores this number, each next 1 less."""
STALE: Final = unresolvable("cannot schedule extended resource claim")
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
UNKNOWN_RESOURCE: Final = unresolvable("cannot fit resource")


class ClaimRows:
    """The reason codes and scores of one pod's resource claims on all rows.

    Args:
        claims: The pod's claims.
        cluster: The rows.
        timeout: Time for devices to meet their binding conditions; then their claim is not available. Units: seconds.
    """

    def __init__(self, claims: PodClaims, cluster: Cluster, timeout: float) -> None:
        self.claims, self.cluster = claims, cluster
        self._timeout = timeout
        self._size = cluster.nodes.size
        self._statuses: list[Status] = []
        self._numbers: dict[Status, int] = {}
        self.codes: Codes = np.zeros(self._size, np.int32)
        self.unavailable: list[tuple[ResourceClaim, Mask]] = []
        """The allocated claims that cannot be used on some rows, each with these rows."""
        self._without: dict[bytes, Mask | None] = {}
        """The rows that a node selector of an allocation does not match, by selector; None if it matches every row."""
        self._everywhere: Mask = np.ones(self._size, np.bool_)
        self._scores: Scores | None = None
        self._evaluate()

    @property
    def scores(self) -> Scores:
        """The sum of the scores of the alternatives that claims would use; 0 if every claim is allocated."""
        return np.zeros(self._size, np.int64) if self._scores is None else self._scores

    def reason(self, code: int) -> Status:
        """Return the status that a reason code stands for."""
        return self._statuses[code - 1]

    def _evaluate(self) -> None:
        extended = self.claims.extended
        if extended is not None and extended.is_stale:
            self.codes[:] = self._code(STALE)
            return
        for claim in self.claims.all:
            self._note_unavailable(claim)
        if extended is None:
            self._allocate(self.claims.to_allocate, np.ones(self._size, np.bool_))
        else:
            self._allocate_extended(extended)
        if self.unavailable:
            unavailable = np.zeros(self._size, np.bool_)
            for where in {id(one): one for _, one in self.unavailable}.values():
                unavailable |= where
            self._reject(unavailable, NOT_AVAILABLE)

    def _allocate_extended(self, extended: ExtendedRequests) -> None:
        """Evaluate the claims together with devices for extended resources that a node does not provide itself."""
        rows, claims = ExtendedRows(extended, self.cluster), self.claims.to_allocate
        self._reject(rows.unfit, UNKNOWN_RESOURCE)
        if extended.claim.status.allocation is not None:
            self._allocate(claims, ~rows.unfit)
            return
        for resources, group in rows.groups():
            if resources:
                self._allocate([*claims, extended.on(resources)], group & ~rows.unfit)
            elif claims:
                self._allocate(claims, group & ~rows.unfit)
            else:
                self._score_allocated(group & ~rows.unfit)

    def returnable(self, failed: FailedDecision, consumer: str) -> list[ResourceClaim]:
        """Return the rejecting claims that are reserved for nobody else.

        Args:
            failed: The decision about the pod.
            consumer: The UID of the pod, or of its pod group.
        """
        return [one for one in self.rejecting(failed) if {user.uid for user in one.status.reserved_for} <= {consumer}]

    def rejecting(self, failed: FailedDecision) -> list[ResourceClaim]:
        """Return the allocated claims, except the special claim, for which some node rejected the pod."""
        if not self.unavailable:
            return []
        nodes = failed.cluster.nodes
        rejected = np.zeros(nodes.size, np.bool_)
        status = NOT_AVAILABLE.by(NAME)
        for row in failed.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist():
            rejected[row] = failed.status_of(nodes.names[row]) == status
        special = None if self.claims.extended is None else self.claims.extended.claim
        return [claim for claim in self.unavailable_on(rejected) if claim is not special]

    def unavailable_on(self, rows: Mask) -> list[ResourceClaim]:
        """Return the allocated claims because of which some of the given rows were rejected. Shapes: rows (N,)."""
        rejected = rows & (self.codes == self._numbers.get(NOT_AVAILABLE, -1))
        masks = {id(where): where for _, where in self.unavailable}
        here = {key for key, where in masks.items() if (where & rejected).any()}
        return [claim for claim, where in self.unavailable if id(where) in here]

    def _note_unavailable(self, claim: ResourceClaim) -> None:
        """Store the rows on which an allocated claim cannot be used, if there are such rows."""
        allocation = claim.status.allocation
        if allocation is None:
            return
        unusable: Mask | None = None
        if waits_for_binding(claim) and (
            binding_failure(claim)
            or (not is_ready_to_bind(claim) and has_timed_out(claim, self._timeout, self.cluster.time.seconds))
        ):
            unusable = self._everywhere if self._size else None
        elif allocation.node_selector is not None:
            unusable = self._rows_without(allocation.node_selector)
        if unusable is not None:
            self.unavailable.append((claim, unusable))

    def _rows_without(self, selector: NodeSelector) -> Mask | None:
        """Return the rows that a node selector does not match; None if it matches every row."""
        key = _ENCODER.encode(selector)
        if key not in self._without:
            name = _only_node(selector)
            if name is None:
                found = ~SelectorTest(node_selector(selector), self.cluster.nodes)(slice(0, self._size))
            else:
                found = np.ones(self._size, np.bool_)
                if (row := self.cluster.nodes.row_of.get(name, -1)) >= 0:
                    found[row] = False
            self._without[key] = found if found.any() else None
        return self._without[key]

    def _allocate(self, claims: Sequence[ResourceClaim], asked: Mask) -> None:
        """Evaluate unallocated claims on the rows of a mask. Shapes: asked (N,)."""
        asked = asked & self.cluster.nodes.present.data[: self._size]
        if not claims or not asked.any():
            return
        tables, is_own = self.cluster.devices.tables, self.claims.extended is None
        answers = (self.claims.allocator(tables) if is_own else Allocator(tables, claims)).answers()
        codes = answers.on_rows(self._size)
        self._reject(asked & (codes == AllocationAnswer.NO), NO_DEVICES)
        for answer in (AllocationAnswer.INVALID_POOLS, AllocationAnswer.ERROR, AllocationAnswer.TIMEOUT):
            [rows] = (asked & (codes == answer)).nonzero()
            if rows.size:
                self._fail(answers, answer, rows)
        self._add_scores(answers, claims, asked & (codes == AllocationAnswer.YES))

    def _fail(self, answers: AllocationAnswers, answer: AllocationAnswer, rows: RowNumbers) -> None:
        """Set the errors of rows; after MOST_FAILURES errors of the same kind, further rows get the last of them."""
        if answer is AllocationAnswer.INVALID_POOLS:
            self.codes[rows] = self._code(unresolvable(str(answers.error(int(rows[0])))))
            return
        known: dict[bool, list[int]] = {False: [], True: []}
        for row in rows.tolist():
            error = answers.error(row)
            codes = known[isinstance(error, NodeAllocationError)]
            if len(codes) < MOST_FAILURES:
                codes.append(self._code(self._status_of(error, row)))
            self.codes[row] = codes[-1]

    def _status_of(self, error: AllocationError | None, row: int) -> Status:
        if isinstance(error, NodeAllocationError):
            return unresolvable(str(error))
        of = f"node {self.cluster.nodes.names[row]}: " if isinstance(error, AllocationTimeoutError) else ""
        return Status(Code.ERROR, (f"{of}{error}",))

    def _add_scores(self, answers: AllocationAnswers, claims: Sequence[ResourceClaim], rows: Mask) -> None:
        self._score_allocated(rows)
        if not any(one.first_available for claim in claims for one in claim.spec.devices.requests):
            return
        scores = self._scored()
        for row in rows.nonzero()[0].tolist():
            chosen = (place for of_claim in answers.alternatives(row) for place in of_claim.values())
            scores[row] += sum(MOST_ALTERNATIVES - place for place in chosen)

    def _score_allocated(self, rows: Mask) -> None:
        """Add to the scores of rows the alternatives that allocated claims use. Shapes: rows (N,)."""
        known = sum(_score_of_allocated(claim) for claim in self.claims.user)
        if known:
            self._scored()[rows] += known

    def _scored(self) -> Scores:
        if self._scores is None:
            self._scores = np.zeros(self._size, np.int64)
        return self._scores

    def _reject(self, rows: Mask, status: Status) -> None:
        """Set the status of those of the given rows that are not rejected yet."""
        rows = rows & (self.codes == 0)
        if rows.any():
            self.codes[rows] = self._code(status)

    def _code(self, status: Status) -> int:
        if status not in self._numbers:
            self._statuses.append(status)
            self._numbers[status] = len(self._statuses)
        return self._numbers[status]


def _only_node(selector: NodeSelector) -> str | None:
    """Return the name of the only node that a node selector can match; None if it can match several nodes."""
    terms = selector.node_selector_terms
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return None
    [field] = terms[0].match_fields
    is_name = field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1
    return field.values[0] if is_name else None


def _score_of_allocated(claim: ResourceClaim) -> int:
    """Return the sum of the scores of the alternatives that an allocated claim uses."""
    got = {one.request for one in results_of(claim)}
    total = 0
    for request in claim.spec.devices.requests if got else ():
        for place, one in enumerate(request.first_available):
            total += MOST_ALTERNATIVES - place if f"{request.name}/{one.name}" in got else 0
    return total
