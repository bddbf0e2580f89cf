"""CEL macros such as `all()` and `cel.bind()`: calls that are expanded to loops, tests and bindings.

Source: cel-go v0.26 parser/macro.go, cel/library.go (optMap), ext/bindings.go, ext/comprehensions.go, ext/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from policysched.cel.syntax.tree import (
    HIDDEN_RESULT,
    CallNode,
    CelNode,
    ConstantNode,
    ListOf,
    Loop,
    MapOf,
    Name,
    Select,
)

_OLD_RESULT: Final = "__result__"
UNUSED: Final = "#unused"
"""The name of the unused loop variable in the expansion of `cel.bind()`."""
_SORTED: Final = "@__sortBy_input__"
_OPTIONAL: Final = "@optional"
Expander = Callable[[int, CelNode, list[CelNode]], CelNode | None]


class MacroError(ValueError):
    """Raised if a macro call is invalid; has the message of cel-go."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def expand(at: int, name: str, target: CelNode | None, arguments: list[CelNode]) -> CelNode | None:
    """Return the expansion of a macro call; None if the call is not a macro.

    Raises:
        MacroError: the call is an invalid macro.
    """
    if target is None:
        return _has(at, arguments[0]) if name == "has" and len(arguments) == 1 else None
    expander = _METHODS.get((name, len(arguments)))
    return expander(at, target, arguments) if expander else None


def _has(at: int, argument: CelNode) -> CelNode:
    if isinstance(argument, Select):
        return Select(at, argument.operand, argument.field_name, test=True)
    raise MacroError(argument.at, "invalid argument to has() macro")


def _name_of(node: CelNode, message: str) -> str:
    if isinstance(node, Name):
        return node.name
    raise MacroError(node.at, message)


def _variables(arguments: list[CelNode]) -> tuple[str, str]:
    first = _name_of(arguments[0], "argument must be a simple name")
    second = _name_of(arguments[1], "argument must be a simple name")
    if first == second:
        raise MacroError(arguments[1].at, f"duplicate variable name: {first}")
    _not_result(arguments[0], first)
    _not_result(arguments[1], second)
    return first, second


def _one_variable(message: str) -> Callable[[list[CelNode]], tuple[str, str]]:
    def variables(arguments: list[CelNode]) -> tuple[str, str]:
        name = _name_of(arguments[0], message)
        _not_result(arguments[0], name)
        return name, ""

    return variables


def _not_result(node: CelNode, name: str) -> None:
    if name in {HIDDEN_RESULT, _OLD_RESULT}:
        raise MacroError(node.at, "iteration variable overwrites accumulator variable")


_SIMPLE: Final = _one_variable("argument must be a simple name")
_IDENTIFIER: Final = _one_variable("argument is not an identifier")
_OPEN: Final = "@not_strictly_false"


def _result(at: int) -> Name:
    return Name(at, HIDDEN_RESULT)


def _quantifier(start: object, sign: str, variables: Callable[[list[CelNode]], tuple[str, str]]) -> Expander:
    def expander(at: int, target: CelNode, arguments: list[CelNode]) -> CelNode:
        first, second = variables(arguments)
        so_far: CelNode = _result(at) if start else CallNode(at, "!_", [_result(at)])
        return Loop(
            at, target, first, second, HIDDEN_RESULT, ConstantNode(at, start), CallNode(at, _OPEN, [so_far]),
            CallNode(at, sign, [_result(at), arguments[-1]]), _result(at),
        )  # fmt: skip

    return expander


def _exactly_one(variables: Callable[[list[CelNode]], tuple[str, str]]) -> Expander:
    def expander(at: int, target: CelNode, arguments: list[CelNode]) -> CelNode:
        more = CallNode(at, "_+_", [_result(at), ConstantNode(at, 1)])
        step = CallNode(at, "_?_:_", [arguments[-1], more, _result(at)])
        result = CallNode(at, "_==_", [_result(at), ConstantNode(at, 1)])
        return _loop(at, target, variables(arguments), ConstantNode(at, 0), step, result)

    return expander


def _loop(at: int, target: CelNode, variables: tuple[str, str], start: CelNode, step: CelNode, result: CelNode) -> Loop:
    return Loop(at, target, *variables, HIDDEN_RESULT, start, ConstantNode(at, True), step, result)


def _collecting(
    more: Callable[[int, list[CelNode]], CelNode],
    start: Callable[[int], CelNode],
    variables: Callable[[list[CelNode]], tuple[str, str]],
    plain: int,
) -> Expander:
    """Return a macro, such as `map()` or `filter()`, that collects results, with an optional condition."""

    def expander(at: int, target: CelNode, arguments: list[CelNode]) -> CelNode:
        names = variables(arguments)
        step = more(at, arguments)
        if len(arguments) > plain:
            step = CallNode(at, "_?_:_", [arguments[-2], step, _result(at)])
        return _loop(at, target, names, start(at), step, _result(at))

    return expander


