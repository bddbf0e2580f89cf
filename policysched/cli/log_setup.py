"""Logging setup by flags: format, verbosity and streams."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from policysched.cli.flags.sections import LogsFlags
from policysched.klog import V1, JsonFormatter, TextFormatter, Verbosity, quoted

log = logging.getLogger(__name__)
_FORMATTERS: Final[Mapping[str, type[logging.Formatter]]] = {"text": TextFormatter, "json": JsonFormatter}


def log_as(flags: LogsFlags, told: Iterable[tuple[str, str]]) -> Verbosity:
    """Set up logging by flags, and log all flags at `--v=1`.

    Args:
        flags: The logging flags.
        told: All flags with their values, to log.

    Returns:
        An object that changes the verbosity.
    """
    is_json = flags.logging_format == "json"
    made = Verbosity(flags.v or 0, () if is_json else flags.vmodule)
    handlers = _handlers(splits=bool(flags.log_json_split_stream if is_json else flags.log_text_split_stream))
    for handler in handlers:
        handler.setFormatter(_FORMATTERS[flags.logging_format or "text"]())
        handler.addFilter(made.filter)
    logging.basicConfig(handlers=handlers)
    made.use(made.level)
    for name, value in told:
        log.log(V1, "FLAG: --%s=%s", name, quoted(_without_credentials(value)))
    return made


def _without_credentials(value: str) -> str:
    """Remove user name and password from a URL: everything up to the last `@`."""
    scheme, mark, rest = value.partition("://")
    return f"{scheme}{mark}...@{rest.rpartition('@')[2]}" if mark and "@" in rest else value


def _handlers(*, splits: bool) -> list[logging.Handler]:
    """Return the log handlers: stderr only, or errors to stderr and other lines to stdout."""
    to_stderr = logging.StreamHandler(sys.stderr)
    if not splits:
        return [to_stderr]
    to_stderr.setLevel(logging.ERROR)
    to_stdout = logging.StreamHandler(sys.stdout)
    to_stdout.addFilter(lambda record: record.levelno < logging.ERROR)
    return [to_stdout, to_stderr]
