"""Patches: JSON patch, merge patch, strategic merge patch and server-side apply.

The last two merge lists by the keys of the object's schema, built-in or custom. Every function returns a new object and
does not change the old one, because stored objects are shared.
"""

from __future__ import annotations

from typing import Any

from policysched.apimachinery import Json, decode, encode
from policysched.apimachinery.errors import StatusError
from policysched.apimachinery.schema import member, merge_keys

MOST_OPERATIONS = 10_000
MOST_COPIED = 3 << 20
"""Largest total size of the values that a JSON patch may copy, as in the API server. Units: bytes."""
_DELETE, _ORDER, _RETAIN = "$deleteFromPrimitiveList/", "$setElementOrder/", "$retainKeys"


def merge_patch(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), change)
    return merged


def json_patch(value: Json, operations: Any) -> Json:
    """Apply a JSON patch (RFC 6902); a failed operation is a 422 error, a malformed patch a 400 error.

    Raises:
        RecursionError: the result is nested too deeply to be encoded.
    """
    if not isinstance(operations, list):
        raise StatusError(400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > MOST_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        raise StatusError(413, text, "RequestEntityTooLarge")
    document: Any = {"": _copied(value)}
    copied = 0
    for operation in operations:
        try:
            if operation["op"] == "copy":
                copied += len(encode(_read(document, operation["from"])))
            if copied > MOST_COPIED:
                text = f"Unable to complete the copy, the accumulated size increase of copy is {copied}"
                raise StatusError(422, text)
            _operate(document, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            text = "the server rejected our request due to an error in our request"
            raise StatusError(422, text, details={}) from error
    patched: Json = _copied(document[""])
    return patched


def _copied(value: Any) -> Any:
    """Return a deep copy of a value; raise RecursionError if the value is nested deeper than `MAX_DEPTH`."""
    return decode(encode(value))


def _parent(document: Any, pointer: str) -> tuple[Any, Any]:
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]
    for step in steps:
        document = document[int(step) if isinstance(document, list) else step]
    if not isinstance(document, list):
        return document, last
    if last != "-" and not last.isdigit():
        raise ValueError(f"not an index: {last}")
    return document, len(document) if last == "-" else int(last)


def _read(document: Any, pointer: str) -> Any:
    holder, at = _parent(document, pointer)
    return holder[at]


def _remove(document: Any, pointer: str) -> Any:
    holder, at = _parent(document, pointer)
    value = holder[at]
    del holder[at]
    return value


def _put(document: Any, pointer: str, value: Any) -> None:
    holder, at = _parent(document, pointer)
    if not isinstance(holder, list):
        holder[at] = value
    elif at > len(holder):
        raise IndexError(f"index {at} out of bounds")
    else:
        holder.insert(at, value)


def _operate(document: Any, operation: Json) -> None:
    path = operation["path"]
    match operation["op"]:
        case "add":
            _put(document, path, operation["value"])
        case "remove":
            _remove(document, path)
        case "replace":
            holder, at = _parent(document, path)
            holder[at]  # a missing member cannot be replaced
            holder[at] = operation["value"]
        case "move":
            _put(document, path, _remove(document, operation["from"]))
        case "copy":
            _put(document, path, _copied(_read(document, operation["from"])))
        case "test":
            holder, at = _parent(document, path)
            found = holder.get(at) if isinstance(holder, dict) else holder[at]  # a missing member is null
            if found != operation["value"]:
                raise ValueError("testing value failed")
        case other:
            raise ValueError(f"not an operation: {other}")


def strategic_patch(value: Json, patch: Any, schema: Json) -> Json:
    """Apply a strategic merge patch: lists are merged by keys in the schema, names with $ are directives."""
    if not isinstance(patch, dict):
        raise StatusError(400, "unable to decode the patch: a strategic merge patch is an object")
    if patch.get("$patch") == "replace":
        return {name: _clean(item) for name, item in patch.items() if name != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    return _merge(value, patch, schema)


def _merge(value: Json, patch: Json, schema: Json) -> Json:
    retained = patch.get(_RETAIN)
    merged = {name: item for name, item in value.items() if retained is None or name in retained}
    for name, change in patch.items():
        if name.startswith(_DELETE):
            listed = merged.get(name[len(_DELETE) :]) or []
            merged[name[len(_DELETE) :]] = [each for each in listed if each not in change]
        elif not name.startswith("$"):
            _merge_field(merged, name, change, schema)
    for name, order in patch.items():
        if name.startswith(_ORDER):
            _reorder(merged, name[len(_ORDER) :], order, schema)
    return merged


def _merge_field(merged: Json, name: str, change: Any, schema: Json) -> None:
    inner = member(schema, name)
    key = _merge_key(inner)
    if change is None:
        merged.pop(name, None)
    elif isinstance(change, dict):
        old = merged.get(name)
        merged[name] = strategic_patch(old if isinstance(old, dict) else {}, change, inner)
    elif isinstance(change, list) and key is not None:
        merged[name] = _merge_list(merged.get(name) or [], change, key, inner.get("items") or {})
    else:
        merged[name] = _clean(change)


def _merge_key(schema: Json) -> str | None:
    """Return the merge key of a list in a built-in kind; empty for a set, None if a patch replaces the list."""
    keys = merge_keys(schema)
    return None if keys is None else "".join(keys)


def _merge_list(old: list[Any], change: list[Any], key: str, item: Json) -> list[Any]:
    if not key:
        return old + [each for each in change if each not in old]
    if any(each.get("$patch") == "replace" for each in change):
        return [_clean(each) for each in change if "$patch" not in each]
    merged = list(old)
    for each in change:
        if key not in each:
            raise StatusError(400, f"map: {each} does not contain declared merge key: {key}")
        _merge_item(merged, each, key, item)
    return merged


def _merge_item(merged: list[Any], change: Json, key: str, item: Json) -> None:
    at = next((index for index, old in enumerate(merged) if old.get(key) == change[key]), None)
    if change.get("$patch") == "delete":
        merged[:] = [old for old in merged if old.get(key) != change[key]]
    elif at is None:
        merged.append(strategic_patch({}, change, item))
    else:
        merged[at] = strategic_patch(merged[at], change, item)


def _reorder(merged: Json, name: str, order: list[Any], schema: Json) -> None:
    """Sort the list elements named in a patch's `$setElementOrder`; other elements keep their positions."""
    items, key = merged.get(name), _merge_key(member(schema, name))
    if not isinstance(items, list) or key is None:
        return
    wanted = [each[key] if key else each for each in order]
    named = [item for item in items if (item.get(key) if key else item) in wanted]
    named.sort(key=lambda item: wanted.index(item.get(key) if key else item))
    ordered = iter(named)
    merged[name] = [next(ordered) if item in named else item for item in items]


def _clean(value: Any) -> Any:
    """Return a value from a strategic merge patch without directives and nulls, to add it to an object."""
    match value:
        case dict():
            return {name: _clean(item) for name, item in value.items() if item is not None and not name.startswith("$")}
        case list():
            return [_clean(item) for item in value]
    return value


def apply_patch(present: Any, last: Any, applied: Any, schema: Json) -> Any:
    """Merge a manager's applied configuration into a value; remove fields that only its previous one contained."""
    if isinstance(applied, dict):
        old = present if isinstance(present, dict) else {}
        return _apply_fields(old, last if isinstance(last, dict) else {}, applied, schema)
    if isinstance(applied, list) and merge_keys(schema) is not None:
        old_list = present if isinstance(present, list) else []
        return _apply_items(old_list, last if isinstance(last, list) else [], applied, schema)
    return applied


def _apply_fields(present: Json, last: Json, applied: Json, schema: Json) -> Json:
    merged = {name: value for name, value in present.items() if name in applied or name not in last}
    for name, value in applied.items():
        if value is not None:
            merged[name] = apply_patch(present.get(name), last.get(name), value, member(schema, name))
    return merged


def _apply_items(present: list[Any], last: list[Any], applied: list[Any], schema: Json) -> list[Any]:
    keys, item = merge_keys(schema) or (), schema.get("items") or {}
    wanted = {_identity(each, keys): each for each in applied}
    before = {_identity(each, keys): each for each in last}
    merged = []
    for each in present:
        name = _identity(each, keys)
        if name in wanted:
            merged.append(apply_patch(each, before.get(name), wanted.pop(name), item))
        elif name not in before:
            merged.append(each)
    return [*merged, *wanted.values()]


def _identity(item: Any, keys: tuple[str, ...]) -> str:
    return repr([item.get(key) for key in keys]) if keys and isinstance(item, dict) else repr(item)
