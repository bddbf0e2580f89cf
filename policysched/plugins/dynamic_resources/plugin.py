"""`DynamicResources`: the plugin that filters and scores nodes by a pod's resource claims and allocates devices.

Pods whose claims have equal specs share results. All other pods with claims are evaluated one by one. Pods without
claims score 0 on every node. Preemption never helps: devices are taken back only from claims that the pod itself can no
longer use.

Shapes: N rows in use, R rows of a call.
Source: plugins/dynamicresources/dynamicresources.go, pkg/scheduler/apis/config/validation/validation_pluginargs.go,
v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache, cached_property, partial
from operator import itemgetter
from typing import Final

import numpy as np
from msgspec.structs import force_setattr

from policysched.devices import AllocationAnswer, AllocationError, Allocator, Refusals, compile_claims
from policysched.framework import (
    NO_ROWS,
    SKIP,
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
    Nothing,
    PerPod,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFlight,
    PreparedFilter,
    ReservePlugin,
    RetryControl,
    RowNumbers,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    default_normalize,
    unschedulable,
)
from policysched.framework.cycle_state import CycleState
from policysched.framework.partial_plugins import AlwaysZeroScore
from policysched.framework.pod_groups import PodGroupPostFilterPlugin, PodGroupPostFilterResult, RejectedGroup
from policysched.model.objects import AllocationResult, Pod, PodGroup, ResourceClaim
from policysched.model.selection.selectors import SelectorError
from policysched.plugins.arguments import Duration, Fault, PluginArguments
from policysched.plugins.dynamic_resources import claim_writes
from policysched.plugins.dynamic_resources.claim_rows import ClaimRows
from policysched.plugins.dynamic_resources.claim_writes import ClaimTurns
from policysched.plugins.dynamic_resources.extended_resources import IN_MEMORY
from policysched.plugins.dynamic_resources.group_claims import ClaimRelease, NotedMember, release_of_group
from policysched.plugins.dynamic_resources.pod_claims import (
    INVALID_POOLS,
    NAME,
    NO_ALLOCATION,
    NO_DEVICES,
    PodClaims,
    WaitedClaims,
    find_claims,
    has_claims,
    hints,
    stated_claims,
)
from policysched.plugins.dynamic_resources.reservation import (
    ClaimReservation,
    UndoClaims,
    devices_on,
    refusals_on,
    reservation,
)
from policysched.reading.durations import SECOND, go_duration, nanoseconds
from policysched.state.placed.pods import pod_id
from policysched.state.tables.nodes import NodeTable

BINDING_TIMEOUT: Final = 600.0
"""Default time within which devices have to meet their binding conditions. Units: seconds."""
NO_STATE: Final = Status(Code.ERROR, ("not found",))
NOTHING_TO_DEALLOCATE: Final = unschedulable("no new claims to deallocate")
DEALLOCATED: Final = unschedulable("deallocation of ResourceClaim completed")
DELETED: Final = unschedulable("deletion of ResourceClaim completed")
NO_HELP: Final = unschedulable("still not schedulable")
GROUP_DONE: Final = unschedulable("deallocation and deletion of ResourceClaims completed")
GROUP_SKIPPED: Final = PodGroupPostFilterResult(unschedulable())
_OF_ONE_POD: Final = Status(Code.ERROR, ("ResourceClaims cannot be allocated",))
"""Placeholder for the error of a result that pods share; the plugin then evaluates the pod alone."""


class DynamicResourcesArguments(PluginArguments, frozen=True):
    """The arguments of DynamicResources."""

    filter_timeout: Duration = "10s"
    binding_timeout: Duration = "10m"

    def __post_init__(self) -> None:
        """Write durations in the canonical format of Go."""
        for field in ("filter_timeout", "binding_timeout"):
            force_setattr(self, field, go_duration(getattr(self, field)))

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the arguments, each with the reason."""
        for field, text, least in (
            ("filterTimeout", self.filter_timeout, 0),
            ("bindingTimeout", self.binding_timeout, SECOND),
        ):
            if (nanoseconds(text) or 0) < least:
                yield field, f'"{text}" is shorter than {least // SECOND}s'


