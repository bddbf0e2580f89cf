"""Volumes and claims as they are stored and as they are assumed, and which pods use them."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from policysched.framework import Action
from policysched.model.decode import ObjectError
from policysched.model.kinds import KINDS
from policysched.model.objects import ClaimSource, PersistentVolume, PersistentVolumeClaim, Pod, Stored, Volume
from policysched.model.objects.pods import AWSDisk, EphemeralSource
from policysched.model.objects.storage import PersistentVolumeStatus, class_of, is_fully_bound
from policysched.model.quantity import ZERO, parse
from policysched.state.object_tables import ObjectTables
from policysched.state.volumes.storage import OutOfStepError, Storage
from tests.build import cluster, node, pod

STORED = [one.__name__ for one in get_args(Stored)]


def claim(name: str = "c", version: str = "1", **spec: Any) -> PersistentVolumeClaim:
    made = KINDS["PersistentVolumeClaim"].decode({"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    assert isinstance(made, PersistentVolumeClaim)
    return replace(made, metadata=replace(made.metadata, resource_version=version))


def volume(name: str = "v", version: str = "1", **spec: Any) -> PersistentVolume:
    made = KINDS["PersistentVolume"].decode(
        {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}
    )
    assert isinstance(made, PersistentVolume)
    return replace(made, metadata=replace(made.metadata, resource_version=version))


def using(name: str, *claims: str, on: str = "n1", **volumes: Any) -> Pod:
    made = pod(name, on=on)
    sources = [Volume(name=one, persistent_volume_claim=ClaimSource(claim_name=one)) for one in claims]
    sources += [Volume(name=key, **{key: source}) for key, source in volumes.items()]
    return replace(made, spec=replace(made.spec, volumes=sources))


# Assuming


def test_what_is_assumed_stands_before_what_is_stored_until_a_newer_version_comes() -> None:
    claims = Storage(ObjectTables()).claims
    claims.put(claim())
    assumed = claim(volumeName="v")
    claims.assume(assumed)
    assert (claims.get("default/c"), claims.stored("default/c")) == (assumed, claim())
    claims.put(claim())
    assert claims.get("default/c") == assumed
    claims.put(claim(version="2"))
    assert claims.get("default/c") == claim(version="2")


def test_an_assumption_is_taken_back_only_while_it_is_about_the_stored_version() -> None:
    claims = Storage(ObjectTables()).claims
    claims.put(claim())
    assumed = claim(volumeName="v")
    claims.assume(assumed)
    claims.restore(claim(version="0"))
    assert claims.get("default/c") == assumed
    claims.restore(assumed)
    claims.restore(assumed)
    assert claims.get("default/c") == claim()


@pytest.mark.parametrize(
    ("stored", "message"),
    [([], '"default/c" not found'), ([claim(version="2")], '"default/c" is out of sync (stored: 2, assume: 1)')],
)
def test_only_the_newest_version_can_be_assumed(stored: list[PersistentVolumeClaim], message: str) -> None:
    claims = Storage(ObjectTables()).claims
    for one in stored:
        claims.put(one)
    with pytest.raises(OutOfStepError) as error:
        claims.assume(claim())
    assert str(error.value) == message


def test_what_is_gone_is_not_assumed_any_more() -> None:
    claims = Storage(ObjectTables()).claims
    claims.put(claim())
    claims.assume(claim(volumeName="v"))
    claims.drop("default/c")
    assert (claims.get("default/c"), len(claims)) == (None, 0)
    assert claims.drop("default/c") is None


# The pool


def free(storage: Storage, of_class: str, at_least: str = "0") -> list[str]:
    return [one.name for one in storage.pool.free(of_class, parse(at_least))]


def test_free_volumes_come_smallest_first() -> None:
    storage = Storage(ObjectTables())
    for name, size in (("b", "10Gi"), ("a", "10Gi"), ("d", "1"), ("c", "9.5Gi"), ("e", "1Ti")):
        storage.put(volume(name, capacity={"storage": size}))
    assert free(storage, "") == ["d", "c", "a", "b", "e"]
    assert free(storage, "", "9.5Gi") == ["c", "a", "b", "e"]
    assert free(storage, "", "9728.1Mi") == ["a", "b", "e"]
    assert free(storage, "", "2Ti") == []


def test_volumes_that_are_taken_or_not_available_are_not_free() -> None:
    storage = Storage(ObjectTables())
    bound = volume("v", claimRef={"namespace": "n", "name": "c"})
    storage.put(volume("v"))
    storage.volumes.assume(bound)
    assert (free(storage, ""), storage.pool.meant_for("", "n/c")) == ([], [bound])
    storage.volumes.restore(bound)
    assert (free(storage, ""), storage.pool.meant_for("", "n/c")) == (["v"], [])
    storage.put(replace(volume("v", version="2"), status=PersistentVolumeStatus(phase="Released")))
    assert free(storage, "") == []
    leaving = volume("v", version="3")
    storage.put(replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z")))
    assert free(storage, "") == []


# Classes


def test_volumes_are_found_by_their_class_as_they_are_assumed() -> None:
    storage = Storage(ObjectTables())
    for name in "ba":
        storage.put(volume(name, storageClassName="fast"))
    storage.put(volume("c"))
    storage.volumes.assume(volume("a", storageClassName="fast", volumeMode="Block"))
    found = storage.pool.free("fast", ZERO)
    assert [(one.name, one.volume.spec.volume_mode) for one in found] == [("a", "Block"), ("b", None)]
    assert free(storage, "") == ["c"]


def test_a_volume_that_changes_its_class_or_goes_is_found_there_no_more() -> None:
    storage = Storage(ObjectTables())
    storage.put(volume("a", storageClassName="fast"))
    storage.put(volume("a", version="2", storageClassName="slow"))
    assert (free(storage, "fast"), free(storage, "slow")) == ([], ["a"])
    gone = storage.drop(volume("a"))
    assert (gone.action, gone.old) == (Action.DELETE, volume("a", version="2", storageClassName="slow"))
    assert free(storage, "slow") == []
    assert storage.drop(volume("a")).nothing


def test_the_old_annotation_of_the_class_counts_before_the_field() -> None:
    made = claim(storageClassName="field")
    annotated = replace(
        made, metadata=replace(made.metadata, annotations={"volume.beta.kubernetes.io/storage-class": ""})
    )
    assert (class_of(made), class_of(annotated), class_of(claim())) == ("field", "", "")


def test_a_claim_is_bound_when_both_halves_are_written() -> None:
    named = claim(volumeName="v")
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    completed = replace(named, metadata=replace(named.metadata, annotations=done))
    assert [is_fully_bound(one) for one in (claim(), named, completed)] == [False, False, True]


# Pods


def test_the_pods_that_use_a_claim_are_known_while_they_are_placed() -> None:
    made = cluster(node("n1"), using("a", "c", "d"), using("b", "c", ephemeral=EphemeralSource()))
    users = made.storage.users
    assert [set(users(f"default/{name}")) for name in ("c", "d", "b-ephemeral")] == [
        {"default.a", "default.b"}, {"default.a"}, {"default.b"},
    ]  # fmt: skip
    made.remove_pod("default.a")
    assert [set(users(f"default/{name}")) for name in ("c", "d")] == [{"default.b"}, set()]
    waiting = using("e", "d", on="")
    made.assume(waiting, 0)
    assert set(users("default/d")) == {"default.e"}
    made.forget("default.e")
    assert set(users("default/d")) == set()


def test_the_claims_of_a_placed_pod_are_those_of_its_newest_version() -> None:
    made = cluster(node("n1"), using("a", "c"))
    made.set_pod(using("a", "d"))
    assert [set(made.storage.users(f"default/{name}")) for name in ("c", "d")] == [set(), {"default.a"}]


def test_pods_with_disks_of_their_own_are_known_and_others_are_not() -> None:
    made = cluster(
        node("n1"), using("a", aws_elastic_block_store=AWSDisk(volume_id="d")), using("b"), pod("c", on="n1")
    )
    assert set(made.storage.pods) == {"default.a"}
    made.remove_pod("default.b")
    made.remove_pod("default.a")
    assert made.storage.pods == {}


def test_pods_that_use_a_disk_or_state_a_claim_are_known_while_they_are_placed() -> None:
    disk = AWSDisk(volume_id="d")
    made = cluster(
        node("n1"),
        node("n2"),
        using("a", "c", aws_elastic_block_store=disk),
        using("b", ephemeral=EphemeralSource(), on="n2"),
    )
    users = made.storage.volume_users
    assert dict(users.of_disk(("aws", "d"))) == {"default.a": True}
    assert [[*users.rows_stating(f"default/{name}")] for name in ("c", "b-ephemeral")] == [[0], []]
    for identity in ("default.a", "default.b"):
        made.remove_pod(identity)
    assert (users._of_claim, users._of_disk, users.pods) == ({}, {}, {})


# Changes


@pytest.mark.parametrize("kind", STORED)
def test_each_kind_says_what_happened_to_its_objects(kind: str) -> None:
    storage = Storage(ObjectTables())
    first = KINDS[kind].decode({"metadata": {"name": "x", "namespace": "n", "resourceVersion": "1"}})
    second = KINDS[kind].decode({"metadata": {"name": "x", "namespace": "n", "resourceVersion": "2"}})
    other = KINDS[kind].decode({"metadata": {"name": "y", "namespace": "n"}})
    changes = [storage.put(one) for one in (first, first, other, second)]
    changes += [storage.drop(first), storage.drop(first)]
    assert [(one.action, one.old, one.new) for one in changes] == [
        (Action.ADD, None, first),
        (Action.NONE, first, first),
        (Action.ADD, None, other),
        (Action.UPDATE_OTHER, first, second),
        (Action.DELETE, second, None),
        (Action.NONE, None, None),
    ]
    assert {one.resource.value.rpartition("/")[2] for one in changes} == {kind}


# Decoding


@pytest.mark.parametrize(
    ("kind", "raw", "message"),
    [
        ("PersistentVolume", {"spec": {"capacity": {"storage": "1Gx"}}}, "spec.capacity.storage"),
        (
            "PersistentVolumeClaim",
            {"spec": {"resources": {"requests": {"storage": "1z"}}}},
            "spec.resources.requests.storage",
        ),
        ("CSIStorageCapacity", {"maximumVolumeSize": "big"}, "maximumVolumeSize"),
        ("CSINode", {"spec": {"drivers": [{"allocatable": {"count": "3"}}]}}, "spec.drivers[0].allocatable.count"),
    ],
)
def test_a_malformed_object_is_refused_with_its_field(kind: str, raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ObjectError, match="x") as error:
        KINDS[kind].decode({"metadata": {"name": "x"}} | raw)
    assert error.value.field == message


@pytest.mark.parametrize("kind", STORED)
def test_empty_objects_of_every_kind_are_decoded(kind: str) -> None:
    assert KINDS[kind].decode({"kind": kind, "metadata": {"name": "x"}, "spec": None}).metadata.name == "x"
