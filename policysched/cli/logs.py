"""Logging of the processes: one line a record on stderr, in the order time, level, place, text."""

from __future__ import annotations

import logging
from typing import Final

_FORMAT: Final = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s"
_TIME: Final = "%Y-%m-%dT%H:%M:%S"
DEBUG_FROM: Final = 2


def log_to_stderr(verbosity: int) -> None:
    """Log our own records: news at 0 and 1, every decision from 2 on; libraries only warn, or say more from 6 on."""
    logging.basicConfig(format=_FORMAT, datefmt=_TIME, level=logging.DEBUG if verbosity >= 6 else logging.WARNING)
    logging.getLogger("policysched").setLevel(logging.DEBUG if verbosity >= DEBUG_FROM else logging.INFO)
