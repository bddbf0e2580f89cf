"""What can be compared with what, and found in which list.

Values of one kind and unit are alike. Where one side is a literal, the other says what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.language.checking.literals import units_of
from policysched.language.functions.zones import DAYS
from policysched.language.ir.graph import Op, Typed, make
from policysched.language.ir.tree import Comparison, Expr, Literal, LiteralKind, Path
from policysched.language.ir.types import BOOL, Kind, Unit
from policysched.language.messages import foreign_syntax, hints
from policysched.language.messages.suggestions import shown

if TYPE_CHECKING:
    from policysched.language.checking.checker import Checker

MANY_CORES = 500
"""More cores than a node is compared with. Units: cores."""


def check_comparison(checker: Checker, comparison: Comparison) -> Typed | None:
    """Return the graph of a comparison."""
    member = comparison.operator in {"in", "not in"}
    node = _membership(checker, comparison) if member else _compared(checker, comparison)
    return node if node is None or _days_exist(checker, comparison, node) else None


def _compared(checker: Checker, comparison: Comparison) -> Typed | None:
    left, right = checker.alike((comparison.left, comparison.right))
    if left is None or right is None:
        return None
    ordering = comparison.operator not in {"==", "!="}
    if not _comparable(checker, comparison, left, right, ordering=ordering):
        return None
    _warn_of_cores(checker, (comparison.left, left), (comparison.right, right))
    result = BOOL.over(left.type, right.type)
    return make(Op(comparison.operator), (left, right), result if ordering else result.filled())


def _warn_of_cores(checker: Checker, *sides: tuple[Expr, Typed]) -> None:
    """Report a number of cores that no machine has: thousandths were meant."""
    for (expr, _), (_, other) in (sides, sides[::-1]):
        if not isinstance(expr, Literal) or expr.kind is not LiteralKind.NUMBER or other.type.unit is not Unit.CPU:
            continue
        if not other.nesting and not other.tallies and float(expr.text) >= MANY_CORES:
            checker.report("W0708", expr.span, number=expr.text)


def _comparable(checker: Checker, comparison: Comparison, left: Typed, right: Typed, *, ordering: bool) -> bool:
    kinds, span = {left.type.kind, right.type.kind}, comparison.span
    if kinds == {Kind.BOOL}:
        texts = checker.source(comparison.left), checker.source(comparison.right)
        checker.report("E0305", span, hint=hints.instead_of_comparing(comparison.operator, *texts))
    elif not left.type.like(right.type) or Kind.LIST in kinds:
        hint = hints.difference(left, right, checker.source(comparison))
        checker.report("E0301", span, left=left.type, right=right.type, hint=hint)
    elif ordering and kinds == {Kind.STRING}:
        checker.report("E0304", span)
    else:
        return True
    return False


def _membership(checker: Checker, comparison: Comparison) -> Typed | None:
    if _asks_for_key(checker, comparison):
        return None
    own = None if units_of(comparison.left) is not None else checker.check(comparison.left)
    right = checker.check(comparison.right, own.type.unit if own else None)
    left = own or _literal_member(checker, comparison, right)
    if right is not None and right.type.kind is not Kind.LIST:
        return checker.report("E0309", comparison.right.span, operator=comparison.operator, type=right.type)
    if left is None or right is None:
        return None
    if left.type.kind not in {Kind.STRING, Kind.QUANTITY} or left.type.unit is not right.type.unit:
        hint = hints.member(left, right)
        return checker.report("E0301", comparison.span, "in", left=left.type, right=right.type.item, hint=hint)
    return make(Op(comparison.operator), (left, right), BOOL.over(left.type, right.type).filled())


def _asks_for_key(checker: Checker, comparison: Comparison) -> bool:
    """Report `"a" in node.labels`: what was meant is whether there is one of this key."""
    key, path = comparison.left, comparison.right
    if not isinstance(key, Literal) or key.kind is not LiteralKind.STRING or not isinstance(path, Path):
        return False
    written = "" if path.key is not None else foreign_syntax.presence(path.names, shown(key.text))
    if written:
        instead = f"write `{'not ' if comparison.operator == 'not in' else ''}{written}`"
        checker.report("E0202", path.span, "group", path=path.dotted, instead=instead)
    return bool(written)


def _literal_member(checker: Checker, comparison: Comparison, right: Typed | None) -> Typed | None:
    if units_of(comparison.left) is None:
        return None
    return checker.check(comparison.left, right.type.unit if right else None)


def _days_exist(checker: Checker, comparison: Comparison, node: Typed) -> bool:
    """Whether what `weekday` is compared with are days: "Monday" would never come, and nobody would notice."""
    for day, other, expr in zip(node.args, reversed(node.args), (comparison.right, comparison.left), strict=True):
        texts = other.data if isinstance(other.data, tuple) else (other.data,)
        if day.op is not Op.WEEKDAY or other.op is not Op.CONSTANT:
            continue
        wrong = [str(text) for text in texts if text not in DAYS]
        if wrong:
            checker.report("E0312", expr.span, "weekday", found=shown(wrong[0]))
            return False
    return True
