"""Quantities, with answers taken from Go's own package."""

from __future__ import annotations

import pytest

from policysched.model.quantity import MIN, ZERO, Quantity, QuantityError, parse, value

LARGEST = (1 << 63) - 1

VALUES = [
    # text, whole units, thousandths
    ("0", 0, 0),
    ("0.0Ki", 0, 0),
    ("1", 1, 1000),
    ("100m", 1, 100),
    ("1500m", 2, 1500),
    ("1.5", 2, 1500),
    (".5", 1, 500),
    ("5.", 5, 5000),
    ("5.Gi", 5 << 30, (5 << 30) * 1000),
    ("+3", 3, 3000),
    ("-3", -3, -3000),
    ("-1500m", -2, -1500),
    ("007", 7, 7000),
    ("1n", 1, 1),
    ("1u", 1, 1),
    ("1500u", 1, 2),
    ("0.0000000001", 1, 1),
    ("2k", 2000, 2_000_000),
    ("2M", 2_000_000, 2_000_000_000),
    ("2G", 2 * 10**9, 2 * 10**12),
    ("2T", 2 * 10**12, 2 * 10**15),
    ("2P", 2 * 10**15, 2 * 10**18),
    ("1Ki", 1024, 1024_000),
    ("1.5Ki", 1536, 1536_000),
    ("0.1Ki", 103, 102_400),
    ("128Mi", 128 << 20, (128 << 20) * 1000),
    ("1Ti", 1 << 40, (1 << 40) * 1000),
    ("1Pi", 1 << 50, (1 << 50) * 1000),
    ("1e3", 1000, 1_000_000),
    ("1E3", 1000, 1_000_000),
    ("12E6", 12_000_000, 12_000_000_000),
    ("1e-3", 1, 1),
    ("1e+2", 100, 100_000),
    ("1e4294967297", 10, 10_000),
    (" 4 ", 4, 4000),
    (7, 7, 7000),
    (0.1, 1, 100),
    (1e21, 0, 0),
]


@pytest.mark.parametrize(("amount", "units", "thousandths"), VALUES, ids=str)
def test_quantity_is_rounded_up_to_the_unit_asked_for(amount: str | float, units: int, thousandths: int) -> None:
    assert (value(amount), parse(amount).scaled(-3)) == (units, thousandths)


@pytest.mark.parametrize(
    ("amount", "units"),
    [
        ("1E", 10**18),
        ("10E", 0),  # a narrow number that does not fit
        ("1e30", 0),
        ("1e400000000", 0),
        ("7Ei", 7 << 60),
        ("8Ei", LARGEST),  # binary suffixes are capped
        ("1000000Ei", LARGEST),
        ("-9Ei", -LARGEST),
        ("9223372036854775807", LARGEST),
        ("9223372036854775808", -LARGEST - 1),  # wide decimals wrap around
        ("18446744073709551617", 1),
        ("434657541504391940G", -8498165915232688128),  # so do narrow ones, at some powers of ten
    ],
)
def test_quantity_overflows_as_in_go(amount: str, units: int) -> None:
    assert value(amount) == units


def test_quantity_wraps_around_in_thousandths() -> None:
    assert value("41782995496M") == 41782995496000000
    assert parse("41782995496M").scaled(-3) == 4889507348580896768


FORMAT, NUMBER, SUFFIX = "must match the regular expression", "numeric part", "suffix"


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        ("", FORMAT),
        ("  ", FORMAT),
        ("1 Mi", FORMAT),
        ("1.2.3", FORMAT),
        ("1Mi ", ""),
        ("abc", FORMAT),
        ("1_000", FORMAT),
        ("١", FORMAT),
        ("1x", FORMAT),
        ("--1", SUFFIX),
        ("1K", SUFFIX),
        ("1mi", SUFFIX),
        ("1e", SUFFIX),
        ("1e+", SUFFIX),
        ("1ee3", SUFFIX),
        ("1Mi3", SUFFIX),
        ("1e99999999999999999999", SUFFIX),
        ("Ei", NUMBER),
        ("9" * 5000, NUMBER),
        (float("inf"), FORMAT),
        (float("nan"), FORMAT),
    ],
    ids=lambda one: repr(one)[:20],
)
def test_malformed_quantity_is_refused_with_the_reason(amount: str | float, reason: str) -> None:
    if not reason:
        assert value(amount) == 1 << 20
        return
    with pytest.raises(QuantityError, match=reason):
        value(amount)


@pytest.mark.parametrize("amount", ["-", "+", ".", "m", "Ki"])
def test_quantity_without_digits_is_zero_where_go_lets_it_pass(amount: str) -> None:
    assert value(amount) == 0


