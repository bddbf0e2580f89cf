"""`PolicySet`, the policies in force: one immutable value, swapped between two cycles.

Of several policies that reject a node the one with the highest priority reports, then the first by name: that is
their order as filters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.language.ir.graph import Typed
from policysched.model.objects import Pod
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.inputs import value_beyond_class
from policysched.rules.plugin.guard import PolicyGuard, guard_of
from policysched.rules.plugin.policy_plugin import Contexts, PolicyPlugin
from policysched.rules.policy_set.joined import JoinedPolicies


@dataclass(frozen=True)
class PolicySet:
    """Compiled policies as plugins, in order."""

    plugins: tuple[PolicyPlugin, ...] = ()
    """All policies that are not disabled, Shadow ones too."""
    contexts: Contexts = field(default_factory=WeakKeyDictionary, compare=False, repr=False)
    """What they share, by cluster."""
    _joined_at: dict[tuple[bool, bool], JoinedPolicies] = field(default_factory=dict, compare=False, repr=False)
    """How they, or those of the set before, joined profiles in which policies filter, score or both."""

    @classmethod
    def of(cls, policies: Iterable[CompiledPolicy], before: PolicySet | None = None) -> PolicySet:
        """Put policies in order.

        Args:
            policies: The policies in force.
            before: The set that this one follows: policies that are the same keep what they found out, and so do the
                rules that are the same in a policy that is another.
        """
        ordered = sorted(policies, key=lambda policy: (-policy.spec.priority, policy.key))
        contexts: Contexts = WeakKeyDictionary() if before is None else before.contexts
        for context in contexts.values():
            context.begin_anew()
        known = {} if before is None else {plugin.policy.key: plugin for plugin in before.plugins}
        plugins = (
            _following(known.get(policy.key), policy, contexts) for policy in ordered if policy.spec.mode != "Disabled"
        )
        return cls(tuple(plugins), contexts, {} if before is None else dict(before._joined_at))

    def join(self, profile: Profile, cluster: Cluster | None = None) -> Profile:
        """Return a profile with the enforced policies behind its own plugins.

        Args:
            profile: The profile without policies.
            cluster: Where to evaluate the rules that do not read the pod now; by default the first decision does it.
        """
        points = profile.policies_filter, profile.policies_score
        enforced = [plugin for plugin in self.plugins if plugin.policy.spec.mode == "Enforce"]
        filtering = [plugin for plugin in enforced if plugin.policy.filters and profile.policies_filter]
        scoring = [plugin for plugin in enforced if plugin.policy.scores and profile.policies_score]
        joined = JoinedPolicies.of(filtering, scoring, self._joined_at.get(points))
        if cluster is not None:
            joined.evaluate(cluster)
        self._joined_at[points] = joined
        own = [(joined.plugins[plugin.name], plugin) for plugin in self.plugins if plugin.name in joined.plugins]
        filters = tuple(one for one, _ in own if one.policy.filters and profile.policies_filter)
        scores = tuple(
            (one, plugin.policy.spec.weight) for one, plugin in own if one.policy.scores and profile.policies_score
        )
        guards = [_guards(self.plugins, mode) if profile.policies_filter else () for mode in ("Enforce", "Shadow")]
        reading = dict.fromkeys((*filters, *(one for one, _ in scores)))
        return profile.with_policies(filters, scores, _extra_key([*reading]), *guards)

    def acting(self, profile: Profile) -> tuple[PolicyPlugin, ...]:
        """Return the policies that decision records of a profile tell about, without what it takes away."""
        if profile.policies_filter and profile.policies_score:
            return self.plugins
        if not (profile.policies_filter or profile.policies_score):
            return ()
        policies = (plugin.policy for plugin in self.plugins)
        if profile.policies_filter:
            return tuple(PolicyPlugin(replace(policy, scores=()), self.contexts) for policy in policies)
        return tuple(PolicyPlugin(replace(policy, filters=(), preemption=None), self.contexts) for policy in policies)


def _following(before: PolicyPlugin | None, policy: CompiledPolicy, contexts: Contexts) -> PolicyPlugin:
    """Return a policy's plugin after an earlier generation's."""
    if before is not None and before.policy is policy:
        return before
    return PolicyPlugin(policy, contexts, before)


def _guards(plugins: Iterable[PolicyPlugin], mode: str) -> tuple[PolicyGuard, ...]:
    """Return the conditions on victims of the policies of a mode."""
    found = (guard_of(plugin) for plugin in plugins if plugin.policy.spec.mode == mode)
    return tuple(guard for guard in found if guard is not None)


@dataclass(frozen=True)
class ExtraKey:
    """What tells pods of a class apart, or the moments at which they are looked at; equal ones give equal values."""

    fields: tuple[tuple[str, str | None], ...]
    """What policies read of a pod and its class does not hold."""
    times: tuple[Typed, ...]
    """What they make of the time."""
    plugin: PolicyPlugin = field(compare=False, repr=False)
    """One of the policies."""

    def __call__(self, pod: Pod, cluster: Cluster) -> Hashable:
        """Return the values for a pod now."""
        own = tuple([value_beyond_class(pod, name, key, cluster) for name, key in self.fields])
        return (own, self.plugin.context(cluster).values(pod, self.times)) if self.times else own


def _extra_key(plugins: list[PolicyPlugin]) -> ExtraKey | None:
    """Return what policies add to the keys of pod classes."""
    fields = tuple(sorted({one for plugin in plugins for one in plugin.beyond_class}, key=str))
    times = tuple(dict.fromkeys(one for plugin in plugins for one in plugin.time_keys))
    return ExtraKey(fields, times, plugins[0]) if fields or times else None
