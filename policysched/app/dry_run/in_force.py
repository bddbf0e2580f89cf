"""Which spec of a policy decides, its own or the last good one; and why policies did nothing for a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.language.messages.diagnostics import Diagnostic
from policysched.model.decode import ObjectError
from policysched.model.objects import Pod
from policysched.model.policy import LastGood, PolicyKey, decode_last_good, decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.plugin.record import why_silent
from policysched.visible import cut

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


def not_applied(
    policies: Iterable[CompiledPolicy], pod: Pod, cluster: Cluster, profile: Profile
) -> dict[PolicyKey, str]:
    """Say of each policy that has no say about a pod, or whose filters have none, why.

    Args:
        policies: The policies in force, disabled ones too.
        pod: The pod as its profile sees it.
        cluster: The cluster.
        profile: The pod's profile.
    """
    if not (profile.policies_filter or profile.policies_score):
        return {one.key: "the profile disables SchedulingPolicy" for one in policies}
    said = {one.key: why_silent(one, pod, cluster) for one in policies}
    return {key: why for key, why in said.items() if why}


def not_compiled(diagnostics: Iterable[Diagnostic]) -> str:
    """Say that a policy does not compile, with its first error."""
    first = next(one for one in diagnostics if one.severity == "error")
    return f"it does not compile: {cut(first.message)} ({first.code}, {first.field})"
