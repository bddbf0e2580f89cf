"""Resource claims that pods share with their pod group: who may use them, and what is written."""

from __future__ import annotations

import pytest
from msgspec import structs

from policysched.framework import ApiError, Cluster, Status, unresolvable
from policysched.model.objects import (
    ConsumerReference,
    OwnerReference,
    Pod,
    PodClaimStatus,
    PodResourceClaim,
    PodStatus,
    ResourceClaim,
)
from policysched.model.release import Release
from policysched.plugins.dynamic_resources.claim_writes import consumer_of
from policysched.plugins.dynamic_resources.group_claims import consumers
from policysched.plugins.dynamic_resources.pod_claims import is_reserved_for, stated_claims
from policysched.testing.recorded_writes import RecordingClaims
from tests.build import node
from tests.groups import CLAIMS, CLAIMS_38, GATED, group, member
from tests.plugins.dynamic_resources.objects import allocated, changed, claim, gpu_class, resource_slice
from tests.schedule.groups.parts import is_clean, submit
from tests.schedule.stand import running

MADE = PodResourceClaim(name="gpu", resource_claim_template_name="one")
NAMED = PodResourceClaim(name="gpu", resource_claim_name="c")
OF_GROUP = ConsumerReference(api_group="scheduling.k8s.io", resource="podgroups", name="g", uid="uid-g")


def owned(by: str = "g", kind: str = "PodGroup", version: str = "scheduling.k8s.io/v1beta1") -> ResourceClaim:
    """A claim that was made for a pod group."""
    made = claim()
    owner = OwnerReference(api_version=version, kind=kind, name=by, uid=f"uid-{by}", controller=True)
    return structs.replace(made, metadata=structs.replace(made.metadata, owner_references=[owner]))


def using(*entries: PodResourceClaim, name: str = "p", of: str = "g") -> Pod:
    """A member that states claims; the claim of a template is `c`."""
    pod = member(name, of, resource_claims=list(entries), requests={"cpu": 1})
    told = [PodClaimStatus(name="gpu", resource_claim_name="c")]
    return structs.replace(pod, status=PodStatus(resource_claim_statuses=told))


def usable(pod: Pod, one: ResourceClaim, release: Release) -> bool | Status:
    cluster = Cluster(release=release)
    cluster.take(one)
    found = stated_claims(pod, cluster.resource_claims)
    return found if isinstance(found, Status) else found == [one]


@pytest.mark.parametrize("release", [CLAIMS, CLAIMS_38], ids=["1.37", "1.38"])
def test_members_may_use_claims_that_were_made_for_their_group(release: Release) -> None:
    refused = "ResourceClaim default/c was not created for Pod default/p (neither Pod nor PodGroup g is the owner)"
    assert usable(using(MADE), owned(), release) is True
    for one in (owned("h"), owned(kind="Pod"), owned(version="example.com/v1"), claim()):
        assert usable(using(MADE), one, release) == unresolvable(refused)
        assert usable(using(NAMED), one, release) is True


def test_without_gate_or_group_a_claim_of_a_template_is_the_pods_own() -> None:
    refused = unresolvable("ResourceClaim default/c was not created for Pod default/p (Pod is not owner)")
    assert usable(using(MADE), owned(), GATED) == refused
    assert usable(using(MADE, of=""), owned(), CLAIMS) == refused


@pytest.mark.parametrize(
    ("stated", "of_group", "is_shared"),
    [
        (MADE, MADE, True),
        (NAMED, NAMED, True),
        (NAMED, MADE, False),
        (NAMED, structs.replace(NAMED, name="other"), False),
        (NAMED, structs.replace(NAMED, resource_claim_name="d"), False),
    ],
)
def test_a_claim_is_the_groups_if_pod_and_group_state_it_alike(
    stated: PodResourceClaim, of_group: PodResourceClaim, *, is_shared: bool
) -> None:
    cluster, pod = Cluster(release=CLAIMS), using(stated)
    cluster.take(group(resource_claims=[of_group]))
    assert consumers(pod, cluster) == ({"default/c": OF_GROUP} if is_shared else {})
    without = Cluster(release=GATED)
    without.take(group(resource_claims=[of_group]))
    assert consumers(pod, without) == {}


def test_a_claim_is_reserved_for_a_pod_by_uid_and_for_a_group_by_name() -> None:
    pod, of = using(NAMED), claim()
    assert is_reserved_for(changed(of, reserved_for=(consumer_of(pod),)), pod)
    for_group = changed(of, reserved_for=(OF_GROUP,))
    assert not is_reserved_for(for_group, pod)
    assert is_reserved_for(for_group, pod, or_group=True)
    assert not is_reserved_for(for_group, using(NAMED, of="h"), or_group=True)
    assert not is_reserved_for(for_group, using(NAMED, of=""), or_group=True)


class Written(RecordingClaims):
    """Notes for whom claims are reserved by each write."""

    def __init__(self) -> None:
        self.wrote: list[tuple[ConsumerReference, ...]] = []

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Note a written allocation."""
        self.wrote.append(claim.status.reserved_for)
        return await super().allocate(claim)

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Note a written reservation."""
        self.wrote.append(claim.status.reserved_for)
        return await super().reserve(claim)


@pytest.mark.parametrize("release", [CLAIMS, CLAIMS_38], ids=["1.37", "1.38"])
@pytest.mark.parametrize("state", ["free", "allocated", "reserved"])
async def test_one_write_reserves_the_claim_for_all_members(release: Release, state: str) -> None:
    async with running(node("n1"), release=release) as stand:
        stand.client.claims = claims = Written()
        held = claim() if state == "free" else allocated(claim(), "n1", "d1")
        held = changed(held, reserved_for=(OF_GROUP,)) if state == "reserved" else held
        for one in (gpu_class(), resource_slice("n1", "d1"), held):
            stand.scheduler.take(one)
        pods = [using(NAMED, name=f"p{number}") for number in range(3)]
        await submit(stand, group(least=3, resource_claims=[NAMED]), *pods)
        await stand.settle()
        assert set(stand.bound) == {"p0", "p1", "p2"}
        assert claims.wrote == ([] if state == "reserved" else [(OF_GROUP,)])
        assert stand.notes == []
        assert is_clean(stand.scheduler.cluster)


async def test_a_member_whose_binding_fails_leaves_the_claim_to_its_group() -> None:
    async with running(node("n1"), release=CLAIMS) as stand:
        stand.client.claims = claims = Written()
        for one in (gpu_class(), resource_slice("n1", "d1"), claim()):
            stand.scheduler.take(one)
        stand.client.errors["bind"] = [ApiError(422, "Invalid", "no")]
        await submit(stand, group(least=1, resource_claims=[NAMED]), using(NAMED))
        await stand.settle()
        assert not stand.client.errors["bind"]
        assert stand.bound == {"p": "n1"}
        assert claims.wrote == [(OF_GROUP,)]
        found = stand.scheduler.cluster.resource_claims.get("default/c")
        assert found is not None
        assert found.status.reserved_for == (OF_GROUP,)
