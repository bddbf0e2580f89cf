"""Compilation of a checked CEL expression to Python closures.

A closure takes the slots of all variables of the expression and returns a value, which can be an error. Constants,
lists of constants and conversions of constants are computed once; a constant pattern is compiled once.

Source: cel-go v0.26 and v0.29 interpreter/planner.go, interpretable.go, attributes.go, decorators.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from policysched.budget import Budget
from policysched.cel.calls import NO_OVERLOAD, Closure, Slots, applied, implementation, measured
from policysched.cel.checker import Checked
from policysched.cel.declarations import RUNTIME_TYPES, functions
from policysched.cel.libraries import patterns
from policysched.cel.libraries.operators import contained_in
from policysched.cel.lookups import has_field, look_up, look_up_optional
from policysched.cel.syntax.macros import UNUSED
from policysched.cel.syntax.tree import (
    CallNode,
    CelNode,
    ConstantNode,
    Entry,
    ListOf,
    Loop,
    MapOf,
    MessageNode,
    Name,
    Select,
    walk,
)
from policysched.cel.types import CelType
from policysched.cel.values.comparing import equal
from policysched.cel.values.kinds import GO_NAMES, LISTS, MAPS, require_hashable
from policysched.cel.values.scalars import (
    INT_MAX,
    UINT_MAX,
    Error,
    GrowingList,
    Map,
    Optional,
    Uint,
    key_form,
)
from policysched.cel.values.texts import shown

_CONVERSIONS: Final = frozenset(
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"]
)
_UNSET: Final = object()
_IN_SET: Final = frozenset({bool, int, Uint, float, str})


class ProgramError(ValueError):
    """Raised if an expression has an invalid constant; has the message of cel-go."""


def compile_closures(node: CelNode, checked: Checked, variable: str, work: Budget) -> tuple[Closure, int]:
    """Compile a checked CEL expression to a Python closure.

    Args:
        node: The expression.
        checked: The result of the checker.
        variable: The name of the variable.
        work: The budget of the compilation and of each evaluation.

    Returns:
        The closure of the expression and the number of its slots; the first slot has the variable.

    Raises:
        ProgramError: a constant cannot be converted, or a pattern is invalid.
        BudgetExceededError: constants or patterns are too large.
    """
    made = _Compiler(checked, variable, work)
    return made.of(node), made.slots


class _Compiler:
    def __init__(self, checked: Checked, variable: str, work: Budget) -> None:
        self._checked = checked
        self._work = work
        self._scope: dict[str, Closure] = {variable: _slot(0)}
        self._constants: dict[Closure, Any] = {}
        self.slots = 1

    def of(self, node: CelNode) -> Closure:
        """Compile a node of the syntax tree to a Python closure."""
        return self._OF[type(node)](self, node)

    def _literal(self, node: ConstantNode) -> Closure:
        return self._constant(node.value)

    def _constant(self, value: Any) -> Closure:
        def constant(_: Slots) -> Any:
            return value

        self._constants[constant] = value
        return constant

    def _all_constant(self, parts: Sequence[Closure]) -> bool:
        return all(part in self._constants for part in parts)

    # Names, fields and elements

    def _name(self, node: CelNode) -> Closure:
        name = self._checked.names[node]
        if self._checked.types[node].kind != "type":
            return self._scope[name]
        if name not in RUNTIME_TYPES:
            raise ProgramError(f"reference to undefined type: {name}")
        return self._constant(RUNTIME_TYPES[name])

    def _select(self, node: Select) -> Closure:
        if node in self._checked.names:
            return self._name(node)
        operand, name = self.of(node.operand), node.field_name
        chained = _is_chained(node.operand)
        if node.test:
            return lambda slots: has_field(operand(slots), name, chained=chained)

        def select(slots: Slots) -> Any:
            return look_up(operand(slots), name, chained=chained)

        return select

    def _index(self, node: CallNode) -> Closure:
        operand, index = self.of(node.arguments[0]), self.of(node.arguments[1])
        chained = _is_chained(node.arguments[0])
        find = look_up if node.function == "_[_]" else look_up_optional
        if index in self._constants:
            key = self._constants[index]
            if type(key) not in _IN_SET:
                raise ProgramError(f"invalid qualifier type: {GO_NAMES[type(key)]}")
            return lambda slots: find(operand(slots), key, chained=chained)

        def element(slots: Slots) -> Any:
            value = operand(slots)
            if type(value) is Error or (type(value) is Optional and not value.present):
                return value
            key = index(slots)
            if type(key) is Error:
                return key
            if type(key) not in _IN_SET:
                return Error(f"invalid qualifier type: {GO_NAMES[type(key)]}")
            return find(value, key, chained=chained)

        return element

    # Calls

    def _call(self, node: CallNode) -> Closure:
        special = self._SPECIAL.get(node.function)
        if special is not None:
            return special(self, node)
        nodes = (
            node.arguments if node in self._checked.functions or node.target is None else [node.target, *node.arguments]
        )
        name = self._checked.functions.get(node, node.function).removeprefix(".")
        arguments = [self.of(one) for one in nodes]
        overloads = self._checked.overloads[node]
        names = {one.name for one in overloads}
        if names == {"in_list"} and arguments[1] in self._constants:
            return self._in_constants(arguments[0], self._constants[arguments[1]])
        if (
            name in patterns.WITH_CONSTANT
            and type(self._constants.get(arguments[-1 if len(arguments) < 3 else 1])) is str
        ):
            return self._with_pattern(name, arguments)
        if len(overloads) == 1:
            arguments = measured(overloads[0].name, arguments)
        every = functions(cel_0_29=self._checked.cel_0_29).get(name, ())
        call = implementation(name, overloads, self._work, every)
        if name in _CONVERSIONS and self._all_constant(arguments) and len(arguments) == 1:
            return self._converted(call(*(self._constants[one] for one in arguments)))
        return applied(call, arguments)

    def _converted(self, value: Any) -> Closure:
        if isinstance(value, Error):
            raise ProgramError(value.message)
        return self._constant(value)

    def _in_constants(self, element: Closure, values: Any) -> Closure:
        if isinstance(values, Error):
            return applied(partial(contained_in, self._work), [element, self._constant(values)])
        if not values:
            return self._constant(value=False)
        if any(type(one) not in _IN_SET for one in values):
            return applied(partial(contained_in, self._work), [element, self._constant(values)])
        forms = {form for one in values for form in _equal_forms(one)}

        def contained(slots: Slots) -> Any:
            value = element(slots)
            if type(value) is Error:
                return value
            require_hashable(value)
            return key_form(value) in forms

        return contained

    def _with_pattern(self, name: str, arguments: list[Closure]) -> Closure:
        made = patterns.compiled(self._constants[arguments[1]], self._work)
        if isinstance(made, Error):
            raise ProgramError(made.message)
        apply = partial(patterns.WITH_CONSTANT[name], self._work)

        def matched(text: Any, _: Any, *rest: Any) -> Any:
            if type(text) is CelType:
                text = text.name
            if type(text) is not str or (rest and type(rest[0]) is not int):
                return NO_OVERLOAD
            return apply(made, text, *rest)

        return applied(matched, arguments)

    def _logical(self, node: CallNode) -> Closure:
        left, right = (self.of(one) for one in node.arguments)
        decisive = node.function == "_||_"

        def logical(slots: Slots) -> Any:
            first = left(slots)
            if first is decisive:
                return decisive
            second = right(slots)
            if second is decisive:
                return decisive
            if type(first) is not bool:
                return first if type(first) is Error else NO_OVERLOAD
            if type(second) is not bool:
                return second if type(second) is Error else NO_OVERLOAD
            return not decisive

        return logical

    def _conditional(self, node: CallNode) -> Closure:
        condition, then, other = (self.of(one) for one in node.arguments)

        def conditional(slots: Slots) -> Any:
            holds = condition(slots)
            if holds is True:
                return then(slots)
            if holds is False:
                return other(slots)
            return holds if type(holds) is Error else NO_OVERLOAD

        return conditional

    def _equal(self, node: CallNode) -> Closure:
        left, right = (self.of(one) for one in node.arguments)
        negated, work = node.function == "_!=_", self._work

        def compared(slots: Slots) -> Any:
            first, second = left(slots), right(slots)
            if type(first) is Error:
                return first
            if type(second) is Error:
                return second
            said = equal(first, second, work)
            return said is not True if negated else said

        return compared

    def _not_false(self, node: CallNode) -> Closure:
        value = self.of(node.arguments[0])

        def not_false(slots: Slots) -> bool:
            return value(slots) is not False

        return not_false

    def _or_else(self, node: CallNode) -> Closure:
        if node.target is None:
            raise ProgramError(f"no such overload: {node.function}(...)")
        operand, other = self.of(node.target), self.of(node.arguments[0])
        unwrap, is_strict = node.function == "orValue", self._checked.cel_0_29

        def or_else(slots: Slots) -> Any:
            value = operand(slots)
            if type(value) is not Optional:
                return Error("no such overload") if is_strict and type(value) is not Error else value
            if not value.present:
                return other(slots)
            return value.value if unwrap else value

        return or_else

    _SPECIAL: Final[dict[str, Callable[[_Compiler, CallNode], Closure]]] = {
        "_&&_": _logical,
        "_||_": _logical,
        "_?_:_": _conditional,
        "_==_": _equal,
        "_!=_": _equal,
        "_[_]": _index,
        "_[?_]": _index,
        "_?._": _index,
        "@not_strictly_false": _not_false,
        "or": _or_else,
        "orValue": _or_else,
    }

    # Lists and maps

    def _list(self, node: ListOf) -> Closure:
        parts, optional = [self.of(one) for one in node.elements], node.optional

        def elements(slots: Slots) -> Any:
            made = []
            for place, part in enumerate(parts):
                value = part(slots)
                if type(value) is Error:
                    return value
                if place in optional:
                    if type(value) is not Optional:
                        return Error(f"cannot initialize optional list element from non-optional value {shown(value)}")
                    if not value.present:
                        continue
                    value = value.value
                made.append(value)
            return made

        return self._constant(elements([])) if self._all_constant(parts) else elements

    def _map(self, node: MapOf) -> Closure:
        parts = [(self._key(one), self.of(one.value), one.optional) for one in node.entries]

        def entries(slots: Slots) -> Any:
            made: dict[Any, Any] = {}
            for key, part, optional in parts:
                name = key(slots)
                if type(name) is Error:
                    return name
                value = part(slots)
                if type(value) is Error:
                    return value
                trouble = _put(made, name, value, optional=optional)
                if trouble is not None:
                    return trouble
            return Map(made)

        constant = self._all_constant([part for key, value, _ in parts for part in (key, value)])
        return self._constant(entries([])) if constant else entries

    def _message(self, node: MessageNode) -> Closure:
        """Return the closure of a message literal; its value is an error, because no message type exists here."""
        unknown = Error(f"unknown type '{node.type_name.removeprefix('.')}'")
        values = [self.of(one.value) for one in node.entries]

        def message(slots: Slots) -> Any:
            made = (value(slots) for value in values)
            return next((one for one in made if type(one) is Error), unknown)

        return message

    def _key(self, one: Entry) -> Closure:
        return self.of(one.key) if isinstance(one.key, CelNode) else self._constant(one.key)

    # Loops

    def _slot_for(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _loop(self, node: Loop) -> Closure:
        start = self.of(node.start)
        if node.variable == UNUSED:
            return self._binding(node, start)
        over = self.of(node.over)
        built, first, second = self._slot_for(), self._slot_for(), self._slot_for()
        outside = self._scope
        variables = {node.variable: _slot(first)} | ({node.second: _slot(second)} if node.second else {})
        self._scope = outside | variables | {node.result_name: _slot(built)}
        condition, step = self.of(node.condition), self.of(node.step)
        self._scope = outside | {node.result_name: _slot(built)}
        result = self.of(node.result)
        self._scope = outside
        cost = 1 + sum(not isinstance(one, ConstantNode) for part in (node.condition, node.step) for one in walk(part))
        places, work = _pairs if node.second else _elements, self._work

        def loop(slots: Slots) -> Any:
            values = over(slots)
            if type(values) is Error:
                return values
            items = places(values)
            if isinstance(items, Error):
                return items
            slots[built] = _growing(start(slots))
            for slots[first], slots[second] in items:
                work.spend(cost)
                if condition(slots) is False:
                    break
                slots[built] = step(slots)
            made = result(slots)
            return list(made) if type(made) is GrowingList else made

        return loop

    def _binding(self, node: Loop, start: Closure) -> Closure:
        """Compile `cel.bind()`, whose value is computed at its first use."""
        place, outside = self._slot_for(), self._scope

        def bound(slots: Slots) -> Any:
            value = slots[place]
            if value is _UNSET:
                value = slots[place] = start(slots)
            return value

        self._scope = outside | {node.result_name: bound}
        self.of(node.step)
        result = self.of(node.result)
        self._scope = outside

        def binding(slots: Slots) -> Any:
            slots[place] = _UNSET
            return result(slots)

        return binding

    _OF: Final[dict[type[CelNode], Callable[[_Compiler, Any], Closure]]] = {
        ConstantNode: _literal,
        Name: _name,
        Select: _select,
        CallNode: _call,
        ListOf: _list,
        MapOf: _map,
        MessageNode: _message,
        Loop: _loop,
    }


def _slot(place: int) -> Closure:
    def slot(slots: Slots) -> Any:
        return slots[place]

    return slot


def _is_chained(node: CelNode) -> bool:
    """Return whether a node accesses a field or element, because cel-go evaluates a chain of accesses as one lookup."""
    return isinstance(node, Select) or (isinstance(node, CallNode) and node.function in {"_[_]", "_[?_]", "_?._"})


def _equal_forms(value: Any) -> list[Any]:
    """Return the map keys equal to a value: the value itself, and equal numbers of other types."""
    kind, forms = type(value), [key_form(value)]
    if kind is float:
        if value.is_integer():
            forms += [(int, int(value))] if -(INT_MAX + 1) < value < INT_MAX else []
            forms += [(Uint, Uint(value))] if 0 <= value <= UINT_MAX else []
    elif kind in {int, Uint}:
        forms.append((float, float(value)))
        if kind is int and value >= 0:
            forms.append((Uint, Uint(value)))
        elif kind is Uint and value <= INT_MAX:
            forms.append((int, int(value)))
    return forms


def _put(made: dict[Any, Any], name: Any, value: Any, *, optional: bool) -> Error | None:
    if optional:
        if type(value) is not Optional:
            entry = f"cannot initialize optional entry '{shown(name)}' from non-optional value {shown(value)}"
            return Error(entry)
        if not value.present:
            made.pop(key_form(name), None)
            return None
        value = value.value
    made[key_form(name)] = value
    return None


def _growing(value: Any) -> Any:
    if type(value) in LISTS and not value:
        return GrowingList()
    return Map() if type(value) in MAPS and not len(value) else value


def _elements(values: Any) -> Any:
    if type(values) in LISTS:
        return [(one, None) for one in values]
    if type(values) in MAPS:
        return [(key, None) for key in values.keys()]  # noqa: SIM118 - not a dict
    return Error(f"got '{GO_NAMES[type(values)]}', expected iterable type")


def _pairs(values: Any) -> Any:
    if type(values) in LISTS:
        return list(enumerate(values))
    if type(values) in MAPS:
        return [(key, values.find(key)) for key in values.keys()]  # noqa: SIM118 - not a dict
    return Error(f"unsupported comprehension range type: {GO_NAMES[type(values)]}")
