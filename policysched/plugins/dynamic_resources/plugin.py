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
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import force_setattr

from policysched.framework import (
    SKIP,
    ApiError,
    Aspect,
    AssumedPod,
    Cluster,
    Code,
    Codes,
    FailedDecision,
    FilterPlugin,
    Handle,
    Hint,
    Incremental,
    Mask,
    PerPod,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFlight,
    PreparedFilter,
    ReservePlugin,
    RetryControl,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    default_normalize,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import AllocationResult, Pod, ResourceClaim
from policysched.model.selection.selectors import SelectorError
from policysched.plugins.arguments import Duration, Fault, PluginArguments
from policysched.plugins.dynamic_resources.extended_resources import IN_MEMORY, extended_requests
from policysched.plugins.dynamic_resources.hints import hints
from policysched.plugins.dynamic_resources.pod_claims import (
    NO_ALLOCATION,
    NOT_AVAILABLE,
    PodClaims,
    WaitedClaims,
    request_fault,
    stated_claims,
)
from policysched.plugins.dynamic_resources.shared_rows import NAME, ScoreOfOthers, SharedFilter, has_claims
from policysched.reading.durations import SECOND, go_duration, nanoseconds
from policysched.state.placed.pods import pod_id

if TYPE_CHECKING:
    from policysched.devices import Allocator, Refusals
    from policysched.plugins.dynamic_resources.claim_rows import ClaimRows
    from policysched.plugins.dynamic_resources.claim_turns import ClaimTurns
    from policysched.plugins.dynamic_resources.reservation import ClaimReservation, UndoClaims

log = logging.getLogger(__name__)
BINDING_TIMEOUT = 600.0
"""Units: seconds."""
AFTER_REFUSAL = 1.0
"""How long a pod waits for its next attempt where a claim could not be taken back. Units: seconds."""
NO_STATE = Status(Code.ERROR, ("not found",))
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


class DynamicResources(
    PerPod,
    RetryControl,
    FilterPlugin["ClaimRows"],
    ScorePlugin[Scores],
    Incremental["ClaimRows | Scores"],
    PreEnqueuePlugin,
    PostFilterPlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """The plugin.

    Args:
        binding_timeout: How long devices may take to meet their conditions. Units: seconds.
    """

    name = NAME
    filter_reads = Aspect.LABELS | Aspect.CAPACITY
    normalizes = True
    scores_after_pre_filter = True
    has_own_results = staticmethod(has_claims)

    def __init__(self, binding_timeout: float = BINDING_TIMEOUT) -> None:
        self._binding_timeout = binding_timeout
        self._last: tuple[Pod, ClaimRows, Hashable] | None = None
        """What was prepared last, and of what: the same pod's score, or what is to be given back, is asked for next."""
        self._found: tuple[Pod, Cluster, tuple[int, int, int], PodClaims | Status | None] | None = None
        """The claims that were found last, and of what: the same pod's are asked for several times in a cycle."""
        self._asked: tuple[Pod, Cluster, tuple[int, int, int], tuple[bytes, Allocator] | None] | None = None
        """What a pod was found to share last, and of what: a cycle is told the same all along."""
        self._waited = WaitedClaims()
        self.class_filter = SharedFilter(self)
        self.class_score = ScoreOfOthers(self)

    def shared_allocator(self, pod: Pod, cluster: Cluster) -> Allocator | None:
        """Return the allocator of a pod's claims, None where their answers are the pod's own."""
        shared = self._shared(pod, cluster) if pod.spec.resource_claims else None
        return None if shared is None else shared[1]

    def shared_key(self, pod: Pod, cluster: Cluster) -> Hashable | None:
        """Return what pods share whose claims ask for the same, None where answers are the pod's own."""
        if not pod.spec.resource_claims:
            return None
        shared = self._shared(pod, cluster)
        return None if shared is None else shared[0]

    def _shared(self, pod: Pod, cluster: Cluster) -> tuple[bytes, Allocator] | None:
        moves = cluster.resource_claims.revision, cluster.devices.revision, cluster.mapped_resources.generation
        known = self._asked
        if known is None or known[0] is not pod or known[1] is not cluster or known[2] != moves:
            known = self._asked = pod, cluster, moves, self._find_shared(pod, cluster)
        return known[3]

    def _find_shared(self, pod: Pod, cluster: Cluster) -> tuple[bytes, Allocator] | None:
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims) or found.extended is not None or found.is_any_allocated:
            return None
        allocator = found.allocator(cluster.devices)
        key = allocator.shared_key
        return None if key is None else (key, allocator)

    def events(self) -> Sequence[Hint]:
        """Return the changes that can help a pod which the plugin rejected or keeps out."""
        return hints(self._waited)

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Keep a pod out as long as one of its claims is not there; compile what they ask devices by once they are."""
        if not pod.spec.resource_claims:
            return None
        _reservation()
        if (obstacle := self._waited.obstacle(pod, cluster.resource_claims)) is not None:
            return obstacle
        claims = stated_claims(pod, cluster.resource_claims)
        if isinstance(claims, Status):
            return claims
        from policysched.devices import compile_claims  # noqa: PLC0415 - a start needs none

        compile_claims([one for one in claims if one.status.allocation is None], cluster.devices)
        return None

    def puts_off(self, pod: Pod, cluster: Cluster) -> bool:
        """Return whether a claim of the pod is being allocated for another one."""
        known = cluster.resource_claims
        if not pod.spec.resource_claims or not known.in_flight:
            return False
        claims = stated_claims(pod, known)
        return not isinstance(claims, Status) and any(
            known.pending_allocation(claim.metadata.uid) is not None for claim in claims
        )

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[ClaimRows]:
        """Find the pod's claims and look at every row."""
        self._last = None
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims):
            return SKIP if found is None else found
        rows = self._rows(found, cluster)
        if not isinstance(rows, Status):
            self._last = pod, rows, _state_of(cluster)
        return rows

    def filter(self, state: ClaimRows, rows: Rows) -> Codes:
        """Reject rows where the claims cannot be had."""
        return state.codes[rows]

    def reason(self, state: ClaimRows, code: int) -> Status:
        """Return what stands against a row."""
        return state.reason(code)

    def generation(self, cluster: Cluster) -> Hashable:
        """Return what moves when other resources have device classes."""
        return cluster.mapped_resources.generation

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Scores:
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
        from policysched.plugins.dynamic_resources.claim_writes import (  # noqa: PLC0415 - a start needs none
            deallocate,
            delete_claim,
        )

        last = self._last
        is_same = (
            last is not None and last[0] is pod and last[1].claims is found and last[2] == _state_of(failed.cluster)
        )
        rows = last[1] if last is not None and is_same else self._rows(found, failed.cluster)
        claims = [] if isinstance(rows, Status) else self._returnable(pod, rows, failed)
        if claims:
            give_back = partial(deallocate, known=failed.cluster.resource_claims)
            return PostFilterResult(DEALLOCATED, cleanups=(_giving_back(pod, failed.rng.choice(claims), give_back),))
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
        made = _reservation()(found, pod, assumed.node, cluster, self._binding_timeout)
        if isinstance(made, Status):
            return made
        assumed.state.write(self.name, made)
        return None

    @cached_property
    def _turns(self) -> ClaimTurns:
        from policysched.plugins.dynamic_resources.claim_turns import ClaimTurns  # noqa: PLC0415 - a start needs none

        return ClaimTurns()

    def unreserve(self, assumed: AssumedPod) -> UndoClaims | None:
        """Give back what was taken."""
        held: ClaimReservation | None = assumed.state.get(self.name)
        if held is None:
            return None
        assumed.state.delete(self.name)
        return held.undo(self._turns)

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> PreFlight:
        """Return whether there are claims, which may be written beside what other plugins do."""
        return PreFlight(works=self.name in assumed.state, parallel=True)

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Write what was taken, and wait for devices that have to be made ready."""
        held: ClaimReservation = assumed.state.read(self.name)
        problem = await held.pre_bind(handle, self._turns)
        return Status(Code.ERROR, (problem,)) if problem else None

    def _claims_of(self, pod: Pod, cluster: Cluster) -> PodClaims | Status | None:
        """Run PreFilter: return the pod's claims, None where it has none, or what turns it away."""
        known = self._found
        is_same = known is not None and known[0] is pod and known[1] is cluster
        if not is_same and not has_claims(pod, cluster):
            return None
        moves = cluster.resource_claims.revision, cluster.devices.classes_revision, cluster.mapped_resources.generation
        if known is None or not is_same or known[2] != moves:
            known = self._found = pod, cluster, moves, self._find_claims(pod, cluster)
        return known[3]

    @staticmethod
    def _find_claims(pod: Pod, cluster: Cluster) -> PodClaims | Status | None:
        user = stated_claims(pod, cluster.resource_claims)
        if isinstance(user, Status):
            return user
        extended = extended_requests(pod, cluster)
        if not user and extended is None:
            return None
        found = PodClaims(user, extended)
        for claim in found.to_allocate:
            fault = _pending(claim, cluster) or request_fault(claim, cluster)
            if fault is not None:
                return fault
        special = None if extended is None else extended.claim
        if special is not None and special.status.allocation is None and (fault := _pending(special, cluster)):
            return fault
        return found

    def _rows(self, claims: PodClaims, cluster: Cluster) -> ClaimRows | Status:
        from policysched.devices import AllocationError  # noqa: PLC0415 - a start needs none
        from policysched.plugins.dynamic_resources.claim_rows import ClaimRows  # noqa: PLC0415 - as above

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
        if not isinstance(found, PodClaims):
            return []
        from policysched.plugins.dynamic_resources.taking import devices_on  # noqa: PLC0415 - pods without claims need none

        return devices_on(found, node, cluster)

    def refusals_on(self, pod: Pod, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, Refusals]]:
        """Say for each request of a pod's claims what stands against the devices of a node."""
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims):
            return []
        from policysched.plugins.dynamic_resources.taking import refusals_on  # noqa: PLC0415 - as above

        return refusals_on(found, node, cluster)


