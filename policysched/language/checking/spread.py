"""How far apart a score can put nodes: whether it is the same on all, and what stands in for it where it is missing.

What only a division by zero leaves out is left out on no node where the divisor is what every node has, its own cores,
memory or places for pods, and on all of them where the divisor is the same for all.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from policysched.language.checking.estimates import ranges
from policysched.language.checking.exclusion import Range
from policysched.language.ir.graph import Input, Op, Program, Typed, steps
from policysched.language.ir.types import Gap, Shape

HIGHEST: Final = 100
"""The highest score of a node."""
_EVERYWHERE: Final = frozenset({("allocatable", "cpu"), ("allocatable", "memory"), ("allocatable", "pods")})
_EXTREMES: Final = frozenset({Op.AVG_NODES, Op.MIN_NODES, Op.MAX_NODES})
_GRADUAL: Final = frozenset({
    Op.CONSTANT, Op.INPUT, Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.NEGATE, Op.SCALE, *_EXTREMES,
})  # fmt: skip


class Spread(NamedTuple):
    """The least and the most that a score comes to between 0 and 100, and whether that is hardly apart."""

    least: float
    most: float
    narrow: bool


def is_same(root: Typed) -> bool:
    """Whether a score reads nothing in which nodes differ."""
    return not any(_reads_nodes(node) for node in steps(root))


def _reads_nodes(node: Typed) -> bool:
    """Whether a value differs between nodes for another reason than that an argument does."""
    differs = node.type.shape is not Shape.SCALAR and node.op != Op.NORMALIZE
    return differs and all(arg.type.shape is Shape.SCALAR for arg in node.args)


def spread(program: Program, known: dict[Typed, Range]) -> Spread:
    """Return how far apart a score that is not normalised puts nodes; `known` are usual ranges, see `ranges`."""
    low, high = ranges(program.root, known, usual=True)
    if _may_be_missing(program.root):
        rest = program.missing_arm or 0.0
        low, high = min(low, rest), max(high, rest)
    least, most = (min(max(end, 0.0), float(HIGHEST)) for end in (low, high))
    # One point is enough where it is a yes or a no, and next to nothing where it is all between.
    gradual = {node.op for node in steps(program.root)}
    apart = most - least > 1 or (most - least == 1 and not (gradual <= _GRADUAL and gradual & {Op.DIVIDE, Op.SCALE}))
    return Spread(least, most, not apart)


def _may_be_missing(root: Typed) -> bool:
    """Whether a value may be missing on some nodes alone."""
    if root.type.gap is not Gap.OWN:
        return root.type.optional
    return any(node.type.optional and _leaves_out(node) for node in steps(root))


def _leaves_out(node: Typed) -> bool:
    """Whether a value may be missing on some nodes, for another reason than that an argument is."""
    if node.op == Op.DIVIDE:
        divisor = node.args[1]
        own = isinstance(divisor.data, Input) and divisor.data.root == "node" and divisor.data.path in _EVERYWHERE
        return not own and divisor.op != Op.CONSTANT and divisor.type.shape is not Shape.SCALAR
    if node.op == Op.SCALE:
        return any(bound.type.shape is not Shape.SCALAR for bound in node.args[1:])
    if node.op == Op.ONLY:
        return True
    return node.op not in _EXTREMES and not any(arg.type.optional for arg in node.args)
