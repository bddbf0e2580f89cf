"""Which nodes can give the claims of a pod what they ask for, and what they would get there."""

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

STEPS: Final = 300_000
"""How many steps one question may take: about as many microseconds."""
_STEPS_TO_COMPILE: Final = 30_000
"""How many of these selectors may take that are not known yet."""
MOST_BYTES: Final = 64 << 20
"""How much memory the answers about claims that are kept may take together, beside those about the last ones."""
MOST_KEPT: Final = 256
"""About claims of how many specs answers are kept."""
TIMED_OUT: Final = "timed out trying to allocate devices"
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def compile_class(device_class: DeviceClass) -> None:
    """Compile the selectors of a class before the first claim names it: what reads CEL is imported with the first."""
    texts = (one.cel.expression for one in device_class.spec.selectors if one.cel is not None)
    with suppress(BudgetExceededError):
        compile_ahead(texts, Budget(_STEPS_TO_COMPILE))


def compile_claims(claims: Sequence[ResourceClaim], tables: DeviceTables) -> None:
    """Compile the selectors of claims before they are asked about, as far as that does not take long."""
    with suppress(BudgetExceededError):
        compile_ahead(selectors_of(claims, tables.classes), Budget(_STEPS_TO_COMPILE))


class AllocationAnswers:
    """What the allocator says of all nodes.

    Attributes:
        codes: An `AllocationAnswer` for each row; what it says of rows without a node means nothing. It is not to be
            changed, and is overwritten when the same claims, or others of equal specs, are asked about again.
        revision: A number that is another one whenever any code is.
    """

    def __init__(self, allocator: Allocator, prepared: PreparedClaims) -> None:
        self._allocator = allocator
        self._rows = prepared.rows
        self.codes: NDArray[np.int8] = self._rows.codes
        self.revision = self._rows.revision

    def on_rows(self, size: int) -> NDArray[np.int8]:
        """Return the codes of the first rows; NO for those that never had a node. Shapes: (N,)."""
        codes = self.codes
        if codes.size < size:
            codes = np.concatenate((codes, np.full(size - codes.size, AllocationAnswer.NO, np.int8)))
        return codes[:size]

    def rows_since(self, revision: int) -> Sequence[int] | None:
        """Return the rows of which codes changed since an earlier revision, None where all may have."""
        return self._rows.rows_since(revision)

    def error(self, row: int) -> AllocationError | None:
        """Return the error of a row that has one."""
        return self._allocator.error_of(row, self._rows.outcome(row))

    def alternatives(self, row: int) -> Sequence[Mapping[int, int]]:
        """Return for each claim which alternative, counted from 0, each request with alternatives would get on a row.

        Requests are named by their place in the claim; where no claim has alternatives there may be nothing at all.
        """
        return self._rows.outcome(row).chosen


