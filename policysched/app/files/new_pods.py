"""Strips node, status and identity from scheduled pods, so that they count as new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_OF_ITS_LIFE: Final = frozenset(("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"))
"""What an object's metadata say of its life, not of what it is."""


def as_new(pod: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return a pod without its node and its life where it has both a node and a status, and a note that says so.

    A pod without a status that names a node is one that somebody wants there: it stays as it is.
    """
    metadata, spec, status = pod.get("metadata"), pod.get("spec"), pod.get("status")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping) or not isinstance(status, Mapping):
        return pod, ()
    node = spec.get("nodeName")
    if not node or not status.get("phase"):
        return pod, ()
    identity = {key: value for key, value in metadata.items() if key not in _OF_ITS_LIFE}
    wanted = {key: value for key, value in spec.items() if key != "nodeName"}
    new = {key: value for key, value in pod.items() if key != "status"} | {"metadata": identity, "spec": wanted}
    return new, (f"the pod is on node {node} already; this is about a new pod like it",)
