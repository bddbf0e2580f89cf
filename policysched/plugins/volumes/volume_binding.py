"""VolumeBinding: rejects nodes that cannot have the pod's volumes, and binds volumes to waiting claims.

At Reserve, volumes and claims are assumed, so that no other pod takes them. At PreBind, they are written to the API
server, and the binding waits for the volume controllers (`reservation`). No node is scored, because the feature gate
StorageCapacityScoring is off by default.

Source: plugins/volumebinding/volume_binding.go, binder.go (FindPodVolumes, checkBoundClaims, findMatchingVolumes,
checkVolumeProvisions, hasEnoughCapacity), v1.36.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    AssumedPod,
    Change,
    Cluster,
    Code,
    Codes,
    FilterPlugin,
    Handle,
    Hint,
    Mask,
    Nothing,
    PerPod,
    PreBindPlugin,
    PreFlight,
    PreparedFilter,
    ReservePlugin,
    Resource,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    unresolvable,
)
from policysched.model.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from policysched.model.objects.storage import MIGRATED_PLUGINS, NO_PROVISIONER, SELECTED_NODE, class_of
from policysched.model.quantity import MAX, value
from policysched.plugins.arguments import Fault, Int64, PluginArguments
from policysched.plugins.columns import codes_where, row_count
from policysched.plugins.volumes.claims import Claims, claims_of, uses_claim, uses_volumes
from policysched.plugins.volumes.matching import Match, Matcher, smallest_first
from policysched.plugins.volumes.reservation import VolumeReservation
from policysched.plugins.volumes.volume_topology import VolumeTopology
from policysched.state.tables.nodes import NodeTable

BIND_TIMEOUT: Final = 600.0
"""Default timeout of binding volumes. Units: seconds."""
UNREACHABLE, UNBINDABLE, TOO_SMALL, GONE = 1, 2, 4, 8
REASONS: Final = {
    UNREACHABLE: "node(s) didn't match PersistentVolume's node affinity",
    UNBINDABLE: "node(s) didn't find available persistent volumes to bind",
    TOO_SMALL: "node(s) did not have enough free storage",
    GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
FAILED: Final = 16
"""First code of errors."""


class VolumeRows:
    """The results of a pod's claims on each row: reason codes, and the volumes that the pod would take.

    Each reason is one bit of a row's code, so a row can have several reasons; the codes of errors begin at FAILED.

    Shapes: N rows in use.
    """

    def __init__(self, claims: Claims, cluster: Cluster, reach: VolumeTopology) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._reach = reach
        self.codes: Codes = np.zeros(cluster.nodes.size, np.int32)
        self.errors: list[str] = []
        self.matches: list[Match] = []
        self.provisions: list[tuple[PersistentVolumeClaim, Mask]] = []
        """The claims with the rows where a volume would be provisioned."""
        self._everywhere = reach.everywhere
        self._allowed_of: dict[str, Mask] = {}
        self._room: dict[str, tuple[Mask, float]] = {}
        """By class, the rows left by its last claim, and the largest volume that fits all of them."""
        self._check_bound(claims)
        if claims.waiting:
            self._check_waiting(claims)

    def bindings(self, row: int) -> list[tuple[PersistentVolume, PersistentVolumeClaim]]:
        """Return the volumes that the pod would take on a row, each with its claim."""
        found = ((one.at(row), one.claim) for one in self.matches)
        return [(volume, claim) for volume, claim in found if volume is not None]

    def provisioned(self, row: int) -> list[PersistentVolumeClaim]:
        """Return the claims for which a volume would be provisioned on a row."""
        return [claim for claim, rows in self.provisions if rows[row]]

    def _check_bound(self, claims: Claims) -> None:
        """Evaluate the bound volumes; the first volume that rejects a row is its reason."""
        asked = self._everywhere
        for name in dict.fromkeys(claim.spec.volume_name for claim in claims.bound):
            volume = self._storage.volumes.get(name)
            if volume is None:
                self._object(asked, GONE)
                break
            reached, unclear, why = self._reach.of(volume)
            if unclear is not None:
                self._fail(asked & unclear, why)
                asked = asked & ~unclear
            self._object(asked & ~reached, UNREACHABLE)
            asked = asked & reached

    def _check_waiting(self, claims: Claims) -> None:
        asked = self.codes < FAILED if self.errors else self._everywhere
        open_claims = [claim for claim in claims.waiting if SELECTED_NODE not in claim.metadata.annotations]
        selected: list[PersistentVolumeClaim] = []
        if len(open_claims) < len(claims.waiting):
            selected = [one for one in claims.waiting if SELECTED_NODE in one.metadata.annotations]
            selected = list({claim.key: claim for claim in selected}.values())
            asked = self._on_selected(selected, asked)
        unmatched = self._match(smallest_first(open_claims), asked)
        if unmatched is None:
            return
        for claim, rows in [*((claim, self._everywhere) for claim in selected), *unmatched]:
            asked = self._provision(claim, asked if rows is self._everywhere else asked & rows, asked)

    def _on_selected(self, claims: list[PersistentVolumeClaim], asked: Mask) -> Mask:
        """Reject the rows that are not the selected nodes of claims; return the other rows."""
        names = self._cluster.nodes.name.data[: self.codes.size]
        for node in dict.fromkeys(claim.metadata.annotations[SELECTED_NODE] for claim in claims):
            here = names == self._cluster.strings.find(node)
            self._object(asked & ~here, UNBINDABLE)
            asked = asked & here
            if not np.count_nonzero(asked):
                break
        return asked

    def _match(
        self, claims: list[PersistentVolumeClaim], asked: Mask
    ) -> list[tuple[PersistentVolumeClaim, Mask]] | None:
        """Match claims with existing volumes; return the claims without a volume, with their rows; None after an error.

        A claim without a volume on any row is returned once, even if several volumes of the pod name it.
        """
        unmatched = []
        left_over: set[str] = set()
        matcher = Matcher(self._cluster, self._reach, len(claims))
        for claim in claims:
            if claim.key in left_over:
                continue
            one = matcher.match(claim)
            if isinstance(one, str):
                self._fail(asked, one)
                return None
            if one is None:
                left_over.add(claim.key)
                if self._everywhere.size:
                    unmatched.append((claim, self._everywhere))
                continue
            self.matches.append(one)
            left = one.open
            if np.count_nonzero(left):
                unmatched.append((claim, left))
        return unmatched

    def _provision(self, claim: PersistentVolumeClaim, needed: Mask, asked: Mask) -> Mask:
        """Evaluate whether a volume can be provisioned for a claim; return the rows that remain.

        Cost: O(nodes), unless the rows are those of the previous claim of the class and all have room.
        """
        name = class_of(claim)
        if needed is asked and self._has_known_room(claim, name, asked):
            self.provisions.append((claim, asked))
            return asked
        if not np.count_nonzero(needed):
            return asked
        of_class = self._storage.classes.get(name)
        if not name or of_class is None:
            text = f'failed to find storage class "{name}"' if name else f'no class for claim "{claim.key}"'
            self._fail(needed, text)
            return asked & ~needed
        if of_class.provisioner in ("", NO_PROVISIONER):
            self._object(needed, UNBINDABLE)
            return asked & ~needed
        if name not in self._allowed_of:
            self._allowed_of[name] = self._reach.allowed(of_class)
        allowed, enough = self._allowed_of[name], self._enough(claim, of_class)
        same = needed is asked
        short = needed & ~(allowed & enough)
        if np.count_nonzero(short):
            self._object(needed & ~allowed, UNBINDABLE)
            self._object(short & allowed, TOO_SMALL)
            needed, asked = needed & ~short, asked & ~short
        if same or np.array_equal(needed, asked):
            needed = asked
            self._note_room(of_class, asked)
        self.provisions.append((claim, needed))
        return asked

    def _has_known_room(self, claim: PersistentVolumeClaim, name: str, rows: Mask) -> bool:
        """Return whether the previous claim of the class left these rows, and all have room for this claim."""
        room = self._room.get(name)
        if room is None or room[0] is not rows:
            return False
        amount = claim.spec.resources.requests.get("storage")
        return amount is None or value(amount) <= room[1]

    def _note_room(self, of_class: StorageClass, rows: Mask) -> None:
        """Store the rows that a claim left, and the largest volume of the class that fits all of them."""
        if not np.count_nonzero(rows):
            return
        least = math.inf
        if self._has_capacities(of_class):
            least = int(self._reach.largest_capacity(of_class.metadata.name)[rows].min(initial=MAX))
        self._room[of_class.metadata.name] = rows, least

    def _has_capacities(self, of_class: StorageClass) -> bool:
        driver = self._storage.csi_drivers.get(of_class.provisioner)
        return driver is not None and bool(driver.spec.storage_capacity)

    def _enough(self, claim: PersistentVolumeClaim, of_class: StorageClass) -> Mask:
        """Return the rows where the driver has room for a claim."""
        amount = claim.spec.resources.requests.get("storage")
        if amount is None or not self._has_capacities(of_class):
            return self._everywhere
        enough: Mask = self._reach.largest_capacity(of_class.metadata.name) >= value(amount)
        return enough

    def _object(self, rows: Mask, reason: int) -> None:
        if np.count_nonzero(rows):
            self.codes |= codes_where(rows, reason)

    def _fail(self, rows: Mask, text: str) -> None:
        self.codes[rows] = FAILED + len(self.errors)
        self.errors.append(text)


def _class_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = change.old, change.new
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return True
    return old.allowed_topologies != new.allowed_topologies


def _migration_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = change.old, change.new
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return True
    return _migrated(old) != _migrated(new)


def _migrated(node: CSINode) -> str:
    return node.metadata.annotations.get(MIGRATED_PLUGINS, "")


def _driver_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = change.old, change.new
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return True
    named = any(one.csi is not None and one.csi.driver == new.metadata.name for one in pod.spec.volumes)
    return named and bool(old.spec.storage_capacity) and not new.spec.storage_capacity


def _capacity_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = change.old, change.new
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return True
    before, after = _limit(old), _limit(new)
    return after is not None and (before is None or after > before)


def _limit(capacity: CSIStorageCapacity) -> int | None:
    amount = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if amount is None else value(amount)


class VolumeBinding(PerPod, FilterPlugin[VolumeRows], ScorePlugin[NodeTable], ReservePlugin, PreBindPlugin):
    """The VolumeBinding plugin.

    Args:
        bind_timeout: longest wait of a binding for volumes. Units: seconds.
    """

    name = "VolumeBinding"
    filter_reads = Aspect.LABELS
    scores_alone = True
    has_own_results = staticmethod(uses_volumes)

    hints = (
        Hint(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE, _class_helps),
        Hint(Resource.CLAIM, Action.ADD | Action.UPDATE, uses_claim),
        Hint(Resource.VOLUME, Action.ADD | Action.UPDATE),
        Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        Hint(Resource.CSI_NODE, Action.ADD | Action.UPDATE, _migration_helps),
        Hint(Resource.CSI_DRIVER, Action.UPDATE, _driver_helps),
        Hint(Resource.STORAGE_CAPACITY, Action.ADD | Action.UPDATE, _capacity_helps),
    )

    def __init__(self, bind_timeout: float = BIND_TIMEOUT) -> None:
        self._bind_timeout = bind_timeout
        self._reach: VolumeTopology | None = None

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[VolumeRows]:
        """Evaluate the pod's claims on every row; skip pods without claims."""
        claims = claims_of(pod, cluster.storage)
        if claims is None:
            return SKIP
        cluster.attachments.refresh()
        return self._rows(claims, cluster) if isinstance(claims, Claims) else claims

    def filter(self, state: VolumeRows, rows: Rows) -> Codes:
        """Return the codes of rows."""
        return state.codes[rows]

    def reason(self, state: VolumeRows, code: int) -> Status:
        """Return the status with all reasons of a row."""
        if code >= FAILED:
            return Status(Code.ERROR, (state.errors[code - FAILED],))
        return unresolvable(*(text for bit, text in REASONS.items() if code & bit))

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Nothing:  # noqa: ARG002 - the base's signature
        """Skip every pod: only the feature StorageCapacityScoring scores."""
        return SKIP

    def score(self, state: NodeTable, rows: Rows) -> Scores:
        """Return zeros."""
        return np.zeros(row_count(state, rows), np.int64)

    def reserve(self, assumed: AssumedPod) -> Status | None:
        """Assume the volumes and claims that the pod takes on its node, if a claim is unbound."""
        pod, cluster = assumed.pod, assumed.cluster
        claims = claims_of(pod, cluster.storage)
        if not isinstance(claims, Claims):
            return claims
        if not claims.waiting:
            return None
        cluster.attachments.refresh()
        found, row = self._rows(claims, cluster), cluster.nodes.row_of[assumed.node]
        made = VolumeReservation(pod, assumed.node, cluster, self._bind_timeout)
        taken = made.assume(found.bindings(row), found.provisioned(row))
        if isinstance(taken, Status):
            return taken
        assumed.state.write(self.name, taken)
        return None

    def unreserve(self, assumed: AssumedPod) -> None:
        """Restore the assumed volumes and claims."""
        held: VolumeReservation | None = assumed.state.get(self.name)
        if held is not None:
            assumed.state.delete(self.name)
            held.undo()

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> PreFlight:
        """Return whether volumes are to be bound; other plugins may run in parallel."""
        return PreFlight(works=self.name in assumed.state, parallel=True)

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Write the assumed objects to the API server, and wait for the volume controllers."""
        held: VolumeReservation = assumed.state.read(self.name)
        problem = await held.pre_bind(handle)
        return Status(Code.ERROR, (problem,)) if problem else None

    def _rows(self, claims: Claims, cluster: Cluster) -> VolumeRows:
        """Evaluate every row, with the cached nodes that volumes reach."""
        if self._reach is None or not self._reach.is_in(cluster):
            self._reach = VolumeTopology(cluster)
        self._reach.refresh()
        return VolumeRows(claims, cluster, self._reach)


class VolumeBindingArguments(PluginArguments, frozen=True):
    """The arguments of VolumeBinding."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[dict[str, int], ...] | None = None

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields, each with its fault."""
        if self.bind_timeout_seconds < 0:
            yield "bindTimeoutSeconds", f"{self.bind_timeout_seconds} is less than 0"
        if self.shape is not None:
            yield "shape", "is not supported: it needs the feature gate StorageCapacityScoring, which is off"


def volume_binding(given: VolumeBindingArguments) -> VolumeBinding:
    """Create VolumeBinding."""
    return VolumeBinding(float(given.bind_timeout_seconds))
