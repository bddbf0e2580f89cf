"""One-line explanation why preemption does not place a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_NOT_ELIGIBLE: Final = "not eligible due to "
_MOST: Final = 3
"""Largest number of protected pods whose names the explanation contains."""


def why_no_preemption(told: Mapping[str, Any]) -> str:
    """Return why preemption fails, if users can change it: the pod is not eligible, or policies protect victims.

    Args:
        told: The `preemption` part of a decision record.

    Missing: empty if preemption would not help for any other reason.
    """
    _, found, reason = told.get("message", "").rpartition(_NOT_ELIGIBLE)
    if found:
        return f"preemption is not possible: {reason.rstrip('.')}"
    pods = {pod: why for on_node in told.get("protected", {}).values() for pod, why in on_node.items()}
    if not pods:
        return ""
    named = ", ".join(f"{pod} ({why})" for pod, why in [*pods.items()][:_MOST])
    more = f" and {len(pods) - _MOST} more" if len(pods) > _MOST else ""
    return f"preemption would not help: policies protect {named}{more}"
