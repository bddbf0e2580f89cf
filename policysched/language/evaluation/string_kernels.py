"""NumPy implementations (kernels) of the string functions.

Every function is written for one string (or two) and applied to rows through a lookup table.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

import numpy as np

from policysched.language.evaluation.frames import CODES, NUMBERS, TESTS, Codes, Lookup, PairLookup, each_text
from policysched.language.evaluation.kernels import Condition, Kernel, Run, Text
from policysched.language.functions.strings import canonical
from policysched.language.ir.graph import ANY_LENGTH, INPUT_BITS, MAX_PARTS, MAX_TEXT, Op, Typed

_DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_LARGEST: Final = math.ldexp(1.0, INPUT_BITS)
_SHORT: Final = 256
_LONGEST_CACHED: Final = 1024
"""Maximum length of a pattern whose split parts are cached. Units: characters."""


def parse_number(text: str) -> float:
    """Return the number that a text states; NaN if it is no number, is too long, or reaches 2^64."""
    if len(text) > MAX_TEXT or _DECIMAL.fullmatch(text) is None:
        return math.nan
    value = float(text)
    return value if abs(value) < _LARGEST else math.nan


def matches(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern of `*` and `?`.

    Cost: linear in both, except for parts of the pattern with `?`: text length × part length / word size. A pattern
    longer than the text is rejected at once.
    """
    first, rest, last, least = (_remembered_parts if len(pattern) <= _LONGEST_CACHED else _parts)(pattern)
    if least > len(text) or (last is None and least < len(text)) or not _fits(text, 0, first):
        return False
    if last is None:
        return True
    position, end = len(first), len(text) - len(last)
    if not _fits(text, end, last):
        return False
    places = _places(text, "".join(rest)) if "?" in pattern and rest else {}
    for part in rest:
        position = _find(text, part, position, end, places)
        if position < 0:
            return False
    return True


def _parts(pattern: str) -> tuple[str, tuple[str, ...], str | None, int]:
    """Return the parts of a `glob` pattern between its stars (`*`).

    Returns:
        The parts before the first star, between stars, and after the last (None without a star), and the smallest
        length of a matching text.
    """
    first, *rest = pattern.split("*")
    least = len(pattern) - len(rest)
    return (first, tuple(filter(None, rest[:-1])), rest[-1], least) if rest else (first, (), None, least)


_remembered_parts: Final = lru_cache(maxsize=256)(_parts)


def _places(text: str, wanted: str) -> dict[str, int]:
    """Return the positions of each wanted character in a text, as a bit mask."""
    found = dict.fromkeys(wanted, 0)
    if len(text) <= _SHORT:
        for place, character in enumerate(text):
            if character in found:
                found[character] |= 1 << place
        return found
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    for character in found.keys() & set(text):
        bits = np.packbits(codes == ord(character), bitorder="little")
        found[character] = int.from_bytes(bits.tobytes(), "little")
    return found


def _fits(text: str, start: int, part: str) -> bool:
    return all(wanted in {"?", text[start + offset]} for offset, wanted in enumerate(part))


def _find(text: str, part: str, start: int, end: int, places: Mapping[str, int]) -> int:
    """Return the end of a pattern part's first match in text[start:end]; -1 without a match."""
    if "?" not in part:
        place = text.find(part, start, end)
        return -1 if place < 0 else place + len(part)
    fits = (1 << max(end - start - len(part) + 1, 0)) - 1
    for offset, wanted in enumerate(part, start):
        if not fits:
            return -1
        if wanted != "?":
            fits &= places[wanted] >> offset
    return start + (fits & -fits).bit_length() - 1 + len(part) if fits else -1


_TESTS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    Op.STARTS_WITH: lambda text, part: text.startswith(part),
    Op.ENDS_WITH: lambda text, part: text.endswith(part),
    Op.CONTAINS: lambda text, part: part in text,
    Op.GLOB: matches,
}


def _number(run: Run, node: Typed) -> Any:
    value: Text = run.memo[node.args[0]]
    if value is None or isinstance(value, str):
        return math.nan if value is None else parse_number(value)
    table = run.tables.keep(Op.NUMBER, lambda: Lookup(NUMBERS, parse_number))
    return table.take(value, run.strings)


def _version(run: Run, node: Typed) -> Text:
    value: Text = run.memo[node.args[0]]
    if value is None or isinstance(value, str):
        return None if value is None else _version_of(value)
    strings = run.strings

    def code(text: str) -> int:
        found = _version_of(text)
        return -1 if found is None else strings.code(found)

    return each_text(code, value, strings, CODES)


def _version_of(text: str) -> str | None:
    return canonical(text) if len(text) <= MAX_TEXT else None


def _test(run: Run, node: Typed) -> Condition:
    text, part = (run.memo[arg] for arg in node.args)
    if text is None or part is None:
        return False, True
    if isinstance(text, str) and isinstance(part, str):
        held = _test_of(node)(text, part)
        return held == 1, held == TESTS.missing
    test = _test_of(node)
    found = run.test(test, test, text, part)
    return found == 1, found == TESTS.missing if node.type.optional else False


def _test_of(node: Typed) -> Callable[[str, str], float]:
    return _glob_of_short if node.op == Op.GLOB and node.type.optional else _TESTS[node.op]


def _glob_of_short(text: str, pattern: str) -> float:
    return TESTS.missing if max(len(text), len(pattern)) > MAX_TEXT else matches(text, pattern)


def _concat(run: Run, node: Typed) -> Text:
    parts: list[Text] = [run.memo[arg] for arg in node.args]
    if any(part is None for part in parts):
        return None
    longest = MAX_TEXT if node.type.optional else ANY_LENGTH
    places = [index for index, part in enumerate(parts) if isinstance(part, np.ndarray)]
    if not places:
        return _joined(cast("list[str]", parts), longest)
    first, *others = itertools.pairwise([*places, len(parts)])
    result = _around(run, parts[: first[1]], first[0], longest)
    for place, following in others:
        result = _join(run, result, _around(run, parts[place:following], 0, longest), longest)
    return result


def _joined(parts: Sequence[str], longest: int) -> str | None:
    """Return the concatenation of texts; None if the result would be longer than `longest`."""
    return "".join(parts) if sum(map(len, parts)) <= longest else None


def _around(run: Run, parts: list[Text], place: int, longest: int) -> Codes:
    """Return a column with the texts before and after it in a `concat` call."""
    before, after = (_joined(cast("list[str]", texts), longest) for texts in (parts[:place], parts[place + 1 :]))
    column, code = cast("Codes", parts[place]), run.strings.code
    if before is None or after is None:
        return np.full_like(column, -1)
    room = longest - len(before) - len(after)
    return each_text(lambda text: code(before + text + after) if len(text) <= room else -1, column, run.strings, CODES)


def _join(run: Run, left: Codes, right: Codes, longest: int) -> Codes:
    code = run.strings.code
    table = PairLookup(CODES, lambda one, other: code(one + other) if len(one) + len(other) <= longest else -1)
    return cast("Codes", table.take(left, right, run.strings))


def _split(run: Run, node: Typed) -> tuple[str, ...] | None:
    text, separator = (run.memo[arg] for arg in node.args)
    if text is None or (node.type.optional and text.count(separator) >= MAX_PARTS):
        return None
    return tuple(text.split(separator)) if text else ()


TEXTUAL: Final[Mapping[str, Kernel]] = {
    Op.NUMBER: _number,
    Op.VERSION: _version,
    **dict.fromkeys(_TESTS, _test),
    Op.CONCAT: _concat,
    Op.SPLIT: _split,
}
