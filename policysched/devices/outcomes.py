"""What comes of asking for devices on a node: the allocator's answer, why, and which devices a solution takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from policysched.devices.requests.capacities import Consumption
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.requests.plans import DeviceAsk


class AllocationAnswer(IntEnum):
    """What the allocator says of a node."""

    YES = 0
    """All claims can be allocated."""
    NO = 1
    """They cannot: `cannot allocate all claims`."""
    INVALID_POOLS = 2
    """They cannot, and some resource pool of the node is invalid: a `NodeAllocationError`."""
    ERROR = 3
    """An `AllocationError`, which fails the pod as a whole."""
    TIMEOUT = 4
    """An `AllocationTimeoutError`: the steps ran out while this node, or one before it, was asked."""


class TakenDevice(NamedTuple):
    """A device of a solution.

    Attributes:
        pool: The place of its pool among those of the node.
        device: Its place in the pool.
        consumption: What is taken of its capacities, None where it is taken as a whole.
    """

    ask: DeviceAsk
    pool: int
    device: int
    consumption: Consumption | None


class Outcome(NamedTuple):
    """What a search found.

    Attributes:
        failure: Why the answer is ERROR.
        devices: The devices of each claim, in the order of the search; empty where that was not worked out.
        chosen: For each claim the alternative of each request that has some, by the place of the request.
    """

    answer: AllocationAnswer
    failure: AllocationFailure | None = None
    devices: Sequence[Sequence[TakenDevice]] = ()
    chosen: Sequence[Mapping[int, int]] = ()

    @property
    def has_details(self) -> bool:
        """Whether it says more of a node than its answer."""
        return self.failure is not None or any(self.chosen)


YES: Final = Outcome(AllocationAnswer.YES)
NO: Final = Outcome(AllocationAnswer.NO)
INVALID_POOLS: Final = Outcome(AllocationAnswer.INVALID_POOLS)
OUT_OF_STEPS: Final = Outcome(AllocationAnswer.TIMEOUT)
BYTES_AN_OUTCOME: Final = 1500
"""What it takes to remember an outcome. Units: bytes."""
