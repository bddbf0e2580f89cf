"""Compiles texts into programs: expressions, cases of a score, `let` definitions of a policy.

A text is parsed, type-checked, checked for the wanted type, and checked for warnings. Cases become nested `if`
operations, last case innermost, because `if` has the wanted meaning: the first true guard decides, and an unknown guard
before it makes the value missing. The `missing` arm stays outside of the program, because it applies after
normalization. This module gets a policy as lists of names and texts, not as an object.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from policysched.language.checking.checker import ExpressionChecker
from policysched.language.checking.doubts import doubt, doubt_of_own, warn_of_percentage
from policysched.language.checking.estimates import (
    MAX_NODE_OPERATIONS,
    MAX_POD_OPERATIONS,
    Cost,
    cost_of,
    is_never_true,
    ranges,
)
from policysched.language.checking.exclusion import taken_above
from policysched.language.checking.spread import HIGHEST, is_same, spread
from policysched.language.evaluation.scalar import constant_value
from policysched.language.functions import FUNCTIONS
from policysched.language.functions.signatures import Checker, Environment
from policysched.language.ir.graph import Constant, Op, Program, Typed, constant, make
from policysched.language.ir.tree import Case, Expr, Keyword, Span
from policysched.language.ir.types import NUMBER, ROOTS, Gap, Kind, Unit
from policysched.language.messages import suggestions
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.syntax.formatting import format_tree
from policysched.language.syntax.parser import parse
from policysched.language.syntax.terminals import KEYWORDS


class Want(enum.Enum):
    """The type of value that a policy field needs: a condition, a score, or any value."""

    CONDITION = "condition"
    NUMBER = "number"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of a compilation: a program or errors, and warnings in both cases.

    If there is neither a program nor an error, the text uses a `let` with an error of its own.
    """

    program: Program | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that are errors, without the warnings."""
        return tuple(item for item in self.diagnostics if item.severity == "error")


def compile_expression(text: str, environment: Environment, want: Want = Want.ANY) -> Compiled:
    """Return the program of the expression in one field of a policy, or its errors."""
    tree = parse(text)
    if isinstance(tree, Diagnostic):
        return Compiled(None, (suggestions.of_place(tree, text, environment.phase, score=want is Want.NUMBER),))
    expr = cast("Expr", tree)
    checker = ExpressionChecker(text, environment)
    node = checker.check(expr, Unit.NUMBER if want is Want.NUMBER else None)
    program = None
    if node is not None and want is Want.CONDITION and node.type.kind is not Kind.BOOL:
        checker.report("E0302", expr.span, type=node.type, hint=suggestions.to_condition(node, checker.source(expr)))
    elif node is not None and (want is not Want.NUMBER or _accept_score(checker, expr, node)):
        program = Program(node, format_tree(expr), constant_value(node))
        _warn(checker, expr, program, want)
    return _outcome(program, checker.diagnostics)


def _outcome(program: Program | None, found: Iterable[Diagnostic]) -> Compiled:
    """Return a compilation result: the program (None if there are errors), and the diagnostics by position."""
    ordered = tuple(sorted(found, key=lambda item: item.sort_key))
    return Compiled(None if any(item.severity == "error" for item in ordered) else program, ordered)


def _accept_score(checker: Checker, expr: Expr, node: Typed) -> bool:
    """Return whether a compiled expression is a valid score, a number without a unit; report an invalid one."""
    if node.type.kind is Kind.BOOL:
        checker.report("E0505", expr.span, "condition")
        return False
    if not node.type.is_number:
        checker.report("E0501", expr.span, type=node.type, hint=suggestions.score(node))
        return False
    return checker.environment.normalized or _in_range(checker, expr.span, constant_value(node))


def _in_range(checker: Checker, span: Span, value: Constant) -> bool:
    """Return whether a constant score is from 0 to 100, and report it otherwise; other types are accepted."""
    if not isinstance(value, float) or 0 <= value <= 100:
        return True
    checker.report("E0502", span, value=f"{value:g}")
    return False


def _warn(checker: Checker, expr: Expr, program: Program, want: Want) -> None:
    """Report parts of a text that are valid but probably not meant."""
    if want is Want.ANY:
        return
    if want is Want.CONDITION and _warn_constant(checker, expr, program):
        return
    found = doubt(program.root, present=checker.environment.present) if program.type.gap is Gap.INPUT else None
    if found is None and want is Want.CONDITION:
        found = doubt_of_own(program.root, checker.environment.present)
    if found is not None:
        variant = "" if want is Want.CONDITION else "score"
        checker.report("W0701", expr.span, variant, input=found.input, what=found.what)
    if want is Want.NUMBER:
        warn_of_percentage(checker, expr)
        _warn_spread(checker, expr.span, program)


def _warn_constant(checker: Checker, expr: Expr, program: Program) -> bool:
    """Report a condition that has the same value for all nodes and pods; return whether it was reported."""
    if program.inputs or not program.is_local:
        low, high = ranges(program.root, checker.environment.bounds[0])
        if low == high:
            hint = suggestions.constant(checker.environment.phase, "true" if low else "false", expr)
            checker.report("W0703", expr.span, "" if low else "never", value="true", hint=hint)
        return low == high
    value = "unknown" if program.constant is None else str(program.constant).lower()
    if not any(item.code == "W0703" for item in checker.diagnostics):
        hint = suggestions.constant(checker.environment.phase, value, expr)
        checker.report("W0703", expr.span, value=value, hint=hint)
    return True


def _warn_spread(checker: Checker, span: Span, program: Program) -> None:
    """Report a score that is equal, or nearly equal, on all nodes."""
    if any(item.code in {"W0703", "W0704"} for item in checker.diagnostics):
        return
    if is_same(program.root):
        checker.report("W0707", span)
        return
    if checker.environment.normalized:
        return
    least, most, narrow = spread(program, checker.environment.bounds[1])
    if narrow:
        variant = "range" if least < most else "low" if most <= 0 else "high" if least >= HIGHEST else ""
        checker.report("W0707", span, variant, low=f"{round(least, 6):g}", high=f"{round(most, 6):g}")


@dataclass(slots=True)
class _Line:
    index: int
    checker: Checker
    case: Case
    guard: Typed | None = None
    value: Typed | None = None
    text: str = ""

    @property
    def parts(self) -> tuple[tuple[Typed | None, Span, str], ...]:
        return (self.guard, self.case.guard_span, ""), (self.value, self.case.value.span, "score")

    @property
    def complete(self) -> bool:
        return self.value is not None and (self.guard is not None or isinstance(self.case.guard, Keyword))


def compile_cases(lines: Sequence[str], environment: Environment) -> Compiled:
    """Compile the lines of a score's cases; `case` of a diagnostic is the index of its line."""
    if not lines:
        return Compiled(None, (diagnose("E0100", "", Span(0, 0), "empty"),))
    parsed: list[_Line] = []
    found: list[Diagnostic] = []
    for index, text in enumerate(lines):
        tree = parse(text, "case")
        if isinstance(tree, Diagnostic):
            found.append(dataclasses.replace(tree, case=index))
        else:
            parsed.append(_checked(_Line(index, ExpressionChecker(text, environment), cast("Case", tree))))
    return _put_together(lines, parsed, found)


