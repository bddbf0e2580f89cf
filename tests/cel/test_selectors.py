"""Selectors with what Kubernetes says of them and of one device, and what the device's own values do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policysched.cel import Device, InvalidDeviceSelectorError, compile_selector
from tests.cel.devices import says

CASES: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["selector"][:60])
def test_selector_says_what_kubernetes_says(case: dict[str, Any]) -> None:
    assert says(case["selector"]) == case["says"]


def test_cases_have_verdicts_and_all_kinds_of_errors() -> None:
    said = [case["says"] for case in CASES]
    texts = "\n".join(one for one in said if isinstance(one, str))
    assert said.count(True) > 100
    assert said.count(False) > 20
    for kind in (
        "Syntax error",
        "no matching overload",
        "no such key",
        "overflow",
        "division by zero",
        "out of bounds",
    ):
        assert kind in texts
    for kind in ("must evaluate to bool", "could not be converted", "cost limit", "program instantiation", "quantity"):
        assert kind in texts


@pytest.mark.parametrize(
    ("attribute", "trouble"),
    [
        ({}, "unsupported attribute value"),
        ({"versions": ["1.0.0", "1.x"]}, "parse semantic version: No Major.Minor.Patch elements found"),
        ({"version": "1.x"}, "parse semantic version: No Major.Minor.Patch elements found"),
    ],
)
def test_device_with_a_wrong_attribute_fails_every_selector(attribute: dict[str, Any], trouble: str) -> None:
    device = Device("a", {"good": {"int": 1}, "wrong": attribute})
    assert says("true", device) == f"attribute wrong: {trouble}"


def test_attribute_without_domain_has_the_drivers() -> None:
    device = Device("a", {"model": {"string": "x"}, "b/model": {"string": "y"}}, {"memory": "1Gi"})
    assert says('device.attributes["a"].model == "x" && device.attributes["b"].model == "y"', device) is True
    assert says('device.capacity["a"].memory == quantity("1024Mi")', device) is True
    assert says('device.attributes["c"].model == "x"', device) == "no such key: model"


@pytest.mark.parametrize("allowed", [True, False])
def test_selector_may_ask_whether_a_device_is_shared(allowed: bool) -> None:
    assert says("device.allowMultipleAllocations", Device("a", allow_multiple_allocations=allowed)) is allowed


def test_refusal_names_places_in_the_order_of_the_text() -> None:
    with pytest.raises(InvalidDeviceSelectorError) as refused:
        compile_selector('foo == 1 &&\n  device.bar == "a"')
    assert [(one.line, one.column) for one in refused.value.issues] == [(1, 1), (2, 9)]


def test_refusal_of_the_result_has_no_place() -> None:
    with pytest.raises(
        InvalidDeviceSelectorError, match="must evaluate to bool or the unknown type, not int"
    ) as refused:
        compile_selector("1")
    assert refused.value.issues == ()


@pytest.mark.parametrize(
    ("cel_0_29", "shown"),
    [(False, ("type(list(A))", "type(map(A, B))")), (True, ("type(list(dyn))", "type(map(dyn, dyn))"))],
)
def test_messages_show_the_types_of_list_and_map(cel_0_29: bool, shown: tuple[str, str]) -> None:
    for name, kind in zip(("list", "map"), shown, strict=True):
        with pytest.raises(InvalidDeviceSelectorError) as error:
            compile_selector(f"{name}.exists(x, true)", cel_0_29=cel_0_29)
        assert f"expression of type '{kind}' cannot be range of a comprehension" in str(error.value)
