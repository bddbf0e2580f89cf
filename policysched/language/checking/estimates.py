"""Estimates about a compiled expression before its evaluation: cost in operations, and ranges of values.

Every operation that creates an array counts as one, of a kind given by the shape of its result: scalar, node or pod.
The argument of `node.pods.*` is evaluated for every placed pod, so all of its parts that are not scalar are pod
operations. Reading a column is free. Functions on strings that differ between rows count as several operations, by
their run time. Nothing is counted at run time.

Ranges are valid in every cluster, so a warning based on them is never wrong: inputs have the ranges that Kubernetes
guarantees, otherwise infinite ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from policysched.language.checking.exclusion import ANY, Range, excluded, implied
from policysched.language.ir.graph import AGGREGATES, MAX_TEXT, POD_AGGREGATES, POD_EXTREMES, Input, Op, Typed, steps
from policysched.language.ir.types import GROUP_CONSTANTS, Kind, Shape

MAX_NODE_OPERATIONS: Final = 256
MAX_POD_OPERATIONS: Final = 24


class Cost(NamedTuple):
    """Numbers of operations: executed once, once per node, and once per placed pod."""

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
# Numbering the domains, and assigning its domain to each row.
_DOMAINS: Final = 2
# Strings that differ between rows are joined, parsed and matched one by one. Each constant is the run time of one such
# operation in column operations.
_JOINED: Final = 8
_VERSION: Final = 8
_GLOB_CHARACTERS: Final = 4
_LOOKED_THROUGH: Final = 64
_SHORT: Final = 256
# Where a graph is evaluated: on the requested rows, on all nodes, on the placed pods.
_ROWS, _ALL, _PODS = range(3)
_PLACES: Final[Mapping[str, int]] = {**dict.fromkeys(AGGREGATES, _ALL), **dict.fromkeys(POD_AGGREGATES, _PODS)}


def operations(node: Typed) -> int:
    """Return the number of operations of one part of a compiled expression, without those of its arguments."""
    texts = _TEXTS.get(node.op)
    if texts is not None and any(arg.type.shape is not Shape.SCALAR for arg in node.args):
        return texts(node)
    if node.op in _CHAINS:
        return max(1, len(node.args) - 1)
    return _WEIGHTS.get(node.op, 1) + (_DOMAINS if node.op in AGGREGATES and node.args else 0)


def _glob_operations(node: Typed) -> int:
    """Return the number of operations of `glob`, which grows with the pattern, and for `?` with the text."""
    text, pattern = node.args
    most, long = min(pattern.length.most, text.length.most, MAX_TEXT), min(text.length.most, MAX_TEXT)
    plain = isinstance(pattern.data, str) and "?" not in pattern.data
    return 1 + most // _GLOB_CHARACTERS + (0 if plain or long <= _SHORT else long // _LOOKED_THROUGH)


_TEXTS: Final[Mapping[str, Callable[[Typed], int]]] = {
    Op.CONCAT: lambda node: _JOINED * sum(arg.type.shape is not Shape.SCALAR for arg in node.args),
    Op.VERSION: lambda _: _VERSION,
    Op.GLOB: _glob_operations,
}

# Cost of one operation in node operations: on strings one by one, exact sums of fractions, extremes, placed pods; and
# the cost of searching a long text in string operations. Measured with 5,000 nodes.
_UNITS_OF_TEXTS: Final = 16
_UNITS_OF_SUMS: Final = 16
_UNITS_OF_EXTREMES: Final = 4
_UNITS_OF_PODS: Final = 40
_LONG_TEXT: Final = 12
# Factor for string operations that also read the pod, whose results cannot be cached between decisions.
_FOR_EACH_POD: Final[Mapping[str, int]] = {Op.CONCAT: 8, Op.VERSION: 16, Op.GLOB: 3, Op.CONTAINS: 8}
_FOR_EACH_POD_ELSE: Final = 32
_ONE_BY_ONE: Final = 16
_OF_ONE_POD: Final = ("name", "annotations", "phase")
_QUARTER: Final = MAX_TEXT // 4
_READ_THROUGH: Final = frozenset({*_TEXTS, Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS})
_SUMS: Final = frozenset({Op.SUM_NODES, Op.AVG_NODES})
_EXTREMES: Final = frozenset({Op.MIN_NODES, Op.MAX_NODES})


def cost_of(roots: Iterable[Typed], about_pods: Iterable[Typed] = ()) -> Cost:
    """Return the numbers of operations of compiled expressions; a part that several of them share is counted once.

    Args:
        roots: Graphs evaluated on nodes.
        about_pods: Graphs evaluated on placed pods.
    """
    counts = [0] * len(Shape)
    for node, shape in _counted(roots, about_pods):
        counts[shape] += operations(node)
    return Cost(*counts)


def total_of(roots: Iterable[Typed], about_pods: Iterable[Typed] = ()) -> int:
    """Return the total cost of compiled expressions as one number; a part that several of them share is counted once.

    Units: numeric node operations; slower operations count several times.
    """
    return sum(_units(node, shape) for node, shape in _counted(roots, about_pods))


def _units(node: Typed, shape: Shape) -> int:
    if shape is Shape.PODS:
        return _UNITS_OF_PODS * operations(node) * (_ONE_BY_ONE if _tells_pods_apart(node) else 1)
    if node.op in _SUMS:
        return _UNITS_OF_SUMS * operations(node)
    if node.op in _EXTREMES:
        return _UNITS_OF_EXTREMES * operations(node)
    if shape is Shape.NODES and node.op in _READ_THROUGH:
        long = node.args[0].length.most > _SHORT
        units = _UNITS_OF_TEXTS * (_LONG_TEXT if long and node.op == Op.CONTAINS else operations(node))
        return units * _for_each_pod(node)
    return operations(node)


def _tells_pods_apart(node: Typed) -> bool:
    """Return whether a value of placed pods depends on the pending pod or the time, so that it cannot be reused."""
    read = {(item.root, item.path[0]) for item in node.inputs}
    by_itself = node.op in POD_EXTREMES or any(("peer", name) in read for name in _OF_ONE_POD)
    changing = any(root == "group" and name not in GROUP_CONSTANTS for root, name in read)
    return changing or ("peer", "age") in read or (by_itself and any(root in {"pod", "group"} for root, _ in read))


def _for_each_pod(node: Typed) -> int:
    """Return a factor for a string function's cost: higher if it reads the pending pod or creates long strings."""
    if not any(item.root in {"pod", "group"} for item in node.inputs):
        return 1
    longer = node.length.most // _QUARTER if node.op == Op.CONCAT else 0
    return _FOR_EACH_POD.get(node.op, _FOR_EACH_POD_ELSE) + 2 * longer


