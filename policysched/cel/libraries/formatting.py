"""The function `format()`, with clauses such as `%d`, and checks of the clauses.

Source: cel-go v0.26 ext/formatting.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

from policysched.budget import Budget
from policysched.cel.libraries.conversions import TEXTS
from policysched.cel.types import CelType
from policysched.cel.values.kinds import KINDS, LISTS, MAPS
from policysched.cel.values.quoting import quoted
from policysched.cel.values.scalars import Duration, Error, Timestamp, Uint

_DIGITS: Final = "0123456789"
_DEFAULT: Final = 6
_MOST_PLACES: Final = 1_000_000
Clause = tuple[str, int | None]
ONLY: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
"""The errors for arguments of a wrong type, by clause of `format()`."""


class FormatError(ValueError):
    """Raised if the format string or an argument of `format()` is invalid; has the message of cel-go."""


def parts(text: str) -> Iterator[str | Clause | FormatError]:
    """Yield the literal parts and the clauses of a format string; an error ends the sequence."""
    at = 0
    while at < len(text):
        sign = text.find("%", at)
        if sign < 0:
            yield text[at:]
            return
        yield text[at:sign]
        if text.startswith("%%", sign):
            yield "%"
            at = sign + 2
            continue
        try:
            clause, at = _clause(text, sign + 1)
        except FormatError as error:
            yield error
            return
        yield clause


def _clause(text: str, at: int) -> tuple[Clause, int]:
    if at >= len(text):
        raise FormatError("unexpected end of string")
    places: int | None = None
    trouble = "could not parse formatting clause: "
    if text[at] == ".":
        end = at + 1
        while end < len(text) and text[end] in _DIGITS:
            end += 1
        wrong = f"{trouble}error while parsing precision: "
        if end >= len(text):
            raise FormatError(f"{wrong}could not find end of precision specifier")
        if end == at + 1 or len(text[at + 1 : end].lstrip("0")) > 18:
            reason = "invalid syntax" if end == at + 1 else "value out of range"
            digits = quoted(text[at + 1 : end])
            raise FormatError(
                f"{wrong}error while converting precision to integer: strconv.Atoi: parsing {digits}: {reason}"
            )
        places, at = int(text[at + 1 : end]), end
    if text[at] not in ONLY:
        first = chr(text[at].encode(errors="surrogatepass")[0])
        raise FormatError(f'{trouble}unrecognized formatting clause "{first}"')
    return (text[at], places), at + 1


def format_text(work: Budget, text: str, values: list[Any]) -> Any:
    """Return a format string with its clauses replaced by the formatted values."""
    made, place = [], 0
    for part in parts(text):
        if isinstance(part, str):
            made.append(part)
            continue
        if place >= len(values):
            return Error(f"index {place} out of range")
        if isinstance(part, FormatError):
            return Error(str(part))
        try:
            made.append(_WRITERS[part[0]](values[place], part[1], work))
        except FormatError as error:
            return Error(f"error during formatting: {error}")
        place += 1
    work.spend(sum(map(len, made)) // 10)
    return "".join(made)


def _refused(clause: str, value: Any) -> FormatError:
    return FormatError(f"{ONLY[clause]}, was given {KINDS[type(value)].name}")


def _string(value: Any, work: Budget) -> str:
    kind = type(value)
    if kind in LISTS:
        return _list(value, work)
    if kind in MAPS:
        return _map(value, work)
    writer = TEXTS.get(kind)
    if writer is None:
        raise _refused("s", value)
    written = writer(value)
    if isinstance(written, Error):
        raise FormatError(f"could not convert argument {quoted(written.message)} to string")
    return str(written)


def _decimal(value: Any) -> str:
    if type(value) not in {int, Uint}:
        raise _refused("d", value)
    return str(int(value))


def _number(value: Any, clause: str) -> float:
    if type(value) is str and value in {"NaN", "Infinity", "-Infinity"}:
        return float(value)
    if type(value) is not float:
        raise _refused(clause, value)
    return float(value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else ("∞" if value > 0 else "-∞")


def _places(wanted: int | None, work: Budget) -> int:
    if wanted is not None and wanted > _MOST_PLACES:
        work.spend(wanted)
    return _DEFAULT if wanted is None else wanted


def _fixed(value: Any, places: int | None, work: Budget) -> str:
    number = _number(value, "f")
    return f"{number or 0.0:,.{_places(places, work)}f}" if math.isfinite(number) else _not_finite(number)


def _scientific(value: Any, places: int | None, work: Budget) -> str:
    """Format a number for `%e`, with six decimals; `places` is the minimum width, as in Go."""
    number = _number(value, "e")
    width = _places(places, work)
    if not math.isfinite(number):
        return _not_finite(number).rjust(width)
    mantissa, _, exponent = f"{Decimal(number) if number else 0.0:.{_DEFAULT}e}".partition("e")
    return f"{mantissa}×10{_superscript(int(exponent))}".rjust(width)


def _superscript(power: int) -> str:
    digits = f"{abs(power):02d}".translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ("⁻" if power < 0 else "") + digits


def _binary(value: Any) -> str:
    if type(value) not in {int, Uint, bool}:
        raise _refused("b", value)
    return f"{int(value):b}"


def _octal(value: Any) -> str:
    if type(value) not in {int, Uint}:
        raise _refused("o", value)
    return f"{int(value):o}"


def _hex(value: Any) -> str:
    if type(value) is str:
        return value.encode(errors="surrogateescape").hex()
    if type(value) is bytes:
        return value.hex()
    if type(value) not in {int, Uint}:
        raise _refused("x", value)
    return f"{int(value):x}"


def _upper_hex(value: Any) -> str:
    return _hex(value).upper()


def _plain(write: Callable[[Any], str]) -> _Writer:
    return lambda value, _places, _work: write(value)


_Writer = Callable[[Any, int | None, Budget], str]
_WRITERS: Final[dict[str, _Writer]] = {
    "s": lambda value, _, work: _string(value, work),
    "f": _fixed,
    "e": _scientific,
    "d": _plain(_decimal),
    "b": _plain(_binary),
    "x": _plain(_hex),
    "X": _plain(_upper_hex),
    "o": _plain(_octal),
}
"""The functions that format a value, by clause (`d` for `%d`); arguments: value, number of decimals, budget."""


def _inside(value: Any, work: Budget) -> str:
    """Format a value inside a list or a map, for `%s`."""
    kind = type(value)
    if kind in {str, bytes}:
        return ("b" if kind is bytes else "") + quoted(_string(value, work))
    if kind is float:
        if math.isfinite(value):
            return f"{value:.{_DEFAULT}f}"
        return quoted("NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf"))
    if kind is Timestamp or kind is Duration:
        return f"{'timestamp' if kind is Timestamp else 'duration'}({quoted(TEXTS[kind](value))})"
    if kind in _PLAIN or kind in LISTS or kind in MAPS:
        return _string(value, work)
    raise FormatError(f"no formatting function for {KINDS[kind].name}")


_PLAIN: Final = frozenset({int, Uint, bool, type(None), CelType})


def _list(values: list[Any], work: Budget) -> str:
    work.spend(4 * len(values) + 8)
    return f"[{', '.join(_inside(one, work) for one in values)}]"


def _map(values: Any, work: Budget) -> str:
    work.spend(4 * len(values) + 8)
    found = []
    for key in values.keys():  # noqa: SIM118 - not a dict
        if type(key) not in {str, bool, int, Uint}:
            raise FormatError(f"no formatting function for map key of type {KINDS[type(key)].name}")
        found.append((_inside(key, work), _inside(values.find(key), work)))
    found.sort(key=lambda pair: pair[0].encode(errors="surrogatepass"))
    return "{" + ", ".join(f"{key}:{value}" for key, value in found) + "}"
