"""`ObjectSelectors`: compiled label selectors of objects, such as disruption budgets and volume claims.

A selector may be as large as an object may be, so decisions do not compile it.
"""

from __future__ import annotations

from typing import NamedTuple

from policysched.model.objects import LabelSelector
from policysched.model.selection.indexed_selector import IndexedSelector
from policysched.model.selection.selectors import SelectorError


class ObjectSelector(NamedTuple):
    """A compiled label selector, or the reason why the selector is invalid."""

    stated: LabelSelector
    selector: IndexedSelector | None
    error: str = ""


class ObjectSelectors:
    """The compiled label selectors of all objects of one kind."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[str, ObjectSelector] = {}
        """The compiled selectors by `namespace/name` of the object."""

    def put(self, key: str, stated: LabelSelector | None) -> None:
        """Compile the selector of an object if it changed; None removes the object's selector.

        Cost: about 1 µs for each requirement and value.
        """
        known = self._by_key.get(key)
        if stated is None:
            self._by_key.pop(key, None)
        elif known is None or known.stated != stated:
            self._by_key[key] = compiled(stated)
        else:
            self._by_key[key] = known._replace(stated=stated)

    def of(self, key: str, stated: LabelSelector) -> ObjectSelector:
        """Return an object's compiled selector; it may be that of another version of the object than the stored one."""
        known = self._by_key.get(key)
        return known if known is not None and known.stated is stated else compiled(stated)


def compiled(stated: LabelSelector) -> ObjectSelector:
    """Return a compiled label selector, or the reason why the selector is invalid."""
    try:
        return ObjectSelector(stated, IndexedSelector(stated))
    except SelectorError as error:
        return ObjectSelector(stated, None, str(error))
