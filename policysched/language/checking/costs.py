"""Cost model: operations once per node and once per placed pod, counted when a policy is compiled.

Every operation counts one for each array it makes: as a scalar, a node or a pod operation by the shape of its result.
What stands in `node.pods.*` is evaluated for every placed pod, so there whatever is no scalar is a pod operation.
Reading a column is free. Functions of strings that differ between rows count as many as they take the time of. There is
no second count at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from policysched.language.ir.graph import AGGREGATES, MAX_TEXT, POD_AGGREGATES, Op, Typed
from policysched.language.ir.types import Shape

MAX_NODE_OPERATIONS: Final = 256
MAX_POD_OPERATIONS: Final = 24


class Cost(NamedTuple):
    """Operations that run once, once a node, and once a placed pod."""

    scalar: int = 0
    nodes: int = 0
    pods: int = 0


_WEIGHTS: Final[Mapping[str, int]] = {
    Op.CONSTANT: 0,
    Op.INPUT: 0,
    Op.CLAMP: 2,
    Op.SCALE: 4,
    Op.NORMALIZE: 3,
    Op.AVG_NODES: 2,
}
_CHAINS: Final = frozenset({Op.AND, Op.OR, Op.CONCAT, Op.LEAST, Op.GREATEST})
# Numbering the domains, and giving each row its own.
_DOMAINS: Final = 2
# Strings that differ between rows are put together, read and matched one by one: one of these takes as long as so many
# operations over columns.
_JOINED: Final = 8
_VERSION: Final = 8
_GLOB_CHARACTERS: Final = 4
_LOOKED_THROUGH: Final = 64
_SHORT: Final = 256
# Where a graph is evaluated: on the rows that are asked about, on all nodes, on the placed pods.
_ROWS, _ALL, _PODS = range(3)
_PLACES: Final[Mapping[str, int]] = {**dict.fromkeys(AGGREGATES, _ALL), **dict.fromkeys(POD_AGGREGATES, _PODS)}


def operations(node: Typed) -> int:
    """Return how many operations a node is, its arguments not counted."""
    texts = _TEXTS.get(node.op)
    if texts is not None and any(arg.type.shape is not Shape.SCALAR for arg in node.args):
        return texts(node)
    if node.op in _CHAINS:
        return max(1, len(node.args) - 1)
    return _WEIGHTS.get(node.op, 1) + (_DOMAINS if node.op in AGGREGATES and node.args else 0)


def _glob_operations(node: Typed) -> int:
    """Count by the characters of the pattern that can match at all, and those of a long text that `?` looks through."""
    text, pattern = node.args
    most, long = min(pattern.length.most, text.length.most, MAX_TEXT), min(text.length.most, MAX_TEXT)
    plain = isinstance(pattern.data, str) and "?" not in pattern.data
    return 1 + most // _GLOB_CHARACTERS + (0 if plain or long <= _SHORT else long // _LOOKED_THROUGH)


_TEXTS: Final[Mapping[str, Callable[[Typed], int]]] = {
    Op.CONCAT: lambda node: _JOINED * sum(arg.type.shape is not Shape.SCALAR for arg in node.args),
    Op.VERSION: lambda _: _VERSION,
    Op.GLOB: _glob_operations,
}

# How many operations over the nodes take as long as one that works on strings one by one, sums fractions exactly, or
# weighs placed pods; and how many of the first kind it is to look through an annotation. Measured with 5,000 nodes.
_UNITS_OF_TEXTS: Final = 16
_UNITS_OF_SUMS: Final = 16
_UNITS_OF_PODS: Final = 40
_LONG_TEXT: Final = 12
_READ_THROUGH: Final = frozenset({*_TEXTS, Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS})
_SUMS: Final = frozenset({Op.SUM_NODES, Op.AVG_NODES})


def cost_of(roots: Iterable[Typed]) -> Cost:
    """Return the cost of graphs, what they have in common counted once."""
    counts = [0] * len(Shape)
    for node, shape in _counted(roots):
        counts[shape] += operations(node)
    return Cost(*counts)


def total_of(roots: Iterable[Typed]) -> int:
    """Return what graphs add to a decision, what they have in common counted once.

    Units: operations over the nodes, of numbers; what takes longer than one of these counts more often.
    """
    return sum(_units(node, shape) for node, shape in _counted(roots))


def _units(node: Typed, shape: Shape) -> int:
    if shape is Shape.PODS:
        return _UNITS_OF_PODS * operations(node)
    if node.op in _SUMS:
        return _UNITS_OF_SUMS * operations(node)
    if shape is Shape.NODES and node.op in _READ_THROUGH:
        long = node.args[0].length.most > _SHORT
        return _UNITS_OF_TEXTS * (_LONG_TEXT if long and node.op == Op.CONTAINS else operations(node))
    return operations(node)


def _counted(roots: Iterable[Typed]) -> Iterator[tuple[Typed, Shape]]:
    """Yield each part of graphs once, with what its operation runs over."""
    seen: set[tuple[Typed, int]] = set()
    waiting = [(root, _ROWS) for root in roots]
    while waiting:
        node, asked = waiting.pop()
        # What is made of other rows is made once, wherever it is asked for.
        place = _PLACES.get(node.op, asked)
        if (node, place) in seen:
            continue
        seen.add((node, place))
        yield node, _shape(node, place)
        waiting.extend((part, place) for part in (*node.args, *node.inner))


def _shape(node: Typed, place: int) -> Shape:
    """Return over what a node's operation runs."""
    shape = max((part.type.shape for part in (*node.args, *node.inner)), default=node.type.shape)
    shape = max(shape, node.type.shape)
    return Shape.PODS if place == _PODS and shape is not Shape.SCALAR else min(shape, Shape.NODES)
