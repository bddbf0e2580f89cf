"""The rules of the functions that take values of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.language.functions.arguments import all_of, no_list, one_type
from policysched.language.ir.graph import Op, Typed, make
from policysched.language.ir.tree import Call
from policysched.language.ir.types import BOOL, Gap, Unit

if TYPE_CHECKING:
    from policysched.language.checking.checker import Checker


def has(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `has(x)`."""
    node = checker.check(call.arguments[0])
    return node and make(Op.HAS, (node,), BOOL.over(node.type).filled())


def chosen(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check `if(c, a, b)`."""
    condition = checker.condition(call.arguments[0])
    arms = all_of(checker.alike(call.arguments[1:], unit))
    if condition is None or arms is None or not one_type(checker, call, arms):
        return None
    if not no_list(checker, call.arguments[1], arms[0]):
        return None
    return make(Op.IF, (condition, *arms), arms[0].type.over(arms[1].type, condition.type))


def only(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check `only(c, x)`."""
    condition = checker.condition(call.arguments[0])
    node = checker.check(call.arguments[1], unit)
    if condition is None or node is None or not no_list(checker, call.arguments[1], node):
        return None
    return where_true(condition, node)


def where_true(condition: Typed, node: Typed) -> Typed:
    """Return the graph of a value where a condition is true, missing elsewhere."""
    result = node.type.over(condition.type)
    return make(Op.ONLY, (condition, node), result.filled(max(result.gap, Gap.OWN)))
