"""Rules of the API server for objects: schemas, defaults, validation, patches, selectors.

Input: decoded JSON. Output: complete and valid objects, or a Status with the errors. Fields of built-in kinds are in
`fields/*.txt`. Nothing is stored. The sandbox serves these kinds; `check` and `dry-run` validate objects by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

Json = dict[str, Any]
encode = msgspec.json.Encoder().encode
MAX_DEPTH = 910
"""Largest nesting depth of a decoded value; a deeper value raises RecursionError.

Every supported Python version decodes and encodes this depth.
"""
_decode = msgspec.json.Decoder().decode


def decode(raw: bytes) -> Any:
    """Decode JSON; raise an error for values nested too deeply.

    Raises:
        RecursionError: the value is nested deeper than `MAX_DEPTH`, or than the decoder supports.
        msgspec.DecodeError: the text is not JSON.
    """
    value = _decode(raw)
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _is_too_deep(value):
        raise RecursionError(f"nested deeper than {MAX_DEPTH} levels")
    return value


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [one for each in level if isinstance(each, dict | list) for one in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: Json | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
