"""A cluster that reports each change before applying it: `RecordedCluster`.

A recorder gives this cluster to the scheduler. Without recording, the scheduler uses a plain cluster, so recording has
no cost when it is off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

from policysched.app.recording.entries import ALLOCATED, ASSUMED, LEFT, RELEASED, RESTORED, SHARED, WAITING
from policysched.devices import AllocatedState
from policysched.framework import MetricAnswer, MetricKey
from policysched.model.objects import Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from policysched.model.release import Release
from policysched.state.cluster import Cluster
from policysched.state.cluster_events import Change
from policysched.state.nominated.columns import Nomination
from policysched.state.nominated.nominations import Nominations
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import PodGroups, group_key
from policysched.state.resource_claims import ResourceClaims
from policysched.state.tables.amounts import PodResources
from policysched.state.tables.metrics import Metrics
from policysched.state.volumes.storage import Assumable

T = TypeVar("T")
Report = Callable[..., None]
"""Callback for a change, with the name and the arguments of the method that makes the change."""


class OutermostChanges:
    """Calls a callback for each change, except for changes that are part of another reported change."""

    def __init__(self, report: Report) -> None:
        self._report, self._inside = report, False

    def __call__(self, act: Callable[..., T], name: str, *given: Any) -> T:
        """Report a change and apply it."""
        if self._inside:
            return act(*given)
        self._report(name, *given)
        self._inside = True
        try:
            return act(*given)
        finally:
            self._inside = False


class RecordedNominations(Nominations):
    """Nominations of a cluster that report each change to a callback before applying it."""

    __slots__ = ("_change",)

    def __init__(self, pod_resources: Callable[[Pod], PodResources], change: OutermostChanges) -> None:
        super().__init__(pod_resources)
        self._change = change

    def set(self, pod: Pod, node: str) -> None:
        """Nominate a node for a pod."""
        self._change(super().set, "nominate", pod, node)

    def update(self, pod: Pod) -> Nomination | None:
        """Update a pending pod."""
        if not pod.status.nominated_node_name and self.get(pod_id(pod)) is None:
            return super().update(pod)  # the parent's method does not call a recorded one
        return self._change(super().update, "renominate", pod)

    def discard(self, identity: str) -> Nomination | None:
        """Remove the nomination of a pod."""
        return None if self.get(identity) is None else self._change(super().discard, "denominate", identity)

    def listed(self) -> list[Nomination]:
        """Return all nominations in order."""
        return [*self._by_id.values()]


class RecordedMetrics(Metrics):
    """Metrics of a cluster that report each change to a callback before applying it."""

    def __init__(self, cluster: Cluster, change: OutermostChanges) -> None:
        super().__init__(cluster.nodes.columns, cluster.nodes, cluster.journal, cluster.time)
        self._change = change

    def take(self, answer: MetricAnswer) -> Change:
        """Apply the answer of a metrics source."""
        return self._change(super().take, "answer", answer)

    def keep(self, keys: Collection[MetricKey]) -> None:
        """Drop the answers of all metrics except the metrics in `keys`."""
        if self._samples.keys() - keys or self.problems.keys() - keys:
            self._change(super().keep, "keep", keys)

    def answers(self) -> list[MetricAnswer]:
        """Return the known answers."""
        return [MetricAnswer(key, samples, self.problems.get(key, "")) for key, samples in self._samples.items()]


class RecordedAssumable(Assumable[Any]):
    """Volumes or volume claims of a cluster that report assumed objects to a callback."""

    __slots__ = ("_change",)

    def __init__(
        self, change: OutermostChanges, key: Callable[[Any], str], watch: Callable[[Any, Any], None] | None = None
    ) -> None:
        super().__init__(key, watch)
        self._change = change

    def assume(self, obj: Any) -> None:
        """Assume an object in place of the stored object."""
        self._change(super().assume, "reserve", obj)

    def restore(self, obj: Any) -> None:
        """Undo the assumption of a volume or volume claim."""
        self._change(super().restore, "unreserve", obj)

    def assumed(self) -> list[Any]:
        """Return the assumed volumes or volume claims."""
        return [*self._assumed.values()]


class RecordedResourceClaims(ResourceClaims):
    """Resource claims of a cluster that report assumed claims and allocations in flight to a callback."""

    __slots__ = ("_change",)

    def __init__(self, allocated: AllocatedState, change: OutermostChanges, *, of_groups: bool) -> None:
        super().__init__(allocated, of_groups=of_groups)
        self._change = change

    def assume(self, claim: ResourceClaim) -> Change:
        """Assume a written claim until the watch confirms it."""
        return self._change(super().assume, ASSUMED, claim)

    def restore(self, key: str) -> Change:
        """Reset a claim to its watched state."""
        return self._change(super().restore, RESTORED, key)

    def share(self, *, begins: bool) -> None:
        """Begin or end the time in which pods of one group share allocations of resource claims."""
        if len(self):
            self._change(lambda given: super(RecordedResourceClaims, self).share(begins=given), SHARED, begins)

    def begin(self, claim: ResourceClaim) -> None:
        """Add a claim with an allocation in flight; report no change if the claim's allocation is already in flight."""
        if self.shared(claim.metadata.uid) is None:
            self._change(super().begin, ALLOCATED, claim)
        else:
            super().begin(claim)

    def end(self, uid: str, *, for_all: bool = False) -> bool:
        """End the allocation in flight of a claim; while other pods share the allocation, report no change."""
        act = partial(super().end, for_all=for_all)
        ends = uid in self._in_flight and (for_all or uid not in self._shares)
        return self._change(act, RELEASED, uid) if ends else act(uid)

    def assumed(self) -> list[ResourceClaim]:
        """Return the claims that differ from their watched state."""
        return [claim for key, claim in self._known.items() if self._stored.get(key) is not claim]

    def pending(self) -> list[ResourceClaim]:
        """Return the claims with allocations in flight."""
        return [*self._in_flight.values()]


