"""What the scheduler that decides nothing reads of the API."""

from __future__ import annotations

import pytest

from bench.cluster.null_scheduler import _amount


@pytest.mark.parametrize(
    ("text", "factor", "expected"),
    [
        ("90k", 1, 90_000),
        ("110", 1, 110),
        ("0", 1000, 0),
        ("2", 1000, 2000),
        ("1.5", 1000, 1500),
        ("100m", 1000, 100),
        ("32Gi", 1, 32 << 30),
        ("500Mi", 1, 500 << 20),
        ("3Ki", 1, 3072),
        ("1Pi", 1, 1 << 50),
        ("5G", 1, 5_000_000_000),
        ("2E", 1, 2_000_000_000_000_000_000),
        ("1e3", 1, 1000),
        ("250000u", 1000, 250),
    ],
)
def test_amounts_are_read_as_the_api_server_writes_them(text: str, factor: int, expected: int) -> None:
    assert _amount(text, factor) == expected
