"""Conversion of pods into new pods for a dry-run: placed pods lose node, status and UID; gates are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_OF_ITS_LIFE: Final = frozenset(("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"))
"""Metadata fields that an API server sets and a new pod does not have."""


def as_new(pod: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return a pod and notes; if the pod has a node and a status, remove node, status and UID.

    A pod with a node and without a status stays unchanged, because the user wants it on that node. For a pod with
    scheduling gates, a note states that the result is for the pod without them. The pod can be malformed.
    """
    metadata, spec, status = pod.get("metadata"), pod.get("spec"), pod.get("status")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
        return pod, ()
    node = spec.get("nodeName")
    if not node:
        return pod, _about_gates(spec.get("schedulingGates"))
    if not isinstance(status, Mapping) or not status.get("phase"):
        return pod, ()
    identity = {key: value for key, value in metadata.items() if key not in _OF_ITS_LIFE}
    wanted = {key: value for key, value in spec.items() if key != "nodeName"}
    new = {key: value for key, value in pod.items() if key != "status"} | {"metadata": identity, "spec": wanted}
    return new, (f"pod is already on node {node}; the decision is for a new pod with the same spec",)


def _about_gates(gates: object) -> tuple[str, ...]:
    """Return the note about a pod that has scheduling gates."""
    if not gates or not isinstance(gates, list):
        return ()
    names = ", ".join(str(one.get("name")) for one in gates if isinstance(one, Mapping))
    return (f"pod has scheduling gates: {names}; the decision is for the pod without gates",)
