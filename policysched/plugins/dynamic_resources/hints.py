"""Which changes of claims and of a pod itself can help a pod that DynamicResources turned away.

Everything about devices, classes and nodes may help; a claim does where the pod waits for it, or where it gives devices
back, as it does when it goes. A pod is found by the claims that it names, so that a change of one claim asks few pods.

Source: plugins/dynamicresources/dynamicresources.go (EventsToRegister, isSchedulableAfterClaimChange,
isSchedulableAfterPodChange), v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import partial

from policysched.framework import Action, Change, Cluster, Hint, HintIndex, Resource, Status
from policysched.model.objects import Pod, ResourceClaim
from policysched.plugins.dynamic_resources.pod_claims import WaitedClaims, claim_names, stated_claims
from policysched.plugins.hint_parts import updates_itself


def hints(waited: WaitedClaims) -> Sequence[Hint]:
    """Return the hints of a plugin that knows which claims pods wait for."""
    return (
        Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        Hint(Resource.RESOURCE_CLAIM, Action.ALL, partial(_claim_helps, waited), HintIndex(_filed_under, _leads_to)),
        Hint(Resource.PENDING_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, partial(_pod_helps, waited)),
        Hint(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
        Hint(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
    )


def _claim_helps(waited: WaitedClaims, pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a claim gives devices back, is gone, or is one of the pod's and has another status."""
    old, new = change.old, change.new
    if waited.obstacle(pod, cluster.resource_claims) is not None:
        return False
    claims = stated_claims(pod, cluster.resource_claims)
    if isinstance(claims, Status):
        return False
    if _gives_back(change):
        return True
    if not isinstance(new, ResourceClaim) or all(claim.metadata.uid != new.metadata.uid for claim in claims):
        return False
    return not isinstance(old, ResourceClaim) or old.status != new.status


def _gives_back(change: Change) -> bool:
    """Return whether a claim has no devices any more, as one that is gone."""
    old, new = change.old, change.new
    if not isinstance(old, ResourceClaim) or old.status.allocation is None:
        return False
    return not isinstance(new, ResourceClaim) or new.status.allocation is None


def _pod_helps(waited: WaitedClaims, pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether the pod itself names all of its claims now, and they are there."""
    new = change.new
    if not isinstance(new, Pod) or not updates_itself(pod, change):
        return False
    return waited.obstacle(new, cluster.resource_claims) is None


def _filed_under(pod: Pod) -> Collection[Hashable]:
    return {f"{pod.metadata.namespace}/{name}" for _, name in claim_names(pod) if isinstance(name, str)}


def _leads_to(change: Change, _filed: Collection[Hashable]) -> Collection[Hashable] | None:
    """Return the claim that changed; where it gives devices back every pod may be helped."""
    if _gives_back(change):
        return None
    return (change.new.key,) if isinstance(change.new, ResourceClaim) else ()
