"""The objects of a running cluster that a decision reads, listed once.

Plain lists, nothing is watched and nothing is written. Kinds that a cluster need not have count as empty where the
server says that it does not serve them; a kind that is there but may not be listed is an error, because a decision
without it would be a guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from policysched.app.clock import SystemClock
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError
from policysched.kube.connection import Connection
from policysched.kube.listing import is_served, read_list
from policysched.kube.transport import Transport
from policysched.model.policy import API_VERSION, KIND, PLURAL

Object = dict[str, Any]
STORAGE: Final = "storage.k8s.io/v1"
_STORAGE_KINDS: Final = (
    ("StorageClass", "storageclasses"),
    ("CSINode", "csinodes"),
    ("CSIDriver", "csidrivers"),
    ("CSIStorageCapacity", "csistoragecapacities"),
    ("VolumeAttachment", "volumeattachments"),
)
NODES: Final = (("Node", "v1", "/api/v1/nodes"),)
KINDS: Final = (
    *NODES,
    ("Pod", "v1", "/api/v1/pods"),
    ("Namespace", "v1", "/api/v1/namespaces"),
    ("PriorityClass", "scheduling.k8s.io/v1", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ("DeviceClass", "resource.k8s.io/v1", "/apis/resource.k8s.io/v1/deviceclasses"),
    ("Service", "v1", "/api/v1/services"),
    ("ReplicationController", "v1", "/api/v1/replicationcontrollers"),
    ("ReplicaSet", "apps/v1", "/apis/apps/v1/replicasets"),
    ("StatefulSet", "apps/v1", "/apis/apps/v1/statefulsets"),
    ("PersistentVolume", "v1", "/api/v1/persistentvolumes"),
    ("PersistentVolumeClaim", "v1", "/api/v1/persistentvolumeclaims"),
    *((kind, STORAGE, f"/apis/{STORAGE}/{plural}") for kind, plural in _STORAGE_KINDS),
    (KIND, API_VERSION, f"/apis/{API_VERSION}/{PLURAL}"),
)


async def read_cluster(
    kubeconfig: Path | None = None, context: str | None = None, kinds: Iterable[tuple[str, str, str]] = KINDS
) -> list[Object]:
    """List every object that a decision reads.

    Args:
        kubeconfig: The file to use; absent, what kubectl would use.
        context: The context in it; absent, its current one.
        kinds: Which kinds: each with its version and path.

    Raises:
        ConnectionProblemError: the API server cannot be reached, or refuses the credentials or a list.
    """
    connection = await Connection.open(
        SystemClock(), kubeconfig=str(kubeconfig) if kubeconfig else None, context=context
    )
    try:
        transport = Transport(connection)
        return [
            {"apiVersion": api_version, "kind": kind, **item}
            for kind, api_version, path in kinds
            for item in await _items(transport, kind, path)
        ]
    except ApiError as error:
        raise ConnectionProblemError(_refusal(connection.url, error)) from error
    finally:
        await connection.close()


def _refusal(url: str, error: ApiError) -> str:
    match error.status:
        case 0:
            return str(error)
        case HTTPStatus.UNAUTHORIZED:
            return f"{url} does not accept the credentials: {error}"
    return f"{url} refuses a list: {error}"


async def _items(transport: Transport, kind: str, path: str) -> list[Object]:
    try:
        _, raws = await read_list(transport, path, kind)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND or not path.startswith("/apis/") or await is_served(transport, path):
            raise
        return []
    return [msgspec.json.decode(raw) for raw in raws]