def _put_together(lines: Sequence[str], parsed: list[_Line], found: list[Diagnostic]) -> Compiled:
    arms = [line for line in parsed if line.case.guard is not Keyword.MISSING]
    rests = [line for line in parsed if line.case.guard is Keyword.MISSING]
    _check_order(arms, rests)
    _check_reached(arms)
    program = None
    if len(parsed) == len(lines) and all(line.complete for line in parsed):
        program = _assemble(parsed, arms, rests)
        if not any(item.severity == "error" for line in parsed for item in line.checker.diagnostics):
            _warn_cases(program, arms, rests)
    for line in parsed:
        found.extend(dataclasses.replace(item, case=line.index) for item in line.checker.diagnostics)
    return _outcome(program, found)


def _checked(line: _Line) -> _Line:
    """Type-check guard (condition) and value of a case; store them, compiled, in the line if their types are valid."""
    checker, case = line.checker, line.case
    if not isinstance(case.guard, Keyword):
        line.guard = checker.condition(case.guard)
    value = checker.check(case.value, Unit.NUMBER)
    if value is None:
        return line
    accepted = (
        _accept_rest(checker, case, value)
        if case.guard is Keyword.MISSING
        else _accept_score(checker, case.value, value)
    )
    if accepted:
        line.value = value
        line.text = format_tree(case)
        warn_of_percentage(checker, case.value)
    return line


def _accept_rest(checker: Checker, case: Case, value: Typed) -> bool:
    """Return whether the value of a `missing` case is a constant score; report it if not."""
    number = constant_value(value)
    if value.type.is_number and isinstance(number, float):
        return _in_range(checker, case.value.span, number)
    checker.report("E0501", case.value.span, "missing")
    return False


def _check_order(arms: Sequence[_Line], rests: Sequence[_Line]) -> None:
    elses = [line for line in arms if line.case.guard is Keyword.ELSE]
    for word, lines in (("else", elses), ("missing", rests)):
        for line in lines[1:]:
            line.checker.report("E0503", line.case.guard_span, word=word)
    if len(elses) == 1 and arms[-1].case.guard is not Keyword.ELSE:
        elses[0].checker.report("E0503", elses[0].case.guard_span, "last")


def _check_reached(arms: Sequence[_Line]) -> None:
    seen: set[Typed] = set()
    always = False
    for line in arms:
        reason = ""
        if always:
            reason = "an earlier case is always true"
        elif line.guard is not None and line.guard in seen:
            reason = "an earlier case has the same guard"
        elif line.guard is not None and constant_value(line.guard) is False:
            reason = "its guard is always false"
        if reason:
            line.checker.report("E0504", line.case.guard_span, reason=reason)
        if line.guard is not None:
            seen.add(line.guard)
            always = always or constant_value(line.guard) is True


