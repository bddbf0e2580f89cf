"""Replace the text of a YAML or JSON scalar, keeping its quoting style and line breaks.

The YAML reader itself decides whether a text may be written without quotes. A scalar shared by aliases is skipped.
Lines are broken only before `and` and `or` outside of brackets, where readers expect it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from policysched.reading.documents import Source
from policysched.reading.yaml_nodes import LINE_END, reads_as

WIDTH: Final = 100
"""Largest width of a line in a text that is broken over several lines. Units: characters."""
_WORDS: Final = (" or ", " and ")
_JOINT: Final = re.compile(r"(?<![ \t\r])[ \t\r]*+\n\s*")


def joined(text: str) -> str:
    """Return a text as one line."""
    return _JOINT.sub(" ", text.strip())


def broken(text: str, width: int, indent: str = "") -> list[str]:
    """Break the canonical form of an expression into lines.

    Args:
        text: The text, one line.
        width: Largest length of a line; an unbreakable line can be longer.
        indent: Indentation of the lines of a part that is itself broken.
    """
    for word in _WORDS:
        pieces = _split(text, word) if len(text) > width else [text]
        if len(pieces) > 1:
            inner = [broken(piece, width, indent) for piece in pieces]
            return [indent * (number > 0) + line for piece in inner for number, line in enumerate(piece)]
    return [text]


def _split(text: str, word: str) -> list[str]:
    """Split a text before each occurrence of a word outside of strings and brackets."""
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


_INDENT: Final = "  "
_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*")
_HIDDEN: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that YAML accepts only in double quotes, as an escape."""


class Edit(NamedTuple):
    """A replacement of a part of a text."""

    begin: int
    end: int
    text: str


def rewrite(node: ScalarNode, source: Source, wanted: str, *, flow: bool) -> Edit:
    """Return the edit that replaces a scalar by a text.

    Args:
        node: The scalar; an anchor or tag before it and a comment after it stay.
        source: The source text.
        wanted: The text on one line; it is broken like the old one if it is long.
        flow: Whether the scalar is inside of `{}` or `[]`.
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
    """Return the line break and indentation between two lines of a scalar."""
    rest = old[end.end() :]
    return end[0] + rest[: len(rest) - len(rest.lstrip(" \t"))]


def _double(lines: Sequence[str], joint: str, *, ascii_only: bool) -> str:
    """Return lines in double quotes, with escapes that are valid in JSON too."""
    # JSON's surrogate escapes for characters above U+FFFF are invalid in YAML.
    ascii_only = ascii_only and all(character <= "\uffff" for line in lines for character in line)
    written = (json.dumps(line, ensure_ascii=ascii_only)[1:-1] for line in lines)
    return '"{}"'.format(joint.join(_HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in written))


def _block(node: ScalarNode, source: Source, wanted: str) -> Edit:
    """Return the edit that replaces the lines of a block scalar, from the first to the last that is not empty."""
    lines = source.lines
    below = range(node.start_mark.line + 1, min(node.end_mark.line + 1, len(lines)))
    solid = [number for number in below if lines[number].strip()]
    first = solid[0]
    lead = lines[first][: _lead(lines[first])]
    # The stated indentation can be smaller than that of the first line.
    least = len(lead) - _lead(node.value.lstrip("\n"))
    last = max(number for number in solid if _lead(lines[number]) >= least)
    room = WIDTH - len(lead)
    new = broken(wanted, room, _INDENT if node.style == "|" else "") if last > first else [wanted]
    begin, end = source.starts[first], source.starts[first] + len(lines[first])
    line_end = source.text[end : source.starts[first + 1]] if last > first else ""
    return Edit(begin, source.starts[last] + len(lines[last]), line_end.join(lead + line for line in new))


def _lead(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class DocumentNodes:
    """The nodes of one YAML document."""

    def __init__(self, root: Node) -> None:
        order = _below_first(root)
        self._uses = Counter({id(root): 1})
        for node in reversed(order):
            for child in _children(node):
                self._uses[id(child)] += self._uses[id(node)]
        self._flows = list(_outermost(order))
        self._begins = [begin for begin, _ in self._flows]

    def uses(self, node: Node) -> int:
        """Return the number of places in the document, including aliases, that use a YAML node."""
        return self._uses[id(node)]

    def in_flow(self, node: ScalarNode) -> bool:
        """Return whether a scalar is inside of `{}` or `[]`."""
        index = node.start_mark.index
        found = bisect_right(self._begins, index) - 1
        return found >= 0 and index < self._flows[found][1]


def _below_first(root: Node) -> list[Node]:
    """Return every YAML node once, after all nodes below it."""
    order: list[Node] = []
    seen: set[int] = set()
    todo = [(root, False)]
    while todo:
        node, is_done = todo.pop()
        if is_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo.extend((child, False) for child in _children(node))
    return order


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    elif isinstance(node, MappingNode):
        yield from (key for key, _ in node.value)
        # Merged keys precede the mapping's own keys, which have priority.
        yield from {key.value: value for key, value in node.value}.values()


def _outermost(nodes: list[Node]) -> Iterator[tuple[int, int]]:
    flows = (one for one in nodes if isinstance(one, MappingNode | SequenceNode) and one.flow_style)
    end = -1
    for begin, last in sorted((one.start_mark.index, one.end_mark.index) for one in flows):
        if begin >= end:
            end = last
            yield begin, last
