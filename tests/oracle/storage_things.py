"""The outer parts of generated objects about storage: version, kind and metadata.

Knows nothing of what stands inside.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Thing: TypeAlias = dict[str, Any]
VERSIONS = {"StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"}


def thing(
    kind: str,
    name: str,
    *,
    namespace: str = "",
    labels: Thing | None = None,
    annotations: Thing | None = None,
    leaving: str | None = None,
    **fields: Any,
) -> Thing:
    """Make an object; what is left out or empty is absent."""
    metadata: Thing = {"name": name, "uid": f"uid-{name}"}
    stated = {"namespace": namespace, "labels": labels, "annotations": annotations, "deletionTimestamp": leaving}
    metadata |= {key: found for key, found in stated.items() if found}
    version = "storage.k8s.io/v1" if kind in VERSIONS else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
