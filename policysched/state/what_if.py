"""Simulated nodes: their resources and pod counts as if pods were added or removed; the cluster does not change.

Preemption uses it to check whether a pod fits a node without its victims. The cost depends on the added and removed
pods only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Pod
from policysched.model.quantity import wrap
from policysched.state.cluster import Cluster
from policysched.state.nominated.columns import PodsByRow, YieldedPods
from policysched.state.nominated.terms import RepellingTerms
from policysched.state.placed.counter import WIDEST, PodCounter
from policysched.state.placed.pods import Measured, PlacedPod, measure, pod_id
from policysched.state.tables.amounts import WantedPorts
from policysched.state.tables.columns import RowNumbers
from policysched.state.tables.interner import MISSING

Repelling = Callable[[RepellingTerms], Mapping[str, NDArray[np.bool_]]]


class ChangedRow:
    """A node, given by row, as if some pods were added to it or removed from it; valid until the cluster changes."""

    __slots__ = ("_added", "_added_up", "_amounts", "_known", "_removed", "_sums", "cluster", "elsewhere", "history",
                 "pods_count", "row")  # fmt: skip

    def __init__(self, cluster: Cluster, row: int) -> None:
        self.cluster, self.row = cluster, row
        self.history: list[tuple[PlacedPod, int]] = []
        """All additions (1) and removals (-1) of pods, in order; a pod may occur several times."""
        self.elsewhere: list[tuple[PlacedPod, int]] = []
        """Removals (-1) and restorations (1) of pods on other nodes; only filters with topology domains read them."""
        self.pods_count: int = cluster.nodes.pods_count.data.item(row)
        """Number of pods on the simulated node."""
        self._removed: dict[str, PlacedPod] = {}
        self._added: dict[str, PlacedPod] = {}
        self._amounts: dict[str, int] = {}
        self._added_up = 0
        """Number of entries of `history` that are already included in the requested amounts."""
        self._sums: dict[Hashable, list[int]] = {}
        self._known: dict[Hashable, int] = {}

    def remove(self, pod: Pod) -> None:
        """Remove from the simulated node a pod that is placed on the node or was added.

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
        """Add to the simulated node a pod that was removed, or that is placed on no node.

        Raises:
            ValueError: The pod is placed already.
        """
        identity = pod_id(pod)
        placed = self._removed.pop(identity, None)
        if placed is None:
            if identity in self._added or identity in self.cluster.pods.by_id:
                raise ValueError(f"pod {pod.key} is on a node already")
            known = self.cluster.nominations.measured(pod) or measure(pod, self.cluster.pod_resources(pod))
            placed = self._added[identity] = _as_placed(self.cluster, pod, self.row, known)
        self._note(placed, 1)

    def remove_elsewhere(self, pod: PlacedPod) -> None:
        """Remove, in the simulation, a pod that is placed on another node."""
        self.elsewhere.append((pod, -1))

    def restore_elsewhere(self, pod: PlacedPod) -> None:
        """Restore, in the simulation, a pod that `remove_elsewhere` removed."""
        self.elsewhere.append((pod, 1))

    def more_elsewhere(self, weigh: Callable[[PlacedPod], float]) -> int:
        """Return by how much the total weight of pods on other nodes changes; `weigh` returns the weight of a pod."""
        return sum(sign * int(weigh(placed)) for placed, sign in self.elsewhere)

    def _note(self, placed: PlacedPod, sign: int) -> None:
        self.history.append((placed, sign))
        self.pods_count += sign

    @property
    def more_pods(self) -> int:
        """By how much the number of pods on the node changes in the simulation."""
        return self.pods_count - int(self.cluster.nodes.pods_count.data.item(self.row))

    def requested(self, resource: str) -> int:
        """Return the requested amount of a resource on the simulated node. Units: as in the columns of nodes."""
        amounts = self._amounts
        for placed, sign in self.history[self._added_up :]:
            for name, amount in placed.pod_resources.amounts:
                amounts[name] = amounts.get(name, 0) + sign * amount
        self._added_up = len(self.history)
        now = self.cluster.nodes.amounts.requested_on(self.row, resource)
        return wrap(now + amounts.get(resource, 0))

    def pods(self) -> list[PlacedPod]:
        """Return the pods on the simulated node; an added pod's signature is −1 if no placed pod is alike."""
        removed = self._removed
        stay = [placed for placed in self.cluster.pods.on_row(self.row) if pod_id(placed.pod) not in removed]
        return [*stay, *self._added.values()]

    def new_pods(self) -> list[PlacedPod]:
        """Return the added pods that are like no placed pod (whose signature is new)."""
        return [placed for placed in self._added.values() if placed.signature < 0]

    def now(self, key: Hashable, work_out: Callable[[], int]) -> int:
        """Return the total weight of the pods really on the node; `work_out` computes it once for each key."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = work_out()
        return known

    def more(self, key: Hashable, weigh: Callable[[PlacedPod], int]) -> int:
        """Return by how much the total weight of the pods on the node changes in the simulation.

        Args:
            key: Identifies the weights; each added or removed pod is weighed once per key.
            weigh: Returns the weight of a pod.
        """
        known = self._sums.get(key)
        if known is None:
            known = self._sums[key] = [0, 0]
        for placed, sign in self.history[known[1] :]:
            known[0] += sign * weigh(placed)
        known[1] = len(self.history)
        return known[0]

    def count(self, counter: PodCounter) -> int | float:
        """Return the value of a pod counter (total weight of pods) on the simulated node."""
        if not counter.fractions and all(abs(counter.weight_of(placed)) <= WIDEST for placed in self.new_pods()):
            return wrap(
                counter.counts.item(self.row) + self.more(counter, lambda placed: int(counter.weight_of(placed)))
            )
        return math.fsum(counter.weight_of(placed) for placed in self.pods())


class ChangedRows:
    """Many nodes, given by row, as if pods were added or removed; valid until the cluster changes.

    It has amounts, and weights that are equal for all pods of a signature. For other values use `ChangedRow`.

    Args:
        cluster: The cluster.
        rows: The rows.
        slots: Slots of the pods on these rows that can be removed.
        of: For each pod, the index of its row in `rows`.
        reaches_others: Whether pods on other rows are removed and restored together with these pods.

    Shapes: rows (R,); slots and of (V,).
    """

    __slots__ = ("_beside", "_gone", "_known", "_of", "_pods", "_signatures", "_slots", "_sums", "_weighed",
                 "cluster", "reaches_others", "rows")  # fmt: skip

    def __init__(
        self,
        cluster: Cluster,
        rows: RowNumbers,
        slots: NDArray[np.intp],
        of: NDArray[np.intp],
        *,
        reaches_others: bool = False,
    ) -> None:
        self.cluster, self.rows, self.reaches_others = cluster, rows, reaches_others
        self._of = of
        self._slots, self._signatures = slots, cluster.pods.signatures[slots]
        self._gone: NDArray[np.bool_] = np.zeros(slots.size, np.bool_)
        self._pods: NDArray[np.int64] = np.zeros(rows.size, np.int64)
        self._sums: dict[str, NDArray[np.int64]] = {}
        self._weighed: dict[Hashable, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self._known: dict[Hashable, NDArray[np.int64]] = {}
        self._beside: tuple[PodsByRow, ChangedRows] | None = None

    def remove(self, pods: NDArray[np.intp]) -> None:
        """Remove, in the simulation, the pods with the given indexes in `slots`."""
        self._move(pods, -1)

    def restore(self, pods: NDArray[np.intp]) -> None:
        """Restore, in the simulation, removed pods with the given indexes in `slots`."""
        self._move(pods, 1)

    def more_pods(self) -> NDArray[np.int64]:
        """Return by how much the number of pods on each node changes in the simulation.

        Shapes: (R,).
        """
        return self._pods

    def more(self, resource: str) -> NDArray[np.int64]:
        """Return by how much the requested amount of a resource on each node changes in the simulation.

        Shapes: (R,).
        """
        found = self._sums.get(resource)
        if found is None:
            found = self._sums[resource] = np.zeros(self.rows.size, np.int64)
            gone = self._gone.nonzero()[0]
            np.subtract.at(found, self._of[gone], self._amounts(resource, gone))
        return found

    def weighed(self, key: Hashable, weigh: Callable[[PlacedPod], int], *, alike: bool = True) -> NDArray[np.int64]:
        """Return by how much the total weight of the pods on each node changes by the removals; read-only.

        Args:
            key: Identifies the weights; each signature is weighed once per key.
            weigh: Returns the weight of a pod.
            alike: Whether pods of a signature have equal weights; if not, each pod is weighed.

        Shapes: (R,).
        """
        found = self._weighed.get(key)
        if found is None:
            numbers: NDArray[Any] = self._signatures
            pods: Sequence[PlacedPod | None] = self.cluster.signatures.present
            if not alike:
                numbers, pods = self._slots, self.cluster.pods.by_slot
            present, of_pod = np.unique(numbers, return_inverse=True)
            placed = (pods[number] for number in present.tolist())
            weights = np.array([0 if one is None else weigh(one) for one in placed], np.int64)[of_pod]
            sums = np.zeros(self.rows.size, np.int64)
            np.subtract.at(sums, self._of[self._gone], weights[self._gone])
            found = self._weighed[key] = weights, sums
        return found[1]

    def knows(self, key: Hashable) -> bool:
        """Return whether `now` has cached total weights under a key."""
        return key in self._known

    def now(self, key: Hashable, work_out: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the total weight of the pods really on each node; `work_out` computes it once for each key.

        Shapes: (R,).
        """
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = work_out()
        return known

    def repelled(self, repelling: Repelling) -> NDArray[np.bool_]:  # noqa: ARG002 - no pods are added
        """Return a mask of the nodes that have added pods of a new signature whose anti-affinity rejects the pod.

        Args:
            repelling: Returns by topology key which anti-affinity of nominated pods matches the pod.

        Shapes: (R,), a new array.
        """
        return np.zeros(self.rows.size, np.bool_)

    def counts(self, counter: PodCounter) -> bool:
        """Return whether `count` can compute a pod counter on simulated nodes, for which its sums must be integers."""
        return not counter.fractions

    def count(self, counter: PodCounter) -> NDArray[np.int64]:
        """Return the value of a pod counter (total weight of pods) on each simulated node.

        Shapes: (R,), a new array.
        """
        return counter.counts[self.rows] + self.weighed(counter, lambda placed: int(counter.weight_of(placed)))

    def _move(self, pods: NDArray[np.intp], sign: int) -> None:
        self._gone[pods] = sign < 0
        of = self._of[pods]
        np.add.at(self._pods, of, sign)
        for resource, sums in self._sums.items():
            np.add.at(sums, of, sign * self._amounts(resource, pods))
        for weights, sums in self._weighed.values():
            np.add.at(sums, of, sign * weights[pods])

    def _amounts(self, resource: str, pods: NDArray[np.intp]) -> NDArray[np.int64]:
        return self.cluster.signatures.amounts(resource)[self._signatures[pods]]

    def with_nominated(self, nominated: PodsByRow) -> ChangedRows:
        """Return the same simulated nodes with their nominated pods added; later removals apply to both objects."""
        if self._beside is None or self._beside[0] is not nominated:
            self._beside = None
            self._beside = (
                nominated,
                _WithNominated(copy(self), nominated),
            )  # a copy that shares all arrays avoids a reference cycle
        return self._beside[1]


