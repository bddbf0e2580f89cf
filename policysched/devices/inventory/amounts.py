"""`FormattedQuantity`: a quantity in a device object as an exact number, with its format in Go.

Consumed capacities are written into claims in the canonical form of Go's resource.Quantity: `1024Mi` becomes `1Gi`,
`0.5` becomes `500m`.

Source: k8s.io/apimachinery/pkg/api/resource quantity.go (CanonicalizeBytes), amount.go, suffix.go, v0.36.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

from policysched.model.objects import Amount, DeviceCapacity
from policysched.model.quantity import Quantity, parse

Number = int | Fraction
BINARY: Final = "BinarySI"
DECIMAL: Final = "DecimalSI"
EXPONENT: Final = "DecimalExponent"
_DECIMAL_SUFFIXES: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def number_of(amount: Amount) -> Number:
    """Return the exact number of a quantity.

    Raises:
        QuantityError: The quantity is malformed.
    """
    return parse(amount).number


def check_capacity(capacity: DeviceCapacity) -> None:
    """Raise an error if a quantity of a device capacity is malformed.

    Raises:
        QuantityError: An amount is malformed.
    """
    policy = capacity.request_policy
    amounts: list[Amount | None] = [capacity.value]
    if policy is not None:
        amounts += [policy.default, *policy.valid_values]
        if policy.valid_range is not None:
            amounts += [policy.valid_range.min, policy.valid_range.max, policy.valid_range.step]
    for amount in amounts:
        if amount is not None:
            number_of(amount)


class FormattedQuantity(NamedTuple):
    """A quantity with its format: binary suffix, decimal suffix or exponent."""

    quantity: Quantity
    form: str

    @property
    def number(self) -> Number:
        """The exact number of the quantity."""
        return self.quantity.number

    @property
    def whole(self) -> int:
        """The number rounded up to an integer, within int64."""
        return self.quantity.scaled(0)

    def is_identical(self, other: FormattedQuantity) -> bool:
        """Return the result of Go's `==`, which compares representations: `1k` is not equal to `1000`."""
        first, second = self.quantity, other.quantity
        if first.wide or second.wide or self.form != other.form:
            return False
        return (first.mantissa, first.exponent) == (second.mantissa, second.exponent)

    def text(self) -> str:
        """Return the canonical text of the quantity, as Go writes it."""
        number = self.number
        if number == 0:
            return "0"
        if self.form == BINARY and number.denominator == 1 and not -1024 < number < 1024:
            return _binary(int(number))
        return _decimal(self.quantity, EXPONENT if self.form == EXPONENT else DECIMAL)


def read(amount: Amount) -> FormattedQuantity:
    """Parse a quantity with its format.

    Raises:
        QuantityError: The quantity is malformed.
    """
    text = amount if isinstance(amount, str) else repr(amount)
    return FormattedQuantity(parse(amount), _form(text.strip()))


def whole(number: int, form: str) -> FormattedQuantity:
    """Return an integer as a quantity in a format: binary suffix, decimal suffix or exponent."""
    return FormattedQuantity(Quantity(number), form)


def _form(text: str) -> str:
    if text.endswith("i"):
        return BINARY
    head = text.rstrip("0123456789+-")
    return EXPONENT if head != text and head.endswith(("e", "E")) else DECIMAL


def _binary(number: int) -> str:
    times = 0
    while number % 1024 == 0 and times < len(_BINARY_SUFFIXES) - 1:
        number, times = number // 1024, times + 1
    return f"{number}{_BINARY_SUFFIXES[times]}"


def _decimal(quantity: Quantity, form: str) -> str:
    mantissa, exponent = quantity.mantissa, quantity.exponent
    while mantissa % 10 == 0:
        mantissa, exponent = mantissa // 10, exponent + 1
    mantissa, exponent = mantissa * 10 ** (exponent % 3), exponent - exponent % 3
    if form == EXPONENT:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIXES.get(exponent, '')}"
