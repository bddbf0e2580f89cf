"""The pods to which the policies of a change apply, and why a policy has no effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

from policysched.app.amounts import counted
from policysched.app.plan.causes import POLICY
from policysched.app.plan.deciding import ClusterSide, Keys
from policysched.app.plan.results import EXAMPLES, PolicyPods
from policysched.language.ir.graph import PLACED
from policysched.model.objects import Pod
from policysched.model.policy import PolicyKey
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.guard import guard_of
from policysched.rules.plugin.record import why_not_applied
from policysched.state.cluster import Cluster


class AffectedPods:
    """Determines whether a change can affect the decision about a pod; evaluated once for each class of equal pods.

    Args:
        before: The side without the change.
        after: The side with the change.
        differing: The policies that differ; None if other objects differ, too, which can affect all pods.
    """

    def __init__(self, before: ClusterSide, after: ClusterSide, differing: Collection[PolicyKey] | None) -> None:
        self._before, self._after = before, after
        self._policies = [
            (side, [one for one in side.policies.active if differing is not None and one.policy.key in differing])
            for side in (before, after)
        ]
        self._is_all, self._is_none = differing is None, differing is not None and not differing
        self._known: dict[Hashable, bool] = {}

    def __call__(self, pod: Pod) -> Keys | None:
        """Return the keys of a pod's class of equal pods on both sides; None if the decision cannot differ."""
        if self._is_none:
            return None
        keys = self._before.key(pod), self._after.key(pod)
        return keys if self._is_all or self._is_affected(pod, keys) else None

    def _is_affected(self, pod: Pod, keys: Keys) -> bool:
        key = (pod.spec.scheduler_name, pod.spec.priority, *keys)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = any(
                applies(policy, pod, side.cluster) for side, policies in self._policies for policy in policies
            )
        return found


def applies(policy: ActivePolicy, pod: Pod, cluster: Cluster) -> bool:
    """Return whether a policy filters or scores nodes for a pod, or protects other pods from preemption by the pod."""
    if policy.applies(pod, cluster):
        return True
    guard = guard_of(policy)
    return guard is not None and guard.applies_to(pod, policy.context(cluster))


PodClasses = Sequence[tuple[Pod, int]]
"""Classes of pods that scheduling does not distinguish: one pod of each class, with the number of pods of the class."""


def pod_classes(before: ClusterSide, after: ClusterSide, pods: Iterable[Pod]) -> PodClasses:
    """Group pods that scheduling would not distinguish if they were pending, neither without nor with the change."""
    counts: Counter[Hashable] = Counter()
    first: dict[Hashable, Pod] = {}
    for pod in pods:
        key = (pod.spec.scheduler_name, pod.spec.priority, after.key(pod), before.key(pod))
        counts[key] += 1
        first.setdefault(key, pod)
    return [(pod, counts[key]) for key, pod in first.items()]


def policy_pods(
    before: ClusterSide, after: ClusterSide, changed: Collection[PolicyKey], classes: PodClasses
) -> tuple[PolicyPods, ...]:
    """Count the pods to which each changed policy applies: with the change; for a deleted policy, without it.

    Args:
        before: The side without the change.
        after: The side with the change.
        changed: The policies that differ.
        classes: The evaluated pods.
    """
    found = {one.policy.key: (side, one) for side in (before, after) for one in side.policies.active}
    acting = [found[key] for key in sorted(changed) if key in found and _is_enforced(found[key][1].policy)]
    return tuple(
        PolicyPods(str(one.policy.key), sum(count for pod, count in classes if applies(one, pod, side.cluster)))
        for side, one in acting
    )


def idle_policies(
    after: ClusterSide, coming: Iterable[CompiledPolicy], reach: Iterable[PolicyPods], classes: PodClasses
) -> Iterator[str]:
    """Yield the policies of a change that have no effect on any pod, each with the reason.

    Args:
        after: The side with the change, after it was evaluated.
        coming: The policies of the change.
        reach: The number of pods to which each policy applies.
        classes: The evaluated pods.
    """
    counts = {one.policy: one.pods for one in reach}
    total = sum(count for _, count in classes)
    for one in coming:
        count = counts.get(str(one.key), 0)
        if f"{POLICY}{one.key}" in after.acting or (one.preemption is not None and count):
            continue
        if not _is_enforced(one):
            yield f"{one.key}: mode is {one.spec.mode}"
        elif not any(profile.policies_filter or profile.policies_score for profile in after.profiles.values()):
            yield f"{one.key}: the profile disables SchedulingPolicy"
        elif count:
            pods = f"{count:,} of {counted(total, 'pod')}"
            yield f"{one.key}: is evaluated for {pods} but rejects no node and scores all nodes equally"
        else:
            reason = _why_none(one, after.cluster, classes)
            yield f"{one.key}: is evaluated for none of {counted(total, 'pod')}: {reason}"


def counting_policies(policies: Iterable[CompiledPolicy]) -> list[str]:
    """Return the enforced policies whose rules read pods placed on nodes."""
    return sorted(
        str(one.key)
        for one in policies
        if _is_enforced(one) and any(item.root == "peer" or item == PLACED for item in one.inputs)
    )


def _why_none(policy: CompiledPolicy, cluster: Cluster, classes: PodClasses) -> str:
    """Return why a policy applies to no pod: the most common reasons, each with its number of pods."""
    reasons: Counter[str] = Counter()
    for pod, count in classes:
        reasons[why_not_applied(policy, pod, cluster)] += count
    common = reasons.most_common(EXAMPLES)
    return common[0][0] if len(reasons) == 1 else "; ".join(f"{why} ({counted(pods, 'pod')})" for why, pods in common)


def _is_enforced(policy: CompiledPolicy) -> bool:
    return policy.spec.mode == "Enforce"
