"""Requests by resource name, for plugins that treat all resources alike.

Knows requests, not columns. The order is that in which reasons are listed: cpu, memory, ephemeral storage, then the
others by name.
"""

from __future__ import annotations

from policysched.model.requests import Allocatable, Requests


def by_name(amounts: Requests | Allocatable) -> dict[str, int]:
    """Give the amounts by resource name.

    Units: cpu in thousandths, the others whole.
    """
    return {
        "cpu": amounts.cpu_millis,
        "memory": amounts.memory_bytes,
        "ephemeral-storage": amounts.ephemeral_bytes,
        **dict(amounts.scalars),
    }
