"""How many examples a law is tried on: a few in every run, POLICYSCHED_EXAMPLES of them where that is set."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def examples(quick: int) -> settings:
    """Settings of a law that a quick run tries on so many examples."""
    number = int(os.environ.get("POLICYSCHED_EXAMPLES") or quick)
    # Generated texts nest: making them takes longer than running them, more so on a busy machine.
    return settings(max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])
