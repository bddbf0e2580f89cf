"""Functions of values of any kind and of quantities: `has`, `if`, `only`, `scale`, `clamp`, `least` and the like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from policysched.language.functions.rules import Checker, Function, all_of, one_type, quantities
from policysched.language.ir.graph import Op, Typed, make
from policysched.language.ir.tree import Call, Expr
from policysched.language.ir.types import BOOL, NUMBER, Gap, Kind, Shape, Type, Unit
from policysched.language.messages import hints


def _has(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    node = checker.check(call.arguments[0])
    return node and make(Op.HAS, (node,), BOOL.over(node.type).filled())


def _if(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    condition = checker.condition(call.arguments[0])
    arms = all_of(checker.alike(call.arguments[1:], unit))
    if condition is None or arms is None or not one_type(checker, call, arms):
        return None
    if not _no_list(checker, call.arguments[1], arms[0]):
        return None
    return make(Op.IF, (condition, *arms), arms[0].type.over(arms[1].type, condition.type))


def _only(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    condition = checker.condition(call.arguments[0])
    node = checker.check(call.arguments[1], unit)
    if condition is None or node is None or not _no_list(checker, call.arguments[1], node):
        return None
    return where_true(condition, node)


def _no_list(checker: Checker, expr: Expr, node: Typed) -> bool:
    """Whether a graph is a value of its own and no list."""
    if node.type.kind is Kind.LIST:
        checker.report("E0303", expr.span, type=node.type, hint=hints.to_number(node))
        return False
    return True


def where_true(condition: Typed, node: Typed) -> Typed:
    """Return the graph of a value where a condition is true, missing elsewhere."""
    result = node.type.over(condition.type)
    return make(Op.ONLY, (condition, node), result.filled(max(result.gap, Gap.OWN)))


def _same_unit(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check what gives the unit that it takes: `abs`, `least`, `greatest`."""
    nodes = quantities(checker, call, unit)
    if nodes is None:
        return None
    return make(call.function.dotted, nodes, nodes[0].type.over(*(node.type for node in nodes)))


def _round(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = quantities(checker, call, Unit.NUMBER)
    if nodes is None:
        return None
    if not nodes[0].type.is_number:
        hint = "divide by a unit first, as in `/ 1Gi`"
        return checker.report("E0303", call.arguments[0].span, type=nodes[0].type, hint=hint)
    return make(Op.ROUND, nodes, nodes[0].type)


def _bounds(nodes: Sequence[Typed]) -> tuple[float, float] | None:
    low, high = nodes[1].data, nodes[2].data
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def _clamp(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    node = _same_unit(checker, call, unit)
    bounds = _bounds(node.args) if node else None
    if bounds and bounds[0] > bounds[1]:
        return checker.report("E0312", call.span, "clamp")
    return node


def _scale(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = quantities(checker, call, None)
    if nodes is None:
        return None
    bounds = _bounds(nodes)
    if bounds and bounds[0] == bounds[1]:
        return checker.report("E0312", call.span, "scale")
    result = NUMBER.over(*(node.type for node in nodes))
    return make(Op.SCALE, nodes, result if bounds else result.filled(max(result.gap, Gap.OWN)))


def _normalize(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = quantities(checker, call, None)
    if checker.environment.phase not in {"score", "let"}:
        return checker.report("E0506", call.function.span)
    if checker.reducing:
        return checker.report("E0506", call.function.span, "inner")
    if nodes is None:
        return None
    return make(Op.NORMALIZE, nodes, Type(Kind.QUANTITY, Unit.NUMBER, Shape.NODES, nodes[0].type.gap))


_ALL: Final = slice(0, None)
VALUES: Final[Mapping[str, Function]] = {
    "has": Function(_has, 1, 1, "x", "true where the value is present"),
    "if": Function(
        _if,
        3,
        3,
        "c, a, b",
        "the second or the third argument, missing where the condition is unknown",
        slice(1, 3),
    ),
    "only": Function(_only, 2, 2, "c, x", "a value where a condition is true, else missing", slice(1, 2)),
    "abs": Function(_same_unit, 1, 1, "x", "the magnitude of a quantity", _ALL),
    "round": Function(_round, 1, 1, "x", "the nearest whole number, halves up"),
    "clamp": Function(_clamp, 3, 3, "x, lo, hi", "a quantity held between two bounds", _ALL),
    "scale": Function(_scale, 3, 3, "x, lo, hi", "0 at the first bound, 100 at the second, linear between, clipped"),
    "normalize": Function(_normalize, 1, 1, "x", "100 times a quantity over its maximum of the feasible nodes"),
    "least": Function(_same_unit, 1, None, "a, …", "the smallest argument, missing if any is", _ALL),
    "greatest": Function(_same_unit, 1, None, "a, …", "the largest argument, missing if any is", _ALL),
}
