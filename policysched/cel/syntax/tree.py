"""The nodes of a syntax tree, with the place of each in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

HIDDEN_RESULT: Final = "@result"
"""The name of the value that a macro's loop builds; nobody can write it."""


@dataclass(slots=True, eq=False)
class Node:
    """A part of an expression; `at` is its offset in code points, `depth` how deep its text is nested."""

    at: int
    depth: int = field(default=0, kw_only=True)


@dataclass(slots=True, eq=False)
class Missing(Node):
    """What stands where a text is wrong."""


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A constant."""

    value: Any


@dataclass(slots=True, eq=False)
class Name(Node):
    """A variable, a type, or the first part of a qualified name."""

    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """A field of an operand; `test` where has() asks whether it is there."""

    operand: Node
    field_name: str
    test: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """A function, an operator or, with a target, a method."""

    function: str
    arguments: list[Node]
    target: Node | None = None


@dataclass(slots=True, eq=False)
class ListOf(Node):
    """A list literal; `optional` are the places of elements written with `?`."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """A key with its value, or the field of a message with its value."""

    at: int
    key: Node | str
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapOf(Node):
    """A map literal."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Message(Node):
    """A message literal."""

    type_name: str
    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Loop(Node):
    """What a macro becomes: a loop over a list or a map that builds a result."""

    over: Node
    variable: str
    second: str
    result_name: str
    start: Node
    condition: Node
    step: Node
    result: Node


def qualified_name(node: Node) -> str | None:
    """Return the dotted name that a node may be, None where it is something else."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.test:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field_name}"
    return None


def children(node: Node) -> list[Node]:
    """Return the nodes directly below one, in evaluation order."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return ([node.target] if node.target else []) + node.arguments
        case ListOf():
            return node.elements
        case MapOf() | Message():
            return [part for one in node.entries for part in (one.key, one.value) if isinstance(part, Node)]
        case Loop():
            return [node.over, node.start, node.condition, node.step, node.result]
    return []


def walk(node: Node) -> list[Node]:
    """Return a node and all below it, from the outside in."""
    found, waiting = [], [node]
    while waiting:
        found.append(one := waiting.pop())
        waiting.extend(reversed(children(one)))
    return found