def _counted(roots: Iterable[Typed], about_pods: Iterable[Typed]) -> Iterator[tuple[Typed, Shape]]:
    """Yield each part of compiled expressions once, with how often it is evaluated: once, per node, per placed pod."""
    seen: set[tuple[Typed, int]] = set()
    waiting = [*((root, _ROWS) for root in roots), *((root, _PODS) for root in about_pods)]
    while waiting:
        node, asked = waiting.pop()
        # A value computed from other rows is computed once, wherever it is used.
        place = _PLACES.get(node.op, asked)
        if (node, place) in seen:
            continue
        seen.add((node, place))
        parts = (*node.args, *node.inner)
        shape = max(node.type.shape, *(part.type.shape for part in parts)) if parts else node.type.shape
        yield node, Shape.PODS if place == _PODS and shape is not Shape.SCALAR else min(shape, Shape.NODES)
        waiting.extend((part, place) for part in parts)


POSITIVE: Final = (0.0, math.inf)
NO_YES: Final = (0.0, 1.0)
"""The range of a condition that can be true or not: 0 stands for not true, 1 for true."""
NEVER: Final = (0.0, 0.0)
USUAL_SHARE: Final = (2.0**-40, 1.0 - 2.0**-40)
"""The range assumed for a share of a resource: less than 1 wide, so that a score that is a share gets a warning."""
_SHARES: Final = frozenset({"free", "requested"})
_SIGNED: Final = frozenset({"free", "priority"})
"""The fields that can be negative: free amounts of overcommitted nodes, and priorities."""


def ranges(root: Typed, known: dict[Typed, Range], *, usual: bool = False) -> Range:
    """Return the smallest and largest value that a compiled quantity or condition can have.

    Args:
        root: The graph.
        known: Known ranges, usual or general; those of all parts of the graph are added.
        usual: Whether to ignore rare cases: nodes with more requested than allocatable.
    """
    for node in steps(root, inner=True, known=known):
        known[node] = USUAL_SHARE if usual and _is_share(node, _SHARES) else _range(node, known)
    return known[root]


def is_never_true(root: Typed, known: dict[Typed, Range]) -> bool:
    """Return whether a condition is never true on any node of any cluster; `known` caches ranges of expressions."""
    return root.type.kind is Kind.BOOL and ranges(root, known) == NEVER


def _range(node: Typed, known: Mapping[Typed, Range]) -> Range:
    if node.op in {Op.AND, Op.OR}:
        low, high = _joined(node, known)
    elif node.op in _RANGES:
        low, high = _RANGES[node.op](node, [known[part] for part in (*node.args, *node.inner)])
        # NaN means that nothing is known.
        low, high = ANY if math.isnan(low) or math.isnan(high) else (low, high)
    else:
        low, high = NO_YES if node.type.kind is Kind.BOOL else ANY
    return (0.0 if node.type.kind is Kind.BOOL and node.type.optional else low), high


def _input(node: Typed, _: Sequence[Range]) -> Range:
    if node.type.kind is Kind.BOOL:
        return NO_YES
    signed = not isinstance(node.data, Input) or node.data.root == "metrics" or node.data.path[0] in _SIGNED
    return ANY if signed else POSITIVE


