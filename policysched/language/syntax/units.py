"""Suggestions for invalid numbers and units: `4GB`, `5 min`, `2cores`, `1e3`, numbers with commas.

A key without brackets can look like one, too.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Final

from lark import Token

from policysched.language.ir.tree import Span
from policysched.language.ir.types import FACTORS, FIELDS, GROUPS, SECONDS
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.messages.foreign_syntax import written
from policysched.language.messages.suggestions import shown
from policysched.language.syntax.terminals import span_of

_UNITS: Final = (*(suffix for suffix in FACTORS if suffix not in {"", "%"}), *SECONDS)
_BYTES: Final = {suffix.lower(): suffix for suffix in _UNITS if suffix[0] in "kKMGTPE"}
_FOLDED: Final = {suffix.lower(): suffix for suffix in (*SECONDS, *_UNITS)}
_LONG: Final = re.compile(r"(milli)?(sec|second)s?|mins?|minutes?|hrs?|hours?|days?")
_CORES: Final = re.compile(r"v?(cpus?|cores?)", re.IGNORECASE)
_EXPONENT: Final = re.compile(r"[eE][0-9]+")
_ALL: Final = "units are m k M G T P E Ki Mi Gi Ti Pi Ei, and ms s min h d"

_NO_RANGES: Final = 'ranges are not supported; list all items, or for hours write clock("22:00", "05:00")'
_FIRST_GROUP: Final = re.compile(r"[1-9]\d{0,2}")
_GROUP: Final = re.compile(r"\d{3}(?!\d)")
NUMERIC: Final = frozenset({"NUMBER", "PERCENT", "QUANTITY", "DURATION"})


def is_apart_from(number: Token, word: str) -> bool:
    """Return whether the word behind a number and a space is, or resembles, a unit."""
    folded = word.lower()
    known = word in _UNITS or folded in _FOLDED or folded.removesuffix("b") in _BYTES
    return number.type == "NUMBER" and bool(known or _LONG.fullmatch(folded) or _CORES.fullmatch(word))


def apart(text: str, number: Token, unit: str, end: int) -> Diagnostic:
    """Return the diagnostic for a space between a number and its unit."""
    right = unit if unit in _UNITS else "" if _CORES.fullmatch(unit) else _meant(unit)
    return diagnose("E0100", text, Span(span_of(number).start, end), "apart", number=number, unit=right)


def unknown_unit(text: str, number: Token, end: int) -> Diagnostic:
    """Return the diagnostic of a number with an unknown unit."""
    start = span_of(number).start
    digits = str(number).rstrip("%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[start + len(digits) : end]
    if key := _key(text, Span(start, end)):
        return key
    return diagnose("E0102", text, Span(start, end), unit=unit, instead=_instead_of(digits, unit))


def _instead_of(digits: str, unit: str) -> str:
    if _CORES.fullmatch(unit):
        return f"cores are plain numbers; write `{digits}`"
    if _EXPONENT.fullmatch(unit):
        return "exponents are not supported; write all digits, or use k, M or G"
    meant = _meant(unit)
    return f"did you mean `{digits}{meant}`?" if meant else _ALL


def _meant(unit: str) -> str | None:
    """Return the unit that an unknown unit probably means; None if no unit is similar."""
    folded = unit.lower()
    if folded.endswith("b") and folded[:-1] in _BYTES:
        return _BYTES[folded[:-1]]
    if folded in _FOLDED:
        return _FOLDED[folded]
    if folded.startswith(("milli", "mon")):
        return "ms" if folded[2] == "l" else None
    return next((unit[:size] for size in (3, 2, 1) if unit[:size] in _UNITS), None)


_KEY: Final = re.compile(r"[A-Za-z0-9_./-]*+")
_OF_KEYS: Final = frozenset(string.ascii_letters + string.digits + "_./-")


def _key(text: str, span: Span) -> Diagnostic | None:
    """Return the diagnostic for a key that contains a number and was written without brackets and quotes."""
    start, end = span.start, _KEY.match(text, span.start)
    while start and text[start - 1] in _OF_KEYS:
        start -= 1
    path = text[start : end.end() if end else span.end]
    for names, found in FIELDS.items():
        parent = ".".join(names)
        key = path.removeprefix(f"{parent}.")
        plain = key == path or re.split(r"[./-]", key)[0] in GROUPS.get(names, ())
        if found.keyed and not plain and "/" in key:
            place = Span(start + len(path) - len(key), start + len(path))
            instead = f"write `{written(names, key)}`"
            return diagnose("E0202", text, place, parent=parent, field=shown(key), suggestion=instead)
    return None


def touch(before: Token, token: Token) -> bool:
    """Return whether one token begins where another ends."""
    return span_of(before).end == span_of(token).start


def number_meant(before: Token, token: Token, behind: Sequence[Token]) -> str:
    """Return the help text on how to write a number if a number was probably meant; else empty."""
    joined = behind and behind[0].type in NUMERIC and touch(token, behind[0])
    if token.type == "DOT" and joined:
        return f"write `0.{behind[0]}`"
    if token.type == "PLUS" and joined:
        return f"write `{behind[0]}`"
    if before.type != "NUMBER" or not touch(before, token):
        return ""
    if token.type == "DOT":
        is_range = [one.type for one in behind[:1]] == ["DOT"]
        return _NO_RANGES if is_range else f"write `{before}`"
    if token.type == "COMMA" and joined:
        return f"write `{_with_comma(before, token, behind)}`"
    digits = str(token).replace("_", "")
    return f"write `{before}{digits}`" if token.type == "NAME" and digits.isdigit() else ""


def _with_comma(before: Token, comma: Token, behind: Sequence[Token]) -> str:
    """Return the corrected form of a number with commas: digit groups, or a decimal point."""
    number = str(before)
    if not _FIRST_GROUP.fullmatch(number):
        return f"{number}.{behind[0]}"
    for one, group in zip((comma, *behind[1::2]), behind[::2], strict=False):
        if one.type != "COMMA" or not touch(one, group) or not _GROUP.match(str(group)):
            break
        number += str(group)
    return f"{number}.{behind[0]}" if number == str(before) else number
