"""Claims, templates and slices that are hostile or broken: their pods hear why, and other pods go on."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import Cluster, Status
from policysched.model.decode import decode
from policysched.model.objects import Pod, ResourceClaim, ResourcePool, ResourceSlice
from policysched.plugins.dynamic_resources.claim_rows import ClaimRows
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from policysched.plugins.dynamic_resources.pod_claims import NO_DEVICES, NOT_AVAILABLE
from tests.build import node
from tests.plugins.dynamic_resources.objects import (
    CLASS,
    DRIVER,
    allocated,
    claim,
    claiming,
    exactly,
    resource_slice,
    selector,
    two_nodes,
    world,
)
from tests.work import calls

LOOPS = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
EXPLODES = "lists.range(1000).all(x, 'a'.matches('(a?){900}b' + string(x)) || true)"
LARGE = " || ".join(f'device.driver == "driver-{place}"' for place in range(320))


def said(of: Pod, cluster: Cluster) -> dict[str, str]:
    """What is said of each node, empty where the pod can go; of no node where the pod is turned away before."""
    rows = DynamicResources().prepare_filter(of, cluster)
    if isinstance(rows, Status):
        return {"": rows.reasons[0]}
    assert isinstance(rows, ClaimRows)
    codes = {name: int(rows.codes[row]) for name, row in cluster.nodes.row_of.items()}
    return {name: rows.reason(code).reasons[0] if code else "" for name, code in codes.items()}


def pick(expression: str) -> ResourceClaim:
    return claim("hostile", exactly(selectors=(selector(expression),)))


GOES: dict[str, str] = {"n1": "", "n2": ""}
TOO_MANY = (
    "claim default/hostile, request r: adding 33 devices exceeds the claim limit of 32, with 0 already accounted for"
)
STOPPED = {
    name: f"claim default/hostile: selector #0 on device {DRIVER}/{name}/d1: CEL runtime error: operation cancelled: "
    "actual cost limit exceeded"
    for name in GOES
}


@pytest.mark.parametrize(
    ("hostile", "hears"),
    [
        (pick(LOOPS), STOPPED),
        (pick(EXPLODES), STOPPED),
        (pick(LARGE), dict.fromkeys(GOES, NO_DEVICES.reasons[0])),
        (claim("hostile", exactly(count=32)), dict.fromkeys(GOES, NO_DEVICES.reasons[0])),
        (
            claim("hostile", exactly(count=33)),
            dict.fromkeys(GOES, TOO_MANY),
        ),
        (claim("hostile", exactly(device_class="gone")), {"": "request r: device class gone does not exist"}),
        (allocated(claim("hostile"), "n3", "nobody"), dict.fromkeys(GOES, NOT_AVAILABLE.reasons[0])),
    ],
    ids=["loops", "explodes", "10 KiB", "32 devices", "33 devices", "class gone", "devices nobody publishes"],
)
def test_a_hostile_claim_concerns_its_own_pod_alone(hostile: ResourceClaim, hears: dict[str, str]) -> None:
    around = two_nodes(hostile, claim("good"))
    for _ in range(3):  # it may take several attempts until all is known
        found = said(claiming("hostile"), around)
        assert said(claiming("good", name="q"), around) == GOES
        if not any("timed out" in one for one in found.values()):
            break
    assert found == hears


def test_a_claim_may_have_more_users_than_can_be_reserved() -> None:
    users = [claiming("shared", name=f"p{place}") for place in range(257)]
    around = two_nodes(allocated(claim("shared"), "n1", "d1", users=users[:256]))
    assert said(users[256], around) == {"n1": "", "n2": NOT_AVAILABLE.reasons[0]}


def _slice(on: str, attribute: dict[str, Any]) -> ResourceSlice:
    spec = {"driver": DRIVER, "nodeName": on, "pool": {"name": on, "generation": 1, "resourceSliceCount": 1}}
    devices = [{"name": "d1", "attributes": {"a": attribute}}]
    return decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": on}, "spec": spec | {"devices": devices}})


@pytest.mark.parametrize(
    ("attribute", "why"),
    [
        ({}, "unsupported attribute value"),
        ({"versions": ["1.0.0", "1"]}, "parse semantic version: No Major.Minor.Patch elements found"),
        ({"version": "1"}, "parse semantic version: No Major.Minor.Patch elements found"),
    ],
)
def test_a_device_that_selectors_cannot_read_fails_pods_in_kubernetes_words(
    attribute: dict[str, Any], why: str
) -> None:
    around = world(node("n1"), node("n2"), _slice("n1", attribute), resource_slice("n2", "d1"), claim("c"))
    error = f"class {CLASS}: selector #0 on device {DRIVER}/n1/d1: CEL runtime error: attribute a: {why}"
    assert said(claiming("c"), around) == {"n1": error, "n2": ""}


def test_pools_that_never_complete_leave_the_others() -> None:
    half = ResourcePool(name="n1", generation=1, resource_slice_count=2)
    around = world(
        node("n1"), node("n2"), resource_slice("n1", "d1", pool=half), resource_slice("n2", "d1"), claim("c")
    )
    assert said(claiming("c"), around) == {"n1": NO_DEVICES.reasons[0], "n2": ""}


def _rewriting(nodes: int) -> int:
    names = [f"n{place}" for place in range(nodes)]
    around = world(*map(node, names), *(resource_slice(one, "d1", "d2") for one in names), claim("c"))
    plugin, of = DynamicResources(), claiming("c")
    devices = [f"d{place}" for place in range(128)]

    def rewritten(generation: int) -> None:
        pool = ResourcePool(name="n0", generation=generation, resource_slice_count=1)
        around.take(resource_slice("n0", *devices, pool=pool))
        plugin.prepare_filter(of, around)

    rewritten(2)
    return calls(lambda: rewritten(3))


def test_a_slice_that_is_rewritten_costs_as_much_as_it_is() -> None:
    assert _rewriting(160) < _rewriting(40) + 50
