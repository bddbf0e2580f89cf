"""Decides when a table that numbers objects assigns new numbers without gaps."""

from __future__ import annotations

SPARE = 64
"""Number of unused numbers up to which a table is never renumbered."""


def is_sparse(given: int, used: int) -> bool:
    """Return whether more than half of the assigned numbers, and more than `SPARE`, are unused."""
    return given > 2 * used + SPARE
