"""Escape untrusted text for output: characters that cannot be seen are written out, and long text is cut.

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
"""How many characters of a text are shown where somebody may make it as long as he likes."""
_NAMES: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_CATEGORIES: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_BLANKS: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Characters that Unicode counts as letters, marks or symbols and that nobody sees."""
_BLANK: Final = re.compile(f"[{_BLANKS}]")
_COMMAND: Final = re.compile(r"^\s*(:):[A-Za-z]|(#)#\[")
"""What a runner of GitHub's workflows takes for a command where it stands in a line of output: `::name` behind blanks
alone, `##[name]` anywhere."""


def is_hidden(character: str) -> bool:
    """Whether a character cannot be seen or moves what stands around it; the space alone is not among them."""
    return unicodedata.category(character) in _CATEGORIES or _BLANK.match(character) is not None


def escape(character: str) -> str:
    r"""Write a character out, as `\n`, `\x1b`, `\u202e` or `\U000e0001`."""
    number = ord(character)
    if character in _NAMES:
        return _NAMES[character]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def cut(text: str, limit: int = LIMIT) -> str:
    """Return a text as it is, cut where it is long; its whole length is said then."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def cut_bytes(text: str, limit: int, mark: str) -> str:
    """Return a text of at most so many bytes in UTF-8, cut between two characters; a mark at its end says so."""
    encoded = text.encode()
    return text if len(encoded) <= limit else encoded[: limit - len(mark)].decode(errors="ignore") + mark


def visible(text: str, limit: int | None = LIMIT) -> str:
    """Return a text as one line that shows what is in it.

    Args:
        text: Anybody's text.
        limit: How many characters of it are shown; the rest is cut and its length is said. None shows all.
    """
    if limit is not None and len(text) > limit:
        return visible(cut(text, limit), None)
    return without_commands(_escaped(text))


def without_commands(text: str) -> str:
    r"""Return a line in which a workflow's runner finds no command: `::error::x` is written `\x3a:error::x`."""
    if "::" not in text and "##[" not in text:
        return text
    return _COMMAND.sub(lambda found: found[0].replace(found[1] or found[2], escape(found[1] or found[2]), 1), text)


def visible_lines(text: str, *, commands: bool = False) -> str:
    """Return a text of our own making whose lines hold texts of others; its line feeds stay.

    Args:
        text: The text.
        commands: Whether commands of a workflow's runner stay as well, because they are ours or are to be read as data.
    """
    lines = map(_escaped, text.split("\n"))
    return "\n".join(lines if commands else map(without_commands, lines))


def visible_json(value: Any) -> str:
    """Write JSON; what cannot be seen is escaped as JSON does it, so that any reader gets the value as it is."""
    written = json.dumps(value, indent=2, ensure_ascii=False)
    return "\n".join(map(_json_line, written.split("\n")))


def _escaped(text: str) -> str:
    if text.isprintable() and (text.isascii() or not _BLANK.search(text)):
        return text
    return "".join(escape(character) if is_hidden(character) else character for character in text)


def _json_line(line: str) -> str:
    line = line.replace("##[", "\\u0023#[")  # it can stand in a text alone
    if line.isprintable() and (line.isascii() or not _BLANK.search(line)):
        return line
    return "".join(json.dumps(one)[1:-1] if is_hidden(one) else one for one in line)
