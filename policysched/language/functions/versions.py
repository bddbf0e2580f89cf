"""Versions: which texts are any, and which of two is older.

A version is `v?N(.N)*(-pre)?`: numbers, then perhaps the parts of a pre-release. The order is that of Semantic
Versioning, and numbers that are not written count as 0, so 1.28 and v1.28.0 are the same version. Versions travel as
the codes of their canonical texts: equal ones have one code, and two codes are compared through a table.
"""

from __future__ import annotations

import functools
import re
from typing import Final, TypeAlias

_VERSION: Final = re.compile(r"v?([0-9]+(?:\.[0-9]+)*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?")
Part: TypeAlias = tuple[int, int, str]
Key: TypeAlias = tuple[tuple[Part, ...], int, tuple[Part, ...]]


def canonical(text: str) -> str | None:
    """Return the one text of a version, None where a text is none."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    numbers = [_digits(part) for part in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == "0":
        numbers.pop()
    release = ".".join(numbers)
    if found[2] is None:
        return release
    return f"{release}-{'.'.join(_digits(part) if part.isdigit() else part for part in found[2].split('.'))}"


def _digits(part: str) -> str:
    return part.lstrip("0") or "0"


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1 as one canonical version is older than, equal to or newer than another."""
    one, other = _key(left), _key(right)
    return (one > other) - (one < other)


@functools.lru_cache(maxsize=1024)
def _key(text: str) -> Key:
    release, dash, pre = text.partition("-")
    # A release is newer than its pre-releases.
    return _parts(release), not dash, _parts(pre) if dash else ()


def _parts(text: str) -> tuple[Part, ...]:
    """Return what orders dot-separated parts: numbers by size and before words, words by their characters.

    Digits are never made a number: one of them may have any length.
    """
    return tuple((0, len(part), part) if part.isdigit() else (1, 0, part) for part in text.split("."))
