"""The cases of a score: one program out of lines `guard → number`.

Lines become a nest of `if` from the last one up, because `if` has the meaning wanted: the first true guard wins, and
a guard that is unknown before any true one makes the value missing. The `missing` arm stays outside the program,
since it is applied after normalising.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from policysched.language.checking.checker import Checker
from policysched.language.checking.compile import (
    Compiled,
    accept_score,
    doubtful,
    in_range,
    warn_percent,
    warn_spread,
)
from policysched.language.checking.environment import Environment
from policysched.language.checking.ranges import is_never_true
from policysched.language.evaluation.interpreter import constant_value
from policysched.language.ir.graph import Op, Typed, constant, make
from policysched.language.ir.program import Program
from policysched.language.ir.tree import Case, Keyword, Span
from policysched.language.ir.types import NUMBER, Gap, Unit
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.syntax.formatting import format_tree
from policysched.language.syntax.parser import parse
from policysched.pausing import Pausing, finished


@dataclass(slots=True)
class _Line:
    index: int
    checker: Checker
    case: Case
    guard: Typed | None = None
    value: Typed | None = None
    text: str = ""

    @property
    def is_else(self) -> bool:
        return self.case.guard is Keyword.ELSE

    @property
    def is_missing(self) -> bool:
        return self.case.guard is Keyword.MISSING

    @property
    def complete(self) -> bool:
        return self.value is not None and (self.guard is not None or isinstance(self.case.guard, Keyword))


def compile_cases(lines: Sequence[str], environment: Environment) -> Compiled:
    """Compile the lines of a score's cases; a diagnostic's `case` is the index of its line."""
    return finished(compiling_cases(lines, environment))


def compiling_cases(lines: Sequence[str], environment: Environment) -> Pausing[Compiled]:
    """Compile the lines of a score's cases, pausing after each; returns what `compile_cases` does."""
    if not lines:
        return Compiled(None, (diagnose("E0100", "", Span(0, 0), "empty"),))
    parsed: list[_Line] = []
    found: list[Diagnostic] = []
    for index, text in enumerate(lines):
        tree = parse(text, "case")
        if isinstance(tree, Diagnostic):
            found.append(dataclasses.replace(tree, case=index))
        else:
            parsed.append(_checked(_Line(index, Checker(text, environment), cast("Case", tree))))
        yield
    return _put_together(lines, parsed, found)


def _put_together(lines: Sequence[str], parsed: list[_Line], found: list[Diagnostic]) -> Compiled:
    arms = [line for line in parsed if not line.is_missing]
    rests = [line for line in parsed if line.is_missing]
    _check_order(arms, rests)
    _check_reached(arms)
    program = None
    if len(parsed) == len(lines) and all(line.complete for line in parsed):
        program = _assemble(parsed, arms, rests)
        if not any(item.severity == "error" for line in parsed for item in line.checker.diagnostics):
            _warn(program, arms, rests)
    for line in parsed:
        found.extend(dataclasses.replace(item, case=line.index) for item in line.checker.diagnostics)
    ordered = tuple(sorted(found, key=lambda item: item.sort_key))
    return Compiled(None if any(item.severity == "error" for item in ordered) else program, ordered)


def _checked(line: _Line) -> _Line:
    """Give a line with the graphs of its parts, where these are what they have to be."""
    checker, case = line.checker, line.case
    if not isinstance(case.guard, Keyword):
        line.guard = checker.condition(case.guard)
    value = checker.check(case.value, Unit.NUMBER)
    if value is None:
        return line
    accepted = _accept_rest(checker, case, value) if line.is_missing else accept_score(checker, case.value, value)
    if accepted:
        line.value = value
        line.text = format_tree(case)
        warn_percent(checker, case.value)
    return line


def _accept_rest(checker: Checker, case: Case, value: Typed) -> bool:
    """Whether the value of a `missing` arm is a constant score."""
    number = constant_value(value)
    if value.type.is_number and isinstance(number, float):
        return in_range(checker, case.value.span, number)
    checker.report("E0501", case.value.span, "missing")
    return False


def _check_order(arms: Sequence[_Line], rests: Sequence[_Line]) -> None:
    elses = [line for line in arms if line.is_else]
    for word, lines in (("else", elses), ("missing", rests)):
        for line in lines[1:]:
            line.checker.report("E0503", line.case.guard_span, word=word)
    if len(elses) == 1 and not arms[-1].is_else:
        elses[0].checker.report("E0503", elses[0].case.guard_span, "last")


def _check_reached(arms: Sequence[_Line]) -> None:
    seen: set[Typed] = set()
    always = False
    for line in arms:
        reason = ""
        if always:
            reason = "a case above it is always true"
        elif line.guard is not None and line.guard in seen:
            reason = "a case above it has the same guard"
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
        result = value if line.guard is None else _choose(line.guard, value, result)
    rest = constant_value(rests[0].value) if rests and rests[0].value else None
    return Program(
        result,
        "\n".join(line.text for line in parsed),
        constant_value(result),
        rest if isinstance(rest, float) else None,
    )


def _choose(guard: Typed, value: Typed, other: Typed) -> Typed:
    return make(Op.IF, (guard, value, other), value.type.over(other.type, guard.type))


def _warn(program: Program, arms: Sequence[_Line], rests: Sequence[_Line]) -> None:
    if rests and not program.type.optional:
        rests[0].checker.report("W0702", rests[0].case.guard_span)
    if arms and arms[-1].guard is not None and constant_value(arms[-1].guard) is True:
        arms[-1].checker.report("W0703", arms[-1].case.guard_span, value="true", hint="write `else`")
    for line in arms if not rests else ():
        _warn_missing(line)
    for line in arms:
        if line.guard is not None and line.guard.inputs and is_never_true(line.guard):
            line.checker.report("W0703", line.case.guard_span, "never", hint="this case is never taken")
    if arms:
        warn_spread(arms[0].checker, arms[0].case.value.span, program)


def _warn_missing(line: _Line) -> None:
    for node, span, variant in (
        (line.guard, line.case.guard_span, ""),
        (line.value, line.case.value.span, "score"),
    ):
        if node is not None and node.type.gap is Gap.INPUT:
            line.checker.report("W0701", span, variant, input=doubtful(node))
