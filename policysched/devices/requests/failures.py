"""`AllocationFailure`: an error message of an allocation with placeholders for claim, pool and device."""

from __future__ import annotations

from typing import NamedTuple


class AllocationFailure(NamedTuple):
    """An error message into which the names of claim, pool and device are inserted, for each pod and node.

    Attributes:
        text: The message after the claim, or the whole message.
        is_of_claim: Whether the message starts with the claim.
        claim: The claim's place among those of the pod, -1 if it is unknown or there is none.
        pool: The place of the pool after the text among those of the node, -1 for none.
        device: The place of the device in this pool, -1 to name the pool only.
        names_request: Whether the search inserts the name of the request before the text.
        names_pool: Whether the pool precedes the name of the device.
        rest: The message after the pool or device. With a rest and no pool, the device is added by the search.
        rejects_node: Whether the error rejects only the node, instead of failing the pod.
    """

    text: str
    is_of_claim: bool = False
    claim: int = -1
    pool: int = -1
    device: int = -1
    names_request: bool = False
    names_pool: bool = True
    rest: str = ""
    rejects_node: bool = False

    @classmethod
    def of_claim(cls, text: str, claim: int = -1) -> AllocationFailure:
        """Return a message that begins with the name of the claim with the given index."""
        return cls(text, is_of_claim=True, claim=claim)

    def about(self, pool: int, rest: str, device: int = -1) -> AllocationFailure:
        """Return the message followed by the name of the pool with the given index, or of a device in the pool."""
        return self._replace(pool=pool, device=device, rest=rest)
