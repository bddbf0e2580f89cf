"""Texts of nodes besides labels, as columns: conditions, addresses, versions, values and effects of taints.

A text gets a column when a rule first reads it; nodes that are stored later update the column. Rules can compute keys
from pods, so only the columns used last are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from policysched.model.objects import Node, Taint
from policysched.state.tables.columns import Column, ColumnSet
from policysched.state.tables.interner import MAX_KEYS, MISSING, Strings

EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
"""The effects of taints, strongest first."""


class NodeText(NamedTuple):
    """A text that nodes have, such as the status of a condition: the kind of text, and a key such as the type."""

    kind: str
    key: str = ""


def strongest_taint(taints: Iterable[Taint], key: str) -> Taint | None:
    """Return the taint with a key; of several, the taint with the strongest effect."""
    found = [taint for taint in taints if taint.key == key]
    return min(found, key=lambda taint: EFFECTS.index(taint.effect) if taint.effect in EFFECTS else len(EFFECTS),
               default=None)  # fmt: skip


def _taint_value(node: Node, key: str) -> str | None:
    taint = strongest_taint(node.spec.taints, key)
    return None if taint is None else taint.value


def _taint_effect(node: Node, key: str) -> str | None:
    taint = strongest_taint(node.spec.taints, key)
    return None if taint is None else taint.effect


def _runtime(node: Node, _: str) -> str | None:
    return node.status.node_info.container_runtime_version.partition("://")[0] or None


def _runtime_version(node: Node, _: str) -> str | None:
    return node.status.node_info.container_runtime_version.partition("://")[2] or None


TEXTS: Final[Mapping[str, Callable[[Node, str], str | None]]] = {
    "conditions": lambda node, key: next((one.status for one in node.status.conditions if one.type == key), None),
    "addresses": lambda node, key: next((one.address for one in node.status.addresses if one.type == key), None),
    "taint value": _taint_value,
    "taint effect": _taint_effect,
    "kubelet_version": lambda node, _: node.status.node_info.kubelet_version or None,
    "kernel_version": lambda node, _: node.status.node_info.kernel_version or None,
    "container_runtime": _runtime,
    "container_runtime_version": _runtime_version,
    "os_image": lambda node, _: node.status.node_info.os_image or None,
}
"""For each kind of text, a function that reads the text from a Node; None if the node has no such text."""


class NodeTexts:
    """The texts of nodes that rules read, one array over nodes for each text, created at its first use.

    Shapes: data (capacity,) int32 codes.
    Missing: −1.
    """

    __slots__ = ("_by_text", "_columns", "_strings")

    def __init__(self, columns: ColumnSet, strings: Strings) -> None:
        self._columns = columns
        self._strings = strings
        self._by_text: dict[NodeText, Column] = {}

    def __len__(self) -> int:
        """Return the number of texts for which an array exists."""
        return len(self._by_text)

    def column(self, text: NodeText, nodes: Iterable[Node | None]) -> Column:
        """Return the array with the codes of a text, such as a condition's status; create it at the first use.

        Cost: O(1), at the first use O(nodes).
        """
        column = self._by_text.pop(text, None)
        if column is None:
            column = self._build(text, nodes)
        self._by_text[text] = column
        return column

    def store(self, row: int, node: Node | None) -> None:
        """Write the texts of a node into the arrays; None clears the row."""
        for text, column in self._by_text.items():
            column.data[row] = MISSING if node is None else self._code(text, node)

    def _build(self, text: NodeText, nodes: Iterable[Node | None]) -> Column:
        if len(self._by_text) == MAX_KEYS:
            del self._by_text[next(iter(self._by_text))]
        column = self._columns.new(np.int32, MISSING)
        self._strings.hold(column)
        for row, node in enumerate(nodes):
            if node is not None:
                column.data[row] = self._code(text, node)
        return column

    def _code(self, text: NodeText, node: Node) -> int:
        value = TEXTS[text.kind](node, text.key)
        return MISSING if value is None else self._strings.code(value)
