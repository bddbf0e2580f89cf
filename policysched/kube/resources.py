"""What is watched: where it is, how it is decoded, what of it is kept, and what may be missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar

from policysched.model.decode import (
    decode,
    decode_device_class,
    decode_namespace,
    decode_node,
    decode_pod,
    decode_stored,
)
from policysched.model.objects import (
    DeviceClass,
    Pod,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    Stored,
    Workload,
)
from policysched.model.policy import API_VERSION, KIND, PLURAL, Policy, decode_watched_policy
from policysched.state.cluster import FINISHED

T = TypeVar("T")


def _everything(_: object) -> bool:
    return True


def _unfinished(pod: Pod) -> bool:
    return pod.status.phase not in FINISHED


@dataclass(frozen=True, slots=True)
class Watched(Generic[T]):
    """A resource that is listed and watched over all namespaces."""

    name: str
    kind: str
    path: str
    decode: Callable[[bytes], T]
    """Raises ObjectError for a malformed object."""
    keep: Callable[[T], bool] = _everything
    """Says which objects matter; one that stops to matter counts as deleted."""
    malformed_is_gone: bool = True
    """Whether a malformed version takes the earlier one away; else that stays as the last good one."""
    known_by_uid: bool = False
    """Whether the state tells objects apart by their UIDs: then no two may have the same."""
    tolerated: frozenset[int] = frozenset()
    """Statuses of the first list that count as an empty one, because the resource need not exist."""


POLICIES_PATH: Final = f"/apis/{API_VERSION}/{PLURAL}"
NODES: Final = Watched("nodes", "Node", "/api/v1/nodes", decode_node)
PODS: Final = Watched("pods", "Pod", "/api/v1/pods", decode_pod, _unfinished, known_by_uid=True)
"""Finished pods hold nothing, so they are not even remembered."""
NAMESPACES: Final = Watched("namespaces", "Namespace", "/api/v1/namespaces", decode_namespace)
POLICIES: Final[Watched[Policy]] = Watched(
    PLURAL, KIND, POLICIES_PATH, decode_watched_policy, malformed_is_gone=False, tolerated=frozenset((404,))
)
"""Where the kind is not installed there are no policies; where it is forbidden there may be."""
DEVICE_CLASSES: Final[Watched[DeviceClass]] = Watched(
    "deviceclasses",
    "DeviceClass",
    "/apis/resource.k8s.io/v1/deviceclasses",
    decode_device_class,
    tolerated=frozenset((403, 404)),
)
WORKLOADS: Final[tuple[Watched[Workload], ...]] = (
    Watched("services", "Service", "/api/v1/services", partial(decode, Service, "Service")),
    Watched(
        "replicationcontrollers",
        "ReplicationController",
        "/api/v1/replicationcontrollers",
        partial(decode, ReplicationController, "ReplicationController"),
    ),
    Watched("replicasets", "ReplicaSet", "/apis/apps/v1/replicasets", partial(decode, ReplicaSet, "ReplicaSet")),
    Watched("statefulsets", "StatefulSet", "/apis/apps/v1/statefulsets", partial(decode, StatefulSet, "StatefulSet")),
)
"""What says which pods belong together, for those that are spread by default."""
_STORAGE: Final = "/apis/storage.k8s.io/v1"
STORED: Final[tuple[Watched[Stored], ...]] = tuple(
    Watched(name, kind, f"{group}/{name}", partial(decode_stored, kind))
    for name, group, kind in (
        ("persistentvolumes", "/api/v1", "PersistentVolume"),
        ("persistentvolumeclaims", "/api/v1", "PersistentVolumeClaim"),
        ("storageclasses", _STORAGE, "StorageClass"),
        ("csinodes", _STORAGE, "CSINode"),
        ("csidrivers", _STORAGE, "CSIDriver"),
        ("csistoragecapacities", _STORAGE, "CSIStorageCapacity"),
        ("volumeattachments", _STORAGE, "VolumeAttachment"),
    )
)
"""What pods' volumes depend on."""
