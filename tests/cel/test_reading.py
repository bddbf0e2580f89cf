"""Which attributes a selector reads."""

from __future__ import annotations

import pytest

from policysched.cel import compile_selector


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("true", set()),
        ('device.driver == "a" && device.allowMultipleAllocations', set()),
        ('device.attributes["a"].model == "x"', {("a", "model")}),
        (
            'device.attributes["a"]["model"].startsWith("x") || has(device.attributes["b"].y)',
            {("a", "model"), ("b", "y")},
        ),
        ('device.attributes["a"].?model.orValue("") == "x"', {("a", "model")}),
        ('device.attributes[?"a"].?model.orValue("") == "x"', {("a", "model")}),
        ('device.capacity["a"].memory.isGreaterThan(quantity("1Gi"))', set()),
        ('["x"].exists(v, device.attributes["a"].model == v)', {("a", "model")}),
        ('cel.bind(own, device.attributes["a"], own.model == "x")', None),
        ('"model" in device.attributes["a"]', None),
        ('device.attributes.exists(domain, domain == "a")', None),
        ('device.attributes["a" + "b"].model == "x"', None),
        ("device == device", None),
        ('["a"].exists(d, device.attributes[d].model == "x")', None),
    ],
)
def test_selector_tells_the_attributes_that_it_reads(text: str, reads: set[tuple[str, str]] | None) -> None:
    assert compile_selector(text).reads == reads
