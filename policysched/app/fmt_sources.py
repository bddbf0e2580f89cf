"""What one has to know of a YAML document before a scalar in it may be changed: who else reads it, and where it stands.

It knows nodes and nothing of objects. An alias makes one written text count at several places; paths are counted over
the graph of nodes and not one by one, because a few aliases can make millions of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode


class Surroundings:
    """The nodes of one document."""

    def __init__(self, root: Node) -> None:
        order = _below_first(root)
        self._uses = Counter({id(root): 1})
        for node in reversed(order):
            for child in _children(node):
                self._uses[id(child)] += self._uses[id(node)]
        self._flows = list(_outermost(order))
        self._begins = [begin for begin, _ in self._flows]

    def uses(self, node: Node) -> int:
        """Count the places of the document that a node stands at, once aliases are followed."""
        return self._uses[id(node)]

    def in_flow(self, node: ScalarNode) -> bool:
        """Tell whether a scalar is written inside of `{}` or `[]`."""
        index = node.start_mark.index
        found = bisect_right(self._begins, index) - 1
        return found >= 0 and index < self._flows[found][1]


def _below_first(root: Node) -> list[Node]:
    """Give every node once, each behind all nodes below it."""
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
        # What a merge brings in stands before the mapping's own, which counts.
        yield from {key.value: value for key, value in node.value}.values()


def _outermost(nodes: list[Node]) -> Iterator[tuple[int, int]]:
    flows = (one for one in nodes if isinstance(one, MappingNode | SequenceNode) and one.flow_style)
    end = -1
    for begin, last in sorted((one.start_mark.index, one.end_mark.index) for one in flows):
        if begin >= end:
            end = last
            yield begin, last
