"""Which spec of a policy decides: its own, or the last good one that its annotation keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from policysched.model.decode import ObjectError
from policysched.model.policy import LastGood, decode_last_good, decode_policy
from policysched.rules.compile.compiler import compile_policy

Object = dict[str, Any]


def in_force(policy: Mapping[str, Any]) -> Object:
    """Give a policy as it decides: with the last good generation's spec where the newest does not compile."""
    kept = None if compiles(policy) else _last_good(policy)
    if kept is None:
        return dict(policy)
    metadata = {**policy["metadata"], "generation": kept.generation}
    return {**policy, "metadata": metadata, "spec": msgspec.to_builtins(kept.spec)}


def compiles(policy: Mapping[str, Any]) -> bool:
    """Tell whether a policy is well-formed and all its texts compile."""
    try:
        return compile_policy(decode_policy(policy)).policy is not None
    except ObjectError:
        return False


def _last_good(policy: Mapping[str, Any]) -> LastGood | None:
    try:
        return decode_last_good(decode_policy({"metadata": policy.get("metadata")}))
    except ObjectError:
        return None