@pytest.mark.parametrize(
    ("left", "right", "thousandths"),
    [
        ("100m", "200m", 300),
        ("1", "1m", 1001),
        ("1m", "1", 1001),
        ("1500u", "1500u", 3),
        ("0", "7", 7000),
        ("7", "0", 7000),
        ("1.5Ki", "1", 1537_000),
        ("-1", "3", 2000),
    ],
)
def test_sum_is_exact_and_rounded_once(left: str, right: str, thousandths: int) -> None:
    assert parse(left).plus(parse(right)).scaled(-3) == thousandths


def test_sum_that_leaves_64_bits_becomes_wide_and_wraps() -> None:
    total = parse("9000P").plus(parse("900000000000000000"))
    assert total.wide
    assert total.scaled(0) == 99 * 10**17 - (1 << 64)


@pytest.mark.parametrize(("large", "small"), [("1", "999m"), ("1Gi", "1G"), ("1n", "0"), ("0", "-1"), ("9Ei", "1")])
def test_larger_quantity_exceeds_the_smaller(large: str, small: str) -> None:
    assert parse(large).exceeds(parse(small))
    assert not parse(small).exceeds(parse(large))
    assert not parse(large).equals(parse(small))


@pytest.mark.parametrize("other", ["1000m", "1.0", "1e0", "0.001k"])
def test_quantities_of_the_same_number_are_equal(other: str) -> None:
    assert parse("1").equals(parse(other))


@pytest.mark.parametrize(
    ("amount", "rounded"),
    [("1500u", "2m"), ("1n", "1m"), ("-1500u", "-2m"), ("3m", "3m"), ("2k", "2k"), ("1.23456Ki", "1264189.44m")],
)
def test_rounding_to_milli_goes_away_from_zero(amount: str, rounded: str) -> None:
    expected = parse(rounded).rounded_to_milli()
    assert parse(amount).rounded_to_milli().equals(expected)
    assert parse(amount).rounded_to_milli().exponent >= -3


@pytest.mark.parametrize("amount", ["0", "1", "-5", "1500u", "2k", "1.5Gi", "-0.4883Gi", "3Ei", "1e30", "1" * 30])
def test_text_of_a_quantity_reads_back_as_the_same(amount: str) -> None:
    assert parse(parse(amount).text()).equals(parse(amount))
    assert parse(parse(amount).text()).wide is parse(amount).wide


def test_zero_is_the_neutral_amount() -> None:
    assert Quantity(5, -3).plus(ZERO) == Quantity(5, -3)
    assert ZERO.plus(Quantity(5, -3)) == Quantity(5, -3)


@pytest.mark.parametrize("text", ["0" * 200_000 + "!", "1" * 200_000 + "!", "." + "2" * 200_000 + "x", "E" * 200_000])
def test_a_long_malformed_quantity_is_refused_in_one_pass(text: str) -> None:
    with pytest.raises(QuantityError):
        value(text)


def test_a_sum_of_the_lowest_number_stays_narrow_as_in_go() -> None:
    lowest = Quantity(-(2**62)).plus(Quantity(-(2**62)))
    assert lowest == Quantity(-(2**63))
    assert lowest.plus(lowest).wide
    assert lowest.scaled(-3) == lowest.scaled(-4) == 0


def test_the_larger_number_is_as_wide_as_what_it_was_compared_with() -> None:
    narrow, wide = parse("1e30"), parse("18446744073709551615")
    assert wide.largest(narrow) == Quantity(1, 30, wide=True)
    assert narrow.largest(wide) is narrow
    assert (narrow.scaled(0), wide.largest(narrow).scaled(0)) == (0, -(2**63))
    assert narrow.largest(parse("1e31")) == Quantity(1, 31)


@pytest.mark.parametrize(
    ("left", "difference"),
    [
        (Quantity(1), Quantity(1 + MIN)),
        (Quantity(0, 3), Quantity(MIN)),
        (Quantity(1, 3), Quantity(1000 + MIN)),
        (Quantity(-1), Quantity(-1 - MIN, wide=True)),
        (Quantity(MIN), Quantity(0, wide=True)),
        (Quantity(1, wide=True), Quantity(1 - MIN, wide=True)),
    ],
)
def test_the_lowest_number_is_taken_away_as_go_does(left: Quantity, difference: Quantity) -> None:
    assert left.minus(Quantity(MIN)) == difference


def test_other_numbers_are_taken_away_exactly() -> None:
    assert Quantity(5).minus(Quantity(7)) == Quantity(-2)
    assert Quantity(5).minus(Quantity(5, -1)) == Quantity(45, -1)
