"""Rule for all tables that number objects: when to assign new numbers without gaps."""

from __future__ import annotations

SPARE = 64
"""Number of unused object numbers that never cause a renumbering."""


def is_sparse(given: int, used: int) -> bool:
    """Return whether more than half of the assigned numbers, and more than `SPARE`, are unused."""
    return given > 2 * used + SPARE
