"""Finds the device attributes that an expression reads, as devices with equal attributes give the same result.

Source: k8s.io/dynamic-resource-allocation v0.36 cel/compile.go (the variable `device`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policysched.cel.declarations import VARIABLE
from policysched.cel.syntax.tree import CallNode, CelNode, ConstantNode, Name, Select, children

Attribute = tuple[str, str]
"""The domain and the identifier of a device attribute."""
_ELEMENTS: Final = frozenset({"_[_]", "_[?_]", "_?._"})
_ATTRIBUTES: Final = "attributes"


def attributes_read(node: CelNode) -> frozenset[Attribute] | None:
    """Return the device attributes that an expression may read; None if it may read any."""
    found = set()
    for path in _paths(node):
        if not path:
            return None
        if path[0] == _ATTRIBUTES:
            if len(path) < 3:
                return None
            found.add((path[1], path[2]))
    return frozenset(found)


def _paths(node: CelNode) -> Iterator[tuple[str, ...]]:
    """Yield the constant path of each use of `device`, such as `("attributes", "gpu.example.com", "model")`."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        path = _path(one)
        if path is None:
            waiting.extend(children(one))
        else:
            yield path


def _path(node: CelNode) -> tuple[str, ...] | None:
    """Return the path from `device` to the value of a node; None if the node does not begin with `device`."""
    fields: list[str] = []
    while not isinstance(node, Name):
        if isinstance(node, Select):
            fields.append(node.field_name)
            node = node.operand
        elif isinstance(node, CallNode) and node.function in _ELEMENTS and node.target is None:
            node, key = node.arguments
            if not isinstance(key, ConstantNode) or not isinstance(key.value, str):
                return None
            fields.append(key.value)
        else:
            return None
    return tuple(reversed(fields)) if node.name.removeprefix(".") == VARIABLE else None
