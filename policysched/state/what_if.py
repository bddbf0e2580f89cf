"""What-if: one row as it would be with some of its pods taken away and others added; the cluster stays as it is.

Preemption asks so: whether a pod fits a node once these pods are gone, pod by pod. Every answer costs what the pods at
hand cost, however many nodes, placed pods and pod classes there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from policysched.model.objects import Pod
from policysched.model.quantity import wrap
from policysched.state.cluster import Cluster
from policysched.state.placed.counters import WIDEST, PodCounter
from policysched.state.placed.pods import PlacedPod, measure, pod_id
from policysched.state.tables.amounts import HostPort


class ChangedRow:
    """A row and the pods that it would lose and gain. Read it before the cluster changes.

    Args:
        cluster: The cluster.
        row: The row of a node.
    """

    __slots__ = ("_added", "_amounts", "_removed", "_sums", "cluster", "history", "pods_count", "ports", "row")

    def __init__(self, cluster: Cluster, row: int) -> None:
        self.cluster, self.row = cluster, row
        self.history: list[tuple[PlacedPod, int]] = []
        """Every pod added (1) or removed (-1), in order; one may be there several times."""
        self.pods_count: int = cluster.nodes.pods_count.data.item(row)
        """How many pods there would be."""
        self.ports: dict[HostPort, int] = {}
        """How often each host port would be used more, or less where it is below 0."""
        self._removed: dict[str, PlacedPod] = {}
        self._added: dict[str, PlacedPod] = {}
        self._amounts: dict[str, int] = {}
        self._sums: dict[Hashable, list[int]] = {}

    def remove(self, pod: Pod) -> None:
        """Take a pod away that is placed on the row or was added here.

        Raises:
            ValueError: The pod is not there.
        """
        identity = pod_id(pod)
        placed = self._added.pop(identity, None)
        if placed is None:
            placed = self.cluster.pods.by_id.get(identity)
            if placed is None or placed.row != self.row or identity in self._removed:
                raise ValueError(f"pod {pod.key} is not on the node")
            self._removed[identity] = placed
        self._note(placed, -1)

    def add(self, pod: Pod) -> None:
        """Add a pod that was taken away here, or one that is not placed anywhere.

        Raises:
            ValueError: The pod is placed already.
        """
        identity = pod_id(pod)
        placed = self._removed.pop(identity, None)
        if placed is None:
            if identity in self._added or identity in self.cluster.pods.by_id:
                raise ValueError(f"pod {pod.key} is on a node already")
            known = self.cluster.nominations.measured(pod) or measure(pod)
            placed = self._added[identity] = PlacedPod(pod, self.row, known.resources, assumed=True)
            placed.signature = self.cluster.signatures.number(known.signature_key)
        self._note(placed, 1)

    def _note(self, placed: PlacedPod, sign: int) -> None:
        self.history.append((placed, sign))
        self.pods_count += sign
        amounts = self._amounts
        for resource, amount in placed.pod_resources.amounts:
            amounts[resource] = amounts.get(resource, 0) + sign * amount
        for port in placed.pod_resources.ports:
            self.ports[port] = self.ports.get(port, 0) + sign

    @property
    def more_pods(self) -> int:
        """How many pods more there would be, below 0 for fewer."""
        return self.pods_count - int(self.cluster.nodes.pods_count.data.item(self.row))

    def requested(self, resource: str) -> int:
        """Return what the pods would request of a resource. Units: as in the cluster's columns."""
        now = self.cluster.nodes.amounts.requested_on(self.row, resource)
        return wrap(now + self._amounts.get(resource, 0))

    def pods(self) -> list[PlacedPod]:
        """List the pods that would be there; of those that come, the kind may be −1: none that is placed is like it."""
        removed = self._removed
        stay = [placed for placed in self.cluster.pods.on_row(self.row) if pod_id(placed.pod) not in removed]
        return [*stay, *self._added.values()]

    def new_pods(self) -> list[PlacedPod]:
        """List the pods that come and are of a kind that no placed pod is of."""
        return [placed for placed in self._added.values() if placed.signature < 0]

    def more(self, key: Hashable, weigh: Callable[[PlacedPod], int]) -> int:
        """Return how much more the pods would weigh together than they do, below 0 for less.

        Args:
            key: What the weights mean. A pod that comes or goes is weighed once for a key.
            weigh: The weight of a pod.
        """
        known = self._sums.get(key)
        if known is None:
            known = self._sums[key] = [0, 0]
        for placed, sign in self.history[known[1] :]:
            known[0] += sign * weigh(placed)
        known[1] = len(self.history)
        return known[0]

    def count(self, counter: PodCounter) -> int | float:
        """Return what a counter would be on the row."""
        if not counter.fractions and all(abs(counter.weight_of(placed)) <= WIDEST for placed in self.new_pods()):
            return wrap(
                counter.counts.item(self.row) + self.more(counter, lambda placed: int(counter.weight_of(placed)))
            )
        return math.fsum(counter.weight_of(placed) for placed in self.pods())
