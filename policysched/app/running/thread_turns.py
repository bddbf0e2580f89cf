"""The interpreter's switch interval between threads.

The scheduler's thread releases the interpreter at each socket operation, about ten times per pod, and has to wait if
another thread computes: the port importing its server or writing metrics, or the loading of the grammar.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TURN: Final = 0.0005
"""Switch interval while pods wait. Units: seconds. Python's default, 0.005, would add 50 ms to the delay of a pod."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Use a short switch interval inside this context."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
