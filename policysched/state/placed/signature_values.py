"""`SignatureValues`: the signatures by a value of their pods, for counters that count pods with one value.

A rule such as "pods with the same label as this pod" has a counter for each pod class; the index finds the few
signatures with the value. An index exists as long as a counter uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import NamedTuple

from policysched.state.placed.pods import PlacedPod

Read = Callable[[PlacedPod], Hashable]
"""Function that returns the indexed value of a pod; it reads only fields that the pod's signature includes."""


class SignatureValues:
    """An index of the signatures by a value of their pods.

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
        """Add a signature to the index; return the value of its pods."""
        value = self._values[signature] = self._read(placed)
        self._by_value.setdefault(value, {})[signature] = None
        return SharedValue(self, value)

    def vanish(self, signature: int) -> None:
        """Remove a signature from the index, because no placed pod has the signature any more."""
        if signature not in self._values:
            return
        value = self._values.pop(signature)
        found = self._by_value[value]
        del found[signature]
        if not found:
            del self._by_value[value]

    def having(self, value: Hashable) -> Collection[int]:
        """Return the signatures whose pods have a given value."""
        return self._by_value.get(value, ())


class SharedValue(NamedTuple):
    """A value of pods, with the index that has the signatures of these pods."""

    signatures: SignatureValues
    value: Hashable


class Demand(NamedTuple):
    """A value that every pod counted by a pod counter has.

    Args:
        key: Identifies `read`: equal keys share an index.
        read: Returns the value of a pod.
        value: The value of the counted pods.
    """

    key: Hashable
    read: Read
    value: Hashable
