"""When numbers of deleted objects are worth a renumbering: the rule for all tables that number objects densely."""

from __future__ import annotations

SPARE = 64
"""Number of unused numbers that never cause a renumbering."""


def is_sparse(given: int, used: int) -> bool:
    """Return whether more than half of the given numbers, and more than `SPARE`, are unused."""
    return given > 2 * used + SPARE
