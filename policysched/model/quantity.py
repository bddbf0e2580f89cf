"""Kubernetes quantities such as `500m`, `1.5Gi` or `2e3`, parsed exactly as Go's resource.Quantity does.

A quantity has one of Go's two forms: a 64-bit mantissa with a decimal exponent, or a wide decimal. The forms differ on
overflow, and decisions depend on it: a narrow quantity that does not fit becomes 0, a wide one wraps around. Python
integers are unbounded, so sums and products are wrapped to 64 bits here; NumPy arrays wrap by themselves
(`policysched.state.tables.columns`).

Source: k8s.io/apimachinery/pkg/api/resource quantity.go, amount.go, scale_int.go, v0.36; the Go specification, "Integer
overflow" and "Integer operators".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

MAX: Final = (1 << 63) - 1
MIN: Final = -(1 << 63)
_SPAN: Final = 1 << 64


def wrap(number: int) -> int:
    """Return a number wrapped to 64 bits with sign, as Go's integers overflow."""
    return number if MIN <= number <= MAX else (number - MIN) % _SPAN + MIN


_NANO: Final = -9
_MILLI: Final = -3
_NARROW_DIGITS: Final = 18
_MOST_DIGITS: Final = 3000
"""Maximum number of digits of a quantity; a longer quantity is an error, as conversion takes quadratic time."""
_LONGEST_CACHED: Final = 40
"""Maximum length of a quantity's text whose parsed value is cached."""
_LARGEST_EXPONENT: Final = 400
"""Largest decimal exponent that is computed; beyond it, every 64-bit result is the same."""

_WRAPPING_SHIFTS: Final = (1, 2, 3, 6, 9)
"""Powers of ten for which a multiplication that overflows wraps around in Go; for other powers, Go returns 0."""

_SYNTAX: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<zeros>0*+)(?P<whole>[0-9]*+)(?:\.(?P<fraction>[0-9]*+))?"
    r"(?P<suffix>[eEinumkKMGTP]*+[+-]?[0-9]*+)"
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

_WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """Raised if a text is not a quantity; has the message of the API server."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity: the number `mantissa * 10**exponent`; `wide` if it needs the form that Go uses beyond 64 bits."""

    mantissa: int
    exponent: int = 0
    wide: bool = False

    def plus(self, other: Quantity) -> Quantity:
        """Return the exact sum of two quantities; it is wide if Go's 64-bit form cannot hold it."""
        if not (self.wide or other.wide):
            if other.mantissa == 0:
                return self
            if self.mantissa == 0:
                return other
            if self.exponent == other.exponent and MIN <= (total := self.mantissa + other.mantissa) <= MAX:
                return Quantity(total, self.exponent)
        low = min(self.exponent, other.exponent)
        left, right = self._at(low), other._at(low)
        fits = all(MIN <= part <= MAX for part in (left, right, left + right))
        return Quantity(left + right, low, wide=self.wide or other.wide or not fits)

    def minus(self, other: Quantity) -> Quantity:
        """Return the exact difference of two quantities; the lowest int64 is added, because its negation wraps in Go.

        Where that sum does not fit, Go subtracts exactly in the wide form.
        """
        is_lowest = other.mantissa == MIN and not (self.wide or other.wide)
        if is_lowest and not (wrapped := self.plus(other)).wide:
            return wrapped
        return self.plus(Quantity(-other.mantissa, other.exponent, wide=other.wide or is_lowest))

    @property
    def number(self) -> int | Fraction:
        """The exact value of the quantity; a Fraction only for a negative exponent."""
        if self.exponent >= 0:
            return int(self.mantissa * 10**self.exponent)
        return Fraction(self.mantissa, 10**-self.exponent)

    @property
    def is_zero(self) -> bool:
        """Whether the quantity is 0."""
        return self.mantissa == 0

    def exceeds(self, other: Quantity) -> bool:
        """Return whether this quantity is larger than another quantity."""
        if self.exponent == other.exponent:
            return self.mantissa > other.mantissa
        low = min(self.exponent, other.exponent)
        return self._at(low) > other._at(low)

    def largest(self, other: Quantity) -> Quantity:
        """Return the larger of two quantities; if they are equal, this quantity.

        Go makes the other quantity wide before it compares it with a wide one, and keeps it wide.
        """
        if not other.exceeds(self):
            return self
        return Quantity(other.mantissa, other.exponent, wide=True) if self.wide else other

    def equals(self, other: Quantity) -> bool:
        """Return whether two quantities are the same number, whatever their texts."""
        return not self.exceeds(other) and not other.exceeds(self)

    def scaled(self, exponent: int) -> int:
        """Return the quantity in units of `10**exponent`, rounded up, as the int64 that Go returns."""
        shift = self.exponent - exponent
        if self.wide:
            return _wide_scaled(self.mantissa, shift)
        if shift < 0:
            return _away_from_zero(self.mantissa, -shift)
        scaled: int = self.mantissa * 10 ** min(shift, _LARGEST_EXPONENT)
        if MIN <= scaled <= MAX:
            return scaled
        return wrap(scaled) if shift in _WRAPPING_SHIFTS else 0

    def rounded_to_milli(self) -> Quantity:
        """Return the quantity rounded away from zero to thousandths, as the API server stores quantities."""
        if self.exponent >= _MILLI:
            return self
        return Quantity(_away_from_zero(self.mantissa, _MILLI - self.exponent), _MILLI, wide=self.wide)

    def text(self) -> str:
        """Return a text that parses to the same number in the same form."""
        digits = str(self.mantissa)
        zeros = max(0, _NARROW_DIGITS + 1 - len(digits.removeprefix("-"))) if self.wide else 0
        exponent = self.exponent - zeros
        return f"{digits}{'0' * zeros}" + (f"e{exponent}" if exponent else "")

    def _at(self, exponent: int) -> int:
        return self.mantissa * int(10 ** (self.exponent - exponent))


