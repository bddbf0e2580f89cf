"""Evaluates expressions that differ only in constants and inputs together, as one array.

Policies often contain the same expression with different constants: twenty conditions `node.free.memory >= X` are one
comparison of a memory column with a column of constants. A stack consists of graphs that differ only in leaves:
constants, inputs, values of the pod alone, aggregates and functions of strings. Different leaves are evaluated
separately and stacked; equal parts stay as they are, shared with graphs outside of the stack. The kernels are those of
single graphs, with broadcasting: (G, 1) with (R,) is (G, R).

Shapes: G graphs of a stack, R rows of a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from policysched.language.evaluation.kernels import FEW_ITEMS
from policysched.language.ir.graph import Op, Typed, make, per_graph, steps
from policysched.language.ir.types import Kind, Shape

_BROADCAST: Final = frozenset({
    Op.AND, Op.OR, Op.NOT, Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IN, Op.NOT_IN, Op.DEFAULT, Op.HAS, Op.IF,
    Op.ONLY, Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.NEGATE, Op.ABS, Op.ROUND, Op.CLAMP, Op.SCALE, Op.LEAST,
    Op.GREATEST,
})  # fmt: skip
"""The operations that can be evaluated for several expressions at once."""
_ANY: Final = "any"
"""Placeholder in a shape for a constant or input in which expressions of the shape may differ."""


def alike(roots: Sequence[Typed]) -> list[list[int]]:
    """Return the indices of expressions, grouped by equal shape (equal except for constants and inputs)."""
    places: dict[Typed, list[int]] = {}
    for place, root in enumerate(roots):
        places.setdefault(_shape(root), []).append(place)
    return list(places.values())


def stack(roots: Sequence[Typed]) -> Typed:
    """Return one expression graph for several of one shape; its value has an array row per graph, or is equal for all.

    Shapes: (G, R), (G, 1) or that of a single graph.
    """
    made: dict[tuple[Typed, ...], Typed] = {}

    def laid(nodes: tuple[Typed, ...]) -> Typed:
        first = nodes[0]
        if all(node is first for node in nodes):
            return first
        found = made.get(nodes)
        if found is None:
            if _is_leaf(first):
                constant = all(node.op == Op.CONSTANT for node in nodes)
                own, inner = ((), nodes) if constant else (nodes, ())
                found = make(Op.STACK, own, first.type, None, inner)
            else:
                args = [laid(of_all) for of_all in zip(*(node.args for node in nodes), strict=True)]
                found = make(first.op, args, first.type, first.data)
            made[nodes] = found
        return found

    return laid(tuple(roots))


@per_graph
def _shape(root: Typed) -> Typed:
    """Return the shape of an expression: placeholders replace the constants and inputs in which others may differ."""
    made: dict[Typed, Typed] = {}
    for node in steps(root):
        if _is_leaf(node):
            length = len(node.data) if isinstance(node.data, tuple) else None
            made[node] = node if root.normalizes else make(_ANY, (), node.type, length)
        else:
            args = [arg if _is_distinguished(node, arg) else made[arg] for arg in node.args]
            made[node] = make(node.op, args, node.type, node.data)
    return made[root]


def _is_leaf(node: Typed) -> bool:
    if node.type.shape is Shape.SCALAR or node.op not in _BROADCAST:
        return True
    return any(arg.type.kind is Kind.VERSION for arg in node.args)


def _is_distinguished(node: Typed, arg: Typed) -> bool:
    """Return whether an argument must be equal in all expressions, because only one text or list is supported.

    A text that a column is compared with may differ, and so may a short list in which a column is searched.
    """
    kind = arg.type.kind
    over_nodes = any(one.type.shape is not Shape.SCALAR for one in node.args)
    if kind is Kind.LIST:
        return not (over_nodes and node.op in {Op.IN, Op.NOT_IN} and _is_short(arg))
    if kind is Kind.VERSION:
        return True
    if kind is Kind.STRING and arg.type.shape is Shape.SCALAR:
        return not (over_nodes and node.op in {Op.EQ, Op.NE})
    return False


def _is_short(items: Typed) -> bool:
    texts = items.data if isinstance(items.data, tuple) else ()
    return items.op == Op.CONSTANT and 0 < len(texts) <= FEW_ITEMS and all(isinstance(one, str) for one in texts)
