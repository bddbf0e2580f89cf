"""CEL functions on strings, with offsets in code points.

Source: cel-go v0.26 and v0.29 ext/strings.go, common/types/string.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from policysched.budget import Budget
from policysched.cel.libraries.formatting import format_text
from policysched.cel.values.scalars import NO_OVERLOAD, Error
from policysched.cel.values.texts import shown

_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}
_ESCAPES: Final = str.maketrans({
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
})  # fmt: skip


def _outside(place: int) -> Error:
    return Error(f"index out of range: {place}")


def _char_at(text: str, place: int) -> Any:
    return text[place : place + 1] if 0 <= place <= len(text) else _outside(place)


def _index_of(text: str, part: str, start: int = 0) -> Any:
    if not part:
        return start
    if start < 0:
        return _outside(start)
    return text.find(part, start)


def _index_from(text: str, part: str, start: int) -> Any:
    if not part and start >= 0:
        return min(start, len(text))
    return _outside(start) if start < 0 else text.find(part, start)


def _last_index_of(text: str, part: str) -> Any:
    return text.rfind(part) if part else len(text)


def _last_index_before(text: str, part: str, start: int) -> Any:
    if not part:
        return start
    if start < 0:
        return _outside(start)
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


def _last_index_up_to(text: str, part: str, start: int) -> Any:
    if start < 0:
        return _outside(start)
    return _last_index_before(text, part, start) if part else min(start, len(text))


def _replace(work: Budget, text: str, old: str, new: str, times: int = -1) -> str:
    number = text.count(old) if old else len(text) + 1
    work.spend((min(number, times) if times >= 0 else number) * len(new) // 10)
    return text.replace(old, new, times)


def _split(work: Budget, text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    work.spend(len(text) // 5)
    if separator:
        return text.split(separator, most - 1 if most > 0 else -1)
    if 0 < most < len(text):
        return [*text[: most - 1], text[most - 1 :]]
    return list(text)


def _substring(text: str, start: int) -> Any:
    return text[start:] if 0 <= start <= len(text) else _outside(start)


def _substring_to(text: str, start: int, end: int) -> Any:
    if start > end:
        return Error(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if not 0 <= place <= len(text):
            return _outside(place)
    return text[start:end]


def _join(work: Budget, parts: list[Any], separator: str = "") -> Any:
    for one in parts:
        if type(one) is not str:
            return Error(f"join: invalid input: {shown(one)}")
    work.spend(len(parts) + (sum(map(len, parts)) + len(separator) * len(parts)) // 5)
    return separator.join(parts)


def _of_strings(function: Callable[[str, str], bool]) -> Callable[[Any, Any], Any]:
    """Wrap a function on two strings so that it returns a CEL error for arguments of other types."""

    def apply(text: Any, part: Any) -> Any:
        return function(text, part) if type(text) is str and type(part) is str else NO_OVERLOAD

    return apply


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "contains_string": _of_strings(str.__contains__),
    "ends_with_string": _of_strings(str.endswith),
    "starts_with_string": _of_strings(str.startswith),
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_index_of_string_int_0_29": _index_from,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_before,
    "string_last_index_of_string_int_0_29": _last_index_up_to,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_substring_int": _substring,
    "string_substring_int_int": _substring_to,
    "string_trim": lambda text: text.strip(_SPACE),
    "strings_quote": _quote,
}
SPENDING: Final[dict[str, Callable[..., Any]]] = {
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_format": format_text,
    "list_join": _join,
    "list_join_string": _join,
}
"""String functions whose first argument is a budget; the sizes of the other arguments are subtracted from it."""
