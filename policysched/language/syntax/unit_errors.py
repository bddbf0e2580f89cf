"""What is wrong with the unit behind a number: unknown, of another case, or apart from it."""

from __future__ import annotations

import re
from typing import Final

from lark import Token

from policysched.language.checking.literals import FACTORS, SECONDS
from policysched.language.ir.tree import Span
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.syntax.tree_builder import span_of

NUMERIC: Final = frozenset({"NUMBER", "PERCENT", "QUANTITY", "DURATION"})
_UNITS: Final = (*(suffix for suffix in FACTORS if suffix not in {"", "%"}), *SECONDS)
_BYTES: Final = {suffix.lower(): suffix for suffix in _UNITS if suffix[0] in "kKMGTPE"}
_FOLDED: Final = {suffix.lower(): suffix for suffix in (*SECONDS, *_UNITS)}
_LONG: Final = re.compile(r"(milli)?(sec|second)s?|mins?|minutes?|hrs?|hours?|days?")
_CORES: Final = re.compile(r"v?(cpus?|cores?)", re.IGNORECASE)
_EXPONENT: Final = re.compile(r"[eE][0-9]+")
_ALL: Final = "units are m k M G T P E Ki Mi Gi Ti Pi Ei, and ms s min h d"


def apart(number: Token, word: str) -> bool:
    """Whether a word behind a number is its unit, or was to be, with a space between the two."""
    folded = word.lower()
    known = word in _UNITS or folded in _FOLDED or folded.removesuffix("b") in _BYTES
    return number.type == "NUMBER" and bool(known or _LONG.fullmatch(folded) or _CORES.fullmatch(word))


def unit_apart(text: str, number: Token, unit: str, end: int) -> Diagnostic:
    """Return the diagnostic of a number and its unit with a space between them."""
    right = unit if unit in _UNITS else "" if _CORES.fullmatch(unit) else _meant(unit)
    return diagnose("E0100", text, Span(span_of(number).start, end), "apart", number=number, unit=right)


def unknown_unit(text: str, number: Token, end: int) -> Diagnostic:
    """Return the diagnostic of a number that runs on to the end of something that is no unit."""
    start = span_of(number).start
    digits = str(number).rstrip("%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[start + len(digits) : end]
    return diagnose("E0102", text, Span(start, end), unit=unit, instead=_instead(digits, unit))


def _instead(digits: str, unit: str) -> str:
    if _CORES.fullmatch(unit):
        return f"cores are plain numbers: write `{digits}`"
    if _EXPONENT.fullmatch(unit):
        return "there are no exponents; write the number out, or with k, M or G"
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
