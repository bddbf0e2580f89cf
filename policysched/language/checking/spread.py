"""Determines how much a score distinguishes nodes, including the score of nodes without a value (`missing`).

A division by zero leaves a score missing on no node if every node has the divisor (its own cpu, memory or pods), and on
all nodes if the divisor is the same for all.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from policysched.language.checking.estimates import ranges
from policysched.language.checking.exclusion import Range
from policysched.language.ir.graph import PLACEMENT, Input, Op, Program, Typed, steps
from policysched.language.ir.types import Gap, Shape

HIGHEST: Final = 100
"""Highest score that a policy can give to a node."""
_EVERYWHERE: Final = frozenset({("allocatable", "cpu"), ("allocatable", "memory"), ("allocatable", "pods")})
_EXTREMES: Final = frozenset({Op.AVG_NODES, Op.MIN_NODES, Op.MAX_NODES})
_GRADUAL: Final = frozenset({
    Op.CONSTANT, Op.INPUT, Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.NEGATE, Op.SCALE, *_EXTREMES,
})  # fmt: skip


class Spread(NamedTuple):
    """The smallest and the largest score, between 0 and 100, and whether scores barely differ."""

    least: float
    most: float
    narrow: bool


def is_same(root: Typed) -> bool:
    """Return whether a score is always the same, because no part of it reads a node or placement."""
    return not any(_reads_nodes(node) or _reads_placement(node) for node in steps(root))


def _reads_placement(node: Typed) -> bool:
    return node.data == PLACEMENT if node.inner else isinstance(node.data, Input) and node.data.root == "placement"


def _reads_nodes(node: Typed) -> bool:
    """Return whether an operation itself reads nodes, not only its arguments."""
    differs = node.type.shape is not Shape.SCALAR and node.op != Op.NORMALIZE
    return differs and all(arg.type.shape is Shape.SCALAR for arg in node.args)


def spread(program: Program, known: dict[Typed, Range]) -> Spread:
    """Return the smallest and largest value of a score that is not normalized; `known` caches ranges of expressions."""
    low, high = ranges(program.root, known, usual=True)
    if _may_be_missing(program.root):
        rest = program.missing_arm or 0.0
        low, high = min(low, rest), max(high, rest)
    least, most = (min(max(end, 0.0), float(HIGHEST)) for end in (low, high))
    # A difference of one point is enough for a condition, but negligible for a gradual score.
    gradual = {node.op for node in steps(program.root)}
    apart = most - least > 1 or (most - least == 1 and not (gradual <= _GRADUAL and gradual & {Op.DIVIDE, Op.SCALE}))
    return Spread(least, most, not apart)


def _may_be_missing(root: Typed) -> bool:
    """Return whether a value can be missing on some nodes but not on all."""
    if root.type.gap is not Gap.OWN:
        return root.type.optional
    return any(node.type.optional and _leaves_out(node) for node in steps(root))


def _leaves_out(node: Typed) -> bool:
    """Return whether an operation can be missing on some nodes although its arguments are present."""
    if node.op == Op.DIVIDE:
        divisor = node.args[1]
        own = isinstance(divisor.data, Input) and divisor.data.root == "node" and divisor.data.path in _EVERYWHERE
        return not own and divisor.op != Op.CONSTANT and divisor.type.shape is not Shape.SCALAR
    if node.op == Op.SCALE:
        return any(bound.type.shape is not Shape.SCALAR for bound in node.args[1:])
    if node.op == Op.ONLY:
        return True
    return node.op not in _EXTREMES and not any(arg.type.optional for arg in node.args)
