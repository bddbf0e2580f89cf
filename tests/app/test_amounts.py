from __future__ import annotations

import pytest

from policysched.app.amounts import canonical
from policysched.model.quantity import parse


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0"), ("0Gi", "0"), ("0.5", "500m"), (1.5, "1500m"), ("1000m", "1"), ("1500m", "1500m"), ("1000", "1k"),
        ("1e9", "1G"), ("1.5G", "1500M"), ("1Gi", "1Gi"), ("1.5Gi", "1536Mi"), ("1024Mi", "1Gi"), ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"), ("100n", "100n"), ("-5", "-5"), ("-2048Ki", "-2Mi"), ("1.5Ki", "1536"),
    ],
)  # fmt: skip
def test_quantities_are_written_as_an_api_server_prints_them(amount: str | float, text: str) -> None:
    assert canonical(parse(amount), amount) == text
