"""How long a thread may keep the interpreter while another one waits for it.

The scheduler's thread gives the interpreter away at each read and write of a socket, some ten times a pod, and has to
wait for it where another thread computes: the port importing its server or writing metrics, the grammar being loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TURN: Final = 0.0005
"""Units: seconds. The interpreter's own 0.005 would make 50 ms of a pod's ten waits."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Let threads take turns quickly as long as this lasts."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