class Allocator:
    """Allocates the claims of one pod.

    Making one costs little: what was found out about claims of equal specs is kept with the tables, and only nodes
    whose devices, labels or pools changed since are asked again. It may be kept and asked again after changes.

    Args:
        tables: the devices.
        claims: the claims without an allocation, in the order of the pod.
        steps: how many steps one question may take; there is no clock here. Units: about a microsecond.
    """

    def __init__(self, tables: DeviceTables, claims: Sequence[ResourceClaim], *, steps: int = STEPS) -> None:
        self.claims = claims
        self._tables = tables
        self._steps = steps
        asked = _ENCODER.encode([(one.spec.devices.requests, one.spec.devices.constraints) for one in claims])
        self._length = len(asked)
        self._key = sha256(asked).digest()
        self._known: tuple[int, PreparedClaims] | None = None
        """What is known of claims of these specs, and at which revision of the tables it was looked up."""
        self._spent_at = -1
        """The revision of the tables at which `shared_key` took what steps the next question may take."""

    def answers(self) -> AllocationAnswers:
        """Ask about all nodes.

        Cost: that of the nodes that changed since claims of these specs were asked about last.

        Raises:
            AllocationTimeoutError: the selectors of the claims are longer than can be compiled at once.
        """
        known, revision = self._known, self._tables.revision
        if known is not None and known[1].answered_at == revision:
            return AllocationAnswers(self, known[1])
        is_spent, self._spent_at = self._spent_at == revision, -1
        if is_spent and (self._known is None or self._known[0] != revision):
            raise AllocationTimeoutError(TIMED_OUT)
        prepared = self._prepared()
        if not is_spent:
            prepared.refresh(self._steps)
        return AllocationAnswers(self, prepared)

    @property
    def shared_key(self) -> bytes | None:
        """What claims have in common that get the same codes on all nodes.

        None where that is not all there is to say: errors name claims, and alternatives are chosen node by node. Then
        `answers` says what was found out here, once.
        """
        try:
            prepared = self._prepared()
        except AllocationTimeoutError:
            self._spent_at = self._tables.revision
            return None
        if prepared.plans.has_alternatives:
            return None
        prepared.refresh(self._steps)
        if not prepared.rows.has_failures:
            return self._key
        self._spent_at = self._tables.revision
        return None

    def allocate(self, row: int, new_share_id: Callable[[], str]) -> list[AllocationResult] | None:
        """Return what each claim would get on a node, in their order, None where they cannot all be allocated.

        Args:
            row: the node.
            new_share_id: makes the random UUID of a share of a device.

        Raises:
            NodeAllocationError: nothing was found, and some pool of the node is invalid.
            AllocationTimeoutError: the search took too many steps.
            AllocationError: the claims, or what selectors say of a device, are wrong.
            KeyError: no node is at the row.
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
        maker = ResultMaker(name, group.pools, self._tables.columns, self._tables.classes, new_share_id)
        parts = zip(self.claims, prepared.plans.claims, outcome.devices, outcome.chosen, strict=True)
        return [maker.result(*each) for each in parts]

    def refusals(self, row: int) -> list[Refusals]:
        """Say for each request of the claims what stands against the devices of a node, for people.

        Raises:
            AllocationTimeoutError: the selectors of the claims take longer than they may at once.
            KeyError: no node is at the row.
        """
        prepared = self._prepared()
        prepared.catch_up()
        try:
            return prepared.search.refusals(self._tables.node(row)[1], self._steps)
        except BudgetExceededError:
            raise AllocationTimeoutError(TIMED_OUT) from None

    def error_of(self, row: int, outcome: Outcome) -> AllocationError | None:
        """Return the error that an outcome stands for on a row."""
        if outcome.answer is AllocationAnswer.TIMEOUT:
            return AllocationTimeoutError(TIMED_OUT)
        if outcome.answer is AllocationAnswer.INVALID_POOLS:
            return NodeAllocationError("invalid resource pools were encountered")
        if outcome.failure is None:
            return None
        return AllocationError(self._text(outcome.failure, self._prepared().search.pools(self._tables.node(row)[1])))

    def _text(self, failure: AllocationFailure, pools: Sequence[SeenPool]) -> str:
        text = failure.text
        if failure.is_of_claim:
            metadata = self.claims[failure.claim].metadata
            name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
            text = f"claim {name}{text}"
        if failure.pool >= 0:
            view = pools[failure.pool].view
            text += str(view.pool)
            if failure.device >= 0:
                text += f"/{view.device(failure.device)}"
        return text + failure.rest

    def _prepared(self) -> PreparedClaims:
        """Return what is known of claims of these specs.

        Raises:
            AllocationTimeoutError: their selectors are longer than can be compiled at once; some more are now.
        """
        revision = self._tables.revision
        if self._known is not None and self._known[0] == revision:
            return self._known[1]
        kept = self._tables.prepared
        found = kept.pop(self._key, None)
        if not isinstance(found, PreparedClaims) or not found.is_current:
            try:
                compile_ahead(selectors_of(self.claims, self._tables.classes), Budget(self._steps))
            except BudgetExceededError:
                raise AllocationTimeoutError(TIMED_OUT) from None
            found = PreparedClaims(self._tables, self.claims, self._length)
            _make_room(kept)
        kept[self._key] = found
        self._known = revision, found
        return found


def _make_room(kept: dict[bytes, object]) -> None:
    """Leave out what was asked about longest ago: how much others take is known by now, since all of it has grown."""
    sizes = {key: one.size for key, one in kept.items() if isinstance(one, PreparedClaims)}
    total = sum(sizes.values())
    for key, size in sizes.items():
        if total <= MOST_BYTES and len(kept) < MOST_KEPT:
            break
        del kept[key]
        total -= size