Choose = Callable[[Sequence[ResourceClaim]], ResourceClaim]
"""Function that chooses one of several claims."""


class PreparedPod:
    """The resource claims of one pod and their results, valid until claims, devices or device classes change.

    Args:
        pod: The pod.
        cluster: The cluster.
        timeout: Time for devices to meet their binding conditions. Units: seconds.

    Attributes:
        claims: The claims, None if the pod has none, or the status with which PreFilter rejects the pod.
    """

    def __init__(self, pod: Pod, cluster: Cluster, timeout: float) -> None:
        self._pod, self._cluster, self._timeout = pod, cluster, timeout
        self._stamp = self._stamp_of(cluster)
        self.claims = find_claims(pod, cluster)
        self._rows: ClaimRows | Status | None = None
        self._rows_stamp: Hashable = None

    def is_current(self, pod: Pod, cluster: Cluster) -> bool:
        """Return whether the stored results are still valid for a pod in a cluster."""
        return self._pod is pod and self._cluster is cluster and self._stamp == self._stamp_of(cluster)

    @staticmethod
    def _stamp_of(cluster: Cluster) -> tuple[int, int, int]:
        return cluster.resource_claims.stamp, cluster.devices.tables.stamp, cluster.devices.mapped_resources.stamp

    @cached_property
    def shared(self) -> tuple[bytes, Allocator] | None:
        """The key that is equal for pods with equal claim specs, and the allocator; None if results cannot be shared.

        Results are of one pod if a claim is allocated or for extended resources, if a request has alternatives, which
        score node by node, or if an error on some node names the claim.
        """
        found = self.claims
        if not isinstance(found, PodClaims) or found.extended is not None or found.is_any_allocated:
            return None
        allocator = found.allocator(self._cluster.devices.tables)
        key = allocator.shared_key
        return None if key is None else (key, allocator)

    def rows(self) -> ClaimRows | Status:
        """Return the claims' results on all rows, or the status of an error; the claims must have been found."""
        cluster, claims = self._cluster, self.claims
        assert isinstance(claims, PodClaims), "pods without claims are skipped"  # noqa: S101
        stamp = cluster.journal.position, cluster.nodes.size, cluster.time.seconds
        if self._rows is None or self._rows_stamp != stamp:
            self._rows_stamp = stamp
            try:
                self._rows = ClaimRows(claims, cluster, self._timeout)
            except (SelectorError, AllocationError) as error:
                self._rows = Status(Code.ERROR, (str(error),))
        return self._rows


