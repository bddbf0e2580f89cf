from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Code, Status, unresolvable
from policysched.plugins.volume_binding import VolumeBinding
from policysched.plugins.volume_rows import GONE, REASONS, TOO_SMALL, UNBINDABLE, UNREACHABLE
from tests.build import node, pod
from tests.plugins.ask import filtered
from tests.plugins.stored import (
    ZONE,
    claim,
    claiming,
    csi_capacity,
    csi_driver,
    csi_node,
    owned,
    storage_class,
    volume,
    with_storage,
)

PLUGIN = VolumeBinding()
NODES = (node("a", labels={ZONE: "a"}), node("b", labels={ZONE: "b"}), node("c"))
WAIT = storage_class()
STATIC = storage_class("static", provisioner="kubernetes.io/no-provisioner")


def said(*bits: int) -> Status:
    return unresolvable(*(REASONS[bit] for bit in sorted(bits)))


def at(*zones: str) -> dict[str, list[str]]:
    return {ZONE: list(zones)}


def verdicts(*objects: Any, of: Any = None) -> Any:
    return filtered(PLUGIN, of or claiming("p", "c"), with_storage(*NODES, *objects))


# Claims that keep the pod from every node


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim(to="v", phase="Lost")], 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'),
        ([claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], 'persistentvolumeclaim "c" is being deleted'),
        ([claim(), storage_class(mode="Immediate")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(of=None)], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(of="gone")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(volumeName="v"), WAIT, volume()], "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_claims_that_reject_the_pod_as_a_whole(objects: list[Any], message: str) -> None:
    assert verdicts(*objects) == unresolvable(message)


def test_a_class_without_a_mode_is_an_error() -> None:
    failed = Status(Code.ERROR, ('VolumeBindingMode not set for StorageClass "wait"',))
    assert verdicts(claim(), storage_class(mode=None)) == failed


def test_ephemeral_claims_are_waited_for_and_must_be_the_pod_s_own() -> None:
    wanting = claiming("p", made="e")
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-e"'
    assert verdicts(of=wanting) == unresolvable(waiting)
    foreign = "PVC default/p-e was not created for pod default/p (pod is not owner)"
    assert verdicts(claim("p-e"), WAIT, of=wanting) == unresolvable(foreign)
    assert verdicts(owned(claim("p-e"), wanting), WAIT, of=wanting) == {}


def test_pods_without_claims_are_skipped() -> None:
    assert verdicts(of=pod()) is SKIP


# Bound claims


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([claim(to="v"), volume(nodes=at("a"))], {"b": said(UNREACHABLE), "c": said(UNREACHABLE)}),
        ([claim(to="v"), volume(nodes=at("a", "b"))], {"c": said(UNREACHABLE)}),
        ([claim(to="v"), volume()], {}),
        ([claim(to="v")], dict.fromkeys("abc", said(GONE))),
        (
            [claim(to="v"), volume(nodeAffinity={"required": {"nodeSelectorTerms": []}})],
            dict.fromkeys("abc", said(UNREACHABLE)),
        ),
        ([claim(to="v"), volume(nodeAffinity={})], {}),
    ],
)
def test_bound_volumes_are_reached_from_some_nodes(objects: list[Any], expected: dict[str, Status]) -> None:
    assert verdicts(*objects) == expected


def test_the_first_bound_volume_that_stands_against_a_node_is_its_reason() -> None:
    objects = [claim(to="v"), volume(nodes=at("a")), claim("d", to="gone")]
    expected = {"a": said(GONE), "b": said(UNREACHABLE), "c": said(UNREACHABLE)}
    assert verdicts(*objects, of=claiming("p", "c", "d")) == expected
    assert verdicts(*objects, of=claiming("p", "d", "c")) == dict.fromkeys("abc", said(GONE))


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def affine(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    ("terms", "passing"),
    [
        ([term(ZONE, "Exists")], "ab"),
        ([term(ZONE, "In", "a"), term(ZONE, "DoesNotExist")], "ac"),
        ([term(ZONE, "NotIn", "a")], "bc"),
        ([{}], ""),
        ([term(ZONE, "Strange", "a")], ""),
        ([term(ZONE, "Strange", "a"), term(ZONE, "In", "b")], "b"),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}], "abc"),
        ([term(ZONE, "In", "a") | {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}], "a"),
    ],
)
def test_node_affinity_of_volumes(terms: list[Any], passing: str) -> None:
    answer = verdicts(claim(to="v"), volume(**affine(*terms)))
    assert {name for name in "abc" if name not in answer} == set(passing)


