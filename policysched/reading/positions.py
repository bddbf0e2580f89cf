"""Source positions: line and column of a field in its file, and of a character in the text of a field.

The position inside a text is found by comparing text and source character by character without white space. This
works for plain, quoted, literal and folded scalars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_ITEM: Final = re.compile(r"\[(\d+)\]")
_ESCAPE: Final = re.compile(
    # JSON writes a character above U+FFFF as a pair of escapes.
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)",
    re.DOTALL,
)
_BLANK_ESCAPES: Final = frozenset("\n tnrvf_NLP")


class SourcePosition(NamedTuple):
    """A line and a column in a file, both from 1."""

    line: int
    column: int


def find(node: Node, field: str) -> tuple[Node, bool]:
    """Return the YAML node at a path such as `spec.filters[0].require` and True; else its nearest parent and False."""
    rest = field
    while rest:
        step = _item(node, rest) if rest.startswith("[") else _key(node, rest.removeprefix("."))
        if step is None:
            return node, False
        node, rest = step
    return node, True


def key(root: Node, field: str) -> Node | None:
    """Return the YAML node of a field's key; None if the field is missing or is an item of a list."""
    parent, _, name = field.rpartition(".")
    node, found = find(root, parent)
    if not found or not isinstance(node, MappingNode):
        return None
    return next((one for one, _ in node.value if isinstance(one, ScalarNode) and one.value == name), None)


def start(node: Node) -> SourcePosition:
    """Return the position of the first character of a YAML node."""
    return SourcePosition(node.start_mark.line + 1, node.start_mark.column + 1)


def inside(node: Node, source: list[str], line: int, column: int) -> SourcePosition:
    """Return the position in the file of a line and column within the text of a YAML scalar.

    Args:
        node: The scalar; for any other node, its start is returned.
        source: The lines of the file.
        line: The line of the text, from 1.
        column: The column of the text, from 1.
    """
    if not isinstance(node, ScalarNode):
        return start(node)
    lines = node.value.split("\n")
    current = lines[min(line, len(lines)) - 1]
    before = "".join(lines[: line - 1]) + current[: column - 1]
    solid = sum(not one.isspace() for one in before)
    marks = list(islice(_solid(node, source), solid + 1))
    if not marks:
        return start(node)
    if solid < len(marks) and (solid == 0 or (not current[column - 1 : column].isspace() and column <= len(current))):
        return marks[solid][0]
    last, end = marks[min(solid, len(marks)) - 1]
    return SourcePosition(last.line, end + len(before) - len(before.rstrip()))


def comment_after(node: Node, source: list[str]) -> bool:
    """Return whether a comment follows an unquoted YAML scalar on the scalar's last line."""
    if not isinstance(node, ScalarNode) or node.style:
        return False
    return source[node.end_mark.line][node.end_mark.column :].lstrip().startswith("#")


def _item(node: Node, path: str) -> tuple[Node, str] | None:
    match = _ITEM.match(path)
    if match is None or not isinstance(node, SequenceNode) or int(match[1]) >= len(node.value):
        return None
    return node.value[int(match[1])], path[match.end() :]


def _key(node: Node, path: str) -> tuple[Node, str] | None:
    if not isinstance(node, MappingNode):
        return None
    known = {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}
    for key in sorted(known, key=len, reverse=True):
        if path.startswith(key) and path[len(key) :][:1] in ("", ".", "["):
            return known[key], path[len(key) :]
    return None


def _solid(node: ScalarNode, source: list[str]) -> Iterator[tuple[SourcePosition, int]]:
    """Yield, for each character of a YAML scalar except white space, its position and the column after it."""
    first, last = node.start_mark, node.end_mark
    block = node.style in ("|", ">")
    quote = node.style in ("'", '"')
    for number in range(first.line + block, min(last.line + 1, len(source))):
        begin = first.column + quote if number == first.line else 0
        end = last.column - quote if number == last.line else len(source[number])
        for column, behind in _columns(source[number], begin, end, node.style):
            yield SourcePosition(number + 1, column + 1), behind + 1


def _columns(line: str, begin: int, end: int, style: str | None) -> Iterator[tuple[int, int]]:
    column = begin
    while column < end:
        behind = _behind(line, column, style)
        if not _is_blank(line[column:behind], escaped=style == '"'):
            yield column, behind
        column = behind


def _behind(line: str, column: int, style: str | None) -> int:
    """Return the column after the character at a column of a YAML scalar; an escape sequence is one character."""
    if style == "'" and line[column] == "'":
        return column + 2
    escape = _ESCAPE.match(line, column) if style == '"' else None
    return escape.end() if escape else column + 1


def _is_blank(written: str, *, escaped: bool) -> bool:
    """Return whether a character or an escape sequence is white space; an escaped line end is white space."""
    if not escaped or not written.startswith("\\"):
        return written.isspace()
    if written[1:2] in ("x", "u", "U"):
        return len(written) < 12 and chr(int(written[2:], 16)).isspace()
    return len(written) == 1 or written[1] in _BLANK_ESCAPES
