"""Escaping of untrusted text for output: invisible characters are written as escapes, and long text is cut.

Names, labels, messages and servers' answers come from anybody. Shown as they are, control characters move a terminal's
cursor, line breaks forge lines of a log, and bidirectional or zero-width characters make a text read as another. Every
output passes here: terminals, logs, events, conditions, annotations. A leaf: it imports nothing of ours.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Final

LIMIT: Final = 4096
"""Length to which untrusted text is cut in output. Units: characters."""
_NAMES: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_CATEGORIES: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_BLANKS: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Invisible characters that Unicode classifies as letters, marks or symbols."""
_BLANK: Final = re.compile(f"[{_BLANKS}]")
_COMMAND: Final = re.compile(r"^\s*(:):[A-Za-z]|(#)#\[")
"""Start of a GitHub Actions runner command: `::name` at the start of a line after white space, `##[name]` anywhere."""


def is_hidden(character: str) -> bool:
    """Return whether a character is invisible or changes the order of text; a plain space is not hidden."""
    return unicodedata.category(character) in _CATEGORIES or _BLANK.match(character) is not None


def escape(character: str) -> str:
    r"""Return the escape of a character, such as `\n`, `\x1b`, `\u202e` or `\U000e0001`."""
    number = ord(character)
    if character in _NAMES:
        return _NAMES[character]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def cut(text: str, limit: int = LIMIT) -> str:
    """Return a text unchanged if it is short; otherwise its beginning and the number of all its characters."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def cut_bytes(text: str, limit: int, mark: str) -> str:
    """Cut a text to a number of UTF-8 bytes without splitting a character; append a mark if the text was cut."""
    encoded = text.encode()
    return text if len(encoded) <= limit else encoded[: limit - len(mark)].decode(errors="ignore") + mark


def visible(text: str, limit: int | None = LIMIT) -> str:
    """Return a text as one line with hidden characters escaped, cut to a limit.

    Args:
        text: Anybody's text.
        limit: How many characters of it are shown; the rest is cut and its length is said. None shows all.
    """
    if limit is not None and len(text) > limit:
        return visible(cut(text, limit), None)
    return without_commands(_escaped(text))


def without_commands(text: str) -> str:
    r"""Escape commands to a GitHub Actions runner in a line: `::error::x` is written `\x3a:error::x`."""
    if "::" not in text and "##[" not in text:
        return text
    return _COMMAND.sub(lambda found: found[0].replace(found[1] or found[2], escape(found[1] or found[2]), 1), text)


def visible_lines(text: str, *, commands: bool = False) -> str:
    """Escape hidden characters in a text of several lines with untrusted parts; keep its line feeds.

    Args:
        text: The text.
        commands: Whether commands of a workflow's runner stay as well, because they are ours or are to be read as data.
    """
    lines = map(_escaped, text.split("\n"))
    return "\n".join(lines if commands else map(without_commands, lines))


def visible_json(value: Any) -> str:
    """Return a value as JSON, with hidden characters as JSON escapes, so that a parser gets the original value."""
    written = json.dumps(value, indent=2, ensure_ascii=False)
    return "\n".join(map(_json_line, written.split("\n")))


def _escaped(text: str) -> str:
    if text.isprintable() and (text.isascii() or not _BLANK.search(text)):
        return text
    return "".join(escape(character) if is_hidden(character) else character for character in text)


def _json_line(line: str) -> str:
    line = line.replace("##[", "\\u0023#[")  # valid JSON contains these characters only inside of strings
    if line.isprintable() and (line.isascii() or not _BLANK.search(line)):
        return line
    return "".join(json.dumps(one)[1:-1] if is_hidden(one) else one for one in line)