def _append(at: int, arguments: list[CelNode]) -> CelNode:
    return CallNode(at, "_+_", [_result(at), ListOf(at, [arguments[-1]])])


def _insert(at: int, arguments: list[CelNode]) -> CelNode:
    key = arguments[0]
    return CallNode(
        at, "cel.@mapInsert", [_result(at), Name(at, key.name if isinstance(key, Name) else ""), arguments[-1]]
    )


def _insert_entries(at: int, arguments: list[CelNode]) -> CelNode:
    return CallNode(at, "cel.@mapInsert", [_result(at), arguments[-1]])


def _empty_list(at: int) -> CelNode:
    return ListOf(at, [])


def _empty_map(at: int) -> CelNode:
    return MapOf(at, [])


def _filter(at: int, target: CelNode, arguments: list[CelNode]) -> CelNode:
    names = _IDENTIFIER(arguments)
    kept = CallNode(at, "_+_", [_result(at), ListOf(at, [arguments[0]])])
    step = CallNode(at, "_?_:_", [arguments[1], kept, _result(at)])
    return _loop(at, target, names, _empty_list(at), step, _result(at))


def binding(at: int, name: str, start: CelNode, result: CelNode) -> Loop:
    """Return the node for `cel.bind()`: a loop without iterations that binds a value to a name."""
    return Loop(at, _empty_list(at), UNUSED, "", name, start, ConstantNode(at, False), Name(at, name), result)


def _bind(at: int, target: CelNode, arguments: list[CelNode]) -> CelNode | None:
    if not (isinstance(target, Name) and target.name == "cel"):
        return None
    name = _name_of(arguments[0], "cel.bind() variable names must be simple identifiers")
    return binding(at, name, arguments[1], arguments[2])


def _opt_map(function: str) -> Expander:
    """Return the macro `optMap` or `optFlatMap`, whose expansion contains the target twice, as in cel-go."""

    def expander(at: int, target: CelNode, arguments: list[CelNode]) -> CelNode:
        name = _name_of(arguments[0], f"{function}() variable name must be a simple identifier")
        present = CallNode(at, "hasValue", [], Name(at, _OPTIONAL))
        value = binding(at, name, CallNode(at, "value", [], Name(at, _OPTIONAL)), arguments[1])
        made = CallNode(at, "optional.of", [value]) if function == "optMap" else value
        return binding(at, _OPTIONAL, target, CallNode(at, "_?_:_", [present, made, CallNode(at, "optional.none", [])]))

    return expander


def _sort_by(at: int, target: CelNode, arguments: list[CelNode]) -> CelNode:
    if not isinstance(target, ListOf | Select | Name | Loop | CallNode):
        raise MacroError(
            target.at,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    keys = _METHODS["map", 2](at, Name(at, _SORTED), arguments)
    call = CallNode(at, "@sortByAssociatedKeys", [keys] if keys else [], Name(at, _SORTED))
    return binding(at, _SORTED, target, call)


_METHODS: Final[dict[tuple[str, int], Expander]] = {
    ("all", 2): _quantifier(True, "_&&_", _SIMPLE),
    ("all", 3): _quantifier(True, "_&&_", _variables),
    ("exists", 2): _quantifier(False, "_||_", _SIMPLE),
    ("exists", 3): _quantifier(False, "_||_", _variables),
    ("exists_one", 2): _exactly_one(_SIMPLE),
    ("exists_one", 3): _exactly_one(_variables),
    ("existsOne", 3): _exactly_one(_variables),
    ("map", 2): _collecting(_append, _empty_list, _IDENTIFIER, 2),
    ("map", 3): _collecting(_append, _empty_list, _IDENTIFIER, 2),
    ("filter", 2): _filter,
    ("transformList", 3): _collecting(_append, _empty_list, _variables, 3),
    ("transformList", 4): _collecting(_append, _empty_list, _variables, 3),
    ("transformMap", 3): _collecting(_insert, _empty_map, _variables, 3),
    ("transformMap", 4): _collecting(_insert, _empty_map, _variables, 3),
    ("transformMapEntry", 3): _collecting(_insert_entries, _empty_map, _variables, 3),
    ("transformMapEntry", 4): _collecting(_insert_entries, _empty_map, _variables, 3),
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map("optMap"),
    ("optFlatMap", 2): _opt_map("optFlatMap"),
    ("sortBy", 2): _sort_by,
}
