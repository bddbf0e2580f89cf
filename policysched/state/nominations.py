"""Pods that wait for a node which is kept for them (nominated pods), of this scheduler and of others.

Kept apart from placed pods: they hold nothing yet, but a pod of no higher priority has to leave them their place. A
node's name may be that of a node that is gone, or is not there yet.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.state.placed.pods import Measured, measure, pod_id

PodsByRow = Mapping[int, Sequence[Pod]]


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod and the node that is kept for it."""

    pod: Pod
    node: str


class Nominations:
    """Nominated pods by identity and by node."""

    __slots__ = ("_by_id", "_by_node", "_measured", "generation")

    def __init__(self) -> None:
        self.generation = 0
        """How often a node began or ceased to be kept for a pod."""
        self._measured: dict[str, Measured] = {}
        self._by_id: dict[str, Nomination] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}

    def set(self, pod: Pod, node: str) -> None:
        """Keep a node for a pod, and no other; an empty name keeps none."""
        identity = pod_id(pod)
        self.discard(identity)
        if node:
            self.generation += 1
            self._by_id[identity] = Nomination(pod, node)
            self._by_node.setdefault(node, {})[identity] = pod

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
        known = self._by_id.pop(identity, None)
        if known is not None:
            self.generation += 1
            self._measured.pop(identity, None)
            pods = self._by_node[known.node]
            del pods[identity]
            if not pods:
                del self._by_node[known.node]
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

        Cost: O(nominated pods).
        """
        priority, own = pod_priority(pod), pod_id(pod)
        found: dict[int, list[Pod]] = {}
        for identity, one in self._by_id.items():
            row = row_of.get(one.node, -1)
            if row >= 0 and identity != own and pod_priority(one.pod) >= priority:
                found.setdefault(row, []).append(one.pod)
        return found

    def measured(self, pod: Pod) -> Measured | None:
        """Return what is worked out of a nominated pod, once as long as it stays as it is; None for any other one."""
        identity = pod_id(pod)
        known = self._by_id.get(identity)
        if known is None or known.pod is not pod:
            return None
        found = self._measured.get(identity)
        if found is None:
            found = self._measured[identity] = measure(pod)
        return found

    def __len__(self) -> int:
        return len(self._by_id)