ZERO: Final = Quantity(0)


def parse(amount: str | float) -> Quantity:
    """Parse a quantity from JSON or YAML; results of short texts are cached.

    Raises:
        QuantityError: the text is malformed.
    """
    return _remembered(amount) if not isinstance(amount, str) or len(amount) <= _LONGEST_CACHED else _parse(amount)


def _parse(amount: str | float) -> Quantity:
    text = amount.strip() if isinstance(amount, str) else repr(amount)
    match = _SYNTAX.fullmatch(text)
    if not text or match is None:
        raise QuantityError(_WRONG_FORMAT)
    base, exponent = _suffix(match["suffix"])
    whole, fraction = match["whole"] or "0", match["fraction"] or ""
    negative = match["sign"] == "-"
    narrow = _narrow(whole, fraction, base, exponent)
    if narrow is not None:
        return Quantity(-narrow.mantissa, narrow.exponent) if negative else narrow
    if not any((match["zeros"], match["whole"], fraction)):
        raise QuantityError(_WRONG_NUMBER)
    wide = _wide(whole, fraction, base, exponent)
    return Quantity(-wide.mantissa, wide.exponent, wide=True) if negative else wide


_remembered: Final = lru_cache(maxsize=1 << 16)(_parse)


def value(amount: str | float) -> int:
    """Return a quantity as an integer in whole units, rounded up.

    Raises:
        QuantityError: the text is malformed.
    """
    return parse(amount).scaled(0)


def exact_value(amount: str | float) -> int | Fraction:
    """Return a quantity in whole units as an exact number.

    Raises:
        QuantityError: the text is malformed.
    """
    return parse(amount).number


def _suffix(text: str) -> tuple[int, int]:
    if text in _DECIMAL:
        return 10, _DECIMAL[text]
    if text in _BINARY:
        return 2, _BINARY[text]
    match = _EXPONENT.fullmatch(text)
    if match is None or len(match[1]) > 20 or not MIN <= int(match[1]) <= MAX:
        raise QuantityError(_WRONG_SUFFIX)
    # Go truncates the exponent to 32 bits.
    return 10, (int(match[1]) + (1 << 31)) % (1 << 32) - (1 << 31)


def _narrow(whole: str, fraction: str, base: int, exponent: int) -> Quantity | None:
    """Parse a quantity that fits into Go's 64-bit form; None if Go would use its form for larger numbers."""
    factor = 1
    if base == 10:
        precision = _NARROW_DIGITS - len(whole) - len(fraction)
    else:
        precision = -1 if fraction else 15 - len(whole) - exponent * 3 // 10 - 1
        factor, exponent = 1 << exponent, 0
    exponent -= len(fraction)
    if precision < 0 or exponent < _NANO:
        return None
    mantissa = int(whole + fraction) * factor
    return Quantity(mantissa, min(exponent, _LARGEST_EXPONENT)) if mantissa <= MAX else None


def _wide(whole: str, fraction: str, base: int, exponent: int) -> Quantity:
    """Parse a quantity beyond 64 bits as Go does: in billionths, rounded up; binary ones are capped at int64."""
    if len(whole) + len(fraction) > _MOST_DIGITS:
        raise QuantityError(_WRONG_NUMBER)
    mantissa = int(whole + fraction)
    if base == 2:
        mantissa, exponent = mantissa << exponent, 0
    exponent = max(min(exponent, _LARGEST_EXPONENT) - len(fraction), -len(whole + fraction) - 20)
    if mantissa == 0:
        return Quantity(0, exponent, wide=True)
    shift = exponent - _NANO
    billionths = mantissa * int(10**shift) if shift >= 0 else _away_from_zero(mantissa, -shift)
    if base == 2 and billionths > MAX * 10**9:
        return Quantity(MAX, wide=True)
    return Quantity(billionths, _NANO, wide=True)


def _away_from_zero(number: int, places: int) -> int:
    """Return a number without some decimal places, rounded away from zero."""
    magnitude: int = -(-abs(number) // 10**places)
    return magnitude if number >= 0 else -magnitude


def _wide_scaled(mantissa: int, shift: int) -> int:
    """Return the result of Go's scaledValue (of `math/big` integers), with overflows as on amd64."""
    if shift >= 0:
        factor = 10**shift if shift < 19 else MIN
        return wrap(wrap(mantissa) * int(factor)) if shift else wrap(mantissa)
    divisor: int = 10**-shift
    if mantissa < MAX and -shift < 19:
        number = wrap(mantissa)
        quotient = abs(number) // divisor * (1 if number >= 0 else -1)
        return quotient + (quotient * divisor != number)
    quotient, remainder = divmod(mantissa, divisor)
    return wrap(wrap(quotient) + (remainder != 0))
