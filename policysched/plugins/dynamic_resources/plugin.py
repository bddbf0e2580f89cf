"""DynamicResources: a pod goes where its resource claims can be had, and takes their devices along.

Its answers belong to one pod, as those about volumes do; what the allocator finds out about claims of equal specs is
kept between pods. Pods without claims score 0 everywhere, and nothing else is asked about them. Preemption helps none
of its rejections: devices are taken back only from claims that the pod itself cannot use any more.

Source: plugins/dynamicresources/dynamicresources.go, pkg/scheduler/apis/config/validation/validation_pluginargs.go,
v1.36.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import force_setattr

from policysched.devices import AllocationError, AllocationTimeoutError, Allocator, Refusals
from policysched.framework import (
    SKIP,
    ApiError,
    Aspect,
    AssumedPod,
    Cluster,
    Code,
    Codes,
    FailedDecision,
    Handle,
    Mask,
    PostFilterResult,
    PreFlight,
    Rows,
    Scores,
    Status,
    default_normalize,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import AllocationResult, Pod, ResourceClaim
from policysched.model.selection.selectors import SelectorError
from policysched.plugins.arguments import SECOND, Duration, Fault, PluginArguments, go_duration, nanoseconds
from policysched.plugins.dynamic_resources.claim_rows import NOT_AVAILABLE, ClaimRows
from policysched.plugins.dynamic_resources.extended_resources import (
    IN_MEMORY,
    ExtendedRows,
    Mappings,
    asks_for_classes,
    extended_requests,
)
from policysched.plugins.dynamic_resources.hints import HINTS
from policysched.plugins.dynamic_resources.pod_claims import PodClaims, request_fault, stated_claims
from policysched.plugins.dynamic_resources.reservation import (
    ClaimReservation,
    UndoClaims,
    deallocate,
    delete_claim,
    share_ids,
)
from policysched.plugins.helper import FinalScores, HintTable, row_count
from policysched.state.placed.pods import pod_id
from policysched.state.tables.nodes import NodeTable

log = logging.getLogger(__name__)
NAME = "DynamicResources"
BINDING_TIMEOUT = 600.0
"""Units: seconds."""
AFTER_REFUSAL = 1.0
"""How long a pod waits for its next attempt where a claim could not be taken back. Units: seconds."""
NO_STATE = Status(Code.ERROR, ("not found",))
NO_ALLOCATION = Status(Code.ERROR, ("claim allocation not found for node",))
NOTHING_TO_DEALLOCATE = unschedulable("no new claims to deallocate")
DEALLOCATED = unschedulable("deallocation of ResourceClaim completed")
DELETED = unschedulable("deletion of ResourceClaim completed")
NO_HELP = unschedulable("still not schedulable")


class DynamicResourcesArguments(PluginArguments, frozen=True):
    """The arguments of DynamicResources."""

    filter_timeout: Duration = "10s"
    binding_timeout: Duration = "10m"

    def __post_init__(self) -> None:
        """Write durations as Go does."""
        for field in ("filter_timeout", "binding_timeout"):
            force_setattr(self, field, go_duration(getattr(self, field)))

    def faults(self) -> Iterator[Fault]:
        """Name fields that are not valid, and why."""
        for field, text, least in (
            ("filterTimeout", self.filter_timeout, 0),
            ("bindingTimeout", self.binding_timeout, SECOND),
        ):
            if (nanoseconds(text) or 0) < least:
                yield field, f'"{text}" is shorter than {least // SECOND}s'


def has_claims(pod: Pod, cluster: Cluster) -> bool:
    """Return whether a pod needs devices: by claims, or by extended resources that device classes stand for."""
    return bool(pod.spec.resource_claims) or asks_for_classes(pod, cluster)


class ScoreOfOthers(FinalScores):
    """Scores 0 for the pods that need no devices."""

    name = NAME
    score_reads = Aspect.NONE

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Take part with every pod that needs no devices."""
        return SKIP if has_claims(pod, cluster) else cluster.nodes

    def score(self, state: NodeTable, rows: Rows) -> Scores:
        """Score every row 0."""
        return np.zeros(row_count(state, rows), np.int64)

    def generation(self, cluster: Cluster) -> Hashable:
        """Return what moves when other resources have device classes."""
        return cluster.mapped_generation


