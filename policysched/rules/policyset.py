"""The policies in force: one immutable value, swapped between two cycles.

Of several policies that reject a node the one with the highest priority reports, then the first by name: that is
their order as filters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policysched.framework.profile import Profile
from policysched.rules.compiled import CompiledPolicy
from policysched.rules.plugin import PolicyPlugin
from policysched.rules.pod_inputs import class_values


@dataclass(frozen=True)
class PolicySet:
    """Compiled policies as plugins, in order."""

    plugins: tuple[PolicyPlugin, ...] = ()
    """All policies that are not disabled, Shadow ones too."""

    @classmethod
    def of(cls, policies: Iterable[CompiledPolicy]) -> PolicySet:
        """Put policies in order."""
        ordered = sorted(policies, key=lambda policy: (-policy.spec.priority, policy.name))
        return cls(tuple(PolicyPlugin(policy) for policy in ordered if policy.spec.mode != "Disabled"))

    def join(self, profile: Profile) -> Profile:
        """Give a profile with the enforced policies behind its own plugins."""
        enforced = [plugin for plugin in self.plugins if plugin.policy.spec.mode == "Enforce"]
        filters = tuple(plugin for plugin in enforced if plugin.policy.filters and profile.policies_filter)
        scores = tuple(plugin for plugin in enforced if plugin.policy.scores and profile.policies_score)
        return profile.with_policies(
            filters,
            tuple((plugin, plugin.policy.spec.weight) for plugin in scores),
            class_values(item for plugin in (*filters, *scores) for item in plugin.policy.inputs),
        )

    def acting(self, profile: Profile) -> tuple[PolicyPlugin, ...]:
        """Give the policies that decision records of a profile tell about: none where it takes all away."""
        return self.plugins if profile.policies_filter or profile.policies_score else ()
