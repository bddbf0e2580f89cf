"""How tools that follow kstatus read a status: `kubectl wait`, `helm --wait`, Flux.

Source: sigs.k8s.io/cli-utils/pkg/kstatus/status/status.go (Compute), generic.go (checkGenericProperties),
core.go (checkReadyCondition).
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def kstatus(obj: Object) -> str:
    """Return Current, InProgress or Failed."""
    status = obj.get("status", {})
    conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
    if status.get("observedGeneration", obj["metadata"]["generation"]) != obj["metadata"]["generation"]:
        return "InProgress"
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"
