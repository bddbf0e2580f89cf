"""`PolicySet`: the policies in force as one immutable value, which is swapped between two cycles.

Policies are in the order in which their filters report: by descending priority, then by name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.language.ir.graph import Typed
from policysched.model.objects import Pod
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.group_values import group_version
from policysched.rules.inputs import value_beyond_class
from policysched.rules.plugin.active_policy import ActivePolicy, Results
from policysched.rules.plugin.guard import PolicyGuard, guard_of
from policysched.rules.plugin.placements import PolicyPlacements
from policysched.rules.plugin.policies import PolicyFilters, score_plugins


@dataclass(frozen=True)
class PolicySet:
    """The policies in force, in the order of evaluation."""

    active: tuple[ActivePolicy, ...] = ()
    """All policies that are not disabled, including policies in Shadow mode."""
    results: Results = field(default_factory=WeakKeyDictionary, compare=False, repr=False)
    """For each cluster, the results of the rules that do not read the pod."""

    @classmethod
    def of(cls, policies: Iterable[CompiledPolicy], before: PolicySet | None = None) -> PolicySet:
        """Return the set of the given policies, in order; unchanged rules of an earlier set are reused.

        Args:
            policies: The policies in force.
            before: The previous set; unchanged policies and rules keep their results.
        """
        ordered = sorted(policies, key=lambda policy: (-policy.spec.priority, policy.key))
        results: Results = WeakKeyDictionary() if before is None else before.results
        known = {} if before is None else {one.policy.key: one for one in before.active}
        made = (_following(known.get(policy.key), policy, results) for policy in ordered)
        return cls(tuple(one for one in made if one.policy.spec.mode != "Disabled"), results)

    def join(self, profile: Profile, cluster: Cluster | None = None) -> Profile:
        """Return a copy of a profile to which the plugins of the enforced policies are added.

        Args:
            profile: The profile without policies.
            cluster: The cluster on which rules that do not read the pod are evaluated now; by default the first
                decision evaluates them.
        """
        enforced = [one for one in self.active if one.policy.spec.mode == "Enforce"]
        filtering = [one for one in enforced if one.policy.filters and profile.policies_filter]
        scoring = [one for one in enforced if one.policy.scores and profile.policies_score]
        filters = (PolicyFilters(filtering),) if filtering else ()
        scores = score_plugins(scoring)
        if cluster is not None:
            for plugin in (*filters, *(one for one, _ in scores)):
                plugin.evaluate(cluster)
        guards = [_guards(self.active, mode) if profile.policies_filter else () for mode in ("Enforce", "Shadow")]
        made = profile.with_policies(filters, scores, _extra_key([*dict.fromkeys((*filtering, *scoring))]), *guards)
        return _with_placements(made, [PolicyPlacements(one) for one in enforced if one.policy.placement is not None])

    def acting(self, profile: Profile) -> tuple[ActivePolicy, ...]:
        """Return a profile's policies for decision records, without filters or scores that the profile disables."""
        if profile.policies_filter and profile.policies_score:
            return self.active
        if not (profile.policies_filter or profile.policies_score):
            return ()
        policies = (one.policy for one in self.active)
        if profile.policies_filter:
            return tuple(ActivePolicy(replace(policy, scores=()), self.results) for policy in policies)
        return tuple(ActivePolicy(replace(policy, filters=(), preemption=None), self.results) for policy in policies)


def _with_placements(profile: Profile, plugins: Sequence[PolicyPlacements]) -> Profile:
    """Return a copy of a profile to which the placement rules of policies are added."""
    restricting = [one for one in plugins if profile.policies_filter]
    scoring = [one for one in plugins if profile.policies_score and one.rules.scores]
    if not restricting and not scoring:
        return profile
    return replace(
        profile,
        placement_generate=(*profile.placement_generate, *(one for one in restricting if one.rules.topology_key)),
        placement_feasible=(*profile.placement_feasible, *(one for one in restricting if one.rules.filters)),
        placement_scores=(*profile.placement_scores, *((one, one.weight) for one in scoring)),
    )


def _following(before: ActivePolicy | None, policy: CompiledPolicy, results: Results) -> ActivePolicy:
    """Return a compiled policy as an `ActivePolicy`, with rules of its earlier generation where these are equal."""
    if before is not None and before.policy is policy:
        return before
    return ActivePolicy(policy, results, before)


def _guards(policies: Iterable[ActivePolicy], mode: str) -> tuple[PolicyGuard, ...]:
    """Return the victim guards of the policies that have a given mode, such as Enforce."""
    found = (guard_of(one) for one in policies if one.policy.spec.mode == mode)
    return tuple(guard for guard in found if guard is not None)


@dataclass(frozen=True)
class ExtraKey:
    """A function that returns what policies read of a pod and of the time, to extend the key of equal pods.

    Equal objects add equal values.
    """

    fields: tuple[tuple[str, str | None], ...]
    """The pod fields that policies read and that the key of equal pods (a pod class) does not contain by default."""
    times: tuple[Typed, ...]
    """The expressions of policies that read the time but no nodes."""
    policy: ActivePolicy = field(compare=False, repr=False)
    """Any policy, for access to the evaluation context that all policies share."""
    of_groups: tuple[ActivePolicy, ...] = ()
    """The policies that read the group to which a pod belongs."""

    def __call__(self, pod: Pod, cluster: Cluster) -> Hashable:
        """Return the values that policies read of a pod at the cluster's time, to extend the key of equal pods."""
        own: Hashable = tuple([value_beyond_class(pod, name, key, cluster) for name, key in self.fields])
        if self.of_groups:
            own = (own, self._group(pod, cluster))
        return (own, self.policy.context(cluster).values(pod, self.times)) if self.times else own

    def _group(self, pod: Pod, cluster: Cluster) -> Hashable:
        """Return a value that changes with a pod's group; None if no policy that reads groups selects the pod."""
        version = group_version(pod, cluster)
        if version is None or all(one.selection.unselected(pod, cluster) for one in self.of_groups):
            return None
        return version


def _extra_key(policies: list[ActivePolicy]) -> ExtraKey | None:
    """Return the function that extends the key of equal pods (a pod class); None if no policy needs that."""
    fields = tuple(sorted({one for policy in policies for one in policy.beyond_class}, key=str))
    times = tuple(dict.fromkeys(one for policy in policies for one in policy.time_keys))
    of_groups = tuple(policy for policy in policies if policy.reads_group)
    return ExtraKey(fields, times, policies[0], of_groups) if fields or times or of_groups else None
