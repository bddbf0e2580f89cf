"""The functions: how many arguments, of which types, with which result.

One entry a function. The rules return graphs and know nothing of how these are evaluated; the kernels and the
interpreter have a table each, and a test compares the three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from policysched.language import hints, lookup
from policysched.language.names import FIELDS
from policysched.language.suggest import did_you_mean
from policysched.language.syntax import Call
from policysched.language.typed import Op, Typed, make
from policysched.language.types import BOOL, NUMBER, STRING, Gap, Kind, Shape, Type, Unit, list_of

if TYPE_CHECKING:
    from policysched.language.check import Checker

Rule: TypeAlias = "Callable[[Checker, Call, Unit | None], Typed | None]"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language; without `most` it takes any number of arguments above `least`."""

    rule: Rule
    least: int
    most: int | None
    help: str

    @property
    def expected(self) -> str:
        """The number of arguments in words."""
        number = "one argument" if self.least == 1 else f"{self.least} arguments"
        return number if self.most == self.least else f"at least {number}"


def _all(nodes: Sequence[Typed | None]) -> list[Typed] | None:
    found = [node for node in nodes if node is not None]
    return found if len(found) == len(nodes) else None


def _strings(checker: Checker, call: Call) -> list[Typed] | None:
    return _all([checker.string(argument) for argument in call.arguments])


def _quantities(checker: Checker, call: Call, unit: Unit | None) -> list[Typed] | None:
    """Check arguments that have to be quantities of one unit."""
    checked = checker.alike(call.arguments, unit)
    nodes = _all([checker.quantity(a, node) for a, node in zip(call.arguments, checked, strict=True)])
    if nodes is None:
        return None
    return nodes if _one_type(checker, call, nodes) else None


def _one_type(checker: Checker, call: Call, nodes: Sequence[Typed]) -> bool:
    first = nodes[0]
    for node in nodes[1:]:
        if not node.type.like(first.type):
            hint = hints.difference(first, node)
            name = call.function.dotted
            checker.report("E0301", call.span, "mix", name=name, left=first.type, right=node.type, hint=hint)
            return False
    return True


