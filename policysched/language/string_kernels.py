"""The array meaning of the functions of strings.

Every function is written for one string (or two) and reaches the rows through a table, see `tables`.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from policysched.language.frames import Codes, Strings
from policysched.language.kernels import Kernel, Run, Text, Truth
from policysched.language.tables import NUMBERS, TESTS, TEXT_CODES, Lookup, PairLookup
from policysched.language.typed import INPUT_BITS, Op, Typed
from policysched.language.versions import canonical

_DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_LARGEST: Final = math.ldexp(1.0, INPUT_BITS)


def parse_number(text: str) -> float:
    """Return the number that a text is, NaN where it is none or reaches 2^64."""
    if _DECIMAL.fullmatch(text) is None:
        return math.nan
    value = float(text)
    return value if abs(value) < _LARGEST else math.nan


def matches(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern of `*` and `?`, in time of at most the product of their lengths."""
    first, *rest = pattern.split("*")
    if not rest:
        return len(text) == len(first) and _fits(text, 0, first)
    last = rest.pop()
    position, end = len(first), len(text) - len(last)
    if position > end or not _fits(text, 0, first) or not _fits(text, end, last):
        return False
    for part in rest:
        position = _find(text, part, position, end)
        if position < 0:
            return False
    return True


def _fits(text: str, start: int, part: str) -> bool:
    return all(wanted in {"?", text[start + offset]} for offset, wanted in enumerate(part))


def _find(text: str, part: str, start: int, end: int) -> int:
    """Return where the first fit of a part between two positions ends, -1 if there is none."""
    if "?" not in part:
        place = text.find(part, start, end)
        return -1 if place < 0 else place + len(part)
    found = _pattern(part).search(text, start, end)
    return -1 if found is None else found.end()


@functools.lru_cache(maxsize=256)
def _pattern(part: str) -> re.Pattern[str]:
    return re.compile(".".join(re.escape(piece) for piece in part.split("?")), re.DOTALL)


_TESTS: Final[Mapping[Op, Callable[[str, str], bool]]] = {
    Op.STARTS_WITH: lambda text, part: text.startswith(part),
    Op.ENDS_WITH: lambda text, part: text.endswith(part),
    Op.CONTAINS: lambda text, part: part in text,
    Op.GLOB: matches,
}


def _number(run: Run, node: Typed) -> Any:
    value: Text = run.memo[node.args[0]]
    if value is None or isinstance(value, str):
        return math.nan if value is None else parse_number(value)
    table = run.tables.keep(Op.NUMBER, lambda: Lookup(NUMBERS, lambda text, _: parse_number(text)))
    return table.take(value, run.strings)


def _version(run: Run, node: Typed) -> Text:
    value: Text = run.memo[node.args[0]]
    if value is None or isinstance(value, str):
        return None if value is None else canonical(value)
    table = run.tables.keep(Op.VERSION, lambda: Lookup(TEXT_CODES, _version_code))
    return cast("Codes", table.take(value, run.strings))


def _version_code(text: str, strings: Strings) -> int:
    found = canonical(text)
    return -1 if found is None else strings.code(found)


def _test(run: Run, node: Typed) -> Truth:
    text, part = (run.memo[arg] for arg in node.args)
    test = _TESTS[node.op]
    if text is None or part is None:
        return False, True
    if isinstance(text, str) and isinstance(part, str):
        return test(text, part), False
    found = _test_rows(run, node.op, text, part)
    return found == 1, found == TESTS.missing if node.type.optional else False


def _test_rows(run: Run, op: Op, text: Codes | str, part: Codes | str) -> Any:
    test = _TESTS[op]
    if isinstance(part, str):
        table = run.tables.keep((op, "part", part), lambda: Lookup(TESTS, lambda row, _: test(row, part)))
        return table.take(text, run.strings)
    if isinstance(text, str):
        table = run.tables.keep((op, "text", text), lambda: Lookup(TESTS, lambda row, _: test(text, row)))
        return table.take(part, run.strings)
    table = run.tables.keep(op, lambda: PairLookup(TESTS, lambda left, right, _: test(left, right)))
    return table.take(text, part, run.strings)


def _concat(run: Run, node: Typed) -> Text:
    parts: list[Text] = [run.memo[arg] for arg in node.args]
    if any(part is None for part in parts):
        return None
    places = [index for index, part in enumerate(parts) if isinstance(part, np.ndarray)]
    if not places:
        return "".join(cast("list[str]", parts))
    first, *others = itertools.pairwise([*places, len(parts)])
    result = _around(run, parts[: first[1]], first[0])
    for place, following in others:
        result = _join(run, result, _around(run, parts[place:following], 0))
    return result


def _around(run: Run, parts: list[Text], place: int) -> Codes:
    """Return one column with the texts before and after it."""
    column = cast("Codes", parts[place])
    before = "".join(part for part in parts[:place] if isinstance(part, str))
    after = "".join(part for part in parts[place + 1 :] if isinstance(part, str))
    if not before and not after:
        return column

    def join(text: str, strings: Strings) -> int:
        return strings.code(before + text + after)

    table = run.tables.keep((Op.CONCAT, before, after), lambda: Lookup(TEXT_CODES, join))
    return cast("Codes", table.take(column, run.strings))


def _join(run: Run, left: Codes, right: Codes) -> Codes:
    def join(one: str, other: str, strings: Strings) -> int:
        return strings.code(one + other)

    table = run.tables.keep(Op.CONCAT, lambda: PairLookup(TEXT_CODES, join))
    return cast("Codes", table.take(left, right, run.strings))


def _split(run: Run, node: Typed) -> tuple[str, ...] | None:
    text, separator = (run.memo[arg] for arg in node.args)
    if text is None:
        return None
    return tuple(text.split(separator)) if text else ()


TEXTUAL: Final[Mapping[Op, Kernel]] = {
    Op.NUMBER: _number,
    Op.VERSION: _version,
    **dict.fromkeys(_TESTS, _test),
    Op.CONCAT: _concat,
    Op.SPLIT: _split,
}
