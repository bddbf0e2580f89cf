"""Texts as small integers, so that columns compare codes instead of strings.

One interner serves a whole process: codes are never reused, so a code that a cache kept stays true.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
MISSING = -1
"""The code of a value that is not there."""


class Interner(Generic[T]):
    """A growing bijection between values and the codes 0, 1, 2 and so on."""

    __slots__ = ("__weakref__", "_codes", "_values")

    def __init__(self) -> None:
        self._codes: dict[T, int] = {}
        self._values: list[T] = []

    def code(self, value: T) -> int:
        """Give the value's code, a new one if it was never seen."""
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self._values)
            self._values.append(value)
        return code

    def find(self, value: T) -> int:
        """Give the value's code, or MISSING if it was never seen."""
        return self._codes.get(value, MISSING)

    def value(self, code: int) -> T:
        """Give the value behind a code."""
        return self._values[code]

    def __len__(self) -> int:
        return len(self._values)


class Strings(Interner[str]):
    """The texts of a process: label values, names, zones."""

    __slots__ = ()

    def text(self, code: int) -> str:
        """Give the text behind a code."""
        return self._values[code]
