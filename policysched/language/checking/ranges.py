"""Static value ranges of typed graphs: bounds of quantities, and conditions that never change.

It reads no frame: inputs have the bounds that Kubernetes gives them. What it says holds for every cluster, so that a
warning which stands on it is never wrong; where nothing can be told the bounds are infinite.

Cost: each node of a graph once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from policysched.language.ir.graph import Input, Op, Typed
from policysched.language.ir.types import Kind

Range: TypeAlias = tuple[float, float]
"""The least and the greatest value."""
ANY: Final = (-math.inf, math.inf)
POSITIVE: Final = (0.0, math.inf)
NO_YES: Final = (0.0, 1.0)
"""Conditions are 0 where they are not true and 1 where they are; (0, 0) is never true."""
NEVER: Final = (0.0, 0.0)
USUAL_SHARE: Final = (2.0**-40, 1.0 - 2.0**-40)
"""What a share of a resource usually is: less than all of it apart between any two nodes."""
_SHARES: Final = frozenset({"free", "requested"})
_SIGNED: Final = frozenset({"free", "priority", "age"})
"""Fields that may be negative: overcommitted nodes, priorities, and clocks that are behind."""


def ranges(root: Typed, *, usual: bool = False) -> Range:
    """Return the least and the greatest value of a quantity or a condition.

    Args:
        root: The graph.
        usual: Whether to leave out what is rare: nodes with more requested than they have.
    """
    known: dict[Typed, Range] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        parts = [part for part in (*node.args, *node.inner) if part not in known]
        waiting += parts
        if not parts:
            known[waiting.pop()] = USUAL_SHARE if usual and _is_share(node, _SHARES) else _range(node, known)
    return known[root]


def is_never_true(root: Typed) -> bool:
    """Whether a condition is true on no node of any cluster."""
    return root.type.kind is Kind.BOOL and ranges(root) == NEVER


def _range(node: Typed, known: Mapping[Typed, Range]) -> Range:
    if node.op in {Op.AND, Op.OR}:
        low, high = _joined(node, known)
    elif node.op in _RANGES:
        low, high = _ordered(*_RANGES[node.op](node, [known[part] for part in (*node.args, *node.inner)]))
    else:
        low, high = NO_YES if node.type.kind is Kind.BOOL else ANY
    return (0.0 if node.type.kind is Kind.BOOL and node.type.optional else low), high


def _ordered(low: float, high: float) -> Range:
    """Return bounds; what came to no number tells nothing."""
    return ANY if math.isnan(low) or math.isnan(high) else (low, high)


def _constant(node: Typed, _: Sequence[Range]) -> Range:
    return (float(node.data), float(node.data)) if isinstance(node.data, bool | float) else ANY


def _input(node: Typed, _: Sequence[Range]) -> Range:
    if node.type.kind is Kind.BOOL:
        return NO_YES
    signed = not isinstance(node.data, Input) or node.data.root == "metrics" or node.data.path[0] in _SIGNED
    return ANY if signed else POSITIVE


def _sum(_: Typed, parts: Sequence[Range]) -> Range:
    return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]


def _difference(_: Typed, parts: Sequence[Range]) -> Range:
    return parts[0][0] - parts[1][1], parts[0][1] - parts[1][0]


def _product(_: Typed, parts: Sequence[Range]) -> Range:
    ends = [0.0 if 0 in (one, other) else one * other for one in parts[0] for other in parts[1]]
    return min(ends), max(ends)


def _quotient(node: Typed, parts: Sequence[Range]) -> Range:
    if _is_share(node, frozenset({"free"})):
        return -math.inf, 1.0
    low, high = parts[1]
    if low <= 0 <= high:
        return POSITIVE if parts[0][0] >= 0 and low >= 0 else ANY
    return _product(node, (parts[0], (1 / high, 1 / low)))


def _is_share(node: Typed, fields: frozenset[str]) -> bool:
    """Whether it is one of some amounts of a resource, divided by what there is of that resource."""
    if node.op != Op.DIVIDE:
        return False
    first, second = (arg.data for arg in node.args)
    if not isinstance(first, Input) or not isinstance(second, Input):
        return False
    same = (first.path[1:], first.key) == (second.path[1:], second.key)
    return same and first.path[0] in fields and second.path[0] == "allocatable"


def _clamped(_: Typed, parts: Sequence[Range]) -> Range:
    (low, high), (least, _least), (_most, most) = parts
    return max(min(low, most), least), min(max(high, least), most)


def _either(_: Typed, parts: Sequence[Range]) -> Range:
    return min(low for low, _ in parts), max(high for _, high in parts)


def _chosen(node: Typed, parts: Sequence[Range]) -> Range:
    if parts[0] == NEVER:
        return parts[2]
    return _either(node, [one for one, arm in zip(parts[1:], node.args[1:], strict=True) if not _is_nothing(arm)])


def _is_nothing(node: Typed) -> bool:
    return node.op == Op.CONSTANT and node.data is None


def _magnitude(_: Typed, parts: Sequence[Range]) -> Range:
    low, high = parts[0]
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _normalized(_: Typed, parts: Sequence[Range]) -> Range:
    return (0.0 if parts[0][0] >= 0 else -math.inf), 100.0


def _less(_: Typed, parts: Sequence[Range]) -> Range:
    (low, high), (least, most) = parts
    return float(high < least), float(low < most)


def _less_or_equal(_: Typed, parts: Sequence[Range]) -> Range:
    (low, high), (least, most) = parts
    return float(high <= least), float(low <= most)


def _turned(compare: Callable[[Typed, Sequence[Range]], Range]) -> Callable[[Typed, Sequence[Range]], Range]:
    return lambda node, parts: compare(node, parts[::-1])


def _equal(node: Typed, parts: Sequence[Range]) -> Range:
    if node.args[0].type.kind is not Kind.QUANTITY:
        return NO_YES
    (low, high), (least, most) = parts
    return NEVER if high < least or most < low else NO_YES


def _counted(node: Typed, parts: Sequence[Range]) -> Range:
    condition = parts[-1]
    return NEVER if node.op in {Op.COUNT_PODS, Op.COUNT_NODES} and condition == NEVER else POSITIVE


def _total(_: Typed, parts: Sequence[Range]) -> Range:
    low, high = parts[-1]
    return (0.0 if low >= 0 else -math.inf), (0.0 if high <= 0 else math.inf)


def _joined(node: Typed, known: Mapping[Typed, Range]) -> Range:
    """Return whether `and` or `or` can be true; equalities of one text with different texts exclude each other."""
    parts = [known[arg] for arg in node.args]
    if node.op == Op.OR:
        return max(low for low, _ in parts), max(high for _, high in parts)
    allowed: dict[Typed, frozenset[str]] = {}
    for arg in node.args:
        for subject, texts in _allowed(arg):
            allowed[subject] = allowed.get(subject, texts) & texts
    if not all(allowed.values()):
        return NEVER
    return min(low for low, _ in parts), min(high for _, high in parts)


def _allowed(node: Typed) -> list[tuple[Typed, frozenset[str]]]:
    """Return which texts something must be one of for a condition to be true, where it says so."""
    if node.op not in {Op.EQ, Op.IN}:
        return []
    for subject, other in (node.args, node.args[::-1]):
        texts = other.data if isinstance(other.data, tuple) else (other.data,)
        if other.op == Op.CONSTANT and subject.op != Op.CONSTANT and all(isinstance(one, str) for one in texts):
            return [(subject, frozenset(str(one) for one in texts))]
    return []


_RANGES: Final[Mapping[str, Callable[[Typed, Sequence[Range]], Range]]] = {
    Op.CONSTANT: _constant,
    Op.INPUT: _input,
    Op.KEYED: _input,
    Op.NOT: lambda node, parts: (
        (0.0, 1.0 - parts[0][0]) if node.type.optional else (1.0 - parts[0][1], 1.0 - parts[0][0])
    ),
    Op.LT: _less,
    Op.LE: _less_or_equal,
    Op.GT: _turned(_less),
    Op.GE: _turned(_less_or_equal),
    Op.EQ: _equal,
    Op.DEFAULT: _either,
    Op.ADD: _sum,
    Op.SUBTRACT: _difference,
    Op.MULTIPLY: _product,
    Op.DIVIDE: _quotient,
    Op.NEGATE: lambda _, parts: (-parts[0][1], -parts[0][0]),
    Op.IF: _chosen,
    Op.ONLY: lambda _, parts: parts[1],
    Op.ABS: _magnitude,
    Op.ROUND: lambda _, parts: (parts[0][0] - 0.5, parts[0][1] + 0.5),
    Op.CLAMP: _clamped,
    Op.SCALE: lambda _node, _parts: (0.0, 100.0),
    Op.NORMALIZE: _normalized,
    Op.LEAST: lambda _, parts: (min(low for low, _ in parts), min(high for _, high in parts)),
    Op.GREATEST: lambda _, parts: (max(low for low, _ in parts), max(high for _, high in parts)),
    Op.HOUR: lambda _node, _parts: (0.0, 23.0),
    Op.COUNT_PODS: _counted,
    Op.COUNT_NODES: _counted,
    Op.SUM_PODS: _total,
    Op.SUM_NODES: _total,
    Op.AVG_NODES: lambda _, parts: parts[-1],
    Op.MIN_NODES: lambda _, parts: parts[-1],
    Op.MAX_NODES: lambda _, parts: parts[-1],
}
