"""The rules of the functions that take quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policysched.language.functions.arguments import quantities
from policysched.language.ir.graph import Op, Typed, make
from policysched.language.ir.tree import Call
from policysched.language.ir.types import NUMBER, Gap, Kind, Shape, Type, Unit

if TYPE_CHECKING:
    from policysched.language.checking.checker import Checker


def same_unit(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check what gives the unit that it takes: `abs`, `least`, `greatest`."""
    nodes = quantities(checker, call, unit)
    if nodes is None:
        return None
    return make(Op(call.function.dotted), nodes, nodes[0].type.over(*(node.type for node in nodes)))


def rounded(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `round(x)`."""
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


def clamp(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check `clamp(x, lo, hi)`."""
    node = same_unit(checker, call, unit)
    bounds = _bounds(node.args) if node else None
    if bounds and bounds[0] > bounds[1]:
        return checker.report("E0312", call.span, "clamp")
    return node


def scale(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `scale(x, lo, hi)`."""
    nodes = quantities(checker, call, None)
    if nodes is None:
        return None
    bounds = _bounds(nodes)
    if bounds and bounds[0] == bounds[1]:
        return checker.report("E0312", call.span, "scale")
    result = NUMBER.over(*(node.type for node in nodes))
    return make(Op.SCALE, nodes, result if bounds else result.filled(max(result.gap, Gap.OWN)))


def normalize(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `normalize(x)`."""
    nodes = quantities(checker, call, None)
    if checker.environment.phase not in {"score", "let"}:
        return checker.report("E0506", call.function.span)
    if checker.reducing:
        return checker.report("E0506", call.function.span, "inner")
    if nodes is None:
        return None
    return make(Op.NORMALIZE, nodes, Type(Kind.QUANTITY, Unit.NUMBER, Shape.NODES, nodes[0].type.gap))
