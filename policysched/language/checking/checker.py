"""`ExpressionChecker`: the type checker, which converts a syntax tree into a typed graph (compiled expression).

All errors of a text are collected. A part with an error has no graph (None), and expressions around it report nothing,
so one cause gives one diagnostic. `names` resolves names; the rules of calls are in `functions`. Values of one kind and
unit have the same type. A literal takes its unit from the other operand: `3` is a number or three cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Final, cast

from policysched.language.checking.doubts import warn_of_choices, warn_of_cores
from policysched.language.checking.impossible import warn_of_images, warn_of_template, warn_of_values
from policysched.language.checking.names import check_call, check_path
from policysched.language.evaluation.scalar import constant_value
from policysched.language.functions import FUNCTIONS
from policysched.language.functions.signatures import LONGEST_QUOTE, MAX_DIAGNOSTICS, Checker, all_of
from policysched.language.functions.times import DAYS
from policysched.language.ir.graph import Constant, Op, Typed, constant, make
from policysched.language.ir.tree import (
    Call,
    Chain,
    Comparison,
    Expr,
    Inversion,
    Listing,
    Literal,
    LiteralKind,
    Logic,
    Negation,
    Path,
    Span,
)
from policysched.language.ir.types import (
    BOOL,
    FACTORS,
    FIELDS,
    SECONDS,
    STRING,
    Gap,
    Kind,
    Type,
    Unit,
    list_of,
    quantity,
)
from policysched.language.messages import foreign_syntax, suggestions
from policysched.language.messages.suggestions import shown, table
from policysched.language.syntax.formatting import format_tree

EXACT: Final = 2**53
_ALL: Final = frozenset(Unit)
_NUMBER_OR_CPU: Final = frozenset({Unit.NUMBER, Unit.CPU})
_NUMBER_OR_BYTES: Final = frozenset({Unit.NUMBER, Unit.BYTES})
_BYTES: Final = frozenset({Unit.BYTES})


def _split(literal: Literal) -> tuple[Decimal, str]:
    digits = literal.text.rstrip("%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return Decimal(digits), literal.text[len(digits) :]


def literal_value(literal: Literal, unit: Unit) -> Decimal:
    """Return the value of a numeric literal in the canonical unit: millicores, bytes, seconds or a plain number."""
    digits, suffix = _split(literal)
    factor = SECONDS[suffix] if literal.kind is LiteralKind.DURATION else FACTORS[suffix]
    return digits * factor * (1000 if unit is Unit.CPU else 1)


def literal_units(literal: Literal) -> frozenset[Unit] | None:
    """Return the units that a literal can have; None for a string, `true` or `false`."""
    match literal.kind:
        case LiteralKind.STRING | LiteralKind.TRUE | LiteralKind.FALSE:
            return None
        case LiteralKind.DURATION:
            return frozenset({Unit.DURATION})
        case LiteralKind.PERCENT:
            return frozenset({Unit.NUMBER})
        case LiteralKind.NUMBER:
            return _NUMBER_OR_CPU if _split(literal)[0] else _ALL
        case _:
            suffix = _split(literal)[1]
            if suffix == "m":
                return _NUMBER_OR_CPU
            return _BYTES if suffix.endswith("i") else _NUMBER_OR_BYTES


def units_of(expr: Expr) -> frozenset[Unit] | None:
    """Return the units that an expression of literals can have; None if it contains a field or a product."""
    match expr:
        case Literal():
            return literal_units(expr)
        case Negation():
            return units_of(expr.operand)
        case Chain() if expr.steps[0].operator not in {"*", "/"}:
            return _common((expr.first, *(step.operand for step in expr.steps)))
        case Call() if expr.arguments:
            function = FUNCTIONS.get(expr.function.dotted)
            return _common(expr.arguments[function.unit]) if function and function.unit else None
        case _:
            return None


def _common(operands: Iterable[Expr]) -> frozenset[Unit] | None:
    common = _ALL
    for operand in operands:
        units = units_of(operand)
        if units is None:
            return None
        common &= units
    return common


def suffixed(expr: Expr) -> bool:
    """Return whether an expression of literals contains a suffix other than `%`."""
    match expr:
        case Literal():
            return expr.kind in {LiteralKind.QUANTITY, LiteralKind.DURATION}
        case Negation():
            return suffixed(expr.operand)
        case Chain():
            return suffixed(expr.first) or any(suffixed(step.operand) for step in expr.steps)
        case Call():
            return any(suffixed(argument) for argument in expr.arguments)
        case _:
            return False


def choose(units: frozenset[Unit], wanted: Unit | None) -> Unit:
    """Return `wanted` if it is one of `units`, else NUMBER if possible, else the first of `units` by name."""
    if wanted in units:
        return wanted
    if Unit.NUMBER in units or not units:
        return Unit.NUMBER
    return min(units, key=lambda unit: unit.value)


def choose_common(operands: Iterable[Expr], wanted: Unit | None) -> Unit | None:
    """Return the common unit of operands that consist of literals; None if an operand does not consist of literals."""
    common = _common(operands)
    return None if common is None else choose(common, wanted)


class ExpressionChecker(Checker):
    """The type checker of one text, with one method for each class of syntax tree."""

    def check(self, expr: Expr, unit: Unit | None = None) -> Typed | None:
        """Return a compiled expression (typed graph), None after an error; a literal gets `unit` if possible."""
        if len(self.diagnostics) >= MAX_DIAGNOSTICS:
            return None
        return _CHECKS[type(expr)](self, expr, unit)

    def source(self, expr: Expr) -> str:
        """Return an expression as source text in canonical form, with the necessary parentheses.

        Empty if it is too long for a message.
        """
        text = format_tree(expr)
        return text if len(text) <= LONGEST_QUOTE else ""

    def alike(self, operands: Sequence[Expr], unit: Unit | None = None) -> list[Typed | None]:
        """Return compiled operands, which must have the same unit; literals get the unit of the other operands."""
        common = choose_common(operands, unit)
        if common is not None:
            return [self.check(operand, common) for operand in operands]
        own = [self.check(operand, unit) if units_of(operand) is None else None for operand in operands]
        found = next((node.type.unit for node in own if node and node.type.kind is Kind.QUANTITY), unit)
        nodes = [
            self.check(operand, found) if units_of(operand) is not None else node
            for operand, node in zip(operands, own, strict=True)
        ]
        warn_of_cores(self, operands, nodes)
        return nodes

    def _literal(self, literal: Literal, unit: Unit | None) -> Typed | None:
        units = literal_units(literal)
        if units is None:
            if literal.kind is LiteralKind.STRING:
                warn_of_template(self, literal)
                return constant(literal.text, STRING)
            return constant(literal.kind is LiteralKind.TRUE, BOOL)
        chosen = choose(units, unit)
        value = literal_value(literal, chosen)
        if value > EXACT:
            return self.report("E0312", literal.span)
        return constant(float(value), quantity(chosen))

    def _listing(self, listing: Listing, unit: Unit | None) -> Typed | None:
        nodes = all_of(self.alike(listing.items, unit))
        if nodes is None:
            return None
        first = nodes[0].type
        for item, node in zip(listing.items, nodes, strict=True):
            if node.type.kind is Kind.BOOL:
                return self.report("E0305", item.span, hint="remove conditions from lists")
            if not node.type.like(first):
                return self.report(
                    "E0306", item.span, left=first, right=node.type, hint=suggestions.items(first, node.type)
                )
        values = cast("Constant", tuple(node.data for node in nodes))
        return constant(values, list_of(first))

    def _negation(self, negation: Negation, unit: Unit | None) -> Typed | None:
        node = self.quantity(negation.operand, self.check(negation.operand, unit))
        if node is None:
            return None
        if node.op == Op.CONSTANT and isinstance(node.data, float):
            return constant(-node.data, node.type)
        return make(Op.NEGATE, (node,), node.type)

    def _inversion(self, inversion: Inversion, _: Unit | None) -> Typed | None:
        node = self.condition(inversion.operand, inverted=True)
        return node and make(Op.NOT, (node,), node.type)

    def _logic(self, logic: Logic, _: Unit | None) -> Typed | None:
        found: list[Typed | None] = []
        told = 0
        for index, (operand, behind) in enumerate(zip(logic.operands, (*logic.operands[1:], None), strict=True)):
            if told and found[-1] is None:  # an error of the previous operand already covers this one
                found.append(None)
                told -= 1
                continue
            default = suggestions.default_of(logic, operand, behind, self.source)
            member, members = suggestions.member_of(logic, index, self.source)
            told = 1 if default else max(0, members - 1)
            found.append(self.condition(operand, meant=default or member))
        nodes = all_of(found)
        return None if nodes is None else make(logic.operator, nodes, BOOL.over(*(node.type for node in nodes)))

    def _chain(self, chain: Chain, unit: Unit | None) -> Typed | None:
        if chain.steps[0].operator in {"*", "/"}:
            return self._product(chain)
        operands = (chain.first, *(step.operand for step in chain.steps))
        nodes = self.alike(operands, unit)
        result = nodes[0]
        for index, (step, right) in enumerate(zip(chain.steps, nodes[1:], strict=True)):
            if result is None or right is None:
                return None
            combine = self._default if step.operator == "??" else self._sum
            result = combine(chain, index, result, right)
        return result

    def _default(self, chain: Chain, index: int, left: Typed, right: Typed) -> Typed | None:
        span = Span(chain.span.start, chain.steps[index].end)
        if not left.type.like(right.type):
            hint = suggestions.default(left, right, chain.first, *(step.operand for step in chain.steps[: index + 1]))
            return self.report("E0301", span, "default", left=left.type, right=right.type, hint=hint)
        if left.op in {Op.INPUT, Op.KEYED} and not left.type.optional and index == 0:
            self.report("W0702", span, "default", value=self.source(chain.first) or "...")
        return make(Op.DEFAULT, (left, right), left.type.over(right.type).filled(right.type.gap))

    def _sum(self, chain: Chain, index: int, left: Typed, right: Typed) -> Typed | None:
        operator, span = chain.steps[index].operator, Span(chain.span.start, chain.steps[index].end)
        if not left.type.like(right.type):
            variant = "add" if operator == "+" else "subtract"
            added = chain.first, *(step.operand for step in chain.steps[: index + 1])
            hint = suggestions.difference(left, right, *added)
            return self.report("E0301", span, variant, left=left.type, right=right.type, hint=hint)
        if left.type.kind is not Kind.QUANTITY:
            return self.report("E0303", span, type=left.type, hint=suggestions.addition(operator, left))
        return make(operator, (left, right), left.type.over(right.type))

    def _product(self, chain: Chain) -> Typed | None:
        first = chain.steps[0].operand
        result: Typed | None = None
        if units_of(chain.first) is None or not suffixed(chain.first):
            result = self.quantity(chain.first, self.check(chain.first, Unit.NUMBER))
            right = self._factor(first, result)
        elif units_of(first) is None or suffixed(first):
            common = choose_common((chain.first, first), None)
            right = self._factor(first, None, common)
            result = self.check(chain.first, right.type.unit if right else None)
        else:
            right = self._factor(first, None)
            result = self.check(chain.first, Unit.NUMBER)
        for index, step in enumerate(chain.steps):
            if index:
                right = self._factor(step.operand, result)
            if result is None or right is None:
                return None
            result = self._times(step.operator, result, right, Span(chain.span.start, step.end))
        return result

    def _factor(self, expr: Expr, left: Typed | None, unit: Unit | None = None) -> Typed | None:
        if left is not None and suffixed(expr):
            unit = left.type.unit
        return self.quantity(expr, self.check(expr, unit or Unit.NUMBER))

    def _times(self, operator: str, left: Typed, right: Typed, span: Span) -> Typed | None:
        shape = left.type.over(right.type)
        if operator == "*":
            if not (left.type.is_number or right.type.is_number):
                return self.report("E0310", span, left=left.type, right=right.type)
            unit = right.type.unit if left.type.is_number else left.type.unit
            return make(Op.MULTIPLY, (left, right), Type(Kind.QUANTITY, unit, shape.shape, shape.gap))
        if not right.type.is_number and left.type.unit is not right.type.unit:
            hint = suggestions.undeclared(left, right) or None
            return self.report("E0310", span, "divide", left=left.type, right=right.type, help=hint)
        if constant_value(right) == 0:
            self.report("W0703", span, "zero")
        unit = left.type.unit if right.type.is_number else Unit.NUMBER
        gap = shape.gap if right.op == Op.CONSTANT and right.data else max(shape.gap, Gap.OWN)
        return make(Op.DIVIDE, (left, right), Type(Kind.QUANTITY, unit, shape.shape, gap))


def _comparison(checker: Checker, comparison: Comparison, _: Unit | None) -> Typed | None:
    if (wrong := suggestions.one_of_several(comparison, checker.source)) is not None:
        said, logic = wrong
        value = checker.check(logic.operands[0])
        return value and checker.report("E0302", logic.span, type=value.type, hint=said)
    member = comparison.operator in {"in", "not in"}
    node = _membership(checker, comparison) if member else _compared(checker, comparison)
    if node is None or not _days_exist(checker, comparison, node):
        return None
    warn_of_choices(checker, comparison, node)
    warn_of_values(checker, comparison, node)
    warn_of_images(checker, comparison)
    return node


def _compared(checker: Checker, comparison: Comparison) -> Typed | None:
    checker.meant = _meant(checker, comparison)
    left, right = checker.alike((comparison.left, comparison.right))
    checker.meant = ""
    if left is None or right is None:
        return None
    ordering = comparison.operator not in {"==", "!="}
    if not _comparable(checker, comparison, left, right, ordering=ordering):
        return None
    result = BOOL.over(left.type, right.type)
    return make(comparison.operator, (left, right), result if ordering else result.filled())


def _meant(checker: Checker, comparison: Comparison) -> str:
    """Return the fix to suggest for a comparison with null, or with a field that only pods or only nodes have."""
    for one, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        if not isinstance(one, Path) or one.key is not None:
            continue
        if one.names[0] in table("nothing") and len(one.names) == 1 and comparison.operator in {"==", "!="}:
            return foreign_syntax.nothing(checker.source(other) or "...", differs=comparison.operator == "!=")
        if isinstance(other, Path) and other.names in FIELDS and len(one.names) == 2:
            root, name = one.names
            if one.names not in FIELDS and other.names[1:] == (name,) and {root, other.names[0]} == {"node", "pod"}:
                return foreign_syntax.of_the_other(root, name)
    return ""


def _comparable(checker: Checker, comparison: Comparison, left: Typed, right: Typed, *, ordering: bool) -> bool:
    kinds, span = {left.type.kind, right.type.kind}, comparison.span
    if kinds == {Kind.BOOL}:
        checker.report("E0305", span, hint=suggestions.instead_of_comparing(comparison, checker.source))
    elif not left.type.like(right.type) or Kind.LIST in kinds:
        hint = suggestions.quoted_condition(comparison, left, right, checker.source) or suggestions.difference(
            left, right, comparison
        )
        checker.report("E0301", span, left=left.type, right=right.type, hint=hint)
    elif ordering and kinds == {Kind.STRING}:
        checker.report("E0304", span)
    else:
        return True
    return False


def _membership(checker: Checker, comparison: Comparison) -> Typed | None:
    if _asks_for_key(checker, comparison):
        return None
    literal = units_of(comparison.left) is not None
    left = None if literal else checker.check(comparison.left)
    right = checker.check(comparison.right, left.type.unit if left else None)
    if literal:
        left = checker.check(comparison.left, right.type.unit if right else None)
    if right is not None and right.type.kind is not Kind.LIST:
        said = suggestions.no_list(comparison, left, right, checker.source) or None
        return checker.report("E0309", comparison.right.span, operator=comparison.operator, type=right.type, help=said)
    if left is None or right is None:
        return None
    if left.type.kind not in {Kind.STRING, Kind.QUANTITY} or left.type.unit is not right.type.unit:
        hint = suggestions.member(left, right, comparison.right)
        return checker.report("E0301", comparison.span, "in", left=left.type, right=right.type.item, hint=hint)
    warn_of_cores(checker, (comparison.left, comparison.right), (left, right))
    return make(comparison.operator, (left, right), BOOL.over(left.type, right.type).filled())


def _asks_for_key(checker: Checker, comparison: Comparison) -> bool:
    """Report `"a" in node.labels`, which probably means a test for the label key."""
    key, path = comparison.left, comparison.right
    if not isinstance(key, Literal) or key.kind is not LiteralKind.STRING or not isinstance(path, Path):
        return False
    written = "" if path.key is not None else foreign_syntax.presence(path.names, shown(key.text))
    if written:
        instead = f"write `{'not ' if comparison.operator == 'not in' else ''}{written}`"
        checker.report("E0202", path.span, "group", path=path.dotted, instead=instead)
    return bool(written)


def _days_exist(checker: Checker, comparison: Comparison, node: Typed) -> bool:
    """Return whether texts compared with `weekday` are names of days; report other texts, such as "Monday"."""
    for day, other, expr in zip(node.args, reversed(node.args), (comparison.right, comparison.left), strict=True):
        texts = other.data if isinstance(other.data, tuple) else (other.data,)
        if day.op != Op.WEEKDAY or other.op != Op.CONSTANT:
            continue
        wrong = [str(text) for text in texts if text not in DAYS]
        if wrong:
            checker.report("E0312", expr.span, "weekday", found=shown(wrong[0]))
            return False
    return True


# Each method takes the class under which it is registered; the type of a dict cannot express that.
_CHECKS: Final = cast(
    "dict[type, Callable[[ExpressionChecker, Expr, Unit | None], Typed | None]]",
    {
        Literal: ExpressionChecker._literal,
        Path: lambda checker, path, _: check_path(checker, path),
        Call: check_call,
        Listing: ExpressionChecker._listing,
        Negation: ExpressionChecker._negation,
        Inversion: ExpressionChecker._inversion,
        Chain: ExpressionChecker._chain,
        Comparison: _comparison,
        Logic: ExpressionChecker._logic,
    },
)
