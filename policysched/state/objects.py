"""Objects of the kinds that need no columns: kept by name, each with the change that it makes.

Source: client-go/tools/cache/store.go.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, TypeVar

from policysched.model.kinds import KINDS
from policysched.state.changes import Change, change_of

T = TypeVar("T")


class ObjectTables:
    """The objects of each kind, by their keys: `namespace/name`, or the name where the kind has no namespaces."""

    __slots__ = ("_tables",)

    def __init__(self) -> None:
        self._tables: defaultdict[str, dict[str, Any]] = defaultdict(dict)

    def of(self, shape: type[T]) -> dict[str, T]:
        """Give the table of a kind; it stays the same one."""
        return self._tables[shape.__name__]

    def put(self, obj: Any) -> Change:
        """Take an object as it is now."""
        kind = KINDS[type(obj).__name__]
        table, key = self._tables[kind.kind], kind.key(obj)
        old = table.get(key)
        table[key] = obj
        return change_of(kind.resource, old, obj)

    def drop(self, obj: Any) -> Change:
        """Take note that an object is gone."""
        kind = KINDS[type(obj).__name__]
        return change_of(kind.resource, self._tables[kind.kind].pop(kind.key(obj), None), None)
