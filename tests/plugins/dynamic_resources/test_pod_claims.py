"""A pod's claims: which of them it waits for, in kube-scheduler's words, and what allocated ones say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Cluster, Code, Status, unresolvable
from policysched.model.objects import (
    DeviceCondition,
    DeviceRequest,
    Pod,
    PodClaimStatus,
    PodResourceClaim,
    ResourceClaim,
)
from policysched.plugins.dynamic_resources.pod_claims import (
    binding_failure,
    has_timed_out,
    is_ready_to_bind,
    request_fault,
    stated_claims,
)
from tests.build import pod
from tests.plugins.dynamic_resources.objects import (
    allocated,
    alternative,
    changed,
    claim,
    claiming,
    exactly,
    templated,
    told,
    world,
)
from tests.work import lines

READY = DeviceCondition(type="Ready", status="True")
BROKEN = DeviceCondition(type="Broken", status="True", reason="Why", message='a "b"')


def found(of: Pod, *claims: ResourceClaim) -> list[str] | Status:
    """The names of a pod's claims, or what it waits for."""
    known = Cluster()
    for one in claims:
        known.take(one)
    claims_of = stated_claims(of, known.resource_claims)
    return claims_of if isinstance(claims_of, Status) else [one.metadata.name for one in claims_of]


def test_claims_are_found_in_the_order_of_the_pod() -> None:
    assert found(pod()) == []
    assert found(claiming("b", "a"), claim("a"), claim("b"), claim("c")) == ["b", "a"]


def test_a_claim_that_a_pod_names_need_not_be_its_own() -> None:
    assert found(claiming("c"), claim("c", owner=pod("other"))) == ["c"]


def test_a_claim_made_from_a_template_has_to_be_the_pods_own() -> None:
    own = templated("made")
    assert found(own, claim("made", owner=own)) == ["made"]
    text = "ResourceClaim default/made was not created for Pod default/p (Pod is not owner)"
    assert found(own, claim("made", owner=pod("other"))) == unresolvable(text)
    assert found(own, claim("made")) == unresolvable(text)


def test_a_template_of_which_no_claim_is_needed_is_passed_over() -> None:
    assert found(templated(None)) == []


GOING = claim("c")
MISSING: dict[str, tuple[Pod, list[ResourceClaim], str]] = {
    "not made": (templated(known=False), [], 'pod "default/p": ResourceClaim not created yet'),
    "unknown": (claiming("c"), [], 'could not find ResourceClaim "default/c"'),
    "going": (
        claiming("c"),
        [replace(GOING, metadata=replace(GOING.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))],
        'resourceclaim "c" is being deleted',
    ),
    "of no kind": (
        pod(resource_claims=[PodResourceClaim(name="x")]),
        [],
        'pod "default/p", spec.resourceClaim "x": none of the supported fields are set',
    ),
}


@pytest.mark.parametrize(("of", "claims", "text"), MISSING.values(), ids=MISSING)
def test_what_a_pod_waits_for_is_named(of: Pod, claims: list[ResourceClaim], text: str) -> None:
    assert found(of, *claims) == unresolvable(text)


FAULTS: dict[str, tuple[Any, Status | None]] = {
    "fine": (exactly(), None),
    "no class of that name": (exactly(device_class="tpu"), unresolvable("request r: device class tpu does not exist")),
    "no class": (exactly(device_class=""), Status(Code.ERROR, ("request r: unsupported request type",))),
    "neither": (DeviceRequest(name="r"), unresolvable("resource claim default/c, request r: unknown request type")),
    "an alternative": (
        DeviceRequest(name="r", first_available=(alternative("a"), replace(alternative("b"), device_class_name="tpu"))),
        unresolvable("request r/b: device class tpu does not exist"),
    ),
}


@pytest.mark.parametrize(("request_of", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_claim_that_can_be_allocated_nowhere_is_told(request_of: DeviceRequest, fault: Status | None) -> None:
    assert request_fault(claim("c", request_of), world()) == fault


WAITING = allocated(claim(), "n1", "d1", waits_for=("Ready",), binding_failure_conditions=("Broken",))


@pytest.mark.parametrize(
    ("of", "ready", "failure"),
    [
        (claim(), False, ""),
        (allocated(claim(), "n1", "d1"), True, ""),
        (WAITING, False, ""),
        (told(WAITING), False, ""),
        (told(WAITING, replace(READY, status="False")), False, ""),
        (told(WAITING, READY), True, ""),
        (
            told(WAITING, READY, BROKEN),
            True,
            'device binding failed: claim=c, reason=Why, message="a "b""',
        ),
        (told(WAITING, READY, replace(BROKEN, status="False")), True, ""),
    ],
)
def test_devices_are_ready_when_their_conditions_are_met(of: ResourceClaim, ready: bool, failure: str) -> None:
    assert is_ready_to_bind(of) is ready
    assert binding_failure(of) == failure


def test_conditions_time_out_from_the_allocation_on() -> None:
    assert WAITING.status.allocation is not None
    at = replace(WAITING.status.allocation, allocation_timestamp="1970-01-01T00:01:40Z")
    dated = changed(WAITING, allocation=at)
    assert [has_timed_out(dated, 10, now) for now in (105, 110, 111)] == [False, False, True]
    assert not has_timed_out(WAITING, 10, 1e9)
    plain = allocated(claim(), "n1", "d1")
    assert plain.status.allocation is not None
    assert not has_timed_out(
        changed(plain, allocation=replace(plain.status.allocation, allocation_timestamp="1970-01-01T00:00:00Z")),
        10,
        1e9,
    )


def test_work_for_many_templates_grows_as_they_do() -> None:
    def taken(count: int) -> int:
        names = [f"c{one}" for one in range(count)]
        of = pod(resource_claims=[PodResourceClaim(name=one, resource_claim_template_name="t") for one in names])
        made = [PodClaimStatus(name=one, resource_claim_name=one) for one in names]
        of = replace(of, status=replace(of.status, resource_claim_statuses=made))
        known = Cluster()
        for one in names:
            known.take(claim(one, owner=of))
        assert len(stated_claims(of, known.resource_claims)) == count  # type: ignore[arg-type]
        return lines(lambda: stated_claims(of, known.resource_claims))

    assert taken(200) < 4.4 * taken(50)


def test_of_two_claims_made_for_one_entry_the_first_counts() -> None:
    of = templated("first")
    both = [*of.status.resource_claim_statuses, PodClaimStatus(name="c", resource_claim_name="second")]
    of = replace(of, status=replace(of.status, resource_claim_statuses=both))
    assert found(of, claim("first", owner=of), claim("second", owner=of)) == ["first"]
