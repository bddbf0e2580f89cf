"""VolumeBinding: a pod goes where its volumes can be, and takes those along that wait for it.

Knows claims and rows. What a pod takes is assumed at once, so that the next pod does not take it too; the API server
is told when the pod is about to be bound, and the binding waits until the volume controllers have done their part
(`reservation`). Nothing is scored: storage capacity scoring is off by default.

Source: plugins/volumebinding/volume_binding.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    AssumedPod,
    Change,
    Cluster,
    Code,
    Codes,
    Handle,
    Hint,
    Resource,
    Rows,
    Scores,
    Status,
    unresolvable,
)
from policysched.model.objects import CSIDriver, CSINode, CSIStorageCapacity, Pod, StorageClass
from policysched.model.objects.storage import MIGRATED_PLUGINS
from policysched.model.quantity import value
from policysched.plugins.arguments import Arguments, Int64, PluginArguments, converted, refusal
from policysched.plugins.helper.bases import FinalScores, OwnRowOnly
from policysched.plugins.volumes.claims import Claims, claims_of, uses_claim
from policysched.plugins.volumes.reach import Reach
from policysched.plugins.volumes.reservation import VolumeReservation
from policysched.plugins.volumes.rows import FAILED, REASONS, VolumeRows
from policysched.state.volumes.storage import has_volumes

BIND_TIMEOUT: Final = 600.0
"""Units: seconds."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What stands against each row for one pod."""

    rows: VolumeRows


class VolumeBinding(OwnRowOnly, FinalScores):
    """The plugin.

    Args:
        bind_timeout: how long a binding waits for volumes. Units: seconds.
    """

    name = "VolumeBinding"
    filter_reads = Aspect.LABELS
    score_reads = Aspect.NONE
    per_pod = staticmethod(has_volumes)

    def __init__(self, bind_timeout: float = BIND_TIMEOUT) -> None:
        self._bind_timeout = bind_timeout
        self._reach: Reach | None = None

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Sort the pod's claims and look at every row."""
        claims = claims_of(pod, cluster.storage)
        if claims is None:
            return SKIP
        cluster.attachments.refresh()
        return Verdicts(self._rows(claims, cluster)) if isinstance(claims, Claims) else claims

    def filter(self, state: Verdicts, rows: Rows) -> Codes:
        """Reject rows that something stands against."""
        return state.rows.codes[rows]

    def reason(self, state: Verdicts, code: int) -> Status:
        """Name all that stands against a row."""
        if code >= FAILED:
            return Status(Code.ERROR, (state.rows.errors[code - FAILED],))
        return unresolvable(*(text for bit, text in REASONS.items() if code & bit))

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:  # noqa: ARG002 - the protocol's signature
        """Skip every pod: where storage capacity does not score, nothing does."""
        return SKIP

    score_alone = prepare_score

    def score(self, state: Any, rows: Rows) -> Scores:
        """Refuse: no pod gets this far.

        Raises:
            RuntimeError: always, because there is no state that could be asked.
        """
        raise RuntimeError(f"{self.name} prepared no state, and was asked to score {rows} with {state!r}")

    def reserve(self, assumed: AssumedPod) -> Status | None:
        """Assume the volumes and claims that the pod takes on its node, where anything is left to bind."""
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
        assumed.state[self.name] = taken
        return None

    def unreserve(self, assumed: AssumedPod) -> None:
        """Give back what was assumed."""
        held: VolumeReservation | None = assumed.state.pop(self.name, None)
        if held is not None:
            held.undo()

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> bool:
        """Return whether volumes are to be bound."""
        return self.name in assumed.state

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Tell the API server what was assumed, and wait for the volume controllers."""
        held: VolumeReservation = assumed.state[self.name]
        problem = await held.pre_bind(handle)
        return Status(Code.ERROR, (problem,)) if problem else None

    def _rows(self, claims: Claims, cluster: Cluster) -> VolumeRows:
        """Look at every row, with what is known already of the nodes that reach volumes."""
        if self._reach is None or not self._reach.is_in(cluster):
            self._reach = Reach(cluster)
        self._reach.refresh()
        return VolumeRows(claims, cluster, self._reach)

    def events(self) -> Sequence[Hint]:
        """Classes, claims, volumes, nodes, and what CSI drivers say."""
        return (
            Hint(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE, _class_helps),
            Hint(Resource.CLAIM, Action.ADD | Action.UPDATE, uses_claim),
            Hint(Resource.VOLUME, Action.ADD | Action.UPDATE),
            Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            Hint(Resource.CSI_NODE, Action.ADD | Action.UPDATE, _migration_helps),
            Hint(Resource.CSI_DRIVER, Action.UPDATE, _driver_helps),
            Hint(Resource.STORAGE_CAPACITY, Action.ADD | Action.UPDATE, _capacity_helps),
        )


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


class VolumeBindingArguments(PluginArguments, frozen=True):
    """The arguments of VolumeBinding."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[dict[str, int], ...] | None = None


def volume_binding(arguments: Arguments) -> VolumeBinding:
    """Make VolumeBinding.

    Raises:
        UsageError: one is not valid.
    """
    plugin = "VolumeBinding"
    given = converted(plugin, arguments, VolumeBindingArguments)
    if given.bind_timeout_seconds < 0:
        raise refusal(plugin, "bindTimeoutSeconds", f"{given.bind_timeout_seconds} is below 0")
    if given.shape is not None:
        raise refusal(plugin, "shape", "scoring by storage capacity (the gate StorageCapacityScoring) is off")
    return VolumeBinding(float(given.bind_timeout_seconds))
