"""Quantities as Go writes them."""

from __future__ import annotations

import pytest

from policysched.devices.inventory.amounts import BINARY, DECIMAL, read, whole


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"), ("0Gi", "0"), ("1", "1"), ("1000", "1k"), ("1024", "1024"), ("1024Mi", "1Gi"), ("1500Mi", "1500Mi"),
        ("0.5", "500m"), ("0.5Gi", "512Mi"), ("1023Ki", "1023Ki"), ("512", "512"), ("1.5k", "1500"), ("1e3", "1e3"),
        ("12e2", "1200"), ("1e-3", "1e-3"), ("100m", "100m"), ("1000m", "1"), ("-2Gi", "-2Gi"), ("1500000u", "1500m"),
        ("0.25Ki", "256"), ("6G", "6G"), ("1E", "1E"), ("3Ei", "3Ei"),
    ],
)  # fmt: skip
def test_quantity_is_written_as_go_does(text: str, written: str) -> None:
    assert read(text).text() == written


def test_integers_are_written_in_their_form() -> None:
    assert whole(512, BINARY).text() == "512"
    assert whole(2 << 30, BINARY).text() == "2Gi"
    assert whole(3000, BINARY).text() == "3000"
    assert whole(3000, DECIMAL).text() == "3k"


def test_identity_is_that_of_go_and_not_of_numbers() -> None:
    assert read("1Gi").is_identical(read("1024Mi"))
    assert not read("1k").is_identical(read("1000"))
    assert not read("1024").is_identical(read("1Ki"))
