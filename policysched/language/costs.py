"""What an expression costs, counted once when it is compiled.

Every operation counts one for each array it makes, as a scalar or as a node operation by the shape of its result;
reading a column is free. There is no second count at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from policysched.language.typed import Op, Typed
from policysched.language.types import Shape

MAX_NODE_OPERATIONS: Final = 256
MAX_POD_OPERATIONS: Final = 24


class Cost(NamedTuple):
    """Operations that run once, once a node, and once a placed pod."""

    scalar: int = 0
    nodes: int = 0
    pods: int = 0


_WEIGHTS: Final[Mapping[Op, int]] = {
    Op.CONSTANT: 0,
    Op.INPUT: 0,
    Op.CLAMP: 2,
    Op.SCALE: 4,
    Op.NORMALIZE: 3,
}
_CHAINS: Final = frozenset({Op.AND, Op.OR, Op.CONCAT, Op.LEAST, Op.GREATEST})


def operations(node: Typed) -> int:
    """Return how many operations a node is, its arguments not counted."""
    if node.op in _CHAINS:
        return max(1, len(node.args) - 1)
    return _WEIGHTS.get(node.op, 1)


def cost_of(nodes: Iterable[Typed]) -> Cost:
    """Return the cost of distinct nodes."""
    counts = [0] * len(Shape)
    for node in nodes:
        shape = max((arg.type.shape for arg in node.args), default=node.type.shape)
        counts[max(shape, node.type.shape)] += operations(node)
    return Cost(*counts)
