"""Cleans up after a test process that was killed: reads what it started, and acts when nobody speaks any more.

It is run as a script that needs no package, and knows nothing but process ids and a folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable

PATIENCE = 20.0
"""How long processes may take to end before they are killed. Units: seconds."""


def main(folder: str) -> None:
    """Follow standard input; at its end without a farewell, end the processes and remove the folder."""
    running: set[int] = set()
    for line in sys.stdin:
        word, number = line.split()
        if word == ".":
            return
        (running.add if word == "+" else running.discard)(int(number))
    end(running)
    shutil.rmtree(folder, ignore_errors=True)


def end(numbers: Iterable[int]) -> None:
    """End processes that are no children of this one."""
    left = [number for number in numbers if _send(number, signal.SIGTERM)]
    deadline = time.monotonic() + PATIENCE
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [number for number in left if _send(number, 0)]
    for number in left:
        _send(number, signal.SIGKILL)


def _send(number: int, what: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, what)
        return True
    return False


if __name__ == "__main__":
    main(sys.argv[1])
