"""`SignatureValues`: finds placed pods that have a certain value, such as of a label, for counters of such pods.

A rule such as "pods with the same label as this pod" has a counter for each pod class; the index finds the few
signatures with the value. An index exists as long as a counter uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import NamedTuple

from policysched.state.placed.pods import PlacedPod

Read = Callable[[PlacedPod], Hashable]
"""Function that returns the indexed value of a pod, from fields in which alike pods (a signature) are equal."""


class SignatureValues:
    """An index from a value of pods, such as a label's, to the signatures (sets of alike pods) with the value.

    Args:
        read: Returns the value of a pod.
        present: A pod of each signature.
    """

    __slots__ = ("__weakref__", "_by_value", "_read", "_values")

    def __init__(self, read: Read, present: Sequence[PlacedPod | None]) -> None:
        self._read = read
        self._values: dict[int, Hashable] = {}
        self._by_value: dict[Hashable, dict[int, None]] = {}
        for signature, placed in enumerate(present):
            if placed is not None:
                self.appear(signature, placed)

    def appear(self, signature: int, placed: PlacedPod) -> SharedValue:
        """Add a new signature (set of alike pods) to the index; return the value of its pods."""
        value = self._values[signature] = self._read(placed)
        self._by_value.setdefault(value, {})[signature] = None
        return SharedValue(self, value)

    def vanish(self, signature: int) -> None:
        """Remove a signature (set of alike pods) from the index, because its last pod was removed."""
        if signature not in self._values:
            return
        value = self._values.pop(signature)
        found = self._by_value[value]
        del found[signature]
        if not found:
            del self._by_value[value]

    def having(self, value: Hashable) -> Collection[int]:
        """Return the signatures (sets of alike pods) of the placed pods with a given value."""
        return self._by_value.get(value, ())


class SharedValue(NamedTuple):
    """A value of placed pods, and the index that finds the pods with this value."""

    signatures: SignatureValues
    value: Hashable


class Demand(NamedTuple):
    """A value that all pods which a pod counter counts have in common.

    Args:
        key: Identifies `read`: equal keys share an index.
        read: Returns the value of a pod.
        value: The value of the counted pods.
    """

    key: Hashable
    read: Read
    value: Hashable
