"""What the rules of several functions ask of their arguments.

Each of these reports what is wrong and answers None then: the caller has no graph to build either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policysched.language.ir.graph import Op, Typed
from policysched.language.ir.tree import Call, Expr
from policysched.language.ir.types import Kind, Shape, Unit
from policysched.language.messages import hints

if TYPE_CHECKING:
    from policysched.language.checking.checker import Checker


def all_of(nodes: Sequence[Typed | None]) -> list[Typed] | None:
    """Return graphs if there are all of them."""
    found = [node for node in nodes if node is not None]
    return found if len(found) == len(nodes) else None


def strings(checker: Checker, call: Call) -> list[Typed] | None:
    """Check arguments that have to be strings."""
    return all_of([checker.string(argument) for argument in call.arguments])


def quantities(checker: Checker, call: Call, unit: Unit | None) -> list[Typed] | None:
    """Check arguments that have to be quantities of one unit."""
    checked = checker.alike(call.arguments, unit)
    nodes = all_of([checker.quantity(a, node) for a, node in zip(call.arguments, checked, strict=True)])
    if nodes is None:
        return None
    return nodes if one_type(checker, call, nodes) else None


def one_type(checker: Checker, call: Call, nodes: Sequence[Typed]) -> bool:
    """Whether graphs are of one type."""
    first = nodes[0]
    for node in nodes[1:]:
        if not node.type.like(first.type):
            hint = hints.difference(first, node)
            name = call.function.dotted
            checker.report("E0301", call.span, "mix", name=name, left=first.type, right=node.type, hint=hint)
            return False
    return True


def no_list(checker: Checker, expr: Expr, node: Typed) -> bool:
    """Whether a graph is a value of its own and no list."""
    if node.type.kind is Kind.LIST:
        checker.report("E0303", expr.span, type=node.type, hint=hints.to_number(node))
        return False
    return True


def constant_text(checker: Checker, call: Call, index: int, node: Typed, *, must: bool = True) -> bool:
    """Whether a string is the same for every node and, as a constant, is not empty."""
    span, name = call.arguments[index].span, call.function.dotted
    if node.type.shape is not Shape.SCALAR:
        checker.report("E0308", span)
    elif must and node.op is not Op.CONSTANT:
        checker.report("E0307", span, "constant", name=name)
    elif node.data == "":
        checker.report("E0312", span, "empty", name=name)
    else:
        return True
    return False
