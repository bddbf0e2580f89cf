"""Claims as stored, assumed and in flight, and which devices count as taken at each time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Cluster, Resource
from policysched.model.objects import ResourceClaim
from policysched.state.resource_claims import (
    EXTENDED_RESOURCE_CLAIM,
    ClaimOutOfStepError,
    ResourceClaims,
    UnknownClaimError,
)
from tests.build import pod
from tests.plugins.dynamic_resources.objects import allocated, changed, claim, devices_of, names_of


def made(*claims: ResourceClaim) -> tuple[Cluster, ResourceClaims]:
    around = Cluster()
    for one in claims:
        around.take(one)
    return around, around.resource_claims


def taken(around: Cluster, name: str = "c") -> list[str]:
    return names_of(around.devices.allocated.results_of(f"uid-{name}"))


def version(of: ResourceClaim, number: int) -> ResourceClaim:
    return replace(of, metadata=replace(of.metadata, resource_version=str(number)))


def test_changes_of_claims_are_told() -> None:
    around, known = made()
    first, second = claim(), allocated(claim(version="2"), "n1", "d1")
    assert around.take(first).action is Action.ADD
    change = around.take(second)
    assert (change.resource, change.action, change.old, change.new) == (
        Resource.RESOURCE_CLAIM, Action.UPDATE_OTHER, first, second,
    )  # fmt: skip
    assert taken(around) == ["n1/d1"]
    assert around.drop(second).action is Action.DELETE
    assert around.drop(second).nothing
    assert taken(around) == []
    assert known.get("default/c") is None


def test_a_version_that_is_not_newer_says_nothing() -> None:
    around, known = made(version(allocated(claim(), "n1", "d1"), 10))
    for older in (9, 10):
        assert around.take(version(claim(), older)).nothing
    assert taken(around) == ["n1/d1"]
    assert not around.take(version(claim(), 11)).nothing
    assert taken(around) == []
    assert len(known) == 1


def test_a_claim_made_anew_under_a_name_is_another_one() -> None:
    around, _ = made(version(allocated(claim(), "n1", "d1"), 10))
    other = version(claim(), 5)
    assert not around.take(replace(other, metadata=replace(other.metadata, uid="uid-other"))).nothing
    assert taken(around) == []


def test_claims_without_versions_are_taken_as_they_come() -> None:
    around, _ = made(version(claim(), 0))
    bare = replace(claim(), metadata=replace(claim().metadata, resource_version=""))
    around.take(bare)
    around.take(allocated(bare, "n1", "d1"))
    assert taken(around) == ["n1/d1"]


def test_what_was_written_counts_until_a_newer_version_comes() -> None:
    around, known = made(version(claim(), 1))
    written = version(allocated(claim(), "n1", "d1"), 3)
    assert known.assume(written).action is Action.UPDATE_OTHER
    assert taken(around) == ["n1/d1"]
    assert around.take(version(claim(), 2)).nothing
    assert around.take(written).nothing
    assert taken(around) == ["n1/d1"]
    assert not around.take(version(claim(), 4)).nothing
    assert taken(around) == []


def test_assuming_an_unknown_or_an_old_claim_is_refused() -> None:
    _, known = made(version(claim(), 5))
    with pytest.raises(UnknownClaimError, match="could not find ResourceClaim"):
        known.assume(claim("other"))
    with pytest.raises(ClaimOutOfStepError, match="is out of sync"):
        known.assume(version(claim(), 4))


def test_an_assumption_can_be_taken_back() -> None:
    around, known = made(version(claim(), 1))
    known.assume(version(allocated(claim(), "n1", "d1"), 2))
    assert known.restore("default/c").action is Action.UPDATE_OTHER
    assert taken(around) == []
    assert known.restore("default/c").nothing
    assert known.restore("default/none").nothing


def test_devices_in_flight_are_taken_whatever_the_server_says() -> None:
    around, known = made(version(claim(), 1))
    known.begin(allocated(claim(), "n1", "d1"))
    assert devices_of(known.pending_allocation("uid-c")) == ["n1/d1"]
    around.take(version(claim(), 2))
    assert taken(around) == ["n1/d1"]
    assert known.end("uid-c")
    assert not known.end("uid-c")
    assert taken(around) == []
    assert known.pending_allocation("uid-c") is None


def test_the_claim_of_a_pods_extended_resources_is_found_by_its_owner() -> None:
    mine, other = pod("mine"), pod("other")
    around, known = made()
    special = claim("x", owner=mine)
    special.metadata.annotations[EXTENDED_RESOURCE_CLAIM] = "true"
    around.take(special)
    around.take(claim("plain", owner=mine))
    assert known.special_claim_of(mine) is special
    assert known.special_claim_of(other) is None
    around.take(changed(special, version="2"))
    around.drop(special)
    assert known.special_claim_of(mine) is None


def test_claims_without_uids_hold_their_devices_each_for_itself() -> None:
    first, second = (
        replace(one, metadata=replace(one.metadata, uid=""))
        for one in (allocated(claim("a"), "n1", "d1"), allocated(claim("b"), "n1", "d2"))
    )
    around, _ = made(first, second)
    pool = around.devices.allocated
    assert [names_of(pool.results_of(one.key)) for one in (first, second)] == [["n1/d1"], ["n1/d2"]]
    around.drop(second)
    assert names_of(pool.results_of(first.key)) == ["n1/d1"]
    assert not pool.results_of(second.key)
