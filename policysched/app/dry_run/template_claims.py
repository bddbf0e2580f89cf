"""Creation of the claims for the claim templates of pods and pod groups, as by the resource claim controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from policysched.model.objects import (
    ClaimMetadata,
    OwnerReference,
    Pod,
    PodClaimStatus,
    PodGroup,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimTemplate,
)
from policysched.state.cluster import Cluster

Owner = TypeVar("Owner", Pod, PodGroup)
_API_VERSIONS: Final = {Pod: "v1", PodGroup: "scheduling.k8s.io/v1beta1"}


def with_template_claims(pod: Pod, cluster: Cluster) -> Pod:
    """Create the missing claims of a pod from existing templates; return the pod with the claims in its status.

    A claim of the pod's group is created for the group, with its name in the group's status too.
    """
    state = None if cluster.pod_groups is None else cluster.pod_groups.of_pod(pod)
    group = None if state is None or not cluster.resource_claims.of_groups else state.group
    if group is None or not group.spec.resource_claims:
        return _with_claims(pod, cluster, {})
    made = _with_claims(group, cluster, {})
    if made is not group:
        cluster.take(made)
    known = {one.name: one for one in made.status.resource_claim_statuses}
    shared = [one.name for one in pod.spec.resource_claims if one in group.spec.resource_claims]
    return _with_claims(pod, cluster, {name: known.get(name) for name in shared})


def _with_claims(owner: Owner, cluster: Cluster, shared: Mapping[str, PodClaimStatus | None]) -> Owner:
    """Create the missing claims of an owner; `shared` has the claims of entries that are not created here."""
    status: Any = owner.status
    told: dict[str, PodClaimStatus] = {one.name: one for one in status.resource_claim_statuses}
    made: list[PodClaimStatus] = []
    for stated in owner.spec.resource_claims:
        if stated.name not in told and stated.resource_claim_template_name is not None:
            one = shared[stated.name] if stated.name in shared else _created(owner, stated, cluster)
            made += [] if one is None else [one]
    if not made:
        return owner
    return replace(owner, status=replace(status, resource_claim_statuses=[*told.values(), *made]))


def _created(owner: Pod | PodGroup, stated: PodResourceClaim, cluster: Cluster) -> PodClaimStatus | None:
    """Create a claim; return its entry in the status of the owner, or None if the template does not exist."""
    templates = cluster.objects.of(ResourceClaimTemplate)
    template = templates.get(f"{owner.metadata.namespace}/{stated.resource_claim_template_name}")
    if template is None:
        return None
    claim = _claim(owner, stated.name, template)
    cluster.take(claim)
    return PodClaimStatus(name=stated.name, resource_claim_name=claim.metadata.name)


def _claim(owner: Pod | PodGroup, name: str, template: ResourceClaimTemplate) -> ResourceClaim:
    of, given, kind = owner.metadata, template.spec.metadata, type(owner)
    reference = OwnerReference(
        api_version=_API_VERSIONS[kind], kind=kind.__name__, name=of.name, uid=of.uid, controller=True
    )
    metadata = ClaimMetadata(
        name=f"{of.name}-{name}",
        namespace=of.namespace,
        uid=f"{owner.key}/{name}",
        labels=given.labels,
        annotations=given.annotations,
        owner_references=[reference],
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)
