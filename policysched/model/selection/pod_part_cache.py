"""`PodPartCache`: a bounded cache of values computed from a part of a pod, such as its affinity.

This module knows pods, but not what is computed. A value is found by the encoded part, and its memory is estimated from
that length. All values of one cache use at most `KEPT_BYTES`, however large single pods are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

import msgspec
from cachetools import LRUCache

from policysched.model.objects import Pod

T = TypeVar("T")
KEPT_BYTES: Final = 32 << 20
BYTES_PER_BYTE: Final = 16
"""Estimated memory of a cached value, for each byte of its encoded key. Units: bytes."""
LEAST_BYTES: Final = 1 << 10
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class PodPartCache(Generic[T]):
    """A bounded cache of values computed from one part of a pod; pods with an equal part share a value.

    Args:
        answer: Computes the value for a pod; may read only the part.
        part: Returns the part of a pod, or None if it is empty.
        without: The value for an empty part.
    """

    def __init__(self, answer: Callable[[Pod], T], part: Callable[[Pod], Any | None], without: T) -> None:
        self._answer = answer
        self._part = part
        self._without = without
        self._kept: LRUCache[Hashable, tuple[T, int]] = LRUCache(KEPT_BYTES, getsizeof=itemgetter(1))
        self._last: tuple[Any, T] | None = None
        """The part of the last pod, with its value: pods of an owner usually follow each other and are equal."""
        self._last_is_large = False
        """Whether the last value is too large for the cache, so that the next pod's value replaces it."""

    def __call__(self, pod: Pod) -> T:
        """Return the value for a pod: cached, if a pod with an equal part came before, else computed."""
        part = self._part(pod)
        if part is None:
            if self._last_is_large:
                self._last, self._last_is_large = None, False
            return self._without
        last = self._last
        if last is not None and last[0] == part:
            return last[1]
        key = _key(part)
        if key is None:
            return self._answer(pod)
        known = self._kept.get(key)
        if known is not None:
            self._last, self._last_is_large = (part, known[0]), False
            return known[0]
        answer = self._answer(pod)
        size = LEAST_BYTES + BYTES_PER_BYTE * len(key)
        self._last, self._last_is_large = (part, answer), size > KEPT_BYTES
        if not self._last_is_large:
            self._kept[key] = answer, size
        return answer

    def forget(self) -> None:
        """Drop all cached values of the cache."""
        self._kept.clear()
        self._last = None

    @property
    def nbytes(self) -> int:
        """Estimated memory of all cached values. Units: bytes."""
        return int(self._kept.currsize)


def _key(part: Any) -> bytes | None:
    """Encode a part of a pod as cache key; return None if it contains text that JSON cannot represent."""
    try:
        return _ENCODER.encode(part)
    except UnicodeError:
        return None
