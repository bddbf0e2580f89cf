"""Nodes that VolumeBinding leaves to a pod whose claims wait, for volumes that exist or for some to be made."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import Code, Status
from policysched.plugins.volumes.volume_rows import TOO_SMALL, UNBINDABLE, UNREACHABLE
from tests.plugins.stored import ZONE, claim, claiming, csi_capacity, csi_driver, storage_class, volume
from tests.plugins.volumes.binding_build import STATIC, WAIT, at, said, verdicts

# Claims that wait: volumes that exist

FITTING: dict[str, Any] = {"of": "static", "nodes": at("a")}
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
