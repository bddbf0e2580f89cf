"""The functions: how many arguments, which rule.

One entry a function. The rules are in the modules `*_rules`; they return graphs and know nothing of how these are
evaluated. The kernels and the interpreter have a table each, and a test compares the three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from policysched.language.checking import lookup
from policysched.language.functions import numbers, reductions, strings, times, values
from policysched.language.ir.fields import FIELDS
from policysched.language.ir.graph import Typed
from policysched.language.ir.tree import Call
from policysched.language.ir.types import Unit
from policysched.language.messages import foreign_syntax

if TYPE_CHECKING:
    from policysched.language.checking.checker import Checker

Rule: TypeAlias = "Callable[[Checker, Call, Unit | None], Typed | None]"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language.

    Attributes:
        rule: What checks a call and makes its graph.
        least: The smallest number of arguments.
        most: The largest number, None where there is none.
        form: The arguments as the reference writes them.
        help: The value in a sentence.
    """

    rule: Rule
    least: int
    most: int | None
    form: str
    help: str

    @property
    def expected(self) -> str:
        """The number of arguments in words."""
        if self.most == self.least:
            return _arguments(self.least)
        if self.most is None:
            return f"at least {_arguments(self.least)}"
        if self.least == 0:
            return f"at most {_arguments(self.most)}"
        return f"{self.least} or {_arguments(self.most)}"


def _arguments(number: int) -> str:
    return "one argument" if number == 1 else f"{number} arguments"


FUNCTIONS: Final[Mapping[str, Function]] = {
    "has": Function(values.has, 1, 1, "x", "true where the value is present"),
    "number": Function(strings.number, 1, 1, "s", "a decimal number from a string, missing where it is none"),
    "version": Function(strings.version, 1, 1, "s", "a version from a string, missing where it is none"),
    "starts_with": Function(strings.text_test, 2, 2, "s, p", "whether a string starts with another"),
    "ends_with": Function(strings.text_test, 2, 2, "s, p", "whether a string ends with another"),
    "contains": Function(strings.text_test, 2, 2, "s, p", "whether a string contains another"),
    "glob": Function(strings.glob, 2, 2, "s, p", "whether a string matches a pattern of * and ?"),
    "concat": Function(strings.concat, 1, None, "a, …", "strings joined, missing if any part is"),
    "split": Function(strings.split, 2, 2, "s, sep", "the list of a string's parts between separators"),
    "if": Function(
        values.chosen, 3, 3, "c, a, b", "the second or the third argument, missing where the condition is unknown"
    ),
    "only": Function(values.only, 2, 2, "c, x", "a value where a condition is true, else missing"),
    "abs": Function(numbers.same_unit, 1, 1, "x", "the magnitude of a quantity"),
    "round": Function(numbers.rounded, 1, 1, "x", "the nearest whole number, halves up"),
    "clamp": Function(numbers.clamp, 3, 3, "x, lo, hi", "a quantity held between two bounds"),
    "scale": Function(
        numbers.scale, 3, 3, "x, lo, hi", "0 at the first bound, 100 at the second, linear between, clipped"
    ),
    "normalize": Function(numbers.normalize, 1, 1, "x", "100 times a quantity over its maximum of the feasible nodes"),
    "least": Function(numbers.same_unit, 1, None, "a, …", "the smallest argument, missing if any is"),
    "greatest": Function(numbers.same_unit, 1, None, "a, …", "the largest argument, missing if any is"),
    "clock": Function(
        times.clock,
        2,
        3,
        "from, to[, zone]",
        "whether a zone's clocks are between two times, which may pass midnight",
    ),
    "hour": Function(times.hour, 0, 1, "[zone]", "the hour that a zone's clocks show, 0 to 23"),
    "weekday": Function(times.weekday, 0, 1, "[zone]", 'a zone\'s day of the week: "mon", "tue" … "sun"'),
    "sum": Function(reductions.aggregate, 1, 1, "x", "the sum over all nodes; nodes without a value are left out"),
    "avg": Function(reductions.aggregate, 1, 1, "x", "the mean over all nodes that have a value, missing if none has"),
    "min": Function(reductions.aggregate, 1, 1, "x", "the smallest value of all nodes, missing if none has one"),
    "max": Function(reductions.aggregate, 1, 1, "x", "the largest value of all nodes, missing if none has one"),
    "count": Function(reductions.aggregate, 1, 1, "c", "the number of nodes where a condition is true"),
    "node.pods.count": Function(
        reductions.count_pods, 1, 1, "c", "the number of pods on the node for which a condition is true"
    ),
    "node.pods.any": Function(reductions.any_pod, 1, 1, "c", "whether a condition is true for a pod on the node"),
    "node.pods.sum": Function(
        reductions.sum_pods,
        1,
        2,
        "x[, c]",
        "the sum over the pods on the node, or over those where a condition is true",
    ),
}
AGGREGATES: Final = frozenset({"sum", "avg", "min", "max", "count"})


def check_call(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the graph of a call."""
    name = call.function.dotted
    if call.function.key is not None:
        return checker.report("E0205", call.function.span, name=f"{name}[...]", suggestion="")
    if call.by is not None and name not in AGGREGATES:
        return checker.report("E0401", call.by.span, name=name)
    method = FIELDS.get(call.function.names)
    if method is not None and method.called:
        return _method(checker, call)
    return _function(checker, call, unit)


def _method(checker: Checker, call: Call) -> Typed | None:
    name, number = call.function.dotted, len(call.arguments)
    if number != 1:
        form = foreign_syntax.written(call.function.names)
        return checker.report("E0206", call.span, name=name, expected=_arguments(1), number=number, form=form)
    key = checker.check(call.arguments[0])
    if key is None or not lookup.check_key(checker, call.arguments[0].span, key):
        return None
    return lookup.check_called_path(checker, call.function, FIELDS[call.function.names], key)


def _function(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    name, number = call.function.dotted, len(call.arguments)
    function = FUNCTIONS.get(name)
    if function is None:
        given = ", ".join(map(checker.source, call.arguments)) or "..."
        suggestion = foreign_syntax.call(call.function.names, (*FUNCTIONS, "node.taints.has"), given)
        return checker.report("E0205", call.function.span, name=name, suggestion=suggestion)
    if number < function.least or (function.most is not None and number > function.most):
        variant = "pair" if name in {"min", "max"} and number > 1 else ""
        form = f"{name}({function.form})"
        return checker.report(
            "E0206", call.span, variant, name=name, expected=function.expected, number=number, form=form
        )
    return function.rule(checker, call, unit)
