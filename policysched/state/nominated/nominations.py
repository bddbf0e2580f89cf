"""Pods that wait for a node which is kept for them (nominated pods), of this scheduler and of others.

Kept apart from placed pods: they hold nothing yet, but a pod of no higher priority has to leave them their place. A
node's name may be that of a node that is gone, or is not there yet.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policysched.model.objects import Pod, PodCondition
from policysched.model.pod_requirements import pod_priority
from policysched.state.nominated.columns import NominatedColumns, Nomination, PodsByRow, SignatureKey
from policysched.state.nominated.terms import RepellingTerms
from policysched.state.placed.pods import Measured, measure, pod_id


class Nominations:
    """Nominated pods by identity and by node."""

    __slots__ = ("_by_id", "_by_node", "_columns", "generation", "terms")

    def __init__(self) -> None:
        self.generation = 0
        """How often a node began or ceased to be kept for a pod, or for one that differs in what counts."""
        self.terms = RepellingTerms()
        """Their required anti-affinity."""
        self._columns = NominatedColumns(self.terms)
        self._by_id: dict[str, Nomination] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}

    def set(self, pod: Pod, node: str) -> None:
        """Keep a node for a pod, and no other; an empty name keeps none.

        Cost: O(what the pod states); O(1) for a version that differs in nothing that decisions read.
        """
        identity = pod_id(pod)
        known = self._by_id.get(identity)
        if known is not None and known.node == node and _is_alike(known.pod, pod):
            self._replace(identity, Nomination(pod, node))
            return
        if not node:
            self.discard(identity)
            return
        measured = _measure(pod)
        repelling = self.terms.enter(pod)  # before the earlier version leaves: both may state the same
        self._take_out(identity)
        self.generation += 1
        self._by_id[identity] = one = Nomination(pod, node)
        self._columns.enter(identity, one, measured, repelling)
        self._by_node.setdefault(node, {})[identity] = pod
        self._compact()

    def update(self, pod: Pod) -> Nomination | None:
        """Take a pending pod as it is now; return the nomination that its new version took away.

        What its status says counts; while that has said nothing yet, the node stays that was kept for it here.
        """
        known = self._by_id.get(pod_id(pod))
        stated = pod.status.nominated_node_name
        if known is None:
            self.set(pod, stated)
            return None
        was = known.pod.status.nominated_node_name
        self.set(pod, stated if was or stated else known.node)
        return Nomination(known.pod, was) if was and was != stated else None

    def discard(self, identity: str) -> Nomination | None:
        """Keep no node for a pod any more; return its nomination, if it had one."""
        if identity not in self._by_id:  # as of each pod that is placed
            return None
        known = self._take_out(identity)
        if not self._by_id:
            self.terms.clear()
            self._columns = NominatedColumns(self.terms)
        return known

    def get(self, identity: str) -> Nomination | None:
        """Return a pod's nomination."""
        return self._by_id.get(identity)

    def named(self, key: str) -> Nomination | None:
        """Return the nomination of the pod of a namespace and name.

        Cost: O(nominated pods).
        """
        return next((one for one in self._by_id.values() if one.pod.key == key), None)

    def rows(self, row_of: Mapping[str, int]) -> frozenset[int]:
        """Return the rows of the nodes that are kept for some pod.

        Cost: O(nodes that are kept).
        """
        return frozenset(row_of[node] for node in self._by_node if node in row_of)

    def on_node(self, node: str) -> list[Pod]:
        """List the pods that a node is kept for."""
        return list(self._by_node.get(node, {}).values())

    def yielded_to(self, pod: Pod, row_of: Mapping[str, int]) -> PodsByRow:
        """Return the pods that a pod has to leave their place: others of equal or higher priority, by their node's row.

        Cost: O(nodes that are kept) and a few operations over all nominated pods.
        """
        if not self._by_id:
            return {}
        self._compact()
        return self._columns.yielded_to(pod_priority(pod), pod_id(pod), row_of)

    def repelling_of(self, pod: Pod) -> int | None:
        """Return the number of a nominated pod's required anti-affinity, None for any other pod."""
        known = self._by_id.get(pod_id(pod))
        return self._columns.repelling_of(pod_id(pod)) if known is not None and known.pod is pod else None

    def measured(self, pod: Pod) -> Measured | None:
        """Return what a nominated pod requests and its signature's key, None for any other pod."""
        known = self._by_id.get(pod_id(pod))
        return self._columns.measured_of(pod_id(pod)) if known is not None and known.pod is pod else None

    def __len__(self) -> int:
        return len(self._by_id)

    def _take_out(self, identity: str) -> Nomination | None:
        known = self._by_id.pop(identity, None)
        if known is not None:
            self.generation += 1
            pods = self._by_node[known.node]
            del pods[identity]
            if not pods:
                del self._by_node[known.node]
            self.terms.leave(self._columns.drop(identity))
        return known

    def _replace(self, identity: str, one: Nomination) -> None:
        """Take a version of a pod that differs in nothing that counts; it comes behind the others, as any version."""
        del self._by_id[identity]
        self._by_id[identity] = one
        pods = self._by_node[one.node]
        del pods[identity]
        pods[identity] = one.pod
        self._columns.renew(identity, one)
        self._compact()

    def _compact(self) -> None:
        if self._columns.is_sparse:
            self._columns = self._columns.compacted()


def _measure(pod: Pod) -> Measured:
    found = measure(pod)
    return Measured(found.resources, SignatureKey.of(found.signature_key))


def _is_alike(before: Pod, after: Pod) -> bool:
    """Return whether versions of a nominated pod differ in nothing that decisions about other pods read.

    That leaves annotations, what the API server counts, and what the status says of scheduling.
    """
    if before.spec != after.spec:
        return False
    old, new = before.metadata, after.metadata
    if (
        old.labels != new.labels
        or old.namespace != new.namespace
        or old.name != new.name
        or old.deletion_timestamp != new.deletion_timestamp
        or old.creation_timestamp != new.creation_timestamp
        or old.generate_name != new.generate_name
        or old.owner_references != new.owner_references
    ):
        return False
    was, now = before.status, after.status
    return was is now or (
        was.phase == now.phase
        and was.qos_class == now.qos_class
        and was.start_time == now.start_time
        and was.container_statuses == now.container_statuses
        and was.init_container_statuses == now.init_container_statuses
        and was.resources == now.resources
        and was.allocated_resources == now.allocated_resources
        and was.resource_claim_statuses == now.resource_claim_statuses
        and was.extended_resource_claim_status == now.extended_resource_claim_status
        and _conditions(was.conditions) == _conditions(now.conditions)
    )


def _conditions(conditions: Sequence[PodCondition]) -> list[PodCondition]:
    return [one for one in conditions if one.type != "PodScheduled"]
