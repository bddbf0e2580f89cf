"""A bounded cache of values computed from one part of a pod's spec, shared by all pods in which that part is equal.

Knows pods, not what is worked out of them. An answer is found by the encoded part, and its memory is estimated by how
long that is: all answers of a kind together take no more than `KEPT_BYTES`, however much single pods state.
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
"""How much memory an answer takes for each byte of what it was worked out of."""
LEAST_BYTES: Final = 1 << 10
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class PodPartCache(Generic[T]):
    """Answers about one part of pods.

    Args:
        answer: Works the answer out for a pod; it may read nothing but the part.
        part: Gives what the answer depends on, None where that is nothing.
        without: The answer where it is nothing.
    """

    def __init__(self, answer: Callable[[Pod], T], part: Callable[[Pod], Any | None], without: T) -> None:
        self._answer = answer
        self._part = part
        self._without = without
        self._kept: LRUCache[Hashable, tuple[T, int]] = LRUCache(KEPT_BYTES, getsizeof=itemgetter(1))
        self._last: tuple[Any, T] | None = None
        """The part asked about last, and its answer: pods of one owner come one after another, and share the part."""
        self._last_is_large = False
        """Whether that answer is not kept otherwise; it goes with the next pod, be that one without the part."""

    def __call__(self, pod: Pod) -> T:
        """Return the answer for a pod."""
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
        """Drop all answers."""
        self._kept.clear()
        self._last = None

    @property
    def nbytes(self) -> int:
        """The memory that all answers are estimated to take. Units: bytes."""
        return int(self._kept.currsize)


def _key(part: Any) -> bytes | None:
    """Return what an answer is found by; None where the part has a text that no JSON can say."""
    try:
        return _ENCODER.encode(part)
    except UnicodeError:
        return None
