"""From syntax tree to typed graph: names, types, units, shapes.

All mistakes of a text are collected. A part with a mistake has no graph (None), and what stands around it keeps
quiet, so that one cause gives one error. The functions' rules are in `functions`, the names' in `lookup`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, cast

from policysched.language.checking import lookup
from policysched.language.checking.comparisons import check_comparison
from policysched.language.checking.literals import (
    EXACT,
    choose,
    choose_common,
    literal_units,
    literal_value,
    suffixed,
    units_of,
)
from policysched.language.evaluation.interpreter import constant_value
from policysched.language.functions.table import check_call
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
from policysched.language.ir.types import BOOL, STRING, Gap, Kind, Type, Unit, list_of, quantity
from policysched.language.messages import hints
from policysched.language.messages.diagnostics import Diagnostic, diagnose

if TYPE_CHECKING:
    from policysched.language.checking.environment import Environment

# Status shows fifty diagnostics; a text with more mistakes is not looked at further.
MAX_DIAGNOSTICS: Final = 50
LONGEST_QUOTE: Final = 60
"""How long a part of the text may be that a help repeats. Units: characters."""


class Checker:
    """The check of one text.

    Attributes:
        peers: Whether the part being checked is evaluated for placed pods.
        reducing: Whether it is evaluated on other rows than those that are asked about.
    """

    def __init__(self, text: str, environment: Environment) -> None:
        self.text = text
        self.environment = environment
        self.diagnostics: list[Diagnostic] = []
        self._parts: list[Span] = []
        self.peers = False
        self.reducing = False

    def report(self, code: str, span: Span, variant: str = "", **values: object) -> Typed | None:
        """Note a mistake; the result is None, which stands for the graph of a wrong part."""
        if len(self.diagnostics) < MAX_DIAGNOSTICS and not self._explained(span):
            self.diagnostics.append(diagnose(code, self.text, span, variant, **values))
        return None

    def explain(self, span: Span) -> None:
        """Take a part of the text as explained by the next mistake: nothing that starts inside is reported after it."""
        self._parts.append(span)

    def source(self, expr: Expr) -> str:
        """Return an expression as its writer spelled it, nothing where that is too long for a sentence."""
        text = " ".join(self.text[expr.span.start : expr.span.end].split())
        return text if len(text) <= LONGEST_QUOTE else ""

    def check(self, expr: Expr, unit: Unit | None = None) -> Typed | None:
        """Return the graph of an expression; `unit` is what its literals should be if they can."""
        if len(self.diagnostics) >= MAX_DIAGNOSTICS:
            return None
        return _CHECKS[type(expr)](self, expr, unit)

    @contextlib.contextmanager
    def over(self, *, pods: bool = False) -> Iterator[None]:
        """Check parts that are evaluated on all nodes, or on placed pods."""
        before = self.peers, self.reducing
        self.peers, self.reducing = self.peers or pods, True
        yield
        self.peers, self.reducing = before

    def condition(self, expr: Expr, *, inverted: bool = False, meant: str = "") -> Typed | None:
        """Return the graph of an expression that has to be a condition.

        Args:
            expr: The expression.
            inverted: Whether `not` stands before it.
            meant: What its writer meant if it is none, where that is known.
        """
        node = self.check(expr)
        if node is not None and node.type.kind is not Kind.BOOL:
            hint = meant or hints.to_condition(node, self.source(expr), inverted=inverted)
            return self.report("E0302", expr.span, type=node.type, hint=hint)
        return node

    def string(self, expr: Expr) -> Typed | None:
        """Return the graph of an expression that has to be a string."""
        node = self.check(expr)
        if node is not None and node.type.kind is not Kind.STRING:
            return self.report("E0307", expr.span, type=node.type)
        return node

    def quantity(self, expr: Expr, node: Typed | None) -> Typed | None:
        """Return a graph if it is a quantity."""
        if node is not None and node.type.kind is not Kind.QUANTITY:
            return self.report("E0303", expr.span, type=node.type, hint=hints.to_number(node))
        return node

    def alike(self, operands: Sequence[Expr], unit: Unit | None = None) -> list[Typed | None]:
        """Return the graphs of operands that should have one unit: the literals take that of the others."""
        common = choose_common(operands, unit)
        if common is not None:
            return [self.check(operand, common) for operand in operands]
        own = [self.check(operand, unit) if units_of(operand) is None else None for operand in operands]
        found = next((node.type.unit for node in own if node and node.type.kind is Kind.QUANTITY), unit)
        return [
            self.check(operand, found) if units_of(operand) is not None else node
            for operand, node in zip(operands, own, strict=True)
        ]

    def _explained(self, span: Span) -> bool:
        return any(part.start < span.start < part.end for part in self._parts)

    def _literal(self, literal: Literal, unit: Unit | None) -> Typed | None:
        units = literal_units(literal)
        if units is None:
            if literal.kind is LiteralKind.STRING:
                return constant(literal.text, STRING)
            return constant(literal.kind is LiteralKind.TRUE, BOOL)
        chosen = choose(units, unit)
        value = literal_value(literal, chosen)
        if value > EXACT:
            return self.report("E0312", literal.span)
        return constant(float(value), quantity(chosen))

    def _path(self, path: Path, _: Unit | None) -> Typed | None:
        return lookup.check_path(self, path)

    def _call(self, call: Call, unit: Unit | None) -> Typed | None:
        return check_call(self, call, unit)

    def _listing(self, listing: Listing, unit: Unit | None) -> Typed | None:
        items = self.alike(listing.items, unit)
        nodes = [node for node in items if node is not None]
        if len(nodes) < len(items):
            return None
        first = nodes[0].type
        for item, node in zip(listing.items, nodes, strict=True):
            if node.type.kind is Kind.BOOL:
                return self.report("E0305", item.span, hint="leave conditions out of lists")
            if not node.type.like(first):
                return self.report("E0306", item.span, left=first, right=node.type, hint=hints.items(first, node.type))
        values = cast("Constant", tuple(node.data for node in nodes))
        return constant(values, list_of(first))

    def _negation(self, negation: Negation, unit: Unit | None) -> Typed | None:
        node = self.quantity(negation.operand, self.check(negation.operand, unit))
        if node is None:
            return None
        if node.op is Op.CONSTANT and isinstance(node.data, float):
            return constant(-node.data, node.type)
        return make(Op.NEGATE, (node,), node.type)

    def _inversion(self, inversion: Inversion, _: Unit | None) -> Typed | None:
        node = self.condition(inversion.operand, inverted=True)
        return node and make(Op.NOT, (node,), node.type)

    def _logic(self, logic: Logic, _: Unit | None) -> Typed | None:
        nodes = [
            self.condition(operand, meant=hints.member_of(logic.operator, before, operand, self.source))
            for before, operand in zip((None, *logic.operands), logic.operands, strict=False)
        ]
        found = [node for node in nodes if node is not None]
        if len(found) < len(nodes):
            return None
        return make(Op(logic.operator), found, BOOL.over(*(node.type for node in found)))

    def _chain(self, chain: Chain, unit: Unit | None) -> Typed | None:
        if chain.steps[0].operator in {"*", "/"}:
            return self._product(chain)
        operands = (chain.first, *(step.operand for step in chain.steps))
        nodes = self.alike(operands, unit)
        result = nodes[0]
        for step, right in zip(chain.steps, nodes[1:], strict=True):
            if result is None or right is None:
                return None
            span = Span(chain.span.start, step.end)
            combine = self._default if step.operator == "??" else self._sum
            result = combine(step.operator, result, right, span)
        return result

    def _default(self, _: str, left: Typed, right: Typed, span: Span) -> Typed | None:
        if not left.type.like(right.type):
            hint = hints.default(left, right)
            return self.report("E0301", span, "default", left=left.type, right=right.type, hint=hint)
        return make(Op.DEFAULT, (left, right), left.type.over(right.type).filled(right.type.gap))

    def _sum(self, operator: str, left: Typed, right: Typed, span: Span) -> Typed | None:
        if not left.type.like(right.type):
            variant = "add" if operator == "+" else "subtract"
            hint = hints.difference(left, right, self.text[span.start : span.end])
            return self.report("E0301", span, variant, left=left.type, right=right.type, hint=hint)
        if left.type.kind is not Kind.QUANTITY:
            return self.report("E0303", span, type=left.type, hint=hints.addition(operator, left))
        return make(Op(operator), (left, right), left.type.over(right.type))

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
            return self.report("E0310", span, "divide", left=left.type, right=right.type)
        if constant_value(right) == 0:
            self.report("W0703", span, "zero")
        unit = left.type.unit if right.type.is_number else Unit.NUMBER
        gap = shape.gap if right.op is Op.CONSTANT and right.data else max(shape.gap, Gap.OWN)
        return make(Op.DIVIDE, (left, right), Type(Kind.QUANTITY, unit, shape.shape, gap))

    def _comparison(self, comparison: Comparison, _: Unit | None) -> Typed | None:
        return check_comparison(self, comparison)


# Each method takes the class it is filed under; a table cannot say so.
_CHECKS: Final = cast(
    "dict[type, Callable[[Checker, Expr, Unit | None], Typed | None]]",
    {
        Literal: Checker._literal,
        Path: Checker._path,
        Call: Checker._call,
        Listing: Checker._listing,
        Negation: Checker._negation,
        Inversion: Checker._inversion,
        Chain: Checker._chain,
        Comparison: Checker._comparison,
        Logic: Checker._logic,
    },
)
