"""Logging of the processes: one line a record on stderr, in the order time, level, place, text."""

from __future__ import annotations

import logging
from typing import Any, Final

from policysched.visible import visible

_FORMAT: Final = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s"
_TIME: Final = "%Y-%m-%dT%H:%M:%S"
_INDENT: Final = "  | "
DEBUG_FROM: Final = 2


class LineFormatter(logging.Formatter):
    """Writes a record as one line of visible characters, and a traceback below it as indented ones.

    So no text of an object or a server looks like a record of its own, and none fills the log.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Write the line."""
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - as above
        """Write the traceback."""
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - as above
        """Write the stack."""
        return _indented(super().formatStack(stack_info))


def log_to_stderr(verbosity: int) -> None:
    """Log our own records: news at 0 and 1, every decision from 2 on; libraries only warn, or say more from 6 on."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(_FORMAT, _TIME))
    logging.basicConfig(handlers=[handler], level=logging.DEBUG if verbosity >= 6 else logging.WARNING)
    logging.getLogger("policysched").setLevel(logging.DEBUG if verbosity >= DEBUG_FROM else logging.INFO)


def show_every_record() -> None:
    """Write warnings of commands that log nothing as `LineFormatter` does."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LineFormatter("%(message)s"))


def _indented(text: str) -> str:
    return "\n".join(_INDENT + visible(line) for line in text.split("\n"))
