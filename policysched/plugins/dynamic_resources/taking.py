"""What a pod takes on one node: the allocations of its claims, and the reservation of all of them.

Source: plugins/dynamicresources/dynamicresources.go (Reserve), v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from policysched.devices import AllocationError, AllocationTimeoutError, Allocator, Refusals
from policysched.framework import Cluster, Code, Status
from policysched.model.objects import AllocationResult, Pod, ResourceClaim
from policysched.plugins.dynamic_resources.extended_resources import ExtendedRows, Mappings
from policysched.plugins.dynamic_resources.pod_claims import NO_ALLOCATION, PodClaims
from policysched.plugins.dynamic_resources.reservation import ClaimReservation, share_ids

TOO_LONG: Final = Status(
    Code.ERROR,
    ("the mapping of containers to devices is larger than 3 MiB and does not fit into the pod's status",),
)


def reservation(
    found: PodClaims, pod: Pod, node: str, cluster: Cluster, binding_timeout: float
) -> ClaimReservation | Status:
    """Allocate what is to be allocated on a node, and put all claims of the pod together.

    Units: seconds.
    """
    taken = _allocated(found, node, cluster)
    if isinstance(taken, Status):
        return taken
    made = ClaimReservation(pod, node, cluster, binding_timeout)
    results = iter(taken.results)
    for claim in found.user:
        made.add(claim, next(results) if claim.status.allocation is None else None)
    if taken.special is not None:
        made.add_special(taken.special, next(results), taken.mappings)
    return made


def devices_on(found: PodClaims, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, AllocationResult]]:
    """Return the claims of a pod that fits on a node, each with what it has or would get there."""
    taken = _allocated(found, node, cluster)
    if isinstance(taken, Status):
        return []
    results = iter(taken.results)
    told = [(claim, claim.status.allocation or next(results)) for claim in found.user]
    return [*told, (taken.special, next(results))] if taken.special is not None else told


def refusals_on(found: PodClaims, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, Refusals]]:
    """Say for each request of a pod's claims what stands against the devices of a node."""
    row = cluster.nodes.row_of[node]
    asked, _ = _asked_on(found, row, cluster)
    try:
        told = Allocator(cluster.devices, asked).refusals(row) if asked else []
    except AllocationTimeoutError:
        return []
    return [(asked[one.claim], one) for one in told]


class PodTaking(NamedTuple):
    """What a pod takes on a node: results in the order of its claims without an allocation, the special one last."""

    results: Sequence[AllocationResult]
    special: ResourceClaim | None
    """The special claim as it is on the node, None where the node provides all resources itself."""
    mappings: Mappings


def _allocated(found: PodClaims, node: str, cluster: Cluster) -> PodTaking | Status:
    """Allocate the claims of a pod that have no allocation, as they are on a node."""
    extended, row = found.extended, cluster.nodes.row_of.get(node, -1)
    if (row < 0 or cluster.nodes.nodes[row] is None) and (found.to_allocate or extended is not None):
        return NO_ALLOCATION
    asked, resources = _asked_on(found, row, cluster)
    if not asked:
        return PodTaking((), None, ())
    allocator = Allocator(cluster.devices, asked) if resources else found.allocator(cluster.devices)
    try:
        got = allocator.allocate(row, share_ids(asked))
    except AllocationError as error:
        return Status(Code.ERROR, (str(error),))
    if got is None:
        return NO_ALLOCATION
    if extended is None or not resources:
        return PodTaking(got, None, ())
    mappings = extended.mappings_on(resources)
    return TOO_LONG if mappings is None else PodTaking(got, asked[-1], mappings)


def _asked_on(found: PodClaims, row: int, cluster: Cluster) -> tuple[list[ResourceClaim], Sequence[str]]:
    """Return the claims to be allocated as they are on a node, the special one last, with the resources it is for."""
    extended = found.extended
    if extended is not None and extended.claim.status.allocation is None:
        resources = ExtendedRows(extended, cluster).on_row(row)
        if resources:
            return [*found.to_allocate, extended.on(resources)], resources
    return found.to_allocate, ()
