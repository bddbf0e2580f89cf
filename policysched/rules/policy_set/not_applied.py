"""One-line reasons why policies do not apply to a pod or do not compile."""

from __future__ import annotations

from collections.abc import Iterable

from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.language.messages.diagnostics import Diagnostic
from policysched.model.objects import Pod
from policysched.model.policy import PolicyKey
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.plugin.record import why_not_applied
from policysched.visible import cut


def not_applied(
    policies: Iterable[CompiledPolicy], pod: Pod, cluster: Cluster, profile: Profile
) -> dict[PolicyKey, str]:
    """Return the reason for each policy that does not apply to a pod, or none of whose filters applies."""
    if not (profile.policies_filter or profile.policies_score):
        return {one.key: "the profile disables SchedulingPolicy" for one in policies}
    said = {one.key: why_not_applied(one, pod, cluster) for one in policies}
    return {key: why for key, why in said.items() if why}


def not_compiled(diagnostics: Iterable[Diagnostic]) -> str:
    """Return a text which states that a policy does not compile, with its first error."""
    first = next(one for one in diagnostics if one.severity == "error")
    return f"it does not compile: {cut(first.message)} ({first.code}, {first.field})"
