"""`Allocator`: finds the nodes on which a pod's claims can be allocated, and allocates the claims on one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from policysched.budget import Budget, BudgetExceededError
from policysched.devices.allocation_results import ResultMaker
from policysched.devices.answers.prepared import PreparedClaims
from policysched.devices.errors import AllocationError, AllocationTimeoutError, NodeAllocationError
from policysched.devices.inventory.pool_views import SeenPool
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import AllocationAnswer, Outcome
from policysched.devices.refusals import Refusals
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.requests.plans import selectors_of
from policysched.devices.requests.requirements import compile_ahead
from policysched.model.objects import AllocationResult, DeviceClass, ResourceClaim
from policysched.model.release import Release

STEPS: Final = 300_000
"""Step limit of one call of an allocator, above which the call times out; a step is about a microsecond."""
_STEPS_TO_COMPILE: Final = 30_000
"""Step limit for compiling the selectors of claims before their first use."""
MOST_BYTES: Final = 64 << 20
"""Maximum memory of the cache of compiled claims; beyond it, the least recently used are dropped. Units: bytes."""
MOST_KEPT: Final = 256
"""Maximum number of claim specs in the cache; beyond it, the least recently used are dropped."""
TIMED_OUT: Final = "timed out trying to allocate devices"
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def compile_class(device_class: DeviceClass, release: Release) -> None:
    """Compile the CEL selectors of a device class, for a Kubernetes release, before a claim uses the class."""
    texts = (one.cel.expression for one in device_class.spec.selectors if one.cel is not None)
    with suppress(BudgetExceededError):
        compile_ahead(texts, Budget(_STEPS_TO_COMPILE), release)


def compile_claims(claims: Sequence[ResourceClaim], tables: DeviceTables) -> None:
    """Compile the CEL selectors of claims before the claims are evaluated, up to a step limit."""
    with suppress(BudgetExceededError):
        compile_ahead(selectors_of(claims, tables.classes), Budget(_STEPS_TO_COMPILE), tables.release)


class AllocationAnswers:
    """Whether a pod's claims can be allocated, for each node.

    Attributes:
        codes: An `AllocationAnswer` for each row; codes of rows without a node have no meaning. Read-only; the next
            call for claims of equal specs overwrites it.
        stamp: A number that changes whenever a code changes.
    """

    def __init__(self, allocator: Allocator, prepared: PreparedClaims) -> None:
        self._allocator = allocator
        self._rows = prepared.rows
        self.codes: NDArray[np.int8] = self._rows.codes
        self.stamp = self._rows.stamp

    def on_rows(self, size: int) -> NDArray[np.int8]:
        """Return the `AllocationAnswer` of each row number below `size`; NO for a row without a node. Shapes: (N,)."""
        codes = self.codes
        if codes.size < size:
            codes = np.concatenate((codes, np.full(size - codes.size, AllocationAnswer.NO, np.int8)))
        return codes[:size]

    def rows_since(self, stamp: int) -> Sequence[int] | None:
        """Return the row numbers of nodes whose answers changed since a value of `stamp`; None if any may have."""
        return self._rows.rows_since(stamp)

    def error(self, row: int) -> AllocationError | None:
        """Return the error of the claims on a node; None if there is no error."""
        return self._allocator.error_of(row, self._rows.outcome(row))

    def alternatives(self, row: int) -> Sequence[Mapping[int, int]]:
        """Return for each claim the alternative that each request uses on a node, by index of the request.

        Alternatives are numbered from 0. The result can be empty if no claim has alternatives.
        """
        return self._rows.outcome(row).chosen


class Allocator:
    """Evaluates the claims of one pod on all nodes, and allocates them on one node.

    The tables cache results by claim spec, so a new allocator is cheap, and only nodes whose devices, labels or pools
    changed are evaluated. An allocator can be used again after changes.

    Args:
        tables: The devices.
        claims: The claims without an allocation, in the order of the pod.
        steps: Step limit of one call. Units: about a microsecond each.
    """

    def __init__(self, tables: DeviceTables, claims: Sequence[ResourceClaim], *, steps: int = STEPS) -> None:
        self.claims = claims
        self._tables = tables
        self._steps = steps
        asked = _ENCODER.encode([(one.spec.devices.requests, one.spec.devices.constraints) for one in claims])
        self._length = len(asked)
        self._key = sha256(asked).digest()
        self._known: tuple[int, PreparedClaims] | None = None
        """The compiled claims for these specs, and the value of the tables' stamp when they were looked up."""
        self._spent_at = -1
        """The value of the tables' stamp at which `shared_key` already used the step budget of the next `answers`."""

    def answers(self) -> AllocationAnswers:
        """Return for every node whether the claims can be allocated.

        Cost: O(nodes that changed since claims of these specs were evaluated).

        Raises:
            AllocationTimeoutError: The selectors cannot be compiled within the step limit; the next call continues.
        """
        known, stamp = self._known, self._tables.stamp
        if known is not None and known[1].answered_at == stamp:
            return AllocationAnswers(self, known[1])
        is_spent, self._spent_at = self._spent_at == stamp, -1
        if is_spent and (self._known is None or self._known[0] != stamp):
            raise AllocationTimeoutError(TIMED_OUT)
        prepared = self._prepared()
        if not is_spent:
            prepared.refresh(self._steps)
        return AllocationAnswers(self, prepared)

    @property
    def shared_key(self) -> bytes | None:
        """A key under which claims with equal specs share answers; None if answers have errors or alternatives.

        Errors name claims, and alternatives are chosen node by node. Then the next call of `answers` returns the
        results that were computed here.
        """
        try:
            prepared = self._prepared()
        except AllocationTimeoutError:
            self._spent_at = self._tables.stamp
            return None
        if prepared.plans.has_alternatives:
            return None
        prepared.refresh(self._steps)
        if not prepared.rows.has_failures:
            return self._key
        self._spent_at = self._tables.stamp
        return None

    def allocate(self, row: int, new_share_id: Callable[[], str]) -> list[AllocationResult] | None:
        """Return the allocation of each claim on a node; None if the node cannot satisfy every claim.

        Args:
            row: The node's row.
            new_share_id: Makes the UUID of a share of a device.

        Raises:
            NodeAllocationError: The claims cannot be allocated because some pool of the node is invalid.
            AllocationTimeoutError: The search used up its step limit.
            AllocationError: The claims are wrong, or a selector fails on a device.
            KeyError: The row has no node.
        """
        prepared = self._prepared()
        prepared.catch_up()
        name, group = self._tables.node(row)
        outcome = prepared.search.outcome_within(group, self._steps)
        if outcome.answer is not AllocationAnswer.YES:
            error = self.error_of(row, outcome)
            if error is not None:
                raise error
            return None
        maker = ResultMaker(name, group.pools, self._tables, new_share_id)
        parts = zip(self.claims, prepared.plans.claims, outcome.devices, outcome.chosen, strict=True)
        return [maker.result(*each) for each in parts]

    def refusals(self, row: int) -> list[Refusals]:
        """Return for each request why the devices of a node do not fit, for display.

        Raises:
            AllocationTimeoutError: The selectors use up the step limit; the next call continues.
            KeyError: The row has no node.
        """
        prepared = self._prepared()
        prepared.catch_up()
        try:
            return prepared.search.refusals(self._tables.node(row)[1], self._steps)
        except BudgetExceededError:
            raise AllocationTimeoutError(TIMED_OUT) from None

    def error_of(self, row: int, outcome: Outcome) -> AllocationError | None:
        """Return the exception for the outcome of claims on a node; None if the outcome has no error."""
        if outcome.answer is AllocationAnswer.TIMEOUT:
            return AllocationTimeoutError(TIMED_OUT)
        if outcome.answer is AllocationAnswer.INVALID_POOLS:
            return NodeAllocationError("invalid resource pools were encountered")
        if outcome.failure is None:
            return None
        kind = NodeAllocationError if outcome.failure.rejects_node else AllocationError
        return kind(self._text(outcome.failure, self._prepared().search.pools(self._tables.node(row)[1])))

    def _text(self, failure: AllocationFailure, pools: Sequence[SeenPool]) -> str:
        text = failure.text
        if failure.is_of_claim:
            metadata = self.claims[failure.claim].metadata
            name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
            text = f"claim {name}{text}"
        if failure.pool >= 0:
            view = pools[failure.pool].view
            parts = [str(view.pool)] if failure.names_pool else []
            parts += [view.device(failure.device)] if failure.device >= 0 else []
            text += "/".join(parts)
        return text + failure.rest

    def _prepared(self) -> PreparedClaims:
        """Return the compiled claims for the specs of these claims, from the cache or newly compiled.

        Raises:
            AllocationTimeoutError: The selectors cannot be compiled within the step limit; the next call continues.
        """
        stamp = self._tables.stamp
        if self._known is not None and self._known[0] == stamp:
            return self._known[1]
        kept = self._tables.prepared
        found = kept.pop(self._key, None)
        if not isinstance(found, PreparedClaims) or not found.is_current:
            try:
                texts = selectors_of(self.claims, self._tables.classes)
                compile_ahead(texts, Budget(self._steps), self._tables.release)
            except BudgetExceededError:
                raise AllocationTimeoutError(TIMED_OUT) from None
            found = PreparedClaims(self._tables, self.claims, self._length)
            _make_room(kept)
        kept[self._key] = found
        self._known = stamp, found
        return found


def _make_room(kept: dict[bytes, object]) -> None:
    """Drop the least recently used compiled claims until the cache is within its limits."""
    sizes = {key: one.size for key, one in kept.items() if isinstance(one, PreparedClaims)}
    total = sum(sizes.values())
    for key, size in sizes.items():
        if total <= MOST_BYTES and len(kept) < MOST_KEPT:
            break
        del kept[key]
        total -= size