class _WithNominated(ChangedRows):
    __slots__ = ("_added", "_at", "_base", "_columns", "_kinds", "_places")

    def __init__(self, base: ChangedRows, nominated: PodsByRow) -> None:
        self.cluster, self.rows, self._base = base.cluster, base.rows, base
        self.reaches_others = base.reaches_others
        self._known = base._known
        pods = YieldedPods.of(nominated, base.cluster.pod_resources)
        self._columns = pods.columns
        self._columns.refresh(base.cluster.signatures)
        of_row: NDArray[np.intp] = np.full(base.cluster.nodes.columns.capacity, -1, np.intp)
        of_row[base.rows] = np.arange(base.rows.size)
        at = of_row[pods.rows]
        self._at, self._places = at[at >= 0], pods.places[at >= 0]
        """For each nominated pod of these nodes: the index of its node in `rows`, and its place in the columns."""
        self._kinds = self._columns.kind_of[self._places]
        self._added: dict[Hashable, NDArray[np.int64]] = {}

    def more_pods(self) -> NDArray[np.int64]:
        return self._base.more_pods() + np.bincount(self._at, minlength=self.rows.size)

    def more(self, resource: str) -> NDArray[np.int64]:
        added = self._added.get(resource)
        if added is None:
            added = self._added[resource] = self._summed(self._columns.amounts(resource)[self._kinds])
        return self._base.more(resource) + added

    def weighed(self, key: Hashable, weigh: Callable[[PlacedPod], int], *, alike: bool = True) -> NDArray[np.int64]:
        added = self._added.get((key, alike))
        if added is None:
            if alike:
                kinds, of_pod = np.unique(self._kinds, return_inverse=True)
                weights = [weigh(self._columns.samples[kind]) for kind in kinds.tolist()]
                added = self._summed(np.array(weights, np.int64)[of_pod])
            elif isinstance(key, WantedPorts):
                added = self._summed(self._columns.ports.met(key)[self._columns.ports_of[self._places]])
            else:
                added = self._summed(np.array([weigh(one) for one in self._as_placed()], np.int64))
            self._added[key, alike] = added
        return self._base.weighed(key, weigh, alike=alike) + added

    def counts(self, counter: PodCounter) -> bool:
        if counter.fractions:
            return False
        weights = self._columns.weights(counter)[self._kinds]
        return bool((np.abs(weights[self._are_new()]) <= WIDEST).all())

    def count(self, counter: PodCounter) -> NDArray[np.int64]:
        added = self._added.get(counter)
        if added is None:
            added = self._added[counter] = self._summed(self._columns.weights(counter).astype(np.int64)[self._kinds])
        return self._base.count(counter) + added

    def repelled(self, repelling: Repelling) -> NDArray[np.bool_]:
        found = self._base.repelled(repelling)
        stated = self._columns.repelling[self._places]
        if not stated.any():
            return found
        nodes, are_new = self.cluster.nodes, self._are_new()
        for key, meaning in repelling(self._columns.terms).items():
            at = self._at[meaning[stated] & are_new]
            found[at[nodes.labels(key)[self.rows[at]] != MISSING]] = True
        return found

    def _summed(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each node the sum of the weights of its nominated pods."""
        sums: NDArray[np.int64] = np.zeros(self.rows.size, np.int64)
        np.add.at(sums, self._at, weights)
        return sums

    def _are_new(self) -> NDArray[np.bool_]:
        """Return a mask of the nominated pods that are like no placed pod (whose signature is new)."""
        are_new: NDArray[np.bool_] = self._columns.numbers[self._kinds] < 0
        return are_new

    def _as_placed(self) -> list[PlacedPod]:
        """Return the nominated pods as if they were placed on their nominated nodes."""
        columns, rows = self._columns, self.rows[self._at].tolist()
        return [
            _as_placed(self.cluster, columns.pods[place], row, columns.measured[place])
            for place, row in zip(self._places.tolist(), rows, strict=True)
        ]


def _as_placed(cluster: Cluster, pod: Pod, row: int, known: Measured) -> PlacedPod:
    """Return a pod as if placed on the node of a row; its signature is −1 if no placed pod is alike."""
    placed = PlacedPod(pod, row, known.resources, assumed=True)
    placed.signature = cluster.signatures.number(known.signature_key)
    return placed
