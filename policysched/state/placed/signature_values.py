"""Signatures of placed pods by one value that pods of a signature share, for counters of pods that have a given one.

"As many pods as have my label" is asked for every pod class, and is about the few signatures with that value: the
others are not looked at. An index lives as long as a counter is filed under one of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import NamedTuple

from policysched.state.placed.pods import PlacedPod

Read = Callable[[PlacedPod], Hashable]
"""Reads the value; it may read nothing that pods of one signature differ in."""


class SignatureValues:
    """The signatures by a value.

    Args:
        read: Reads the value.
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
        """File a signature, and return under what."""
        value = self._values[signature] = self._read(placed)
        self._by_value.setdefault(value, {})[signature] = None
        return SharedValue(self, value)

    def vanish(self, signature: int) -> None:
        """Forget a signature."""
        if signature not in self._values:
            return
        value = self._values.pop(signature)
        found = self._by_value[value]
        del found[signature]
        if not found:
            del self._by_value[value]

    def having(self, value: Hashable) -> Collection[int]:
        """Return the signatures with a value."""
        return self._by_value.get(value, ())


class SharedValue(NamedTuple):
    """A value that signatures of an index may have."""

    signatures: SignatureValues
    value: Hashable


class Demand(NamedTuple):
    """What a pod has to have so that a counter may count it.

    Args:
        key: What is read: equal keys read the same.
        read: Reads it.
        value: The value that is asked for.
    """

    key: Hashable
    read: Read
    value: Hashable
