from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Action, Change, Resource, Status, unresolvable
from policysched.model.objects import Node
from policysched.plugins.volumes.volume_zone import REASON, VolumeZone
from tests.build import node, pod
from tests.plugins.ask import filtered
from tests.plugins.stored import ZONE, claim, claiming, storage_class, volume, with_storage

REGION = "topology.kubernetes.io/region"
BETA = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
PLUGIN = VolumeZone()


def verdict(labels: dict[str, str], of_node: dict[str, str]) -> bool:
    """Whether a pod with a volume of these labels may go to a node of those."""
    around = with_storage(node("n", labels=of_node), volume("v", metadata={"labels": labels}), claim(to="v"))
    answer = filtered(PLUGIN, claiming("p", "c"), around)
    if answer is SKIP:
        return True
    assert isinstance(answer, dict)
    assert set(answer.values()) <= {unresolvable(REASON)}
    return not answer


@pytest.mark.parametrize(
    ("of_volume", "of_node", "expected"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        ({ZONE: " a __ b "}, {ZONE: "b"}, True),
        ({ZONE: "a__b"}, {ZONE: "c"}, False),
        ({ZONE: "a__"}, {ZONE: "c"}, True),
        ({ZONE: ""}, {ZONE: "c"}, True),
        ({ZONE: "a"}, {}, True),
        ({ZONE: "a"}, {"other": "x"}, True),
        ({ZONE: "a"}, {REGION: "r"}, False),
        ({REGION: "r"}, {ZONE: "a", REGION: "r"}, True),
        ({REGION: "r", ZONE: "a"}, {ZONE: "b", REGION: "r"}, False),
        ({REGION: "r", ZONE: "a"}, {ZONE: "a", REGION: "s"}, False),
        ({BETA: "a"}, {ZONE: "a"}, True),
        ({BETA: "a"}, {ZONE: "b"}, False),
        ({BETA: "a"}, {BETA: "a", ZONE: "b"}, True),
        ({BETA: "a"}, {BETA: "b", ZONE: "a"}, False),
        ({BETA_REGION: "r"}, {REGION: "r"}, True),
        ({ZONE: "a"}, {BETA: "a"}, False),
        ({}, {ZONE: "a"}, True),
        ({"other": "a"}, {ZONE: "a"}, True),
    ],
)
def test_labels_of_volume_and_node(of_volume: dict[str, str], of_node: dict[str, str], expected: bool) -> None:
    assert verdict(of_volume, of_node) is expected


def test_every_volume_counts() -> None:
    volumes = [volume(name, metadata={"labels": {ZONE: name}}) for name in "ab"]
    claims = [claim(f"c{name}", to=name) for name in "ab"]
    around = with_storage(node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}), *volumes, *claims)
    answer = filtered(PLUGIN, claiming("p", "ca", "cb"), around)
    assert isinstance(answer, dict)
    assert set(answer) == {"n1", "n2"}


IMMEDIATE = storage_class("now", "Immediate")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], unresolvable('persistentvolumeclaim "c" not found')),
        ([claim(to="v")], unresolvable('persistentvolume "v" not found')),
        ([claim(of=None)], unresolvable("PersistentVolumeClaim had no pv name and storageClass name")),
        ([claim(of="gone")], unresolvable('storageclass.storage.k8s.io "gone" not found')),
        ([claim(of="now"), IMMEDIATE], unresolvable("PersistentVolume had no name")),
        ([claim(), storage_class(mode=None)], unresolvable('VolumeBindingMode not set for StorageClass "wait"')),
        ([claim(), storage_class()], SKIP),
    ],
)
def test_claims_without_a_volume(objects: list[Any], expected: Status) -> None:
    assert filtered(PLUGIN, claiming("p", "c"), with_storage(node("n"), *objects)) == expected


def test_a_claim_without_a_name_rejects_and_ephemeral_ones_are_not_looked_at() -> None:
    around = with_storage(node("n"))
    assert filtered(PLUGIN, claiming("p", ""), around) == unresolvable("PersistentVolumeClaim had no name")
    assert filtered(PLUGIN, claiming("p", made="e"), around) is SKIP
    assert filtered(PLUGIN, pod(), around) is SKIP


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(Resource.STORAGE_CLASS, Action.ADD, new=storage_class()), True),
        (Change(Resource.STORAGE_CLASS, Action.ADD, new=IMMEDIATE), False),
        (Change(Resource.NODE, Action.ADD, new=Node()), True),
        (Change(Resource.CLAIM, Action.ADD, new=claim()), True),
        (Change(Resource.CLAIM, Action.UPDATE_OTHER, old=claim(), new=claim(to="v")), True),
        (Change(Resource.CLAIM, Action.ADD, new=claim("other")), False),
        (Change(Resource.CLAIM, Action.ADD, new=claim(metadata={"namespace": "other"})), False),
        (Change(Resource.VOLUME, Action.ADD, new=volume()), True),
        (
            Change(Resource.VOLUME, Action.UPDATE_OTHER, old=volume(), new=volume(metadata={"labels": {ZONE: "a"}})),
            True,
        ),
        (Change(Resource.VOLUME, Action.UPDATE_OTHER, old=volume(), new=volume(size="2Gi")), False),
        (Change(Resource.VOLUME, Action.DELETE, old=volume()), False),
    ],
)
def test_changes_that_help(change: Change, expected: bool) -> None:
    around = with_storage()
    hints = [one for one in PLUGIN.events() if one.resource is change.resource and one.actions & change.action]
    helps = any(one.helps is None or one.helps(claiming("p", "c"), change, around) for one in hints)
    assert helps is expected
