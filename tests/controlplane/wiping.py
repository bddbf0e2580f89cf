"""Makes a control plane as good as new, so that one serves many tests: what tests made is removed.

It knows which objects belong to the system. Owners go before what they own, or controllers would make it anew.
Definitions stay, because the API server takes seconds to forget and to learn one.
"""

from __future__ import annotations

from typing import Final

from tests.controlplane.api import Api, Json, RefusedError
from tests.controlplane.loading import until

_NAMESPACES: Final = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
_OWNERS: Final = ("Deployment", "StatefulSet", "Job", "ReplicaSet", "ReplicationController")
_NAMESPACED: Final = (
    "Pod",
    "PodDisruptionBudget",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "PersistentVolumeClaim",
    "Service",
    "RoleBinding",
    "Role",
    "Event",
)
_CLUSTER: Final = (
    "Node",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "PriorityClass",
    "DeviceClass",
    "ResourceSlice",
    "ClusterRoleBinding",
    "ClusterRole",
)
_MOST_ROUNDS: Final = 20


def wipe(api: Api) -> None:
    """Remove the objects of tests and wait until they are gone: workloads, pods, nodes, classes, roles, policies."""
    for kind in _OWNERS:
        _clear(api, kind)
    custom = sorted({each["spec"]["names"]["kind"] for each in api.objects("CustomResourceDefinition")})
    for kind in (*_NAMESPACED, *_CLUSTER, *custom):
        _clear(api, kind)
    _clear(api, "Namespace", wait=False)
    until(lambda: not _left(api, "Pod"), "no pods")


def _clear(api: Api, kind: str, *, wait: bool = True) -> None:
    for _ in range(_MOST_ROUNDS):
        found = _left(api, kind)
        for obj in found:
            _remove(api, kind, obj)
        if not found or not wait:
            return
    raise AssertionError(f"objects of kind {kind} come again: {[each['metadata'] for each in found]}")


def _left(api: Api, kind: str) -> list[Json]:
    """List the objects of a kind that tests made: none where its definition is on its way out."""
    try:
        return [each for each in api.objects(kind) if not _of_the_system(kind, each)]
    except KeyError:
        return []
    except RefusedError as error:
        if error.status != 404:
            raise
        return []


def _of_the_system(kind: str, obj: Json) -> bool:
    metadata = obj["metadata"]
    if kind == "Namespace":
        return metadata["name"] in _NAMESPACES or "deletionTimestamp" in metadata
    if kind == "Service":
        return bool(metadata["name"] == "kubernetes")
    return str(metadata["name"]).startswith("system-") or "kubernetes.io/bootstrapping" in metadata.get("labels", {})


def _remove(api: Api, kind: str, obj: Json) -> None:
    metadata = obj["metadata"]
    path = api.kind(kind).path(metadata.get("namespace"), metadata["name"])
    try:
        if metadata.get("finalizers") and kind != "Namespace":
            api.patch(kind, metadata["name"], {"metadata": {"finalizers": None}}, metadata.get("namespace", ""))
        api.call("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    except RefusedError as error:
        if error.status not in {404, 409}:
            raise