class DynamicResources(
    PerPod,
    RetryControl,
    FilterPlugin["ClaimRows"],
    ScorePlugin[Scores],
    Incremental["ClaimRows | Scores"],
    PreEnqueuePlugin,
    PostFilterPlugin,
    PodGroupPostFilterPlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """The DynamicResources plugin: filters and scores nodes by a pod's resource claims, and allocates devices.

    Args:
        binding_timeout: Time for devices to meet their binding conditions. Units: seconds.
        reports_no_deallocation: Whether the message of a pod that does not fit states why no claim was deallocated.
        frees_for_constrained: Whether claims are deallocated for rejected pod groups with scheduling constraints.
    """

    name = NAME
    filter_reads = Aspect.LABELS | Aspect.CAPACITY
    normalizes = True
    scores_after_pre_filter = True
    has_own_results = staticmethod(has_claims)

    def __init__(
        self,
        binding_timeout: float = BINDING_TIMEOUT,
        *,
        reports_no_deallocation: bool = False,
        frees_for_constrained: bool = True,
    ) -> None:
        self._binding_timeout, self._frees_for_constrained = binding_timeout, frees_for_constrained
        self._without_claims = NOTHING_TO_DEALLOCATE if reports_no_deallocation else unschedulable()
        self._no_help = NO_HELP if reports_no_deallocation else unschedulable()
        self._latest: PreparedPod | None = None
        """The pod of the current cycle, with its claims and results."""
        self._waited = WaitedClaims()
        self.class_filter = SharedFilter(self._shared)
        self.class_score = AlwaysZeroScore(NAME)

    def _prepared(self, pod: Pod, cluster: Cluster) -> PreparedPod:
        """Return a pod's claims and cached results, which the extension points of a cycle share."""
        prepared = self._latest
        if prepared is None or not prepared.is_current(pod, cluster):
            prepared = self._latest = PreparedPod(pod, cluster, self._binding_timeout)
        return prepared

    def _claims_of(self, pod: Pod, cluster: Cluster) -> PodClaims | Status | None:
        """Return a pod's claims, None for a pod without claims, or the PreFilter status that rejects the pod."""
        return self._prepared(pod, cluster).claims if has_claims(pod, cluster) else None

    def shared_key(self, pod: Pod, cluster: Cluster) -> Hashable | None:
        """Return the key that is equal for pods with equal claim specs; None if the pod's results cannot be shared."""
        shared = self._shared(pod, cluster)
        return None if shared is None else shared[0]

    def _shared(self, pod: Pod, cluster: Cluster) -> tuple[bytes, Allocator] | None:
        return self._prepared(pod, cluster).shared if pod.spec.resource_claims else None

    def events(self) -> Sequence[Hint]:
        """Return the queueing hints for pods that the plugin rejected or gated."""
        return hints(self._waited)

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Gate a pod until all its claims exist; then compile the selectors of the claims."""
        if not pod.spec.resource_claims:
            return None
        _reservation()
        if (obstacle := self._waited.obstacle(pod, cluster.resource_claims)) is not None:
            return obstacle
        claims = stated_claims(pod, cluster.resource_claims)
        if isinstance(claims, Status):
            return claims
        compile_claims([one for one in claims if one.status.allocation is None], cluster.devices.tables)
        return None

    def puts_off(self, pod: Pod, cluster: Cluster) -> bool:
        """Return whether one of the pod's claims is being allocated for another pod, which delays the attempt."""
        known = cluster.resource_claims
        if not pod.spec.resource_claims or not known.in_flight:
            return False
        claims = stated_claims(pod, known)
        return not isinstance(claims, Status) and any(
            known.pending_allocation(claim.metadata.uid) is not None for claim in claims
        )

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[ClaimRows]:
        """Find the pod's claims and evaluate them on all rows."""
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims):
            return SKIP if found is None else found
        return self._prepared(pod, cluster).rows()

    def filter(self, state: ClaimRows, rows: Rows) -> Codes:
        """Reject rows on which the claims cannot be allocated or used."""
        return state.codes[rows]

    def reason(self, state: ClaimRows, code: int) -> Status:
        """Return the status that a reason code stands for."""
        return state.reason(code)

    def stamp(self, cluster: Cluster) -> Hashable:
        """Return a value that changes with the extended resources that device classes provide."""
        return cluster.devices.mapped_resources.stamp

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Scores:
        """Return the scores of all rows; 0 for a pod without claims."""
        rows = self._prepared(pod, cluster).rows() if isinstance(self._claims_of(pod, cluster), PodClaims) else None
        return np.zeros(cluster.nodes.size, np.int64) if rows is None or isinstance(rows, Status) else rows.scores

    def score(self, state: Scores, rows: Rows) -> Scores:
        """Return the scores of rows: an earlier alternative of a request gives a higher score."""
        return state[rows]

    def normalize(self, state: Scores, scores: Scores, feasible: Mask) -> Scores | None:  # noqa: ARG002 - protocol
        """Scale scores so that the highest is 100."""
        return default_normalize(scores, feasible, reverse=False) if np.count_nonzero(scores) else None

    def stays_in_range(self, state: Scores) -> bool:  # noqa: ARG002 - the base's signature
        """Return True, because the scores are sums of scores of alternatives, which are never negative."""
        return True

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Return the deallocation of an allocated claim because of which nodes are infeasible for the pod."""
        if not failed.pre_filtered(self.name):
            return PostFilterResult(NO_STATE)
        found = self._claims_of(pod, failed.cluster)
        if not isinstance(found, PodClaims):
            return PostFilterResult(self._without_claims)
        release = self._release(pod, found, failed, failed.rng.choice)
        if release is None:
            return PostFilterResult(self._no_help)
        return PostFilterResult(release.status, cleanups=(release.request,))

    def _release(self, pod: Pod, found: PodClaims, failed: FailedDecision, choose: Choose) -> ClaimRelease | None:
        """Return the release of an allocated claim because of which nodes reject the pod, or of its special claim."""
        rows = self._prepared(pod, failed.cluster).rows()
        claims = [] if isinstance(rows, Status) else rows.returnable(failed, pod.metadata.uid)
        if claims:
            claim, known = choose(claims), failed.cluster.resource_claims
            free = partial(claim_writes.deallocate, known=known)
            return ClaimRelease(DEALLOCATED, claim, claim_writes.released(pod, claim, free))
        extended = found.extended
        if extended is None or extended.claim.metadata.name == IN_MEMORY:
            return None
        delete = claim_writes.released(pod, extended.claim, claim_writes.delete_claim)
        return ClaimRelease(DELETED, extended.claim, delete)

    def note_member(self, pod: Pod, failed: FailedDecision, state: CycleState) -> None:
        """Store which claims reject a member of a pod group, and which claim is released if the group is rejected."""
        cluster = failed.cluster
        if not failed.pre_filtered(self.name) or not (cluster.resource_claims.of_groups or has_claims(pod, cluster)):
            return
        noted: dict[str, NotedMember] = state.get(self.name, {})
        state.write(self.name, noted)
        found, rows = self._claims_of(pod, cluster), None
        if isinstance(found, PodClaims):
            rows = self._prepared(pod, cluster).rows()
        rejecting = rows.rejecting(failed) if isinstance(rows, ClaimRows) else ()
        release = self._release(pod, found, failed, itemgetter(0)) if isinstance(found, PodClaims) else None
        noted[pod_id(pod)] = NotedMember(rejecting, release)

    def pod_group_post_filter(self, rejected: RejectedGroup) -> PodGroupPostFilterResult:
        """Return the release of claims of members and of the group, with kube-scheduler's reason."""
        if not self._frees_for(rejected.group):
            return GROUP_SKIPPED
        noted: dict[str, NotedMember] = rejected.state.get(self.name, {})
        releases = [one.release for one in noted.values() if one.release is not None]
        of_group = None
        if rejected.cluster.resource_claims.of_groups and len(releases) < len(noted):
            of_group = release_of_group(rejected, noted.values())
        if isinstance(of_group, Status):
            return PodGroupPostFilterResult(of_group)
        status = GROUP_DONE if of_group is None else of_group.status
        requests = {one.claim.metadata.uid: one.request for one in (*releases, of_group) if one is not None}
        return PodGroupPostFilterResult(status, cleanups=tuple(requests.values()))

    def _frees_for(self, group: PodGroup) -> bool:
        return self._frees_for_constrained or group.spec.scheduling_constraints is None

    def reserve(self, assumed: AssumedPod) -> Status | None:
        """Allocate the pod's claims on its node, and record that they are in flight."""
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
        return ClaimTurns()

    def unreserve(self, assumed: AssumedPod) -> UndoClaims | None:
        """Release the claims that Reserve allocated; return the requests that undo what PreBind wrote."""
        held: ClaimReservation | None = assumed.state.get(self.name)
        if held is None:
            return None
        assumed.state.delete(self.name)
        return held.undo(self._turns)

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> PreFlight:
        """Return whether PreBind has claims to write; it allows parallel calls of other plugins."""
        return PreFlight(works=self.name in assumed.state, parallel=True)

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Write the allocations of the claims, and wait until devices meet their binding conditions."""
        held: ClaimReservation = assumed.state.read(self.name)
        problem = await held.pre_bind(handle, self._turns)
        return Status(Code.ERROR, (problem,)) if problem else None

    def devices_on(self, pod: Pod, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, AllocationResult]]:
        """Return the claims of a pod that fits a node, each with its existing or possible allocation on the node."""
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims):
            return []
        return devices_on(found, node, cluster)

    def refusals_on(self, pod: Pod, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, Refusals]]:
        """Return for each request of the pod's claims why the devices of a node do not fit."""
        found = self._claims_of(pod, cluster)
        if not isinstance(found, PodClaims):
            return []
        return refusals_on(found, node, cluster)


