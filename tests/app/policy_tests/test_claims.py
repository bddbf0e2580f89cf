"""Tests of policies with resource claims: which devices claims get, and that steps keep them and give them back."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.app.policy_tests.folders import results

CLUSTER = """\
cluster:
  nodes: [{name: n1}, {name: n2}]
  objects:
  - apiVersion: resource.k8s.io/v1
    kind: DeviceClass
    metadata: {name: gpu}
    spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: 'device.driver == "d"'}}]}
  - apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    metadata: {name: n1}
    spec:
      driver: d
      nodeName: n1
      pool: {name: n1, generation: 1, resourceSliceCount: 1}
      devices: [{name: gpu-0}, {name: gpu-1}]
  - apiVersion: resource.k8s.io/v1
    kind: ResourceClaim
    metadata: {name: shared, namespace: default}
    spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
  - apiVersion: resource.k8s.io/v1
    kind: ResourceClaimTemplate
    metadata: {name: one, namespace: default}
    spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
tests:
- given: something
"""
SPEC = "scores: [{name: even, value: 50}]"
SHARED = "spec: {resourceClaims: [{name: c, resourceClaimName: shared}]}"
OWN = "spec: {resourceClaims: [{name: c, resourceClaimTemplateName: one}]}"
EXTENDED = "requests: {example.com/gpu: 1}"


def one(folder: Path, expect: str) -> list[tuple[str, str, str]]:
    """What differs of a pod with a claim of its own."""
    given = f"{CLUSTER}  pod: {{name: web, {OWN}}}\n  expect: {expect}\n"
    [result] = results(folder, given, SPEC)
    assert result.problem == ""
    return [(found.field.rpartition(".expect.")[2], found.expected, found.got) for found in result.differences]


def steps(folder: Path, *given: str) -> None:
    """Run steps, which have to pass."""
    [result] = results(folder, CLUSTER + "  steps:\n" + textwrap.indent("\n".join(given), "  "), SPEC)
    assert (result.problem, [(one.what, one.expected, one.got) for one in result.differences]) == ("", [])


@pytest.mark.parametrize("name", ["d/n1/gpu-0", "d/n1/*", "*/gpu-?"])
def test_devices_are_named_wholly_or_by_a_pattern(tmp_path: Path, name: str) -> None:
    assert one(tmp_path, f"{{devices: {{web-c: ['{name}']}}}}") == []


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ("['d/n1/gpu-1']", "d/n1/gpu-1"),
        ("['d/n2/*']", "d/n2/*"),
        ("[]", "none"),
        ("['d/n1/*', d/n1/x]", "d/n1/gpu-0, d/n1/x"),
    ],
)
def test_other_devices_are_a_difference(tmp_path: Path, devices: str, expected: str) -> None:
    assert one(tmp_path, f"{{devices: {{web-c: {devices}}}}}") == [("devices.web-c", expected, "d/n1/gpu-0")]


def test_a_claim_that_the_pod_does_not_have_is_an_error(tmp_path: Path) -> None:
    given = f"{CLUSTER}  pod: {{name: web, {OWN}}}\n  expect: {{devices: {{web-d: []}}}}\n"
    [result] = results(tmp_path, given, SPEC)
    assert result.problem.endswith("no claim `web-d`; did you mean `web-c`?")


def test_devices_stay_taken_until_their_pods_go(tmp_path: Path) -> None:
    steps(
        tmp_path,
        f"- {{pod: {{name: a, {OWN}}}, expect: {{devices: {{a-c: [d/n1/gpu-0]}}}}}}",
        f"- {{pod: {{name: b, {EXTENDED}}}, expect: {{selected: n1}}}}",
        f"- {{pod: {{name: c, {OWN}}}, expect: {{best: [], reason: {{contains: 2 cannot allocate}}}}}}",
        "- {remove: {pods: [b]}, again: c, expect: {devices: {c-c: [d/n1/gpu-1]}}}",
        "- {remove: {pods: [a]}}",
        f"- {{pod: {{name: d, {OWN}}}, expect: {{devices: {{d-c: [d/n1/gpu-0]}}}}}}",
    )


def test_a_claim_is_shared_and_gives_its_device_back_with_its_last_pod(tmp_path: Path) -> None:
    steps(
        tmp_path,
        f"- {{pod: {{name: a, {SHARED}}}, expect: {{devices: {{shared: [d/n1/gpu-0]}}}}}}",
        f"- {{pod: {{name: b, {SHARED}}}, expect: {{selected: n1, devices: {{shared: [d/n1/gpu-0]}}}}}}",
        "- {remove: {pods: [a]}}",
        f"- {{pod: {{name: c, {OWN}}}, expect: {{devices: {{c-c: [d/n1/gpu-1]}}}}}}",
        "- {remove: {pods: [b]}}",
        f"- {{pod: {{name: d, {OWN}}}, expect: {{devices: {{d-c: [d/n1/gpu-0]}}}}}}",
    )


def test_a_node_that_goes_takes_the_claims_of_its_pods_along(tmp_path: Path) -> None:
    steps(
        tmp_path,
        f"- {{pod: {{name: a, {SHARED}}}, expect: {{selected: n1}}}}",
        "- {remove: {nodes: [n1]}, add: {nodes: [{name: n1}]}}",
        f"- {{pod: {{name: b, {OWN}}}, expect: {{devices: {{b-c: [d/n1/gpu-0]}}}}}}",
    )