def test_migrated_volumes_are_reached_by_the_labels_of_their_driver() -> None:
    gce = volume(nodes=at("a"), gcePersistentDisk={"pdName": "d"})
    nodes = [node("new", labels={"topology.gke.io/zone": "a"}), node("old", labels={ZONE: "a"})]
    moved = csi_node("new", migrated="kubernetes.io/aws-ebs,kubernetes.io/gce-pd")
    around = with_storage(*nodes, claim(to="v"), gce, moved, csi_node("old"))
    assert filtered(PLUGIN, claiming("p", "c"), around) == {}
    around.set_stored(csi_node("old", migrated="kubernetes.io/gce-pd"))
    assert filtered(PLUGIN, claiming("p", "c"), around) == {"old": said(UNREACHABLE)}


def test_a_migrated_volume_that_cannot_be_translated_fails_there() -> None:
    odd = volume(azureDisk={"diskURI": "u", "kind": "Shared"})
    around = with_storage(*NODES, claim(to="v"), odd, csi_node("a", migrated="kubernetes.io/azure-disk"))
    failed = Status(Code.ERROR, ("could not translate pv: kind(Shared) is not supported in csi migration",))
    assert filtered(PLUGIN, claiming("p", "c"), around) == {"a": failed}


# Claims that wait: volumes that exist

FITTING = {"of": "static", "nodes": at("a")}
UNMATCHED = dict.fromkeys("bc", said(UNBINDABLE))
NOWHERE = dict.fromkeys("abc", said(UNBINDABLE))


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (volume(**FITTING), UNMATCHED),
        (volume(**FITTING, size="2Gi"), UNMATCHED),
        (volume(**FITTING, size="1023Mi"), NOWHERE),
        (volume(**FITTING, phase="Released"), NOWHERE),
        (volume(**FITTING, volumeMode="Block"), NOWHERE),
        (volume(**FITTING, accessModes=["ReadOnlyMany"]), NOWHERE),
        (volume(**FITTING, accessModes=["ReadOnlyMany", "ReadWriteOnce"]), UNMATCHED),
        (volume(**FITTING, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), NOWHERE),
        (volume(**FITTING, volumeAttributesClassName="x"), NOWHERE),
        (volume(of="other", nodes=at("a")), NOWHERE),
        (volume(**FITTING, claimRef={"namespace": "default", "name": "other"}), NOWHERE),
        (volume(**FITTING, claimRef={"namespace": "default", "name": "c"}), UNMATCHED),
        (volume(**FITTING, claimRef={"namespace": "default", "name": "c", "uid": "u-c"}), UNMATCHED),
        (volume(**FITTING, claimRef={"namespace": "default", "name": "c", "uid": "old"}), NOWHERE),
        (
            volume(**FITTING, claimRef={"namespace": "default", "name": "c"}, phase="Released", accessModes=[]),
            UNMATCHED,
        ),
    ],
)
def test_a_volume_that_exists(one: Any, expected: dict[str, Status]) -> None:
    assert verdicts(claim(of="static"), STATIC, one) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"matchLabels": {"x": "1"}}, UNMATCHED),
        ({"matchLabels": {"x": "2"}}, NOWHERE),
        ({}, UNMATCHED),
    ],
)
def test_the_claim_s_selector(selector: dict[str, Any], expected: dict[str, Status]) -> None:
    labelled = volume(**FITTING, metadata={"labels": {"x": "1"}})
    assert verdicts(claim(of="static", selector=selector), STATIC, labelled) == expected


def test_a_selector_that_cannot_be_read_fails_on_every_node() -> None:
    broken = {"matchExpressions": [{"key": "x", "operator": "Strange"}]}
    answer = verdicts(claim(of="static", selector=broken), STATIC)
    assert {status.code for status in answer.values()} == {Code.ERROR}
    assert answer["a"].message.startswith("error creating internal label selector for claim: default/c: ")


def test_two_claims_take_two_volumes() -> None:
    claims = [claim("c", of="static"), claim("d", of="static")]
    wanting = claiming("p", "c", "d")
    one, two = volume("v", of="static"), volume("w", **FITTING)
    assert verdicts(*claims, STATIC, one, of=wanting) == NOWHERE
    assert verdicts(*claims, STATIC, one, two, of=wanting) == UNMATCHED


def test_the_smallest_claim_takes_the_smallest_volume() -> None:
    claims = [claim("big", of="static", size="10Gi"), claim("small", of="static", size="1Gi")]
    volumes = [volume("v10", of="static", size="10Gi"), volume("v1", of="static", size="1Gi")]
    assert verdicts(*claims, STATIC, *volumes, of=claiming("p", "big", "small")) == {}
    volumes[1] = volume("v11", of="static", size="11Gi")
    # the small claim takes the volume of 10Gi, the large one that of 11Gi
    assert verdicts(*claims, STATIC, *volumes, of=claiming("p", "big", "small")) == {}


