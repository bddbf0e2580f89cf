"""Logging in the formats of klog on top of the standard library: verbosity levels, key-value pairs, text and JSON.

A record of level `V2` is written at `--v=2` and above, as in kube-scheduler. Warnings and errors are always written. A
mapping as the only argument adds key-value pairs: `log.log(V2, "Successfully bound pod to node", {"pod": key})`.
Records below the verbosity are not formatted. Text of objects or servers cannot imitate a record, because hidden
characters are escaped and long texts are cut. This module imports nothing of the project except `visible`.

Source: k8s.io/klog/v2 (internal/buffer, internal/serialize), k8s.io/component-base/logs/json, v1.36.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from policysched.visible import visible

V1, V2, V3, V4, V5 = (logging.INFO - level for level in range(1, 6))
HIGHEST: Final = logging.INFO - 1
"""Highest verbosity of the log; a higher number has the same effect."""
LIBRARIES_FROM: Final = 6
"""The lowest verbosity at which libraries log more than warnings."""
OURS: Final = "policysched"
_INDENT: Final = "  | "


class Block(str):
    """A multi-line text, logged line by line in klog's format."""

    __slots__ = ()


class Verbosity:
    """The verbosity of the log, with exceptions for modules (--v and --vmodule).

    Args:
        level: The verbosity of all other modules.
        modules: Patterns of module names with their verbosity; the first match applies.
    """

    def __init__(self, level: int = 0, modules: Sequence[tuple[str, int]] = ()) -> None:
        self._modules = tuple(modules)
        self._lowest: dict[str, int] = {}
        self.level = level

    def use(self, level: int) -> None:
        """Set the verbosity; thread-safe."""
        self.level, self._lowest = level, {}
        highest = max((level, *(own for _, own in self._modules)))
        logging.getLogger(OURS).setLevel(_lowest(highest))
        logging.getLogger().setLevel(logging.DEBUG if level >= LIBRARIES_FROM else logging.WARNING)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written at the verbosity of its module."""
        if not self._modules or not record.name.startswith(OURS):
            return True
        lowest = self._lowest.get(record.module)
        if lowest is None:
            own = (level for pattern, level in self._modules if fnmatchcase(record.module, pattern))
            lowest = self._lowest[record.module] = _lowest(next(own, self.level))
        return record.levelno >= lowest


def _lowest(verbosity: int) -> int:
    return logging.INFO - min(verbosity, HIGHEST)


class TextFormatter(logging.Formatter):
    """Formats a log record as klog text: `I1123 01:02:03.456789    4711 file.py:12] "message" key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, followed by the indented lines of a traceback."""
        when = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1e6)
        place = f"{record.process or 0:7d} {record.filename}:{record.lineno}]"
        return "\n".join((f"{_severity(record)}{when}.{micros:06d} {place} {body(record)}", *_below(self, record)))


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object with component-base's keys ts, caller, msg, v, err and the record's pairs."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record in ASCII; other characters are escaped."""
        told: dict[str, Any] = {
            "ts": round(record.created * 1e3, 4),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": visible(str(record.msg) if isinstance(record.args, Mapping) else record.getMessage()),
        }
        if record.levelno < logging.WARNING:
            told["v"] = logging.INFO - record.levelno
        pairs = record.args if isinstance(record.args, Mapping) else {}
        told |= {str(key): _json_value(value) for key, value in pairs.items()}
        if record.exc_info and record.exc_info[1] is not None:
            told.setdefault("err", visible(repr(record.exc_info[1])))
        if below := [*_below(self, record)]:
            told["stacktrace"] = "\n".join(below)
        return json.dumps(told)


def body(record: logging.LogRecord) -> str:
    """Return the text of a log record: the message, or the quoted message followed by key-value pairs."""
    if not isinstance(record.args, Mapping):
        return visible(record.getMessage())
    pairs = (f"{visible(str(key))}={_shown(value)}" for key, value in record.args.items())
    return " ".join((quoted(str(record.msg)), *pairs))


def quoted(text: str) -> str:
    """Return a text in quotes, as Go's strconv.Quote does; hidden characters are escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{visible(escaped)}"'


def _shown(value: Any) -> str:
    """Format a value: numbers and booleans plain, strings in quotes, lists and mappings as JSON."""
    match value:
        case Block():
            return "".join(("<\n", *(f"\t{visible(line, None)}\n" for line in value.splitlines()), " >"))
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list() | tuple() | Mapping():
            return visible(json.dumps(value, default=str, ensure_ascii=False))
    return quoted(str(value))


def _json_value(value: Any) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case Block():
            return str(value)
        case list() | tuple():
            return [_json_value(one) for one in value]
        case Mapping():
            return {str(key): _json_value(one) for key, one in value.items()}
    return visible(str(value))


def _severity(record: logging.LogRecord) -> str:
    if record.levelno >= logging.ERROR:
        return "E"
    return "W" if record.levelno >= logging.WARNING else "I"


def _below(formatter: logging.Formatter, record: logging.LogRecord) -> Iterator[str]:
    """Return the traceback and stack of a log record, each line with a prefix that marks it as part of the record."""
    texts = [formatter.formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        texts.append(formatter.formatStack(record.stack_info))
    return (_INDENT + visible(line) for text in texts for line in text.split("\n"))
