"""How a canonical expression is spread over lines: one that its author broke stays broken if it is too long for a line.

It knows the language's strings and brackets and nothing of YAML. Lines are broken before `and` and `or` only, outside
of all brackets, because there a reader expects it.
"""

from __future__ import annotations

import re
from typing import Final

WIDTH: Final = 100
"""Up to which column a text of several lines is filled."""
_WORDS: Final = (" or ", " and ")
_JOINT: Final = re.compile(r"(?<![ \t\r])[ \t\r]*+\n\s*")


def joined(text: str) -> str:
    """Return a text as one line, as its canonical form is."""
    return _JOINT.sub(" ", text.strip())


def broken(text: str, width: int, indent: str = "") -> list[str]:
    """Break a canonical text into lines.

    Args:
        text: The text, one line.
        width: How long a line should be at most; one that cannot be broken stays longer.
        indent: What stands before the lines of a part that is itself broken.
    """
    for word in _WORDS:
        pieces = _split(text, word) if len(text) > width else [text]
        if len(pieces) > 1:
            inner = [broken(piece, width, indent) for piece in pieces]
            return [indent * (number > 0) + line for piece in inner for number, line in enumerate(piece)]
    return [text]


def _split(text: str, word: str) -> list[str]:
    """Split a text before each word that stands outside of strings and brackets."""
    cuts, depth, quoted, index = [0], 0, False, 0
    while index < len(text):
        character = text[index]
        if quoted:
            index += character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif depth == 0 and text.startswith(word, index):
            cuts.append(index + 1)
        index += 1
    return [text[begin:end].rstrip() for begin, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]