def _has(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    node = checker.check(call.arguments[0])
    return node and make(Op.HAS, (node,), BOOL.over(node.type).filled())


def _number(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    node = checker.check(call.arguments[0])
    if node is not None and node.type.kind is not Kind.STRING:
        return checker.report("E0311", call.arguments[0].span, type=node.type, name="number")
    return node and make(Op.NUMBER, (node,), NUMBER.over(node.type).filled(Gap.INPUT))


def _text_test(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = _strings(checker, call)
    if nodes is None:
        return None
    return make(Op(call.function.dotted), nodes, BOOL.over(*(node.type for node in nodes)))


def _glob(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    node = _text_test(checker, call, unit)
    if node is None or not _constant_text(checker, call, node.args[1], must=False):
        return None
    return node


def _constant_text(checker: Checker, call: Call, node: Typed, *, must: bool) -> bool:
    """Whether the second argument is the same for every node and, as a constant, is not empty."""
    span, name = call.arguments[1].span, call.function.dotted
    if node.type.shape is not Shape.SCALAR:
        checker.report("E0308", span)
    elif must and node.op is not Op.CONSTANT:
        checker.report("E0307", span, "constant", name=name)
    elif node.data == "":
        checker.report("E0312", span, "empty", name=name)
    else:
        return True
    return False


def _concat(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = _strings(checker, call)
    if nodes is None:
        return None
    return make(Op.CONCAT, nodes, STRING.over(*(node.type for node in nodes)))


def _split(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = _strings(checker, call)
    if nodes is None:
        return None
    if nodes[0].type.shape is not Shape.SCALAR:
        return checker.report("E0308", call.arguments[0].span)
    if not _constant_text(checker, call, nodes[1], must=True):
        return None
    return make(Op.SPLIT, nodes, list_of(STRING).filled(nodes[0].type.gap))


def _if(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    condition = checker.condition(call.arguments[0])
    arms = _all(checker.alike(call.arguments[1:], unit))
    if condition is None or arms is None or not _one_type(checker, call, arms):
        return None
    if arms[0].type.kind is Kind.LIST:
        return checker.report("E0303", call.arguments[1].span, type=arms[0].type, hint="")
    return make(Op.IF, (condition, *arms), arms[0].type.over(arms[1].type, condition.type))


def _only(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    condition = checker.condition(call.arguments[0])
    node = checker.check(call.arguments[1], unit)
    if condition is None or node is None:
        return None
    if node.type.kind is Kind.LIST:
        return checker.report("E0303", call.arguments[1].span, type=node.type, hint="")
    result = node.type.over(condition.type)
    return make(Op.ONLY, (condition, node), result.filled(max(result.gap, Gap.OWN)))


def _same_unit(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    nodes = _quantities(checker, call, unit)
    if nodes is None:
        return None
    return make(Op(call.function.dotted), nodes, nodes[0].type.over(*(node.type for node in nodes)))


def _round(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = _quantities(checker, call, Unit.NUMBER)
    if nodes is None:
        return None
    if not nodes[0].type.is_number:
        hint = "divide by a unit first, as in `/ 1Gi`"
        return checker.report("E0303", call.arguments[0].span, type=nodes[0].type, hint=hint)
    return make(Op.ROUND, nodes, nodes[0].type)


def _bounds(nodes: Sequence[Typed]) -> tuple[float, float] | None:
    low, high = nodes[1].data, nodes[2].data
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def _clamp(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    node = _same_unit(checker, call, unit)
    bounds = _bounds(node.args) if node else None
    if bounds and bounds[0] > bounds[1]:
        return checker.report("E0312", call.span, "clamp")
    return node


def _scale(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = _quantities(checker, call, None)
    if nodes is None:
        return None
    bounds = _bounds(nodes)
    if bounds and bounds[0] == bounds[1]:
        return checker.report("E0312", call.span, "scale")
    result = NUMBER.over(*(node.type for node in nodes))
    return make(Op.SCALE, nodes, result if bounds else result.filled(max(result.gap, Gap.OWN)))


def _normalize(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = _quantities(checker, call, None)
    if checker.environment.phase not in {"score", "let"}:
        return checker.report("E0506", call.function.span)
    if nodes is None:
        return None
    return make(Op.NORMALIZE, nodes, Type(Kind.QUANTITY, Unit.NUMBER, Shape.NODES, nodes[0].type.gap))


FUNCTIONS: Final[Mapping[str, Function]] = {
    "has": Function(_has, 1, 1, "true where the value is present"),
    "number": Function(_number, 1, 1, "a decimal number from a string, missing where it is none"),
    "starts_with": Function(_text_test, 2, 2, "whether a string starts with another"),
    "ends_with": Function(_text_test, 2, 2, "whether a string ends with another"),
    "contains": Function(_text_test, 2, 2, "whether a string contains another"),
    "glob": Function(_glob, 2, 2, "whether a string matches a pattern of * and ?"),
    "concat": Function(_concat, 1, None, "strings joined, missing if any part is"),
    "split": Function(_split, 2, 2, "the list of a string's parts between separators"),
    "if": Function(_if, 3, 3, "the second or the third argument, missing where the condition is unknown"),
    "only": Function(_only, 2, 2, "a value where a condition is true, else missing"),
    "abs": Function(_same_unit, 1, 1, "the magnitude of a quantity"),
    "round": Function(_round, 1, 1, "the nearest whole number, halves up"),
    "clamp": Function(_clamp, 3, 3, "a quantity held between two bounds"),
    "scale": Function(_scale, 3, 3, "0 at the first bound, 100 at the second, linear between, clipped"),
    "normalize": Function(_normalize, 1, 1, "100 times a quantity over its maximum of the feasible nodes"),
    "least": Function(_same_unit, 1, None, "the smallest argument, missing if any is"),
    "greatest": Function(_same_unit, 1, None, "the largest argument, missing if any is"),
}
AGGREGATES: Final = frozenset({"sum", "avg", "min", "max", "count"})
LATER_FUNCTIONS: Final = frozenset({"version", "clock", "hour", "weekday"})
_LATER_METHODS: Final = frozenset({"node.pods.count", "node.pods.any", "node.pods.sum"})


def check_call(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the graph of a call."""
    name = call.function.dotted
    if call.function.key is not None:
        return checker.report("E0205", call.function.span, name=f"{name}[...]", suggestion="")
    if name in AGGREGATES:
        return _aggregate(checker, call)
    if call.by is not None:
        return checker.report("E0401", call.by.span, name=name)
    if name in LATER_FUNCTIONS or name in _LATER_METHODS:
        return checker.report("E0209", call.function.span, name=name)
    method = FIELDS.get(call.function.names)
    if method is not None and method.called:
        return _method(checker, call)
    return _function(checker, call, unit)


def _aggregate(checker: Checker, call: Call) -> Typed | None:
    name, number = call.function.dotted, len(call.arguments)
    if name in {"min", "max"} and number > 1:
        return checker.report("E0206", call.span, "pair", name=name, number=number)
    if number != 1:
        return checker.report("E0206", call.span, name=name, expected="one argument", number=number)
    return checker.report("E0209", call.function.span, name=name)


def _method(checker: Checker, call: Call) -> Typed | None:
    name, number = call.function.dotted, len(call.arguments)
    if number != 1:
        return checker.report("E0206", call.span, name=name, expected="one argument", number=number)
    key = checker.check(call.arguments[0])
    if key is None or not lookup.check_key(checker, call.arguments[0].span, key):
        return None
    return lookup.check_called_path(checker, call.function, FIELDS[call.function.names], key)


def _function(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    name, number = call.function.dotted, len(call.arguments)
    function = FUNCTIONS.get(name)
    if function is None:
        known = (*FUNCTIONS, *AGGREGATES, *LATER_FUNCTIONS, *_LATER_METHODS, "node.taints.has")
        return checker.report("E0205", call.function.span, name=name, suggestion=did_you_mean(name, known))
    if number < function.least or (function.most is not None and number > function.most):
        return checker.report("E0206", call.span, name=name, expected=function.expected, number=number)
    return function.rule(checker, call, unit)
