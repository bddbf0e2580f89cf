"""Numbers with units that are none: what was meant by `4GB`, `5 min`, `2cores` or `1e3`.

A key that stands without its brackets may look like one, too.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Final

from policysched.language.ir.tree import Span
from policysched.language.ir.types import FACTORS, FIELDS, GROUPS, SECONDS
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.messages.foreign_syntax import written
from policysched.language.messages.suggestions import shown
from policysched.language.syntax.terminals import span_of

if TYPE_CHECKING:
    from lark import Token

_UNITS: Final = (*(suffix for suffix in FACTORS if suffix not in {"", "%"}), *SECONDS)
_BYTES: Final = {suffix.lower(): suffix for suffix in _UNITS if suffix[0] in "kKMGTPE"}
_FOLDED: Final = {suffix.lower(): suffix for suffix in (*SECONDS, *_UNITS)}
_LONG: Final = re.compile(r"(milli)?(sec|second)s?|mins?|minutes?|hrs?|hours?|days?")
_CORES: Final = re.compile(r"v?(cpus?|cores?)", re.IGNORECASE)
_EXPONENT: Final = re.compile(r"[eE][0-9]+")
_ALL: Final = "units are m k M G T P E Ki Mi Gi Ti Pi Ei, and ms s min h d"


def is_apart_from(number: Token, word: str) -> bool:
    """Whether a word behind a number is its unit, or was to be, with a space between the two."""
    folded = word.lower()
    known = word in _UNITS or folded in _FOLDED or folded.removesuffix("b") in _BYTES
    return number.type == "NUMBER" and bool(known or _LONG.fullmatch(folded) or _CORES.fullmatch(word))


def apart(text: str, number: Token, unit: str, end: int) -> Diagnostic:
    """Return the diagnostic of a number and its unit with a space between them."""
    right = unit if unit in _UNITS else "" if _CORES.fullmatch(unit) else _meant(unit)
    return diagnose("E0100", text, Span(span_of(number).start, end), "apart", number=number, unit=right)


def unknown_unit(text: str, number: Token, end: int) -> Diagnostic:
    """Return the diagnostic of a number that runs on to the end of something that is no unit."""
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
    """Return the unit that something was to be: a size in bytes, one in another case, the start of a word."""
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
    """Return the diagnostic of a key without its brackets in which a number stands, as `nvidia.com/mig-1g.5gb`."""
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