@cache
def _reservation() -> Callable[[PodClaims, Pod, str, Cluster, float], ClaimReservation | Status]:
    """Import the modules that reserve claims, at the first cycle with claims instead of at the start."""
    return reservation


Shared = Callable[[Pod, Cluster], "tuple[bytes, Allocator] | None"]
"""Function that returns the key which pods with equal claim specs share, and the allocator; None if not shared."""


class SharedRows:
    """The results on all rows that pods with equal claim specs share, and which rows changed since the last call."""

    def __init__(self, allocator: Allocator, nodes: NodeTable) -> None:
        self._allocator, self._nodes = allocator, nodes
        self._stamp = allocator.answers().stamp
        self._size = nodes.size

    def codes(self, rows: Rows) -> Codes:
        """Return the reason codes on rows. Shapes: (R,)."""
        return self._allocator.answers().on_rows(self._nodes.size)[rows].astype(np.int32)

    def changed(self) -> RowNumbers:
        """Return the rows whose results may have changed since the last call."""
        answers, size = self._allocator.answers(), self._nodes.size
        before, self._stamp = self._stamp, answers.stamp
        grown, self._size = size != self._size, size
        if before == answers.stamp and not grown:
            return NO_ROWS
        rows = answers.rows_since(before)
        if rows is None or grown:
            return np.arange(size)
        return np.array(rows, np.int64)


