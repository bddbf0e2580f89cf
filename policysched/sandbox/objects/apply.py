"""Server-side apply: what a manager applied is merged in, and what it no longer applies is taken out.

It remembers each manager's last configuration of each object and keeps no field owners: applying over another
manager's field is never a conflict here. Lists merge by the keys of the field table or the CRD's schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects.decoding import schema_of
from policysched.sandbox.objects.fieldtypes import Field, Type, fields, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policysched.sandbox.objects.resources import Resource

Json = dict[str, Any]
# a built-in field's type and merge key, or a schema; None: nothing is known
Kind = Type | Field | Json | None
_MAP, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


class Appliers:
    """The last configuration of every manager and object."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Json] = {}

    def merged(self, resource: Resource, present: Json, applied: Json, manager: str) -> Json:
        """Return the present object with a manager's new configuration in it."""
        root: Kind = schema_of(resource) if resource.custom is not None else type_of(resource)
        last = self._last.get((present["metadata"].get("uid", ""), manager), {})
        merged: Json = _apply(present, last, applied, root)
        return merged

    def remember(self, uid: str, manager: str, applied: Json) -> None:
        """Keep a configuration that was stored."""
        self._last[uid, manager] = applied


def _apply(present: Any, last: Any, applied: Any, kind: Kind) -> Any:
    if isinstance(applied, dict):
        old = present if isinstance(present, dict) else {}
        return _object(old, last if isinstance(last, dict) else {}, applied, kind)
    if isinstance(applied, list):
        keys = _merge_keys(kind)
        old_list = present if isinstance(present, list) else []
        before = last if isinstance(last, list) else []
        if keys is not None:
            return _list(old_list, before, applied, (keys, _item(kind)))
    return applied


def _object(present: Json, last: Json, applied: Json, kind: Kind) -> Json:
    merged = {name: value for name, value in present.items() if name in applied or name not in last}
    for name, value in applied.items():
        if value is not None:
            merged[name] = _apply(present.get(name), last.get(name), value, _member(kind, name))
    return merged


def _list(present: list[Any], last: list[Any], applied: list[Any], how: tuple[Sequence[str], Kind]) -> list[Any]:
    keys, item = how
    wanted = {_name(each, keys): each for each in applied}
    before = {_name(each, keys): each for each in last}
    merged = []
    for each in present:
        name = _name(each, keys)
        if name in wanted:
            merged.append(_apply(each, before.get(name), wanted.pop(name), item))
        elif name not in before:
            merged.append(each)
    return [*merged, *wanted.values()]


def _name(item: Any, keys: Sequence[str]) -> str:
    return repr([item.get(key) for key in keys]) if keys and isinstance(item, dict) else repr(item)


def _member(kind: Kind, name: str) -> Kind:
    if isinstance(kind, dict):
        if name == "metadata":
            return Type("struct", "meta.ObjectMeta")
        return (kind.get("properties") or {}).get(name) or kind.get("additionalProperties")
    inner = kind.type if isinstance(kind, Field) else kind
    if inner is None or inner.shape == "map":
        return inner.item if inner else None
    return fields(inner.name).get(name) if inner.shape == "struct" else None


def _item(kind: Kind) -> Kind:
    if isinstance(kind, dict):
        return kind.get("items")
    inner = kind.type if isinstance(kind, Field) else kind
    return inner.item if inner else None


def _merge_keys(kind: Kind) -> Sequence[str] | None:
    """Return the keys a list merges by, none of them for a set, and None where it is replaced."""
    if isinstance(kind, dict):
        found: Sequence[str] = kind.get(_KEYS) or ()
        return found if kind.get(_MAP) in ("map", "set") else None
    if isinstance(kind, Field) and kind.merge is not None:
        return (kind.merge,) if kind.merge else ()
    return None
