"""Logging as klog does it, on the standard library's: verbosity levels, key-value pairs, lines of text and of JSON.

A record of level `V2` is written at `--v=2` and above, as in kube-scheduler; warnings and errors always are. What a
record says of objects is a mapping, its only argument: `log.log(V2, "Successfully bound pod to node", {"pod": key})`.
Nothing is formatted for a record that is not written. No text of an object or a server looks like a record of its own:
hidden characters are written out, and long texts are cut. A leaf, which everything may import.

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
"""The highest verbosity that is told from lower ones."""
LIBRARIES_FROM: Final = 6
"""From which verbosity on libraries say more than warnings."""
OURS: Final = "policysched"
_INDENT: Final = "  | "


class Block(str):
    """A text of several lines, of which each is shown in a line of its own, as klog shows them."""

    __slots__ = ()


class Verbosity:
    """How much is logged: a level for all modules, and others for some.

    Args:
        level: The level of all.
        modules: Patterns of modules' names with their own levels; the first that fits counts.
    """

    def __init__(self, level: int = 0, modules: Sequence[tuple[str, int]] = ()) -> None:
        self._modules = tuple(modules)
        self._lowest: dict[str, int] = {}
        self.level = level

    def use(self, level: int) -> None:
        """Log as much from now on; it may be called from any thread."""
        self.level, self._lowest = level, {}
        highest = max((level, *(own for _, own in self._modules)))
        logging.getLogger(OURS).setLevel(_lowest(highest))
        logging.getLogger().setLevel(logging.DEBUG if level >= LIBRARIES_FROM else logging.WARNING)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written, by its module's level."""
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
    """Writes a record as klog does: `I1123 01:02:03.456789    4711 file.py:12] "message" key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record, and a traceback below it as indented lines."""
        when = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1e6)
        place = f"{record.process or 0:7d} {record.filename}:{record.lineno}]"
        return "\n".join((f"{_severity(record)}{when}.{micros:06d} {place} {body(record)}", *_below(self, record)))


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object with component-base's keys: ts, caller, msg, v, err, and what it says."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record; what is not ASCII is escaped."""
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
    """Return what a record says: a message, or a quoted one with pairs behind it."""
    if not isinstance(record.args, Mapping):
        return visible(record.getMessage())
    pairs = (f"{visible(str(key))}={_shown(value)}" for key, value in record.args.items())
    return " ".join((quoted(str(record.msg)), *pairs))


def quoted(text: str) -> str:
    """Return a text in quotes, as Go's strconv.Quote has it; hidden characters are written out."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{visible(escaped)}"'


def _shown(value: Any) -> str:
    """Write a value: numbers and truth values as they are, texts in quotes, lists as JSON."""
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
    """List the lines of a traceback or a stack, each of which begins so that it is no record."""
    texts = [formatter.formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        texts.append(formatter.formatStack(record.stack_info))
    return (_INDENT + visible(line) for text in texts for line in text.split("\n"))
