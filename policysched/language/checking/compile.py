"""From text to program: parse, check, ask for the wanted type, warn.

The entry for one field. What a whole policy has to keep (cost, order of `let`) is in `policies`, the lines of a
score in `cases`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import cast

from policysched.language.checking.checker import Checker
from policysched.language.checking.environment import Environment
from policysched.language.checking.ranges import ranges
from policysched.language.evaluation.interpreter import constant_value
from policysched.language.ir.graph import Constant, Input, Typed
from policysched.language.ir.program import Program
from policysched.language.ir.tree import Call, Chain, Expr, Literal, LiteralKind, Span
from policysched.language.ir.types import Gap, Kind, Shape, Unit
from policysched.language.messages import hints
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.syntax.formatting import format_tree
from policysched.language.syntax.parser import parse

HIGHEST = 100
"""The highest score of a node."""


class Want(enum.Enum):
    """What a field has to be."""

    CONDITION = "condition"
    NUMBER = "number"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program, or errors; warnings come with either.

    Without a program and without an error the text uses a `let` that has an error of its own.
    """

    program: Program | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The errors alone."""
        return tuple(item for item in self.diagnostics if item.severity == "error")


def compile_expression(text: str, environment: Environment, want: Want = Want.ANY) -> Compiled:
    """Compile the text of one field.

    Args:
        text: An expression.
        environment: What it may name, and where it stands.
        want: What it has to be.
    """
    tree = parse(text)
    if isinstance(tree, Diagnostic):
        return Compiled(None, (tree,))
    expr = cast("Expr", tree)
    checker = Checker(text, environment)
    node = checker.check(expr, Unit.NUMBER if want is Want.NUMBER else None)
    program = None
    if node is not None and accept(checker, expr, node, want):
        program = Program(node, format_tree(expr), constant_value(node))
        warn(checker, expr, program, want)
    return finish(checker, program)


def finish(checker: Checker, program: Program | None) -> Compiled:
    """Return the outcome of a check, diagnostics in the order of the text."""
    found = tuple(sorted(checker.diagnostics, key=lambda item: item.sort_key))
    return Compiled(None if any(item.severity == "error" for item in found) else program, found)


def accept(checker: Checker, expr: Expr, node: Typed, want: Want) -> bool:
    """Whether a graph has the wanted type; reports it if not."""
    if want is Want.CONDITION and node.type.kind is not Kind.BOOL:
        checker.report("E0302", expr.span, type=node.type, hint=hints.to_condition(node, checker.source(expr)))
        return False
    return accept_score(checker, expr, node) if want is Want.NUMBER else True


def accept_score(checker: Checker, expr: Expr, node: Typed) -> bool:
    """Whether a graph is a score: a plain number and, as a constant, from 0 to 100."""
    if node.type.kind is Kind.BOOL:
        checker.report("E0505", expr.span, "condition")
        return False
    if not node.type.is_number:
        checker.report("E0501", expr.span, type=node.type, hint=hints.score(node))
        return False
    return checker.environment.normalized or in_range(checker, expr.span, constant_value(node))


def in_range(checker: Checker, span: Span, value: Constant) -> bool:
    """Whether a constant score is from 0 to 100; anything but a number is."""
    if not isinstance(value, float) or 0 <= value <= 100:
        return True
    checker.report("E0502", span, value=f"{value:g}")
    return False


def warn(checker: Checker, expr: Expr, program: Program, want: Want) -> None:
    """Report what is allowed and hardly meant."""
    if want is Want.ANY:
        return
    if want is Want.CONDITION and _warn_constant(checker, expr, program):
        return
    if program.type.gap is Gap.INPUT:
        variant = "" if want is Want.CONDITION else "score"
        checker.report("W0701", expr.span, variant, input=doubtful(program.root))
    if want is Want.NUMBER:
        warn_percent(checker, expr)
        warn_spread(checker, expr.span, program)


def _warn_constant(checker: Checker, expr: Expr, program: Program) -> bool:
    """Report a condition that is the same for every node and pod, once for one cause; whether it is."""
    if program.inputs or not program.is_local:
        low, high = ranges(program.root)
        if low == high:
            hint = hints.constant(checker.environment.phase, "true" if low else "false", expr)
            checker.report("W0703", expr.span, "" if low else "never", value="true", hint=hint)
        return low == high
    value = "unknown" if program.constant is None else str(program.constant).lower()
    if not any(item.code == "W0703" for item in checker.diagnostics):
        hint = hints.constant(checker.environment.phase, value, expr)
        checker.report("W0703", expr.span, value=value, hint=hint)
    return True


def warn_spread(checker: Checker, span: Span, program: Program) -> None:
    """Report a score that gives every node the same, or nearly so."""
    if any(item.code in {"W0703", "W0704"} for item in checker.diagnostics):
        return
    if program.type.shape is Shape.SCALAR:
        checker.report("W0707", span)
        return
    if checker.environment.normalized:
        return
    low, high = ranges(program.root, usual=True)
    if program.type.optional:
        rest = program.missing_arm or 0.0
        low, high = min(low, rest), max(high, rest)
    least, most = (min(max(end, 0.0), float(HIGHEST)) for end in (low, high))
    if most - least >= 1:
        return
    variant = "range" if least < most else "low" if most <= 0 else "high" if least >= HIGHEST else ""
    checker.report("W0707", span, variant, low=f"{least:g}", high=f"{most:g}")


def warn_percent(checker: Checker, expr: Expr) -> None:
    """Report a score whose value is written as a percentage."""
    found = _percentage(expr)
    if found is not None:
        checker.report("W0704", found.span)


def _percentage(expr: Expr) -> Literal | None:
    match expr:
        case Literal() if expr.kind is LiteralKind.PERCENT:
            return expr
        case Chain() if expr.steps[-1].operator == "??":
            return _percentage(expr.steps[-1].operand) or _percentage(expr.first)
        case Call() if expr.function.dotted == "if":
            return _percentage(expr.arguments[1]) or _percentage(expr.arguments[2])
        case Call() if expr.function.dotted == "clamp":
            return _percentage(expr.arguments[2])
        case _:
            return None


def doubtful(node: Typed) -> str:
    """Return the input that a value may be missing for, as the text writes it."""
    found = node
    while causes := [part for part in (*found.inner, *found.args) if part.type.gap is Gap.INPUT]:
        found = causes[0]
    if isinstance(found.data, Input):
        return found.data.text
    return found.inputs[0].text if found.inputs else "a value"
