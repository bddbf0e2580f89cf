"""The nodes of a syntax tree, with the place of each in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

HIDDEN_RESULT: Final = "@result"
"""The name of the value that a macro's loop builds; nobody can write it."""


@dataclass(slots=True, eq=False)
class CelNode:
    """A part of an expression; `at` is its offset in code points, `depth` how deep its text is nested."""

    at: int
    depth: int = field(default=0, kw_only=True)


@dataclass(slots=True, eq=False)
class Missing(CelNode):
    """What stands where a text is wrong."""


@dataclass(slots=True, eq=False)
class ConstantNode(CelNode):
    """A constant."""

    value: Any


@dataclass(slots=True, eq=False)
class Name(CelNode):
    """A variable, a type, or the first part of a qualified name."""

    name: str


@dataclass(slots=True, eq=False)
class Select(CelNode):
    """A field of an operand; `test` where has() asks whether it is there."""

    operand: CelNode
    field_name: str
    test: bool = False


@dataclass(slots=True, eq=False)
class CallNode(CelNode):
    """A function, an operator or, with a target, a method."""

    function: str
    arguments: list[CelNode]
    target: CelNode | None = None


@dataclass(slots=True, eq=False)
class ListOf(CelNode):
    """A list literal; `optional` are the places of elements written with `?`."""

    elements: list[CelNode]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """A key with its value, or the field of a message with its value."""

    at: int
    key: CelNode | str
    value: CelNode
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapOf(CelNode):
    """A map literal."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class MessageNode(CelNode):
    """A message literal."""

    type_name: str
    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Loop(CelNode):
    """What a macro becomes: a loop over a list or a map that builds a result."""

    over: CelNode
    variable: str
    second: str
    result_name: str
    start: CelNode
    condition: CelNode
    step: CelNode
    result: CelNode


def qualified_name(node: CelNode) -> str | None:
    """Return the dotted name that a node may be, None where it is something else."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.test:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field_name}"
    return None


def children(node: CelNode) -> list[CelNode]:
    """Return the nodes directly below one, in evaluation order."""
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
    """Return a node and all below it, from the outside in."""
    found, waiting = [], [node]
    while waiting:
        found.append(one := waiting.pop())
        waiting.extend(reversed(children(one)))
    return found
