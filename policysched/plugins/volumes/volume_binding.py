"""VolumeBinding: rejects nodes that cannot have the pod's volumes, and binds volumes to unbound claims.

`volume_rows` evaluates the claims on all nodes. At Reserve, volumes and claims are assumed, so that no other pod takes
them. At PreBind, they are written to the API server, and the binding waits for the volume controllers (`reservation`).
Only releases with the feature gate StorageCapacityScoring score nodes (`capacity_score`).

Source: plugins/volumebinding/volume_binding.go, pkg/scheduler/apis/config/v1/defaults.go, v1.36 to v1.38.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from msgspec.structs import force_setattr

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
from policysched.framework.partial_plugins import AlwaysZeroScore
from policysched.model.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Pod,
    StorageClass,
)
from policysched.model.objects.storage import MIGRATED_PLUGINS
from policysched.model.quantity import value
from policysched.plugins.arguments import Fault, Int64, PluginArguments
from policysched.plugins.bases import ScoresInRange
from policysched.plugins.curves import FULL, HIGHEST_POINT, Curve, ShapePoint, curve_of, shape_faults
from policysched.plugins.volumes.capacities import Measure, volume_limit
from policysched.plugins.volumes.claims import Claims, claims_of, uses_claim, uses_volumes
from policysched.plugins.volumes.reservation import VolumeReservation
from policysched.plugins.volumes.volume_rows import FAILED, REASONS, VolumeRows
from policysched.plugins.volumes.volume_topology import VolumeTopology

BIND_TIMEOUT: Final = 600.0
"""Default time limit for binding volumes. Units: seconds."""
DEFAULT_SHAPE: Final = (ShapePoint(utilization=0, score=HIGHEST_POINT), ShapePoint(utilization=FULL, score=0))


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


def _capacity_helps(measure: Measure, pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - as above
    old, new = change.old, change.new
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return True
    before, after = volume_limit(old, measure), volume_limit(new, measure)
    return after is not None and (before is None or after > before)


class VolumeBinding(ScoresInRange, PerPod, FilterPlugin[VolumeRows], ScorePlugin[Scores], ReservePlugin, PreBindPlugin):
    """The VolumeBinding plugin: filters nodes by the pod's claims, and binds volumes to unbound claims.

    Args:
        bind_timeout: longest wait of a binding for volumes. Units: seconds.
        curve: The score by utilization of the storage; None for no scores.
        measure: Measures the sizes that are compared with the storage that drivers can provision.
    """

    name = "VolumeBinding"
    filter_reads = Aspect.LABELS
    scores_alone = True
    has_own_results = staticmethod(uses_volumes)

    hints: Sequence[Hint] = (
        Hint(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE, _class_helps),
        Hint(Resource.CLAIM, Action.ADD | Action.UPDATE, uses_claim),
        Hint(Resource.VOLUME, Action.ADD | Action.UPDATE),
        Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        Hint(Resource.CSI_NODE, Action.ADD | Action.UPDATE, _migration_helps),
        Hint(Resource.CSI_DRIVER, Action.UPDATE, _driver_helps),
    )

    def __init__(
        self, bind_timeout: float = BIND_TIMEOUT, curve: Curve | None = None, *, measure: Measure = value
    ) -> None:
        self._bind_timeout = bind_timeout
        self._curve, self._measure = curve, measure
        changed_capacity = Hint(
            Resource.STORAGE_CAPACITY, Action.ADD | Action.UPDATE, partial(_capacity_helps, measure)
        )
        self.hints = (*self.hints, changed_capacity)
        self._reach: VolumeTopology | None = None
        self._latest: tuple[Pod, VolumeRows] | None = None
        """The pod that was filtered last and is not scored yet, with its results."""
        if curve is not None:
            self.class_score = AlwaysZeroScore(self.name)
            self.scores_after_pre_filter = self.scores_after_filter = True

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[VolumeRows]:
        """Return the results of the pod's claims on every node; SKIP for pods without claims."""
        claims = claims_of(pod, cluster.storage)
        if not isinstance(claims, Claims):
            return SKIP if claims is None else claims
        found = self._rows(claims, cluster)
        if self._curve is not None:
            self._latest = pod, found
        return found

    def filter(self, state: VolumeRows, rows: Rows) -> Codes:
        """Return for each node the reason code of the pod's claims; 0 if they fit."""
        return state.codes[rows]

    def reason(self, state: VolumeRows, code: int) -> Status:
        """Return the rejection status that a reason code of the filter stands for, with all reasons."""
        if code >= FAILED:
            return Status(Code.ERROR, (state.errors[code - FAILED],))
        return unresolvable(*(text for bit, text in REASONS.items() if code & bit))

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Scores | Nothing:
        """Return the scores of all nodes by utilization of storage; 0 for pods without claims."""
        if self._curve is None:
            return SKIP
        latest, self._latest = self._latest, None
        if latest is not None and latest[0] is pod:
            return latest[1].scores(self._curve)
        claims = claims_of(pod, cluster.storage)
        found = self._rows(claims, cluster) if isinstance(claims, Claims) else None
        return np.zeros(cluster.nodes.size, np.int64) if found is None else found.scores(self._curve)

    def score(self, state: Scores, rows: Rows) -> Scores:
        """Return the scores of nodes by utilization of storage."""
        return state[rows]

    def reserve(self, assumed: AssumedPod) -> Status | None:
        """Assume the volumes and claims that the pod uses on its node, if a claim is not bound."""
        pod, cluster = assumed.pod, assumed.cluster
        claims = claims_of(pod, cluster.storage)
        if not isinstance(claims, Claims):
            return claims
        if not claims.waiting:
            return None
        found, row = self._rows(claims, cluster), cluster.nodes.row_of[assumed.node]
        made = VolumeReservation(pod, assumed.node, cluster, self._bind_timeout)
        taken = made.assume(found.bindings(row), found.provisioned(row))
        if isinstance(taken, Status):
            return taken
        assumed.state.write(self.name, taken)
        return None

    def unreserve(self, assumed: AssumedPod) -> None:
        """Remove the assumed versions of volumes and claims."""
        held: VolumeReservation | None = assumed.state.get(self.name)
        if held is not None:
            assumed.state.delete(self.name)
            held.undo()

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> PreFlight:
        """Return whether PreBind has volumes to bind; it allows parallel calls of other plugins."""
        return PreFlight(works=self.name in assumed.state, parallel=True)

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Write the assumed volumes and claims to the API server, and wait until the volumes are bound."""
        held: VolumeReservation = assumed.state.read(self.name)
        problem = await held.pre_bind(handle)
        return Status(Code.ERROR, (problem,)) if problem else None

    def _rows(self, claims: Claims, cluster: Cluster) -> VolumeRows:
        """Return the results of the pod's claims on every node; which nodes can reach a volume is cached."""
        cluster.attachments.refresh()
        if self._reach is None or not self._reach.is_in(cluster):
            self._reach = VolumeTopology(cluster, measure=self._measure)
        self._reach.refresh()
        return VolumeRows(claims, cluster, self._reach)


class VolumeBindingArguments(PluginArguments, frozen=True):
    """The arguments of VolumeBinding in releases without scores."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[ShapePoint, ...] | None = None

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the arguments, each with the reason."""
        if self.bind_timeout_seconds < 0:
            yield "bindTimeoutSeconds", f"{self.bind_timeout_seconds} is less than 0"
        yield from self._shape_faults()

    def _shape_faults(self) -> Iterator[Fault]:
        if self.shape is not None:
            yield "shape", "needs Kubernetes 1.37 or later"


class ScoringArguments(VolumeBindingArguments, frozen=True):
    """The arguments of VolumeBinding in releases with scores."""

    def __post_init__(self) -> None:
        """Set the default score curve: a lower utilization of the storage gives a higher score."""
        force_setattr(self, "shape", self.shape or DEFAULT_SHAPE)

    def _shape_faults(self) -> Iterator[Fault]:
        return shape_faults(self.shape or ())


def volume_binding(given: VolumeBindingArguments, *, measure: Measure = value) -> VolumeBinding:
    """Create VolumeBinding; the plugin scores only if the arguments have a score curve."""
    curve = None if given.shape is None else curve_of(given.shape)
    return VolumeBinding(float(given.bind_timeout_seconds), curve, measure=measure)
