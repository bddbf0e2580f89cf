"""`Nominations`: the pods that have a nominated node, whichever scheduler nominated it.

Nominated pods are not placed, but the resources of their node are reserved for them against pods of equal or lower
priority. The nominated node need not exist.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from policysched.model.objects import Pod, PodCondition
from policysched.model.pod_requirements import pod_priority
from policysched.state.nominated.columns import NominatedColumns, Nomination, PodsByRow, SignatureKey
from policysched.state.nominated.terms import RepellingTerms
from policysched.state.placed.pods import Measured, measure, pod_id
from policysched.state.tables.amounts import PodResources


class Nominations:
    """The nominated pods, by identity of the pod and by name of the node.

    Args:
        pod_resources: Returns the amounts and host ports of a pod.
    """

    __slots__ = ("_by_id", "_by_node", "_columns", "_pod_resources", "stamp", "terms")

    def __init__(self, pod_resources: Callable[[Pod], PodResources]) -> None:
        self._pod_resources = pod_resources
        self.stamp = 0
        """A number that changes with each nomination, and with each change of a nominated pod that scheduling reads."""
        self.terms = RepellingTerms()
        """The required anti-affinity terms of all nominated pods."""
        self._columns = NominatedColumns(self.terms)
        self._by_id: dict[str, Nomination] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}

    def set(self, pod: Pod, node: str) -> None:
        """Set the nominated node of a pod; an empty name removes the nomination.

        Cost: O(size of the pod); O(1) for an equivalent version.
        """
        identity = pod_id(pod)
        known = self._by_id.get(identity)
        if known is not None and known.node == node and _is_alike(known.pod, pod):
            self._replace(identity, Nomination(pod, node))
            return
        if not node:
            self.discard(identity)
            return
        found = measure(pod, self._pod_resources(pod))
        measured = Measured(found.resources, SignatureKey.of(found.signature_key))
        repelling = self.terms.enter(pod)  # before the earlier version leaves: both may have equal terms
        self._take_out(identity)
        self.stamp += 1
        self._by_id[identity] = one = Nomination(pod, node)
        self._columns.enter(identity, one, measured, repelling)
        self._by_node.setdefault(node, {})[identity] = pod
        self._compact()

    def update(self, pod: Pod) -> Nomination | None:
        """Store a new version of a pending pod; return its nomination if the new version no longer has one, else None.

        The pod's status applies; as long as the status never had a nomination, a nomination of this process stays.
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
        """Remove and return a pod's nomination; None if the pod has no nomination."""
        if identity not in self._by_id:  # most placed pods
            return None
        known = self._take_out(identity)
        if not self._by_id:
            self.terms.clear()
            self._columns = NominatedColumns(self.terms)
        return known

    def get(self, identity: str) -> Nomination | None:
        """Return a pod's nomination; None if the pod has no nomination."""
        return self._by_id.get(identity)

    def named(self, key: str) -> Nomination | None:
        """Return the nomination of the pod with the key `namespace/name`; None if the pod has no nomination.

        Cost: O(nominated pods).
        """
        return next((one for one in self._by_id.values() if one.pod.key == key), None)

    def rows(self, row_of: Mapping[str, int]) -> frozenset[int]:
        """Return the rows of all existing nodes that have nominated pods.

        Cost: O(nominated nodes).
        """
        return frozenset(row_of[node] for node in self._by_node if node in row_of)

    def on_node(self, node: str) -> list[Pod]:
        """Return the pods whose nominated node is a given node."""
        return list(self._by_node.get(node, {}).values())

    def yielded_to(self, pod: Pod, row_of: Mapping[str, int]) -> PodsByRow:
        """Return, by node's row, the other nominated pods whose priority is at least that of `pod`.

        Cost: O(nominated nodes), and array operations over all nominated pods.
        """
        if not self._by_id:
            return {}
        self._compact()
        return self._columns.yielded_to(pod_priority(pod), pod_id(pod), row_of)

    def repelling_of(self, pod: Pod) -> int | None:
        """Return the number of a nominated pod's required anti-affinity in `RepellingTerms`; None for other pods."""
        known = self._by_id.get(pod_id(pod))
        return self._columns.repelling_of(pod_id(pod)) if known is not None and known.pod is pod else None

    def measured(self, pod: Pod) -> Measured | None:
        """Return a nominated pod's requests, and the key that alike pods share; None for other pods."""
        known = self._by_id.get(pod_id(pod))
        return self._columns.measured_of(pod_id(pod)) if known is not None and known.pod is pod else None

    def __len__(self) -> int:
        return len(self._by_id)

    def _take_out(self, identity: str) -> Nomination | None:
        known = self._by_id.pop(identity, None)
        if known is not None:
            self.stamp += 1
            pods = self._by_node[known.node]
            del pods[identity]
            if not pods:
                del self._by_node[known.node]
            self.terms.leave(self._columns.drop(identity))
        return known

    def _replace(self, identity: str, one: Nomination) -> None:
        """Replace a nominated pod by a version in which nothing that scheduling reads differs, as the last entry."""
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


def _is_alike(before: Pod, after: Pod) -> bool:
    """Return whether two versions of a nominated pod are equal in all fields that decisions about other pods read.

    Annotations, resource versions and the PodScheduled condition are ignored.
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
