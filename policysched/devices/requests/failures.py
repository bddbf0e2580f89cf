"""`AllocationFailure`: the error text of an allocation, apart from names.

The names of claim, pool and device are filled in for each pod and node.
"""

from __future__ import annotations

from typing import NamedTuple


class AllocationFailure(NamedTuple):
    """An error's text, in which the names of a claim, a pool and a device may be left open.

    Attributes:
        text: What follows the claim, or the whole text.
        is_of_claim: Whether the text begins with the claim.
        claim: The claim's place among those of the pod; -1 where it is not known yet, or there is none.
        pool: The place of the pool that follows the text, among those of the node; -1 where none does.
        device: The place of the device in that pool; -1 where it is the pool that is named.
        rest: What follows the pool or device.
    """

    text: str
    is_of_claim: bool = False
    claim: int = -1
    pool: int = -1
    device: int = -1
    rest: str = ""

    @classmethod
    def of_claim(cls, text: str, claim: int = -1) -> AllocationFailure:
        """Return the failure of a claim."""
        return cls(text, is_of_claim=True, claim=claim)

    def about(self, pool: int, rest: str, device: int = -1) -> AllocationFailure:
        """Name a pool, or one of its devices, after the text."""
        return self._replace(pool=pool, device=device, rest=rest)