class RecordedPodGroups(PodGroups):
    """Pod groups of a cluster that report pending members to a callback."""

    __slots__ = ("_change",)

    def __init__(self, change: OutermostChanges) -> None:
        super().__init__()
        self._change = change

    def await_pod(self, pod: Pod) -> None:
        """Add a pending pod as an unscheduled member, or replace its version."""
        if group_key(pod):
            self._change(super().await_pod, WAITING, pod)

    def remove(self, identity: str) -> None:
        """Remove a pod from its group."""
        if identity in self._group_of:
            self._change(super().remove, LEFT, identity)


class RecordedCluster(Cluster):
    """A cluster that reports each change to a callback before applying it.

    Args:
        report: Called with each change.
        release: The Kubernetes release whose rules apply to nodes and placed pods.
    """

    def __init__(self, report: Report, release: Release) -> None:
        super().__init__(release=release)
        self._change = change = OutermostChanges(report)
        if release.generic_workload:
            self.pod_groups = RecordedPodGroups(change)
        self.nominations: RecordedNominations = RecordedNominations(self.pod_resources, change)
        self.metrics: RecordedMetrics = RecordedMetrics(self, change)
        self._volumes = RecordedAssumable(change, lambda volume: volume.metadata.name, self.storage.pool.follow)
        self._claims = RecordedAssumable(change, lambda claim: claim.key)
        self.storage.volumes, self.storage.claims = self._volumes, self._claims
        self.resource_claims: RecordedResourceClaims = RecordedResourceClaims(
            self.devices.allocated, change, of_groups=release.workload_claims
        )

    def waiting_members(self) -> list[Pod]:
        """Return the pending members of all pod groups."""
        return [pod for state in self.pod_groups or () for pod in state.unscheduled.values()]

    def reserved(self) -> list[PersistentVolume | PersistentVolumeClaim]:
        """Return the volumes and claims that pods have reserved and the watch has not confirmed."""
        return [*self._volumes.assumed(), *self._claims.assumed()]

    def take(self, obj: Any) -> Change:
        """Add or update an object of any kind."""
        return self._change(super().take, "take", obj)

    def drop(self, obj: Any) -> Change:
        """Delete an object of any kind."""
        return self._change(super().drop, "drop", obj)

    def set_node(self, node: Node) -> Change:
        """Add or replace a node."""
        return self._change(super().set_node, "take", node)

    def remove_node(self, name: str) -> Change:
        """Remove a node."""
        return self._change(super().remove_node, "remove_node", name)

    def set_pod(self, pod: Pod, measured: PodResources | None = None) -> Change:
        """Add or replace a pod that has a node."""
        if measured is not None:
            return super().set_pod(pod, measured)  # `measured` is a cache of the pod, so it is not recorded
        return self._change(super().set_pod, "take", pod)

    def remove_pod(self, identity: str) -> Change:
        """Remove a pod."""
        return self._change(super().remove_pod, "remove_pod", identity)

    def assume(self, pod: Pod, row: int, measured: PodResources | None = None) -> None:
        """Assume a pod on the node with an index (row)."""

        def act(pod: Pod, row: int) -> None:
            Cluster.assume(self, pod, row, measured)

        self._change(act, "assume", pod, row)

    def forget(self, identity: str) -> Change:
        """Undo an assumption of a pod."""
        return self._change(super().forget, "forget", identity)
