"""Nodes of a CEL syntax tree, with their offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

HIDDEN_RESULT: Final = "@result"
"""Name of the variable with the result of a macro's loop, which expressions cannot contain."""


@dataclass(slots=True, eq=False)
class CelNode:
    """Base of syntax tree nodes; `at` is the offset in code points, `depth` the nesting depth."""

    at: int
    depth: int = field(default=0, kw_only=True)


@dataclass(slots=True, eq=False)
class Missing(CelNode):
    """The node in place of an invalid part of an expression."""


@dataclass(slots=True, eq=False)
class ConstantNode(CelNode):
    """Node of a constant."""

    value: Any


@dataclass(slots=True, eq=False)
class Name(CelNode):
    """Node of a variable, a type, or the first part of a qualified name."""

    name: str


@dataclass(slots=True, eq=False)
class Select(CelNode):
    """The node of a field access; `test` is true for `has()`."""

    operand: CelNode
    field_name: str
    test: bool = False


@dataclass(slots=True, eq=False)
class CallNode(CelNode):
    """Node of a function call, an operator or, with a target, a method call."""

    function: str
    arguments: list[CelNode]
    target: CelNode | None = None


@dataclass(slots=True, eq=False)
class ListOf(CelNode):
    """Node of a list literal; `optional` has the indexes of elements with `?`."""

    elements: list[CelNode]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """A key with its value in a map literal, or a field with its value in a message literal."""

    at: int
    key: CelNode | str
    value: CelNode
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapOf(CelNode):
    """Node of a map literal."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class MessageNode(CelNode):
    """Node of a message literal."""

    type_name: str
    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Loop(CelNode):
    """Node of an expanded macro: a loop over a list or a map that builds a result."""

    over: CelNode
    variable: str
    second: str
    result_name: str
    start: CelNode
    condition: CelNode
    step: CelNode
    result: CelNode


def qualified_name(node: CelNode) -> str | None:
    """Return the dotted name that a node represents; None if the node is no dotted name."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.test:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field_name}"
    return None


def children(node: CelNode) -> list[CelNode]:
    """Return the children of a node in evaluation order."""
    match node:
        case Select():
            return [node.operand]
        case CallNode():
            return ([node.target] if node.target else []) + node.arguments
        case ListOf():
            return node.elements
        case MapOf() | MessageNode():
            return [part for one in node.entries for part in (one.key, one.value) if isinstance(part, CelNode)]
        case Loop():
            return [node.over, node.start, node.condition, node.step, node.result]
    return []


def walk(node: CelNode) -> list[CelNode]:
    """Yield a node and all nodes below it, parents first."""
    found, waiting = [], [node]
    while waiting:
        found.append(one := waiting.pop())
        waiting.extend(reversed(children(one)))
    return found
