"""`RecordedCluster`: a cluster that says each change made to it before it makes it.

Whoever records has the scheduler work on one. A cluster that nobody records is a plain one, so that recording costs
nothing where it is off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from policysched.app.recording.entries import ALLOCATED, ASSUMED, RELEASED, RESTORED
from policysched.devices import AllocatedState
from policysched.framework import MetricAnswer, MetricKey
from policysched.model.objects import Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from policysched.state.cluster import Cluster
from policysched.state.cluster_events import Change
from policysched.state.nominated.columns import Nomination
from policysched.state.nominated.nominations import Nominations
from policysched.state.placed.pods import pod_id
from policysched.state.resource_claims import ResourceClaims
from policysched.state.tables.amounts import PodResources
from policysched.state.tables.metrics import Metrics
from policysched.state.volumes.storage import Assumable

T = TypeVar("T")
Say = Callable[..., None]
"""Takes the name of a change and what it was given."""


class Outermost:
    """Says changes, but none that another one makes on its way."""

    def __init__(self, say: Say) -> None:
        self._say, self._inside = say, False

    def __call__(self, act: Callable[..., T], name: str, *given: Any) -> T:
        """Say a change and make it."""
        if self._inside:
            return act(*given)
        self._say(name, *given)
        self._inside = True
        try:
            return act(*given)
        finally:
            self._inside = False


class RecordedNominations(Nominations):
    """Nominations that say each change."""

    __slots__ = ("_change",)

    def __init__(self, change: Outermost) -> None:
        super().__init__()
        self._change = change

    def set(self, pod: Pod, node: str) -> None:
        """Keep a node for a pod."""
        self._change(super().set, "nominate", pod, node)

    def update(self, pod: Pod) -> Nomination | None:
        """Take a pending pod as it is now."""
        if not pod.status.nominated_node_name and self.get(pod_id(pod)) is None:
            return super().update(pod)  # it changes nothing
        return self._change(super().update, "renominate", pod)

    def discard(self, identity: str) -> Nomination | None:
        """Keep no node for a pod any more."""
        return None if self.get(identity) is None else self._change(super().discard, "denominate", identity)

    def listed(self) -> list[Nomination]:
        """Return all of them, in their order."""
        return [*self._by_id.values()]


class RecordedMetrics(Metrics):
    """Metrics that say each change."""

    def __init__(self, cluster: Cluster, change: Outermost) -> None:
        super().__init__(cluster.nodes.columns, cluster.nodes, cluster.journal, cluster.time)
        self._change = change

    def take(self, answer: MetricAnswer) -> Change:
        """Take what a source says of a metric."""
        return self._change(super().take, "answer", answer)

    def keep(self, keys: Collection[MetricKey]) -> None:
        """Forget the answers of all other metrics."""
        if self._samples.keys() - keys or self.problems.keys() - keys:
            self._change(super().keep, "keep", keys)

    def answers(self) -> list[MetricAnswer]:
        """Return what is known."""
        return [MetricAnswer(key, samples, self.problems.get(key, "")) for key, samples in self._samples.items()]


class RecordedAssumable(Assumable[Any]):
    """Volumes or claims that say which of them are assumed."""

    __slots__ = ("_change",)

    def __init__(
        self, change: Outermost, key: Callable[[Any], str], watch: Callable[[Any, Any], None] | None = None
    ) -> None:
        super().__init__(key, watch)
        self._change = change

    def assume(self, obj: Any) -> None:
        """Let an object stand before the stored one."""
        self._change(super().assume, "reserve", obj)

    def restore(self, obj: Any) -> None:
        """Take an assumption back."""
        self._change(super().restore, "unreserve", obj)

    def assumed(self) -> list[Any]:
        """Return what is assumed."""
        return [*self._assumed.values()]


class RecordedResourceClaims(ResourceClaims):
    """Resource claims that say what is assumed of them and which are in flight."""

    __slots__ = ("_change",)

    def __init__(self, allocated: AllocatedState, change: Outermost) -> None:
        super().__init__(allocated)
        self._change = change

    def assume(self, claim: ResourceClaim) -> Change:
        """Let what was just written stand before what the watch has brought."""
        return self._change(super().assume, ASSUMED, claim)

    def restore(self, key: str) -> Change:
        """Go by what the watch has brought of a claim."""
        return self._change(super().restore, RESTORED, key)

    def begin(self, claim: ResourceClaim) -> None:
        """Let a claim with its allocation be in flight."""
        self._change(super().begin, ALLOCATED, claim)

    def end(self, uid: str) -> bool:
        """Let a claim not be in flight any more."""
        return uid in self._in_flight and self._change(super().end, RELEASED, uid)

    def assumed(self) -> list[ResourceClaim]:
        """Return the claims that are not as the watch has brought them."""
        return [claim for key, claim in self._known.items() if self._stored.get(key) is not claim]

    def pending(self) -> list[ResourceClaim]:
        """Return the claims in flight, with what they get."""
        return [*self._in_flight.values()]


class RecordedCluster(Cluster):
    """A cluster that says each change.

    Args:
        say: Hears of it.
    """

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._change = change = Outermost(say)
        self.nominations: RecordedNominations = RecordedNominations(change)
        self.metrics: RecordedMetrics = RecordedMetrics(self, change)
        self._volumes = RecordedAssumable(change, lambda volume: volume.metadata.name, self.storage.pool.follow)
        self._claims = RecordedAssumable(change, lambda claim: claim.key)
        self.storage.volumes, self.storage.claims = self._volumes, self._claims
        self.resource_claims: RecordedResourceClaims = RecordedResourceClaims(self.allocated_devices, change)

    def reserved(self) -> list[PersistentVolume | PersistentVolumeClaim]:
        """Return the volumes and claims that pods have taken and the API server has not told of."""
        return [*self._volumes.assumed(), *self._claims.assumed()]

    def take(self, obj: Any) -> Change:
        """Take an object of any kind."""
        return self._change(super().take, "take", obj)

    def drop(self, obj: Any) -> Change:
        """Record that an object of any kind is gone."""
        return self._change(super().drop, "drop", obj)

    def set_node(self, node: Node) -> Change:
        """Add a node, or replace the one of its name."""
        return self._change(super().set_node, "take", node)

    def remove_node(self, name: str) -> Change:
        """Take a node away."""
        return self._change(super().remove_node, "remove_node", name)

    def set_pod(self, pod: Pod, measured: PodResources | None = None) -> Change:
        """Add or replace a pod that has a node."""
        if measured is not None:
            return super().set_pod(pod, measured)  # from what put it away: nothing that is recorded does
        return self._change(super().set_pod, "take", pod)

    def remove_pod(self, identity: str) -> Change:
        """Take a pod away."""
        return self._change(super().remove_pod, "remove_pod", identity)

    def assume(self, pod: Pod, row: int, measured: PodResources | None = None) -> None:
        """Count a pod on a row before its binding is known."""

        def act(pod: Pod, row: int) -> None:
            Cluster.assume(self, pod, row, measured)

        self._change(act, "assume", pod, row)

    def forget(self, identity: str) -> Change:
        """Take back an assumption."""
        return self._change(super().forget, "forget", identity)