def _product(_: Typed, parts: Sequence[Range]) -> Range:
    ends = [0.0 if 0 in (one, other) else one * other for one in parts[0] for other in parts[1]]
    return min(ends), max(ends)


def _quotient(node: Typed, parts: Sequence[Range]) -> Range:
    if node.args[0] is node.args[1]:
        return 1.0, 1.0
    if _is_share(node, frozenset({"free"})):
        return -math.inf, 1.0
    low, high = parts[1]
    if low <= 0 <= high:
        return POSITIVE if parts[0][0] >= 0 and low >= 0 else ANY
    return _product(node, (parts[0], (1 / high, 1 / low)))


def _is_share(node: Typed, fields: frozenset[str]) -> bool:
    """Return whether a value is an amount of a resource divided by its allocatable amount."""
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
    arms = zip(parts[1:], node.args[1:], strict=True)
    return _either(node, [one for one, arm in arms if arm.op != Op.CONSTANT or arm.data is not None])


def _magnitude(_: Typed, parts: Sequence[Range]) -> Range:
    low, high = parts[0]
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _order(node: Typed, parts: Sequence[Range]) -> Range:
    (low, high), (least, most) = parts if node.op in {Op.LT, Op.LE} else parts[::-1]
    if node.op in {Op.LT, Op.GT}:
        return float(high < least), float(low < most)
    return float(high <= least), float(low <= most)


def _equal(node: Typed, parts: Sequence[Range]) -> Range:
    if node.args[0].type.kind is not Kind.QUANTITY:
        return NO_YES
    (low, high), (least, most) = parts
    return NEVER if high < least or most < low else NO_YES


def _count(_: Typed, parts: Sequence[Range]) -> Range:
    return NEVER if parts[-1] == NEVER else POSITIVE


def _total(_: Typed, parts: Sequence[Range]) -> Range:
    low, high = parts[-1]
    return (0.0 if low >= 0 else -math.inf), (0.0 if high <= 0 else math.inf)


def _joined(node: Typed, known: Mapping[Typed, Range]) -> Range:
    """Return the range of an `and` or `or` condition, considering operands that exclude each other."""
    parts = [known[arg] for arg in node.args]
    if node.op == Op.OR:
        if not node.type.optional and excluded(implied(node, truth=False)):
            return 1.0, 1.0
        return max(low for low, _ in parts), max(high for _, high in parts)
    if excluded(implied(node)):
        return NEVER
    return min(low for low, _ in parts), min(high for _, high in parts)


_RANGES: Final[Mapping[str, Callable[[Typed, Sequence[Range]], Range]]] = {
    Op.CONSTANT: lambda node, _: (float(node.data),) * 2 if isinstance(node.data, bool | float) else ANY,
    **dict.fromkeys((Op.INPUT, Op.KEYED), _input),
    Op.NOT: lambda node, parts: (
        (0.0, 1.0 - parts[0][0]) if node.type.optional else (1.0 - parts[0][1], 1.0 - parts[0][0])
    ),
    **dict.fromkeys((Op.LT, Op.LE, Op.GT, Op.GE), _order),
    Op.EQ: _equal,
    Op.DEFAULT: _either,
    Op.ADD: lambda _, parts: (parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]),
    Op.SUBTRACT: lambda _, parts: (parts[0][0] - parts[1][1], parts[0][1] - parts[1][0]),
    Op.MULTIPLY: _product,
    Op.DIVIDE: _quotient,
    Op.NEGATE: lambda _, parts: (-parts[0][1], -parts[0][0]),
    Op.IF: _chosen,
    Op.ONLY: lambda _, parts: parts[1],
    Op.ABS: _magnitude,
    Op.ROUND: lambda _, parts: (parts[0][0] - 0.5, parts[0][1] + 0.5),
    Op.CLAMP: _clamped,
    Op.SCALE: lambda _node, _parts: (0.0, 100.0),
    Op.NORMALIZE: lambda _, parts: (0.0 if parts[0][0] >= 0 else -math.inf, 100.0),
    Op.LEAST: lambda _, parts: (min(low for low, _ in parts), min(high for _, high in parts)),
    Op.GREATEST: lambda _, parts: (max(low for low, _ in parts), max(high for _, high in parts)),
    Op.HOUR: lambda _node, _parts: (0.0, 23.0),
    **dict.fromkeys((Op.COUNT_PODS, Op.COUNT_NODES, Op.COUNT_ITEMS), _count),
    **dict.fromkeys((Op.SUM_PODS, Op.SUM_NODES), _total),
    **dict.fromkeys(
        (Op.AVG_NODES, Op.MIN_NODES, Op.MAX_NODES, Op.MIN_ITEMS, Op.MAX_ITEMS, *POD_EXTREMES),
        lambda _, parts: parts[-1],
    ),
}
