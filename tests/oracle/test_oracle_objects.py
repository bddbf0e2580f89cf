"""Objects other than nodes and pods reach kube-scheduler's plugins, with the API server's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .objects import node, pod
from .oracle import InvalidCaseError

if TYPE_CHECKING:
    from .oracle import Oracle

pytestmark = pytest.mark.oracle

KINDS = [
    ("v1", "Namespace"),
    ("v1", "Service"),
    ("v1", "ReplicationController"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("policy/v1", "PodDisruptionBudget"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSIStorageCapacity"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceSlice"),
]


CLUSTER_WIDE = {
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "VolumeAttachment",
    "DeviceClass",
    "ResourceSlice",
}


def thing(version: str, kind: str, name: str = "thing", **fields: Any) -> Any:
    metadata = {"name": name} if kind in CLUSTER_WIDE else {"name": name, "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


@pytest.mark.parametrize(("version", "kind"), KINDS, ids=[kind for _, kind in KINDS])
def test_object_of_a_kind_is_taken(oracle: Oracle, version: str, kind: str) -> None:
    case = {"objects": [node("a"), thing(version, kind)], "pod": pod()}
    assert oracle.decide(case)["best"] == ["a"]


def test_object_of_an_unknown_kind_is_refused(oracle: Oracle) -> None:
    with pytest.raises(InvalidCaseError, match="Unheard"):
        oracle.decide({"objects": [thing("example.com/v1", "Unheard")], "pod": pod()})
    with pytest.raises(InvalidCaseError, match="no single object"):
        oracle.decide({"objects": [{"apiVersion": "v1", "kind": "List", "items": []}], "pod": pod()})


def test_storage_class_binds_immediately_by_default(oracle: Oracle) -> None:
    claim = thing("v1", "PersistentVolumeClaim", "data", spec={"storageClassName": "fast"})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    fast = thing("storage.k8s.io/v1", "StorageClass", "fast", provisioner="example.com/disk")
    record = oracle.decide({"objects": [node("a"), claim, fast], "pod": pod(volumes=volumes)})
    assert record["preFilter"] == {
        "plugin": "VolumeBinding",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["pod has unbound immediate PersistentVolumeClaims"],
    }
    fast["volumeBindingMode"] = "WaitForFirstConsumer"
    record = oracle.decide({"objects": [node("a"), claim, fast], "pod": pod(volumes=volumes)})
    assert record["best"] == ["a"]


def test_priority_class_gives_its_value_to_pods(oracle: Oracle) -> None:
    high = thing("scheduling.k8s.io/v1", "PriorityClass", "high", value=10)
    promised = pod("promised", status={"nominatedNodeName": "a"}, priorityClassName="high")
    small = node("a", allocatable={"cpu": "1", "memory": "1Gi", "pods": "1"})
    assert oracle.decide({"objects": [small, promised, high], "pod": pod()})["result"] == "Unschedulable"
    wanted = pod(priorityClassName="system-cluster-critical")
    assert oracle.decide({"objects": [small, promised, high], "pod": wanted})["result"] == "Scheduled"


def test_replica_sets_spread_by_the_system_defaults(oracle: Oracle) -> None:
    def placed(name: str, where: str) -> Any:
        return pod(name, nodeName=where) | {
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}}
        }

    service = thing("v1", "Service", spec={"selector": {"app": "web"}})
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("a", "b")]
    wanted = pod() | {"metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}}}
    record = oracle.decide({"objects": [*nodes, service, placed("one", "a")], "pod": wanted})
    assert record["best"] == ["b"]
    assert record["scores"]["b"]["PodTopologySpread"] == 200


def test_allocated_devices_are_gone(oracle: Oracle) -> None:
    device_class = thing("resource.k8s.io/v1", "DeviceClass", "gpu")
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "gpu.example.com", "nodeName": "a", "pool": pool, "devices": [{"name": "gpu-0"}]}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    claim = thing("resource.k8s.io/v1", "ResourceClaim", "mine", spec={"devices": {"requests": [request]}})
    wanted = pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
    objects = [node("a"), device_class, thing("resource.k8s.io/v1", "ResourceSlice", spec=devices), claim]
    assert oracle.decide({"objects": objects, "pod": wanted})["result"] == "Scheduled"
    taken = {"request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}
    allocated = {"allocation": {"devices": {"results": [taken]}}}
    other = thing("resource.k8s.io/v1", "ResourceClaim", "other", spec=claim["spec"], status=allocated)
    record = oracle.decide({"objects": [*objects, other], "pod": wanted})
    assert record["rejected"]["a"]["plugin"] == "DynamicResources"