class SharedFilter(FilterPlugin[SharedRows], Incremental[SharedRows]):
    """The filter by resource claims, for pods that share results with pods with equal claim specs."""

    name = NAME
    follows_changes = True

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> SharedRows | Nothing:
        """Return the results that the pod shares; SKIP for a pod whose results cannot be shared."""
        shared = self._shared(pod, cluster)
        return SKIP if shared is None else SharedRows(shared[1], cluster.nodes)

    def filter(self, state: SharedRows, rows: Rows) -> Codes:
        """Reject rows on which the claims cannot be allocated."""
        return state.codes(rows)

    def affected_rows(self, state: SharedRows, rows: RowNumbers) -> RowNumbers:
        """Return the changed rows and the rows whose results may have changed since the last call."""
        changed = state.changed()
        return np.concatenate((rows, changed)) if changed.size else rows

    def reason(self, state: SharedRows, code: int) -> Status:  # noqa: ARG002 - reasons are equal for all states
        """Return the status that a reason code stands for."""
        if code == AllocationAnswer.NO:
            return NO_DEVICES
        return INVALID_POOLS if code == AllocationAnswer.INVALID_POOLS else _OF_ONE_POD


def dynamic_resources(
    given: DynamicResourcesArguments, *, reports_no_deallocation: bool, frees_for_constrained: bool
) -> DynamicResources:
    """Create DynamicResources; a step limit replaces the argument `filterTimeout`."""
    timeout = (nanoseconds(given.binding_timeout) or 0) / SECOND
    return DynamicResources(
        timeout, reports_no_deallocation=reports_no_deallocation, frees_for_constrained=frees_for_constrained
    )
