"""Pods to dry-run as new ones: without node, status and identity where they are scheduled, without scheduling gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_OF_ITS_LIFE: Final = frozenset(("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"))
"""What an object's metadata say of its life, not of what it is."""


def as_new(pod: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return a pod without its node and its life where it has both a node and a status, and notes that say so.

    A pod without a status that names a node is one that somebody wants there: it stays as it is. Of one with scheduling
    gates a note says that it is about the pod without them; it may be malformed as yet.
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
    """Return the note about a pod that is not tried before its scheduling gates are gone."""
    if not gates or not isinstance(gates, list):
        return ()
    names = ", ".join(str(one.get("name")) for one in gates if isinstance(one, Mapping))
    return (f"pod has scheduling gates: {names}; the decision is for the pod without gates",)
