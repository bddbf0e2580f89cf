"""JSON as YAML nodes, so that one way of finding places serves both.

It knows JSON and nothing of objects, and it takes only texts that a JSON decoder has taken before. YAML's own reader
is not asked, because some JSON is no YAML to it: indentation by tabs, escapes in pairs.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Final

from yaml import Mark
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from policysched.app.files.yaml_nodes import LINE_END

_TOKEN: Final = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<sign>[{}\[\]:,])|(?P<word>[^\s{}\[\],:"]+)', re.DOTALL)
_TAGS: Final = {"t": "bool", "f": "bool", "n": "null"}


def compose_json(text: str, begin: int, end: int) -> Node:
    """Make the nodes of the JSON value between two offsets of a text, placed in the whole of it."""
    return _Composer(text).compose(begin, end)


def repeated_key(root: Node) -> ScalarNode | None:
    """Find a key that is in one object twice."""
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
        """Take one token; give the node that it ends."""
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
