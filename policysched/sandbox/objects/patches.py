"""The three kinds of patch: JSON patch, merge patch and strategic merge patch.

It knows patch formats and, for the strategic one, the field table's merge keys; not what the objects mean.
Every function returns a new object and leaves the old one alone, since stored objects are shared.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects.errors import ApiError
from policysched.sandbox.storage.store import encode

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
MOST_OPERATIONS = 10_000
MOST_COPIED = 3 << 20
"""How much the copies of a JSON patch may add, as in the API server. Units: bytes."""


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
    """Apply a JSON patch (RFC 6902); a failed operation is 422, a malformed list 400."""
    if not isinstance(operations, list):
        raise ApiError(400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > MOST_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, text, "RequestEntityTooLarge")
    document: Any = {"": copy.deepcopy(value)}
    copied = 0
    for operation in operations:
        try:
            copied += _copied(document, operation)
            if copied > MOST_COPIED:
                raise ApiError(422, f"Unable to complete the copy, the accumulated size increase of copy is {copied}")
            _OPERATIONS[operation["op"]](document, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ApiError(422, "the server rejected our request due to an error in our request", details={}) from error
    patched: Json = document[""]
    return patched


def _copied(document: Any, operation: Json) -> int:
    """Give how much an operation copies. Units: bytes."""
    return len(encode(_read(document, operation["from"]))) if operation["op"] == "copy" else 0


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _parent(document: Any, pointer: str) -> tuple[Any, Any]:
    *steps, last = _steps(pointer)
    for step in steps:
        document = document[int(step) if isinstance(document, list) else step]
    if isinstance(document, list):
        return document, len(document) if last == "-" else _index(last)
    return document, last


def _index(text: str) -> int:
    if not text.isdigit():
        raise ValueError(f"not an index: {text}")
    return int(text)


def _read(document: Any, pointer: str) -> Any:
    holder, at = _parent(document, pointer)
    return holder[at]


def _put(document: Any, pointer: str, value: Any) -> None:
    holder, at = _parent(document, pointer)
    if isinstance(holder, list):
        if at > len(holder):
            raise IndexError(f"index {at} out of bounds")
        holder.insert(at, value)
    else:
        holder[at] = value


def _add(document: Any, operation: Json) -> None:
    _put(document, operation["path"], operation["value"])


def _remove(document: Any, operation: Json) -> None:
    holder, at = _parent(document, operation["path"])
    del holder[at]


def _replace(document: Any, operation: Json) -> None:
    holder, at = _parent(document, operation["path"])
    holder[at]  # a missing member cannot be replaced
    holder[at] = operation["value"]


def _move(document: Any, operation: Json) -> None:
    value = _read(document, operation["from"])
    _remove(document, {"path": operation["from"]})
    _put(document, operation["path"], value)


def _copy(document: Any, operation: Json) -> None:
    _put(document, operation["path"], copy.deepcopy(_read(document, operation["from"])))


def _test(document: Any, operation: Json) -> None:
    if _read(document, operation["path"]) != operation["value"]:
        raise ValueError("testing value failed")


_OPERATIONS: dict[str, Callable[[Any, Json], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
