"""`Outcome`: the result of evaluating claims on a node: an answer, an error, and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from policysched.devices.requests.capacities import Consumption
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.requests.plans import DeviceAsk


class AllocationAnswer(IntEnum):
    """Codes for whether claims can be allocated on a node."""

    YES = 0
    """All claims can be allocated."""
    NO = 1
    """Not all claims can be allocated: `cannot allocate all claims`."""
    INVALID_POOLS = 2
    """Not all claims can be allocated, and some pool of the node is invalid: a `NodeAllocationError`."""
    ERROR = 3
    """An `AllocationError`, which fails the whole pod."""
    TIMEOUT = 4
    """An `AllocationTimeoutError`: the step limit was exceeded on this node or on a node evaluated before."""


class TakenDevice(NamedTuple):
    """A device, or a share of a device, that a search found for a request.

    Attributes:
        pool: The place of its pool among those of the node.
        device: Its place in the pool.
        consumption: The amounts of its capacities that are taken, None if the device is taken as a whole.
    """

    ask: DeviceAsk
    pool: int
    device: int
    consumption: Consumption | None


class Outcome(NamedTuple):
    """The result of evaluating claims on a node.

    Attributes:
        failure: The error, if the answer is ERROR.
        devices: The devices of each claim in search order; empty unless the answer is YES and comes from a search.
        chosen: For each claim, the number of the chosen alternative by the place of its request.
    """

    answer: AllocationAnswer
    failure: AllocationFailure | None = None
    devices: Sequence[Sequence[TakenDevice]] = ()
    chosen: Sequence[Mapping[int, int]] = ()

    @property
    def has_details(self) -> bool:
        """Whether the outcome has an error or chosen alternatives."""
        return self.failure is not None or any(self.chosen)


YES: Final = Outcome(AllocationAnswer.YES)
NO: Final = Outcome(AllocationAnswer.NO)
INVALID_POOLS: Final = Outcome(AllocationAnswer.INVALID_POOLS)
OUT_OF_STEPS: Final = Outcome(AllocationAnswer.TIMEOUT)
BYTES_AN_OUTCOME: Final = 1500
"""Estimated memory of a cached outcome. Units: bytes."""
