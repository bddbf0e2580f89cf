"""How many examples a law is tried on: a few in every run, POLICYSCHED_EXAMPLES of them where that is set."""

from __future__ import annotations

import os

from hypothesis import settings


def examples(quick: int) -> settings:
    """Settings of a law that a quick run tries on so many examples."""
    number = int(os.environ.get("POLICYSCHED_EXAMPLES") or quick)
    return settings(max_examples=number)