def test_a_volume_meant_for_the_claim_is_the_only_one_that_is_looked_at() -> None:
    meant = volume("m", of="static", nodes=at("a"), claimRef={"namespace": "default", "name": "c"})
    assert verdicts(claim(of="static"), STATIC, volume(of="static"), meant) == UNMATCHED


def test_a_claim_that_the_pod_states_twice_needs_two_volumes() -> None:
    meant = volume("m", of="static", claimRef={"namespace": "default", "name": "c"})
    twice = claiming("p", "c", "c")
    assert verdicts(claim(of="static"), STATIC, meant, of=twice) == NOWHERE
    assert verdicts(claim(of="static"), STATIC, meant, volume(**FITTING), of=twice) == UNMATCHED


# Claims that wait: volumes to be made


def zones(*names: str) -> list[Any]:
    return [{"matchLabelExpressions": [{"key": ZONE, "values": list(names)}]}]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([storage_class()], {}),
        ([storage_class(provisioner="")], NOWHERE),
        ([storage_class(allowedTopologies=zones("a"))], UNMATCHED),
        ([storage_class(allowedTopologies=[*zones("a"), *zones("b")])], {"c": said(UNBINDABLE)}),
        ([storage_class(allowedTopologies=[{}])], NOWHERE),
        ([storage_class(allowedTopologies=[{"matchLabelExpressions": [{"key": "-", "values": ["a"]}]}])], NOWHERE),
        ([storage_class(), csi_driver()], dict.fromkeys("abc", said(TOO_SMALL))),
        ([storage_class(), csi_driver(capacity=False)], {}),
        ([storage_class(), csi_driver(capacity=None)], {}),
        ([storage_class(), csi_driver("other")], {}),
        (
            [
                storage_class(),
                csi_driver(),
                csi_capacity("1", nodeTopology={"matchLabels": {ZONE: "a"}}, capacity="1Gi"),
            ],
            dict.fromkeys("bc", said(TOO_SMALL)),
        ),
        (
            [storage_class(), csi_driver(), csi_capacity("1", nodeTopology={}, capacity="9Gi", maximumVolumeSize="1")],
            dict.fromkeys("abc", said(TOO_SMALL)),
        ),
        ([storage_class(), csi_driver(), csi_capacity("1", nodeTopology={}, capacity="1Gi")], {}),
        ([storage_class(), csi_driver(), csi_capacity("1", capacity="9Gi")], dict.fromkeys("abc", said(TOO_SMALL))),
        ([storage_class(), csi_driver(), csi_capacity("1", nodeTopology={})], dict.fromkeys("abc", said(TOO_SMALL))),
        (
            [storage_class(), csi_driver(), csi_capacity("1", of="other", nodeTopology={}, capacity="9Gi")],
            dict.fromkeys("abc", said(TOO_SMALL)),
        ),
        (
            [
                storage_class(allowedTopologies=zones("a", "b")),
                csi_driver(),
                csi_capacity("1", nodeTopology={"matchLabels": {ZONE: "a"}}, capacity="1Gi"),
            ],
            {"b": said(TOO_SMALL), "c": said(UNBINDABLE)},
        ),
    ],
)
def test_where_a_volume_can_be_made(objects: list[Any], expected: dict[str, Status]) -> None:
    assert verdicts(claim(), *objects) == expected


def test_a_claim_without_a_size_fits_wherever_volumes_can_be_made() -> None:
    assert verdicts(claim(size=None), WAIT, csi_driver()) == {}


def test_a_selected_node_is_the_only_one() -> None:
    selected = claim(metadata={"annotations": {"volume.kubernetes.io/selected-node": "b"}})
    assert verdicts(selected, WAIT) == dict.fromkeys("ac", said(UNBINDABLE))
    assert verdicts(selected, storage_class(provisioner="")) == NOWHERE
    gone = claim(metadata={"annotations": {"volume.kubernetes.io/selected-node": "gone"}})
    assert verdicts(gone, WAIT) == NOWHERE


def test_reasons_of_bound_and_of_waiting_claims_add_up() -> None:
    objects = [claim("c", to="v"), volume(nodes=at("a")), claim("d", of="static"), STATIC]
    both = said(UNREACHABLE, UNBINDABLE)
    answer = verdicts(*objects, of=claiming("p", "c", "d"))
    assert answer == {"a": said(UNBINDABLE), "b": both, "c": both}
