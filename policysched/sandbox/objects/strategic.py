"""Strategic merge patch: lists of the built-in kinds merge by their keys.

It knows the patch directives ($patch, $deleteFromPrimitiveList, $setElementOrder, $retainKeys) and reads merge
keys from the field table, not from the objects. It leaves the old object alone and returns a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects.errors import ApiError
from policysched.sandbox.objects.fieldtypes import fields

if TYPE_CHECKING:
    from policysched.sandbox.objects.fieldtypes import Type

Json = dict[str, Any]
_DELETE, _ORDER, _RETAIN = "$deleteFromPrimitiveList/", "$setElementOrder/", "$retainKeys"


def strategic_patch(value: Json, patch: Any, kind: Type | None) -> Json:
    """Apply a strategic merge patch to an object of a type (None: an untyped map)."""
    if not isinstance(patch, dict):
        raise ApiError(400, "unable to decode the patch: a strategic merge patch is an object")
    if patch.get("$patch") == "replace":
        return {name: _clean(item) for name, item in patch.items() if name != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    return _merge(value, patch, kind)


def _merge(value: Json, patch: Json, kind: Type | None) -> Json:
    retained = patch.get(_RETAIN)
    merged = {name: item for name, item in value.items() if retained is None or name in retained}
    for name, change in patch.items():
        if name.startswith(_DELETE):
            merged[name[len(_DELETE) :]] = _without(merged.get(name[len(_DELETE) :]), change)
        elif not name.startswith("$"):
            _merge_field(merged, name, change, kind)
    for name, order in patch.items():
        if name.startswith(_ORDER):
            _reorder(merged, name[len(_ORDER) :], order, kind)
    return merged


def _merge_field(merged: Json, name: str, change: Any, kind: Type | None) -> None:
    inner, merge = _field(kind, name)
    if change is None:
        merged.pop(name, None)
    elif isinstance(change, dict):
        old = merged.get(name)
        merged[name] = strategic_patch(old if isinstance(old, dict) else {}, change, inner)
    elif isinstance(change, list) and merge is not None:
        item = inner.item if inner else None
        merged[name] = _merge_list(merged.get(name) or [], change, merge, item)
    else:
        merged[name] = _clean(change)


def _field(kind: Type | None, name: str) -> tuple[Type | None, str | None]:
    if kind is None:
        return None, None
    if kind.shape == "map":
        return kind.item, None
    row = fields(kind.name).get(name) if kind.shape == "struct" else None
    return (row.type, row.merge) if row else (None, None)


def _merge_list(old: list[Any], change: list[Any], key: str, item: Type | None) -> list[Any]:
    if not key:
        return old + [each for each in change if each not in old]
    if any(each.get("$patch") == "replace" for each in change):
        return [_clean(each) for each in change if "$patch" not in each]
    merged = list(old)
    for each in change:
        if key not in each:
            raise ApiError(400, f"map: {each} does not contain declared merge key: {key}")
        _merge_item(merged, each, key, item)
    return merged


def _merge_item(merged: list[Any], change: Json, key: str, item: Type | None) -> None:
    at = next((index for index, old in enumerate(merged) if old.get(key) == change[key]), None)
    if change.get("$patch") == "delete":
        merged[:] = [old for old in merged if old.get(key) != change[key]]
    elif at is None:
        merged.append(strategic_patch({}, change, item))
    else:
        merged[at] = strategic_patch(merged[at], change, item)


def _without(old: Any, gone: Any) -> list[Any]:
    return [each for each in old or [] if each not in gone]


def _reorder(merged: Json, name: str, order: list[Any], kind: Type | None) -> None:
    """Put the listed elements into the listed order; the others keep their places after their neighbours."""
    items, (_, key) = merged.get(name), _field(kind, name)
    if not isinstance(items, list) or key is None:
        return
    wanted = [each[key] if key else each for each in order]
    named = [item for item in items if (item.get(key) if key else item) in wanted]
    named.sort(key=lambda item: wanted.index(item.get(key) if key else item))
    ordered = iter(named)
    merged[name] = [next(ordered) if item in named else item for item in items]


def _clean(value: Any) -> Any:
    """Take directives and nulls out of a part that becomes new."""
    match value:
        case dict():
            return {name: _clean(item) for name, item in value.items() if item is not None and not name.startswith("$")}
        case list():
            return [_clean(item) for item in value]
    return value
