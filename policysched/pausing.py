"""Cooperative work: a generator that yields after each slice, so that others get their turn, and returns a result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Pausing: TypeAlias = Generator[None, None, T]


def finished(work: Pausing[T]) -> T:
    """Run work to its end and return its outcome."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
