"""`policysched check` on the selectors of device classes and claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.app.checking.files import check_files

CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: large}
spec:
  selectors:
  - cel: {expression: device.driver == 1}
"""
REQUESTS = """\
devices:
  requests:
  - name: a
    exactly:
      deviceClassName: large
      selectors:
      - cel: {expression: device.driver == "x"}
      - cel: {expression: device.nope}
  - name: b
    firstAvailable:
    - name: c
      selectors:
      - cel: {expression: "1"}
"""


def _indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


def _found(tmp_path: Path, text: str) -> list[tuple[str, str, str]]:
    (tmp_path / "objects.yaml").write_text(text)
    made = check_files([str(tmp_path)])
    assert not made.problems
    assert made.selecting == 1
    return [(str(one.policy), one.diagnostic.field, one.diagnostic.message) for one in made.findings]


def test_selector_of_a_class_is_checked(tmp_path: Path) -> None:
    [(name, field, message)] = _found(tmp_path, CLASS)
    assert (name, field) == ("DeviceClass/large", "spec.selectors[0].cel.expression")
    assert message == "found no matching overload for '_==_' applied to '(string, int)'"


def test_function_of_stored_selectors_is_refused_in_new_ones(tmp_path: Path) -> None:
    text = CLASS.replace("device.driver == 1", '"[device.driver].includes(device.driver)"')
    [(_, _, message)] = _found(tmp_path, text)
    assert message == "undeclared reference to 'includes' (in container '')"


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_selectors_of_all_requests_are_checked(tmp_path: Path, kind: str) -> None:
    head = f"apiVersion: resource.k8s.io/v1\nkind: {kind}\nmetadata: {{name: c}}\nspec:\n"
    template = kind == "ResourceClaimTemplate"
    body = ("  spec:\n" if template else "") + _indented(REQUESTS, 4 if template else 2)
    inside = "spec.spec" if template else "spec"
    assert _found(tmp_path, head + body) == [
        (
            f"{kind}/c",
            f"{inside}.devices.requests[0].exactly.selectors[1].cel.expression",
            "undefined field 'nope'",
        ),
        (
            f"{kind}/c",
            f"{inside}.devices.requests[1].firstAvailable[0].selectors[0].cel.expression",
            "must evaluate to bool or the unknown type, not int",
        ),
    ]


def test_longest_text_is_that_of_the_api(tmp_path: Path) -> None:
    long = CLASS.replace("device.driver == 1", '"' + "true || " * 1400 + 'true"')
    assert [message for _, _, message in _found(tmp_path, long)] == ["must be no more than 10240 bytes"]


@pytest.mark.parametrize(
    "text",
    [
        "spec: 5",
        "spec: {selectors: 5}",
        "spec: {selectors: [{cel: x}, 5]}",
        "spec: {selectors: [{cel: {expression: 5}}]}",
    ],
)
def test_misshapen_class_has_no_selectors(tmp_path: Path, text: str) -> None:
    head = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: 5\n"
    assert _found(tmp_path, head + text) == []
