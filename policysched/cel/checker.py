"""The CEL type checker: it finds the type of each part of an expression and the possible overloads of each call.

Source: cel-go v0.26 and v0.29 checker/checker.go, checker/types.go, checker/errors.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from policysched.budget import Budget
from policysched.cel import types
from policysched.cel.declarations import FIELDS, FIELDS_WITH_LISTS, ONLY_STORED, Overload, declared, functions
from policysched.cel.issues import Issues
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
    qualified_name,
)
from policysched.cel.types import CelType, list_of, map_of, optional_of, same_types
from policysched.cel.unification import (
    Substitutions,
    assignable,
    assignable_lists,
    closed,
    most_general,
    substituted,
    without_optional,
)
from policysched.cel.values.scalars import Uint

_LITERALS: Final = {
    bool: types.BOOL,
    bytes: types.BYTES,
    float: types.DOUBLE,
    int: types.INT,
    type(None): types.NULL,
    str: types.STRING,
    Uint: types.UINT,
}


class Checked:
    """The result of type checking: the type of each node, the overloads of each call, and qualified names.

    Args:
        cel_0_29: Whether the rules are those of cel-go 0.29, instead of 0.26.
    """

    def __init__(self, *, cel_0_29: bool) -> None:
        self.cel_0_29 = cel_0_29
        self.types: dict[CelNode, CelType] = {}
        self.overloads: dict[CelNode, list[Overload]] = {}
        self.names: dict[CelNode, str] = {}
        """The qualified names of syntax tree nodes that are a variable or a type."""
        self.functions: dict[CelNode, str] = {}
        """The qualified names of functions in calls that look like method calls."""


def check(node: CelNode, issues: Issues, work: Budget, *, cel_0_29: bool, is_new: bool) -> Checked:
    """Check the types of a CEL expression and report its errors.

    Args:
        node: The expression.
        issues: Receives the errors.
        work: The budget.
        cel_0_29: Whether the rules are those of cel-go 0.29, instead of 0.26.
        is_new: Whether the API server has not stored the expression yet.

    Raises:
        BudgetExceededError: the types have too many parts.
    """
    checker = _Checker(issues, work, cel_0_29=cel_0_29, is_new=is_new)
    checker.check(node)
    found = checker.found
    found.types = dict(zip(found.types, closed(checker.known, found.types.values()), strict=True))
    return found


class _Checker:
    def __init__(self, issues: Issues, work: Budget, *, cel_0_29: bool, is_new: bool) -> None:
        self._work = work
        self._unavailable = ONLY_STORED if is_new else frozenset[str]()
        self._fields = FIELDS_WITH_LISTS if cel_0_29 and not is_new else FIELDS
        self._functions = functions(cel_0_29=cel_0_29)
        self.found = Checked(cel_0_29=cel_0_29)
        self.known: Substitutions = {}
        self._issues = issues
        self._scopes: list[dict[str, CelType]] = []
        self._free = 0

    def check(self, node: CelNode) -> CelType:
        """Compute the types of a node and of all its descendants."""
        of = self._OF[type(node)](self, node)
        self.found.types[node] = of
        return of

    def _literal(self, node: ConstantNode) -> CelType:
        return _LITERALS[type(node.value)]

    # Names and fields

    def _lookup(self, name: str) -> CelType | None:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return declared(name, cel_0_29=self.found.cel_0_29)

    def _name(self, node: Name) -> CelType:
        of = self._lookup(node.name)
        if of is None:
            self._undeclared(node, node.name)
            return types.ERROR
        self.found.names[node] = node.name.removeprefix(".")
        return of

    def _undeclared(self, node: CelNode, name: str) -> None:
        self._issues.report(node.at, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> CelType:
        name = qualified_name(node)
        of = None if name is None else self._lookup(name)
        if of is not None and name is not None:
            self.found.names[node] = name.removeprefix(".")
            return of
        of = self._field(node, node.operand, node.field_name)
        return types.BOOL if node.test else substituted(self.known, of, self._work)

    def _field(self, node: CelNode, operand: CelNode, name: str, *, optional: bool = False) -> CelType:
        checked = self.check(operand)
        of, was_optional = without_optional(substituted(self.known, checked, self._work))
        result = types.DYN
        if of.kind == "map":
            result = of.parameters[1]
        elif of.kind == "struct":
            result = self._struct_field(node, of, name)
        elif of.kind == "param":
            self._assignable(types.DYN, of)
        elif not (of.is_dynamic or of.kind == "error"):
            self._issues.report(node.at, f"type '{of.formatted(self._work)}' does not support field selection")
        return optional_of(result) if optional or was_optional else result

    def _struct_field(self, node: CelNode, of: CelType, name: str) -> CelType:
        if of is not types.DEVICE:
            self._issues.report(node.at, f"unexpected failed resolution of '{of.name}'")
        elif name in self._fields:
            return self._fields[name]
        else:
            self._issues.report(node.at, f"undefined field '{name}'")
        return types.ERROR

    # Calls

    def _call(self, node: CallNode) -> CelType:
        if node.function == "_?._":
            field = node.arguments[1]
            name = field.value if isinstance(field, ConstantNode) else ""
            of = self._field(node, node.arguments[0], str(name), optional=True)
            return substituted(self.known, of, self._work)
        for one in node.arguments:
            self.check(one)
        if node.target is None:
            return self._resolve(node, node.function, None)
        prefix = qualified_name(node.target)
        if prefix is not None and (whole := f"{prefix}.{node.function}".removeprefix(".")) in self._functions:
            self.found.functions[node] = whole
            return self._resolve(node, whole, None)
        self.check(node.target)
        return self._resolve(node, node.function, node.target)

    def _resolve(self, node: CallNode, name: str, target: CelNode | None) -> CelType:
        overloads = self._functions.get(name.removeprefix("."))
        if overloads is None or name in self._unavailable:
            self._undeclared(node, name)
            return types.ERROR
        nodes = [*([target] if target else []), *node.arguments]
        given = [self.found.types[one] for one in nodes]
        if name in {"_&&_", "_||_"}:
            return self._both_bool(nodes, given)
        return self._overload(node, name.removeprefix("."), given, is_method=target is not None)

    def _both_bool(self, nodes: list[CelNode], given: list[CelType]) -> CelType:
        fits = [self._is(node, types.BOOL, of) for node, of in zip(nodes, given, strict=True)]
        return types.BOOL if all(fits) else types.ERROR

    def _overload(self, node: CallNode, name: str, given: list[CelType], *, is_method: bool) -> CelType:
        result: CelType | None = None
        fitting: list[Overload] = []
        for one in self._functions[name]:
            if one.member is not is_method:
                continue
            fresh = {parameter: self._fresh() for parameter in one.parameters}
            takes = [substituted(fresh, of, self._work) for of in one.arguments]
            made = assignable_lists(self.known, given, takes, self._work)
            if made is None:
                continue
            self.known = made
            fitting.append(one)
            of = substituted(self.known, substituted(fresh, one.result, self._work), self._work)
            if result is None:
                result = of
            elif not (result.is_dynamic or same_types(of, result, self._work)):
                result = types.DYN
        if result is None:
            self._no_overload(node, name, given, is_method=is_method)
            return types.ERROR
        self.found.overloads[node] = fitting
        return result

    def _no_overload(self, node: CelNode, name: str, given: list[CelType], *, is_method: bool) -> None:
        shown = [substituted(self.known, of, self._work, to_dyn=True).formatted(self._work) for of in given]
        target = f"{shown.pop(0)}." if is_method else ""
        signature = f"{target}({', '.join(shown)})"
        self._issues.report(node.at, f"found no matching overload for '{name}' applied to '{signature}'")

    # Lists, maps and messages

    def _list(self, node: ListOf) -> CelType:
        joined: CelType | None = None
        for place, one in enumerate(node.elements):
            of = self._unwrapped(one, self.check(one), optional=place in node.optional)
            joined = self._join(joined, of)
        return list_of(joined or self._fresh())

    def _map(self, node: MapOf) -> CelType:
        keys: CelType | None = None
        values: CelType | None = None
        for one in node.entries:
            if isinstance(one.key, CelNode):
                keys = self._join(keys, self.check(one.key))
            of = self._unwrapped(one.value, self.check(one.value), optional=one.optional)
            values = self._join(values, of)
        if keys is None or values is None:
            keys, values = self._fresh(), self._fresh()
        return map_of(keys, values)

    def _unwrapped(self, node: CelNode, of: CelType, *, optional: bool) -> CelType:
        if not optional:
            return of
        inner, was_optional = without_optional(of)
        if not was_optional and not inner.is_dynamic:
            self._mismatch(node, optional_of(inner), inner)
        return inner

    def _join(self, before: CelType | None, of: CelType) -> CelType:
        if before is None:
            return of
        return most_general(before, of, self._work) if self._assignable(before, of) else types.DYN

    def _message(self, node: MessageNode) -> CelType:
        of = self._lookup(node.type_name)
        if of is None:
            self._undeclared(node, node.type_name)
            return types.ERROR
        result = types.ERROR
        if of.kind != "type":
            self._issues.report(node.at, f"'{of.name}' is not a type")
        elif not of.parameters or of.parameters[0].kind not in {"struct", "timestamp", "duration", "null"}:
            name = of.parameters[0].name if of.parameters else ""
            self._issues.report(node.at, f"'{name}' is not a message type")
        else:
            result = of.parameters[0]
        for one in node.entries:
            self._message_field(one, result)
        return result

    def _message_field(self, one: Entry, of: CelType) -> None:
        given = self.check(one.value)
        found = self._fields.get(str(one.key)) if of is types.DEVICE else None
        if of.kind in {"struct", "timestamp", "duration"} and of is not types.DEVICE:
            self._issues.report(one.at, f"unexpected failed resolution of '{of.name}'")
        elif found is None:
            self._issues.report(one.at, f"undefined field '{one.key}'")
        given = self._unwrapped(one.value, given, optional=one.optional)
        if found is not None and not self._assignable(found, given):
            message = f"is '{found.formatted(self._work)}' but provided type is '{given.formatted(self._work)}'"
            self._issues.report(one.at, f"expected type of field '{one.key}' {message}")

    # Loops

    def _loop(self, node: Loop) -> CelType:
        checked = self.check(node.over)
        over = substituted(self.known, checked, self._work)
        built = self.check(node.start)
        # checking the start can determine more of the range's type
        over = substituted(self.known, over, self._work)
        first, second = self._loop_variables(node, over)
        self._scopes.append({node.result_name: built})
        self._scopes.append({node.variable: first} | ({node.second: second} if node.second else {}))
        self._is(node.condition, types.BOOL, self.check(node.condition))
        self._is(node.step, built, self.check(node.step))
        self._scopes.pop()
        checked = self.check(node.result)
        result = substituted(self.known, checked, self._work)
        self._scopes.pop()
        return result

    def _loop_variables(self, node: Loop, over: CelType) -> tuple[CelType, CelType]:
        if over.kind == "list":
            element = over.parameters[0]
            return (types.INT, element) if node.second else (element, element)
        if over.kind == "map":
            return over.parameters[0], over.parameters[1]
        if over.kind in {"dyn", "error", "param"}:
            self._assignable(types.DYN, over)
            return types.DYN, types.DYN
        shown = f"expression of type '{over.formatted(self._work)}' cannot be range of a comprehension"
        self._issues.report(node.over.at, f"{shown} (must be list, map, or dynamic)")
        return types.ERROR, types.ERROR

    # Types

    def _is(self, node: CelNode, wanted: CelType, of: CelType) -> bool:
        if self._assignable(wanted, of):
            return True
        self._mismatch(node, wanted, of)
        return False

    def _mismatch(self, node: CelNode, wanted: CelType, of: CelType) -> None:
        self._issues.report(
            node.at, f"expected type '{wanted.formatted(self._work)}' but found '{of.formatted(self._work)}'"
        )

    def _assignable(self, first: CelType, second: CelType) -> bool:
        made = assignable(self.known, first, second, self._work)
        if made is None:
            return False
        self.known = made
        return True

    def _fresh(self) -> CelType:
        self._free += 1
        return CelType("param", f"_var{self._free - 1}")

    _OF: Final[dict[type[CelNode], Callable[[_Checker, Any], CelType]]] = {
        ConstantNode: _literal,
        Name: _name,
        Select: _select,
        CallNode: _call,
        ListOf: _list,
        MapOf: _map,
        MessageNode: _message,
        Loop: _loop,
    }