def _assemble(parsed: Sequence[_Line], arms: Sequence[_Line], rests: Sequence[_Line]) -> Program:
    result = constant(None, NUMBER.filled(Gap.OWN))
    for line in reversed(arms):
        value = cast("Typed", line.value)
        if line.guard is not None:
            value = make(Op.IF, (line.guard, value, result), value.type.over(result.type, line.guard.type))
        result = value
    rest = constant_value(rests[0].value) if rests and rests[0].value else None
    text = "\n".join(line.text for line in parsed)
    return Program(result, text, constant_value(result), rest if isinstance(rest, float) else None)


def _warn_cases(program: Program, arms: Sequence[_Line], rests: Sequence[_Line]) -> None:
    if rests and not program.type.optional:
        rests[0].checker.report("W0702", rests[0].case.guard_span)
    if arms and arms[-1].guard is not None and constant_value(arms[-1].guard) is True:
        arms[-1].checker.report("W0703", arms[-1].case.guard_span, value="true", hint="write `else`")
    for line in arms:
        if not rests:
            _warn_of_doubts(line)
        if line.guard is not None and line.guard.inputs:
            bounds, _ = line.checker.environment.bounds
            if is_never_true(line.guard, bounds):
                line.checker.report("W0703", line.case.guard_span, "never", hint="this case is never used")
    _warn_of_taken(arms)
    if arms:
        _warn_spread(arms[0].checker, arms[0].case.value.span, program)


def _warn_of_doubts(line: _Line) -> None:
    for node, span, variant in line.parts:
        guard = None if node is line.guard else line.guard
        present = line.checker.environment.present
        if node is not None and node.type.gap is Gap.INPUT and (found := doubt(node, guard, present)):
            line.checker.report("W0701", span, variant, input=found.input, what=found.what)


def _warn_of_taken(arms: Sequence[_Line]) -> None:
    """Report cases that are never reached because of earlier cases."""
    told = {line.index for line in arms if any(item.code == "W0703" for item in line.checker.diagnostics)}
    for index, above in taken_above([line.guard for line in arms]):
        guard = None if above is None else arms[above].case.guard
        text = arms[above or 0].checker.source(guard) if guard and not isinstance(guard, Keyword) else ""
        hint = f"`{text}` above includes it" if text else "the cases above include it"
        if arms[index].index not in told:
            arms[index].checker.report("W0703", arms[index].case.guard_span, "taken", hint=hint)


NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class CompiledLet:
    """One compiled `let`: its name, the errors of the name, and its value."""

    name: str
    name_diagnostics: tuple[Diagnostic, ...]
    value: Compiled


def reserved_names() -> frozenset[str]:
    """Return the names that neither a `let` nor a metric may have."""
    return KEYWORDS | ROOTS | {name for name in FUNCTIONS if NAME.fullmatch(name)}


def check_name(name: str) -> Diagnostic | None:
    """Return the error in the name of a `let` or a metric; None if the name is valid."""
    span = Span(0, len(name))
    if NAME.fullmatch(name) is None:
        return diagnose("E0208", name, span, "form", name=name)
    if name in reserved_names():
        return diagnose("E0208", name, span, name=name)
    return None


def each_let(lets: Sequence[tuple[str, str]], environment: Environment) -> Iterator[tuple[CompiledLet, Environment]]:
    """Compile `let` definitions in order; yield each with the environment for the texts behind it.

    A name with an error is defined in that environment, so its uses report no second error. Root names such as `node`
    keep their meaning.
    """
    known: dict[str, Typed | None] = dict(environment.lets)
    for index, (name, text) in enumerate(lets):
        later = frozenset(other for other, _ in lets[index:]) - set(known) - ROOTS
        around = dataclasses.replace(environment, phase="let", lets=dict(known), later=later)
        value = compile_expression(text, around, Want.ANY)
        problem = check_name(name)
        if problem is None and name in known:
            problem = diagnose("E0207", name, Span(0, len(name)), "twice", name=name)
        elif name not in ROOTS:
            known[name] = value.program.root if value.program and problem is None else None
        compiled = CompiledLet(name, (problem,) if problem else (), value)
        yield compiled, dataclasses.replace(environment, lets=dict(known))


def policy_cost(programs: Iterable[Program], about_pods: Iterable[Program] = ()) -> Cost:
    """Return the total cost of programs on nodes and on placed pods; equal parts are counted once."""
    return cost_of((program.root for program in programs), (program.root for program in about_pods))


def check_cost(cost: Cost) -> Diagnostic | None:
    """Return the error of a policy whose cost exceeds the limits; else None."""
    limits = (("node", cost.nodes, MAX_NODE_OPERATIONS), ("pod", cost.pods, MAX_POD_OPERATIONS))
    for kind, number, limit in limits:
        if number > limit:
            return diagnose("E0601", "", Span(0, 0), number=number, kind=kind, limit=limit)
    return None
