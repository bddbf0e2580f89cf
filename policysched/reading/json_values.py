"""Read the JSON values of a text, with the source position of every value.

JSON has the same node classes as YAML, so that `positions` serves both.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final

from yaml import Mark
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from policysched.errors import UsageError
from policysched.reading import positions
from policysched.reading.yaml_nodes import LINE_END, LONG_NUMBER

_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""Pattern of a JSON escape of one half of a surrogate pair."""
_TOKEN: Final = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<sign>[{}\[\]:,])|(?P<word>[^\s{}\[\],:"]+)', re.DOTALL)
_TAGS: Final = {"t": "bool", "f": "bool", "n": "null"}


def json_values(text: str, file: str) -> list[tuple[Any, int, int]] | None:
    """Return the JSON values of a text, each with its start offset and its end offset.

    Returns:
        The values, or None if the text is not JSON and the YAML reader has to read it.

    Raises:
        UsageError: an object has a key twice, or a text has half of a surrogate pair.
    """
    decoder = json.JSONDecoder(object_pairs_hook=without_repeats)
    found, offset = [], _skip(text, 0)
    try:
        while offset < len(text):
            value, end = decoder.raw_decode(text, offset)
            found.append((value, offset, end))
            offset = _skip(text, end)
    except RepeatedKeyError:
        _reject_repeated_key(text, file, offset)
        return None
    except (ValueError, RecursionError):
        return None
    _reject_half_characters(found, text, file)
    return found


def _reject_repeated_key(text: str, file: str, offset: int) -> None:
    """Raise an error if the JSON value at an offset repeats a key of an object; ignore a value that is not JSON."""
    try:
        _, end = json.JSONDecoder().raw_decode(text, offset)
    except (ValueError, RecursionError):
        return
    key = _repeated_key(compose_json(text, offset, end))
    if key is not None:
        place = positions.start(key)
        raise UsageError(f'{file}:{place.line}:{place.column}: duplicate key "{key.value}"')


def _reject_half_characters(found: list[tuple[Any, int, int]], text: str, file: str) -> None:
    """Reject escapes of one half of a surrogate pair, which Kubernetes does not store and terminals cannot print."""
    if not _HALF.search(text):
        return
    try:
        json.dumps([value for value, _, _ in found], ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise UsageError(f"{file}: not valid JSON: {half} is an incomplete surrogate pair") from error


class RepeatedKeyError(ValueError):
    """Error: a JSON object contains a key twice, so that JSON readers disagree on the value."""


def without_repeats(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    """Return a JSON object for keys and values; raise RepeatedKeyError if a key occurs twice.

    Raises:
        RepeatedKeyError: a key is repeated.
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        raise RepeatedKeyError
    return made


def explain_json(text: str, file: str) -> None:
    """Raise an error with the position and the reason why a text is not JSON.

    Raises:
        UsageError: the text is not JSON.
    """
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        raise UsageError(f"{file}:{error.lineno}:{error.colno}: not valid JSON: {problem}") from error
    except RecursionError as error:
        raise UsageError(f"{file}: nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"{file}: not valid JSON: {LONG_NUMBER}") from error


def _skip(text: str, offset: int) -> int:
    while offset < len(text) and text[offset].isspace():
        offset += 1
    return offset


def compose_json(text: str, begin: int, end: int) -> Node:
    """Return the YAML node tree of the JSON value between two offsets of a text, with positions in the whole text."""
    return _Composer(text).compose(begin, end)


def _repeated_key(root: Node) -> ScalarNode | None:
    """Return the first key node that occurs twice in its object; None if no key is repeated."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, SequenceNode):
            waiting += reversed(node.value)
        elif isinstance(node, MappingNode):
            seen: set[str] = set()
            for key, _ in node.value:
                if key.value in seen:
                    assert isinstance(key, ScalarNode)  # noqa: S101 - keys of JSON are texts
                    return key
                seen.add(key.value)
            waiting += [value for _, value in reversed(node.value)]
    return None


class _Composer:
    """Builds a YAML node tree from the tokens of valid JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(found.end() for found in LINE_END.finditer(text))]
        self._open: list[MappingNode | SequenceNode] = []
        self._keys: list[ScalarNode | None] = []

    def compose(self, begin: int, end: int) -> Node:
        node: Node | None = None
        for token in _TOKEN.finditer(self._text, begin, end):
            node = self._take(token) or node
        assert node is not None  # noqa: S101 - a decoder has read a value there
        return node

    def _take(self, token: re.Match[str]) -> Node | None:
        """Process one token of the JSON text; return the YAML node that the token completes, else None."""
        sign = token["sign"]
        start, end = (self._mark(token.start(str(token.lastgroup))), self._mark(token.end()))
        if sign in ("{", "["):
            made = MappingNode if sign == "{" else SequenceNode
            self._open.append(
                made(f"tag:yaml.org,2002:{'map' if sign == '{' else 'seq'}", [], start, end, flow_style=True)
            )
            self._keys.append(None)
            return None
        if sign in ("}", "]"):
            self._keys.pop()
            node: Node = self._open.pop()
            node.end_mark = end
        elif sign is None:
            node = _scalar(token, start, end)
        else:
            return None
        self._add(node)
        return node

    def _add(self, node: Node) -> None:
        if not self._open:
            return
        around = self._open[-1]
        if isinstance(around, SequenceNode):
            around.value.append(node)
        elif self._keys[-1] is None:
            assert isinstance(node, ScalarNode)  # noqa: S101 - a decoder has read a text there
            self._keys[-1] = node
        else:
            around.value.append((self._keys[-1], node))
            self._keys[-1] = None

    def _mark(self, index: int) -> Mark:
        line = bisect_right(self._starts, index) - 1
        return Mark("", index, line, index - self._starts[line], None, 0)


def _scalar(token: re.Match[str], start: Mark, end: Mark) -> ScalarNode:
    if token["text"]:
        return ScalarNode("tag:yaml.org,2002:str", json.loads(token["text"]), start, end, style='"')
    word = token["word"]
    number = "int" if word.lstrip("-").isdigit() else "float"
    return ScalarNode(f"tag:yaml.org,2002:{_TAGS.get(word[0], number)}", word, start, end)
