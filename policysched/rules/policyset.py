"""The policies in force: one immutable value, swapped between two cycles.

Of several policies that reject a node the one with the highest priority reports, then the first by name: that is
their order as filters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.rules.compiled import CompiledPolicy
from policysched.rules.group import Group
from policysched.rules.plugin import PolicyPlugin, Stores
from policysched.rules.pod_inputs import class_values
from policysched.rules.shared import Shared
from policysched.rules.timed import moments_of


@dataclass(frozen=True)
class PolicySet:
    """Compiled policies as plugins, in order."""

    plugins: tuple[PolicyPlugin, ...] = ()
    """All policies that are not disabled, Shadow ones too."""
    stores: Stores = field(default_factory=WeakKeyDictionary, compare=False, repr=False)
    """What they share, by cluster."""

    @classmethod
    def of(cls, policies: Iterable[CompiledPolicy], before: PolicySet | None = None) -> PolicySet:
        """Put policies in order.

        Args:
            policies: The policies in force.
            before: The set that this one follows: policies that are the same keep what they found out.
        """
        ordered = sorted(policies, key=lambda policy: (-policy.spec.priority, policy.name))
        stores: Stores = WeakKeyDictionary() if before is None else before.stores
        for shared in stores.values():
            shared.begin_anew()
        known = {} if before is None else {id(plugin.policy): plugin for plugin in before.plugins}
        plugins = (
            known.get(id(policy)) or PolicyPlugin(policy, stores)
            for policy in ordered
            if policy.spec.mode != "Disabled"
        )
        return cls(tuple(plugins), stores)

    def join(self, profile: Profile) -> Profile:
        """Give a profile with the enforced policies behind its own plugins."""
        enforced = [plugin for plugin in self.plugins if plugin.policy.spec.mode == "Enforce"]
        filters = tuple(plugin for plugin in enforced if plugin.policy.filters and profile.policies_filter)
        scores = tuple(plugin for plugin in enforced if plugin.policy.scores and profile.policies_score)
        group = Group(filters, scores)
        return profile.with_policies(
            group.filters,
            tuple((member, member.policy.spec.weight) for member in group.scores),
            _extra_key([*filters, *(one for one in scores if one not in filters)]),
        )

    def acting(self, profile: Profile) -> tuple[PolicyPlugin, ...]:
        """Give the policies that decision records of a profile tell about, without what it takes away."""
        if profile.policies_filter and profile.policies_score:
            return self.plugins
        if not (profile.policies_filter or profile.policies_score):
            return ()
        policies = (plugin.policy for plugin in self.plugins)
        if profile.policies_filter:
            return tuple(PolicyPlugin(replace(policy, scores=()), self.stores) for policy in policies)
        return tuple(PolicyPlugin(replace(policy, filters=()), self.stores) for policy in policies)


def _extra_key(plugins: list[PolicyPlugin]) -> Callable[[Pod, Cluster], Hashable] | None:
    """Give what tells pods of a class apart, or the moments at which they are looked at."""
    values = class_values(item for plugin in plugins for item in plugin.policy.inputs)
    roots = [program.root for plugin in plugins for program in plugin.policy.programs]
    moments = moments_of(roots)
    if values is None and not moments:
        return None
    shared: Callable[[Cluster], Shared] = plugins[0].shared

    def extra(pod: Pod, cluster: Cluster) -> Hashable:
        own = values(pod) if values is not None else ()
        return (own, shared(cluster).values(pod, moments)) if moments else own

    return extra
