"""Another text in the place of a YAML or JSON scalar, written the way that the old one was where that still works.

It knows YAML and nothing of expressions. Whether a text may stand without quotes is asked of the YAML reader itself,
not of rules of our own, because the reader is what the file meets next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from yaml.nodes import ScalarNode

from policysched.app.files import Source
from policysched.app.fmt_layout import WIDTH, broken
from policysched.app.yaml_nodes import LINE_END, reads_as

_INDENT: Final = "  "
_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*")
_HIDDEN: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What YAML takes in double quotes only, as an escape."""


class Edit(NamedTuple):
    """What takes the place of a part of a text."""

    begin: int
    end: int
    text: str


def rewrite(node: ScalarNode, source: Source, wanted: str, *, flow: bool) -> Edit:
    """Write a text in the place of a scalar.

    Args:
        node: The scalar; what stands before it (an anchor, a tag) and behind it (a comment) stays.
        source: Where it stands.
        wanted: The text, one line; it is broken where the old one was, if it is long.
        flow: Whether the scalar stands inside of `{}` or `[]`.
    """
    if node.style in ("|", ">"):
        return _block(node, source, wanted)
    properties = _PROPERTIES.match(source.text, node.start_mark.index, node.end_mark.index)
    begin, end = properties.end() if properties else node.start_mark.index, node.end_mark.index
    return Edit(begin, end, _inline(node, source.text[begin:end], wanted, flow=flow))


def _inline(node: ScalarNode, old: str, wanted: str, *, flow: bool) -> str:
    room = WIDTH - node.start_mark.column
    ascii_only = old.isascii() and not node.value.isascii()
    if node.style == '"' and "\n" in node.value:
        return _double(broken(wanted, room, _INDENT), "\\n", ascii_only=ascii_only)
    ends = list(LINE_END.finditer(old))
    lines = broken(wanted, room) if ends else [wanted]
    joint = _joint(old, ends[-1]) if ends else ""
    if not node.style and reads_as(wanted, flow=flow) == wanted:
        return joint.join(lines)
    if node.style == '"' or _HIDDEN.search(wanted) or (not node.style and '"' not in wanted):
        return _double(lines, joint, ascii_only=ascii_only)
    return "'{}'".format(joint.join(line.replace("'", "''") for line in lines))


def _joint(old: str, end: re.Match[str]) -> str:
    """Give what stands between two lines of a scalar: a line end and the indentation behind it."""
    rest = old[end.end() :]
    return end[0] + rest[: len(rest) - len(rest.lstrip(" \t"))]


def _double(lines: Sequence[str], joint: str, *, ascii_only: bool) -> str:
    """Write lines between double quotes, with escapes that JSON has too."""
    # JSON's escapes in pairs, for what is above U+FFFF, are none of YAML's.
    ascii_only = ascii_only and all(character <= "\uffff" for line in lines for character in line)
    written = (json.dumps(line, ensure_ascii=ascii_only)[1:-1] for line in lines)
    return '"{}"'.format(joint.join(_HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in written))


def _block(node: ScalarNode, source: Source, wanted: str) -> Edit:
    """Write a text below the head of a block scalar, between its first and its last line that is not empty."""
    lines = source.lines
    below = range(node.start_mark.line + 1, min(node.end_mark.line + 1, len(lines)))
    solid = [number for number in below if lines[number].strip()]
    first = solid[0]
    lead = lines[first][: _lead(lines[first])]
    # An indentation that the head states may be less than what the first line has.
    least = len(lead) - _lead(node.value.lstrip("\n"))
    last = max(number for number in solid if _lead(lines[number]) >= least)
    room = WIDTH - len(lead)
    new = broken(wanted, room, _INDENT if node.style == "|" else "") if last > first else [wanted]
    begin, end = source.starts[first], source.starts[first] + len(lines[first])
    line_end = source.text[end : source.starts[first + 1]] if last > first else ""
    return Edit(begin, source.starts[last] + len(lines[last]), line_end.join(lead + line for line in new))


def _lead(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
