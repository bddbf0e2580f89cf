"""Which spec of a policy decides: its own, or the last good one that its status remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysched.model.decode import ObjectError
from policysched.model.policy import decode_policy
from policysched.rules.compile import compile_policy

Object = dict[str, Any]


def in_force(policy: Mapping[str, Any]) -> Object:
    """Give a policy as it decides: with the last good generation's spec where the newest does not compile."""
    status = policy.get("status")
    remembered = status.get("activeSpec") if isinstance(status, Mapping) else None
    if not isinstance(remembered, Mapping) or compiles(policy):
        return dict(policy)
    generation = status.get("activeGeneration", 0) if isinstance(status, Mapping) else 0
    return {**policy, "metadata": {**policy["metadata"], "generation": generation}, "spec": dict(remembered)}


def compiles(policy: Mapping[str, Any]) -> bool:
    """Tell whether a policy is well-formed and all its texts compile."""
    try:
        return compile_policy(decode_policy(policy)).policy is not None
    except ObjectError:
        return False
