"""Decides when a table that gives objects numbers closes the gaps by assigning new numbers."""

from __future__ import annotations

SPARE = 64
"""A table that gives objects numbers is not renumbered up to this number of unused numbers."""


def is_sparse(given: int, used: int) -> bool:
    """Return whether more than half of a table's assigned numbers, and more than `SPARE`, are unused."""
    return given > 2 * used + SPARE
