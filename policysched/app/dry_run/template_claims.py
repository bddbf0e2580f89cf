"""Creation of the claims for a pod's claim templates, as by the resource claim controller."""

from __future__ import annotations

from msgspec.structs import replace

from policysched.model.objects import (
    ClaimMetadata,
    OwnerReference,
    Pod,
    PodClaimStatus,
    ResourceClaim,
    ResourceClaimTemplate,
)
from policysched.state.cluster import Cluster


def with_template_claims(pod: Pod, cluster: Cluster) -> Pod:
    """Create the missing claims of a pod from existing templates; return the pod with the claims in its status."""
    told = {one.name: one for one in pod.status.resource_claim_statuses}
    templates = cluster.objects.of(ResourceClaimTemplate)
    made = []
    for stated in pod.spec.resource_claims:
        template = templates.get(f"{pod.metadata.namespace}/{stated.resource_claim_template_name}")
        if template is None or stated.name in told:
            continue
        claim = _claim(pod, stated.name, template)
        cluster.take(claim)
        made.append(PodClaimStatus(name=stated.name, resource_claim_name=claim.metadata.name))
    if not made:
        return pod
    return replace(pod, status=replace(pod.status, resource_claim_statuses=[*told.values(), *made]))


def _claim(pod: Pod, name: str, template: ResourceClaimTemplate) -> ResourceClaim:
    of, given = pod.metadata, template.spec.metadata
    owner = OwnerReference(api_version="v1", kind="Pod", name=of.name, uid=of.uid, controller=True)
    metadata = ClaimMetadata(
        name=f"{of.name}-{name}",
        namespace=of.namespace,
        uid=f"{pod.key}/{name}",
        labels=given.labels,
        annotations=given.annotations,
        owner_references=[owner],
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)