def _state_of(cluster: Cluster) -> Hashable:
    """Return what differs once anything has changed that rows depend on."""
    devices, mapped = cluster.devices, cluster.mapped_resources
    moves = cluster.resource_claims.revision, devices.revision, devices.classes_revision, mapped.generation
    return cluster.journal.position, cluster.nodes.size, cluster.time.seconds, moves


@cache
def _reservation() -> Callable[[PodClaims, Pod, str, Cluster, float], ClaimReservation | Status]:
    """Import what decisions about claims need when the first pod with some is seen, before it is decided about."""
    from policysched.plugins.dynamic_resources import claim_rows  # noqa: F401, PLC0415 - a start needs none
    from policysched.plugins.dynamic_resources.taking import reservation  # noqa: PLC0415 - as above

    return reservation


def _pending(claim: ResourceClaim, cluster: Cluster) -> Status | None:
    """Return what turns a pod away while one of its claims is being allocated for another one."""
    if cluster.resource_claims.pending_allocation(claim.metadata.uid) is None:
        return None
    return unresolvable(f"resource claim {claim.key} is in the process of being allocated")


def _users(claim: ResourceClaim) -> set[str]:
    return {one.uid for one in claim.status.reserved_for}


def _giving_back(
    pod: Pod, claim: ResourceClaim, give_back: Callable[..., Awaitable[None]]
) -> Callable[[Handle], Coroutine[Any, Any, None]]:
    """Give a claim back; where that is refused the pod is tried again, because nothing else would wake it."""

    async def clean_up(handle: Handle) -> None:
        try:
            await give_back(claim, handle=handle)
        except ApiError as error:
            log.warning('could not release ResourceClaim "%s" for pod "%s": %s', claim.key, pod.key, error.message)
            await handle.pause(AFTER_REFUSAL)
            handle.activate((pod_id(pod),))

    return clean_up


def dynamic_resources(given: DynamicResourcesArguments) -> DynamicResources:
    """Make DynamicResources; the time that a search takes is bounded by its steps."""
    return DynamicResources((nanoseconds(given.binding_timeout) or 0) / SECOND)