class DynamicResources(HintTable):
    """The plugin.

    Args:
        binding_timeout: How long devices may take to meet their conditions. Units: seconds.
    """

    name = NAME
    filter_reads = Aspect.LABELS | Aspect.CAPACITY
    score_reads = Aspect.NONE
    normalizes = True
    scores_after_pre_filter = True
    per_pod = staticmethod(has_claims)
    class_score = ScoreOfOthers()
    hints = HINTS

    def __init__(self, binding_timeout: float = BINDING_TIMEOUT) -> None:
        self._binding_timeout = binding_timeout
        self._last: tuple[Pod, ClaimRows] | None = None
        """What was prepared last: the same pod's score is asked for next."""

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Keep a pod out as long as one of its claims is not there."""
        claims = stated_claims(pod, cluster.resource_claims) if pod.spec.resource_claims else None
        return claims if isinstance(claims, Status) else None

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Find the pod's claims and look at every row."""
        self._last = None
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims):
            return SKIP if found is None else found
        rows = self._rows(found, cluster)
        if isinstance(rows, ClaimRows):
            self._last = pod, rows
        return rows

    def filter(self, state: ClaimRows, rows: Rows) -> Codes:
        """Reject rows where the claims cannot be had."""
        return state.codes[rows]

    def reason(self, state: ClaimRows, code: int) -> Status:
        """Return what stands against a row."""
        return state.reason(code)

    def generation(self, cluster: Cluster) -> Hashable:
        """Return what moves when other resources have device classes."""
        return cluster.mapped_generation

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Take part with every pod; without claims all rows score 0."""
        rows = self._last[1] if self._last is not None and self._last[0] is pod else None
        return np.zeros(cluster.nodes.size, np.int64) if rows is None else rows.scores

    def score(self, state: Scores, rows: Rows) -> Scores:
        """Score rows by how early the alternatives come that claims would get."""
        return state[rows]

    def normalize(self, state: Scores, scores: Scores, feasible: Mask) -> Scores | None:  # noqa: ARG002 - protocol
        """Give 100 to the highest score."""
        return default_normalize(scores, feasible, reverse=False) if np.count_nonzero(scores) else None

    def stays_in_range(self, state: Scores) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return True: sums of alternatives are not negative."""
        return True

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Find a claim to take back that the pod cannot use where it is."""
        if not failed.pre_filtered(self.name):
            return PostFilterResult(NO_STATE)
        found = self._claims_of(pod, failed.cluster)
        if not isinstance(found, PodClaims):
            return PostFilterResult(NOTHING_TO_DEALLOCATE)
        rows = self._rows(found, failed.cluster)
        claims = self._returnable(pod, rows, failed) if isinstance(rows, ClaimRows) else []
        if claims:
            return PostFilterResult(DEALLOCATED, cleanups=(_giving_back(pod, failed.rng.choice(claims), deallocate),))
        extended = found.extended
        if extended is not None and extended.claim.metadata.name != IN_MEMORY:
            return PostFilterResult(DELETED, cleanups=(_giving_back(pod, extended.claim, delete_claim),))
        return PostFilterResult(NO_HELP)

    def reserve(self, assumed: AssumedPod) -> Status | None:
        """Take what the pod gets on its node, so that no other pod gets it."""
        pod, cluster = assumed.pod, assumed.cluster
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims):
            return None if found is None else NO_ALLOCATION
        made = self._reservation(found, pod, assumed.node, cluster)
        if isinstance(made, Status):
            return made
        assumed.state.write(self.name, made)
        return None

    def unreserve(self, assumed: AssumedPod) -> UndoClaims | None:
        """Give back what was taken."""
        held: ClaimReservation | None = assumed.state.get(self.name)
        if held is None:
            return None
        assumed.state.delete(self.name)
        return held.undo()

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> PreFlight:
        """Return whether there are claims, which may be written beside what other plugins do."""
        return PreFlight(works=self.name in assumed.state, parallel=True)

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Write what was taken, and wait for devices that have to be made ready."""
        held: ClaimReservation = assumed.state.read(self.name)
        problem = await held.pre_bind(handle)
        return Status(Code.ERROR, (problem,)) if problem else None

    def _claims_of(self, pod: Pod, cluster: Cluster) -> PodClaims | Status | None:
        """Run PreFilter: return the pod's claims, None where it has none, or what turns it away."""
        user = stated_claims(pod, cluster.resource_claims)
        if isinstance(user, Status):
            return user
        extended = extended_requests(pod, cluster)
        if not user and extended is None:
            return None
        found = PodClaims(user, extended)
        for claim in found.all:
            if claim.status.allocation is not None:
                continue
            if cluster.resource_claims.pending_allocation(claim.metadata.uid) is not None:
                return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
            fault = None if extended is not None and claim is extended.claim else request_fault(claim, cluster)
            if fault is not None:
                return fault
        return found

    def _rows(self, claims: PodClaims, cluster: Cluster) -> ClaimRows | Status:
        try:
            return ClaimRows(claims, cluster, self._binding_timeout)
        except (SelectorError, AllocationError) as error:
            return Status(Code.ERROR, (str(error),))

    def _returnable(self, pod: Pod, rows: ClaimRows, failed: FailedDecision) -> list[ResourceClaim]:
        """Return the claims that kept the pod off some node and that nobody else uses."""
        if not rows.unavailable:
            return []
        nodes = failed.cluster.nodes
        asked = np.zeros(nodes.size, np.bool_)
        said = NOT_AVAILABLE.by(self.name)
        for row in failed.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist():
            asked[row] = failed.status_of(nodes.names[row]) == said
        users = {pod.metadata.uid}
        found = rows.unavailable_on(asked)
        special = None if rows.claims.extended is None else rows.claims.extended.claim
        return [
            claim
            for claim in found
            if claim is not special and (not claim.status.reserved_for or _users(claim) == users)
        ]

    def devices_on(self, pod: Pod, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, AllocationResult]]:
        """Return the claims of a pod that fits on a node, each with what it has or would get there."""
        found = self._claims_of(pod, cluster)
        taken = _allocated(found, node, cluster) if isinstance(found, PodClaims) else None
        if not isinstance(found, PodClaims) or not isinstance(taken, _Taken):
            return []
        results = iter(taken.results)
        told = [(claim, claim.status.allocation or next(results)) for claim in found.user]
        return [*told, (taken.special, next(results))] if taken.special is not None else told

    def refusals_on(self, pod: Pod, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, Refusals]]:
        """Say for each request of a pod's claims what stands against the devices of a node."""
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims):
            return []
        asked, _ = _asked_on(found, cluster.nodes.row_of[node], cluster)
        try:
            told = Allocator(cluster.devices, asked).refusals(cluster.nodes.row_of[node]) if asked else []
        except AllocationTimeoutError:
            return []
        return [(asked[one.claim], one) for one in told]

    def _reservation(self, found: PodClaims, pod: Pod, node: str, cluster: Cluster) -> ClaimReservation | Status:
        """Allocate what is to be allocated on a node, and put all claims of the pod together."""
        taken = _allocated(found, node, cluster)
        if isinstance(taken, Status):
            return taken
        made = ClaimReservation(pod, node, cluster, self._binding_timeout)
        results = iter(taken.results)
        for claim in found.user:
            made.add(claim, next(results) if claim.status.allocation is None else None)
        if taken.special is not None:
            made.add_special(taken.special, next(results), taken.mappings)
        return made


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a pod takes on a node: results in the order of its claims without an allocation, the special one last."""

    results: Sequence[AllocationResult]
    special: ResourceClaim | None
    """The special claim as it is on the node, None where the node provides all resources itself."""
    mappings: Mappings


def _allocated(found: PodClaims, node: str, cluster: Cluster) -> _Taken | Status:
    """Allocate the claims of a pod that have no allocation, as they are on a node."""
    row = cluster.nodes.row_of.get(node, -1)
    asked, resources = _asked_on(found, row, cluster)
    try:
        got = Allocator(cluster.devices, asked).allocate(row, share_ids(asked)) if asked else []
    except (AllocationError, KeyError) as error:
        return Status(Code.ERROR, (str(error),))
    if got is None or len(got) != len(asked):
        return NO_ALLOCATION
    if found.extended is None or not resources:
        return _Taken(got, None, ())
    return _Taken(got, asked[-1], found.extended.mappings_on(resources))


def _asked_on(found: PodClaims, row: int, cluster: Cluster) -> tuple[list[ResourceClaim], Sequence[str]]:
    """Return the claims to be allocated as they are on a node, the special one last, with the resources it is for."""
    extended = found.extended
    if extended is not None and extended.claim.status.allocation is None:
        resources = ExtendedRows(extended, cluster).on_row(row)
        if resources:
            return [*found.to_allocate, extended.on(resources)], resources
    return found.to_allocate, ()


def _users(claim: ResourceClaim) -> set[str]:
    return {one.uid for one in claim.status.reserved_for}


def _giving_back(
    pod: Pod, claim: ResourceClaim, give_back: Callable[[ResourceClaim, Handle], Awaitable[None]]
) -> Callable[[Handle], Coroutine[Any, Any, None]]:
    """Give a claim back; where that is refused the pod is tried again, because nothing else would wake it."""

    async def clean_up(handle: Handle) -> None:
        try:
            await give_back(claim, handle)
        except ApiError as error:
            log.warning("could not give back claim=%s for pod=%s: %s", claim.key, pod.key, error.message)
            await handle.pause(AFTER_REFUSAL)
            handle.activate((pod_id(pod),))

    return clean_up


def dynamic_resources(given: DynamicResourcesArguments) -> DynamicResources:
    """Make DynamicResources; the time that a search takes is bounded by its steps."""
    return DynamicResources((nanoseconds(given.binding_timeout) or 0) / SECOND)
