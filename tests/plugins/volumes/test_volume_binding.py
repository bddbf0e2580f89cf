"""Nodes that VolumeBinding leaves to a pod whose claims are bound, or keep it from every node."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Code, Status, unresolvable
from policysched.plugins.volumes.volume_rows import GONE, UNREACHABLE
from tests.build import node, pod
from tests.plugins.ask import filtered
from tests.plugins.stored import ZONE, claim, claiming, csi_node, owned, storage_class, volume, with_storage
from tests.plugins.volumes.binding_build import NODES, PLUGIN, WAIT, at, said, verdicts

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
