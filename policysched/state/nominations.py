"""Pods that wait for a node which is kept for them (nominated pods), of this scheduler and of others.

Kept apart from placed pods: they hold nothing yet, but a pod of no higher priority has to leave them their place. A
node's name may be that of a node that is gone, or is not there yet.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.model.selection.pod_affinity import PeerSelector, TermKind, existing_terms
from policysched.state.placed.counters import PodCounter
from policysched.state.placed.pods import Measured, PlacedPod, PodSignatures, measure, pod_id

PodsByRow = Mapping[int, Sequence[Pod]]
MOST_COUNTERS = 64
"""Of how many counters of pods it is kept what nominated pods weigh."""


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod and the node that is kept for it."""

    pod: Pod
    node: str


class NominatedColumns:
    """What is worked out of all nominated pods, kept between decisions as long as no nomination comes or goes.

    Pods of one signature are of one kind: what they weigh is worked out once.

    Args:
        nominations: The nominations by the identity of the pod, in their order.
        measured: Measures a pod.

    Shapes: P nominated pods, K kinds; kind_of (P,).
    """

    __slots__ = ("_amounts", "_node_of", "_nodes", "_place_of", "_priorities", "_repelling", "_seen", "_weights",
                 "kind_of", "measured", "numbers", "pods", "samples")  # fmt: skip

    def __init__(self, nominations: Iterable[tuple[str, Nomination]], measured: Callable[[Pod], Measured]) -> None:
        listed = [*nominations]
        self.pods = [one.pod for _, one in listed]
        self._place_of = {identity: place for place, (identity, _) in enumerate(listed)}
        self._priorities = np.array([pod_priority(pod) for pod in self.pods], np.int64)
        nodes: dict[str, int] = {}
        self._node_of = np.array([nodes.setdefault(one.node, len(nodes)) for _, one in listed], np.intp)
        self._nodes = tuple(nodes)
        self.measured = [measured(pod) for pod in self.pods]
        kinds: dict[Hashable, int] = {}
        self.kind_of = np.array([kinds.setdefault(one.signature_key, len(kinds)) for one in self.measured], np.intp)
        self.samples: list[PlacedPod] = []
        """A pod of each kind; its row means nothing."""
        for pod, known, kind in zip(self.pods, self.measured, self.kind_of.tolist(), strict=True):
            if kind == len(self.samples):
                self.samples.append(PlacedPod(pod, -1, known.resources, assumed=True))
        self.numbers: NDArray[np.intp] = np.full(len(kinds), -1, np.intp)
        """Each kind's signature, -1 where no placed pod has it. Shapes: (K,)."""
        self._seen = -1
        self._amounts: dict[str, NDArray[np.int64]] = {}
        self._weights: WeakKeyDictionary[PodCounter, tuple[NDArray[np.intp], int, NDArray[np.float64]]]
        self._weights = WeakKeyDictionary()
        self._repelling: tuple[dict[tuple[PeerSelector, str], int], NDArray[np.intp], NDArray[np.intp]] | None = None

    def yielded_to(self, priority: int, own: str, row_of: Mapping[str, int]) -> YieldedPods:
        """Choose those of a priority and above, but one, whose node has a row."""
        rows = np.array([row_of.get(node, -1) for node in self._nodes], np.intp)[self._node_of]
        chosen = (rows >= 0) & (self._priorities >= priority)
        if own in self._place_of:
            chosen[self._place_of[own]] = False
        places = chosen.nonzero()[0]
        return YieldedPods(self, places, rows[places])

    def refresh(self, signatures: PodSignatures) -> None:
        """Look up which kinds are signatures of placed pods.

        Cost: O(kinds) after a signature appeared or went.
        """
        if self._seen == signatures.generation:
            return
        keys: dict[int, Hashable] = {}
        for place, kind in enumerate(self.kind_of.tolist()):
            if kind == len(keys):
                keys[kind] = self.measured[place].signature_key
        self.numbers = np.array([signatures.number(key) for key in keys.values()], np.intp)
        for placed, number in zip(self.samples, self.numbers.tolist(), strict=True):
            placed.signature = number
        self._seen = signatures.generation

    def amounts(self, resource: str) -> NDArray[np.int64]:
        """Return how much of a resource a pod of each kind takes.

        Shapes: (K,).
        """
        found = self._amounts.get(resource)
        if found is None:
            amounts = [dict(one.pod_resources.amounts).get(resource, 0) for one in self.samples]
            found = self._amounts[resource] = np.array(amounts, np.int64)
        return found

    def weights(self, counter: PodCounter) -> NDArray[np.float64]:
        """Return what a counter counts for a pod of each kind; the numbers are up to date.

        A kind that is no placed pod's weighs the same as long as it is not.

        Shapes: (K,).
        """
        known = self._weights.get(counter)
        if known is not None and known[1] == self._seen:
            return known[2]
        if known is None:
            if len(self._weights) >= MOST_COUNTERS:
                self._weights.clear()
            anew, found = [*range(len(self.samples))], np.zeros(len(self.samples))
        else:
            anew, found = ((known[0] >= 0) | (self.numbers >= 0)).nonzero()[0].tolist(), known[2]
        for kind in anew:
            found[kind] = counter.weight_of(self.samples[kind])
        self._weights[counter] = self.numbers, self._seen, found
        return found

    def repelling(self, matches: Callable[[PeerSelector], bool]) -> dict[str, NDArray[np.bool_]]:
        """Return by topology key the kinds whose required anti-affinity means a pod.

        Cost: O(distinct peers), and O(anti-affinity terms of kinds) for each topology key of those that mean it.

        Shapes: (K,).
        """
        if self._repelling is None:
            self._repelling = self._list_repelling()
        terms, term_of, kind_of = self._repelling
        answers: dict[PeerSelector, bool] = {}
        by_key: dict[str, list[int]] = {}
        for (peers, key), number in terms.items():
            answer = answers.get(peers)
            if answer is None:
                answer = answers[peers] = matches(peers)
            if answer:
                by_key.setdefault(key, []).append(number)
        found: dict[str, NDArray[np.bool_]] = {}
        for key, numbers in by_key.items():
            meaning = np.zeros(len(terms), np.bool_)
            meaning[numbers] = True
            found[key] = np.zeros(len(self.samples), np.bool_)
            found[key][kind_of[meaning[term_of]]] = True
        return found

    def _list_repelling(self) -> tuple[dict[tuple[PeerSelector, str], int], NDArray[np.intp], NDArray[np.intp]]:
        """List the anti-affinity terms with numbers, and the numbers and kinds of all that state them."""
        terms: dict[tuple[PeerSelector, str], int] = {}
        stated = [
            (terms.setdefault((one.term.peers, one.term.topology_key), len(terms)), kind)
            for kind, placed in enumerate(self.samples)
            for one in existing_terms(placed.pod)
            if one.sort is TermKind.REPELS
        ]
        both = np.array(stated, np.intp).reshape(-1, 2)
        return terms, both[:, 0], both[:, 1]


class YieldedPods(Mapping[int, Sequence[Pod]]):
    """The nominated pods that a pod has to leave their place, by row.

    Args:
        columns: What is known of all nominated pods.
        places: The places of those among them, in their order.
        rows: The row of each.

    Shapes: places and rows (Q,).
    """

    __slots__ = ("_by_row", "columns", "places", "rows")

    def __init__(self, columns: NominatedColumns, places: NDArray[np.intp], rows: NDArray[np.intp]) -> None:
        self.columns, self.places, self.rows = columns, places, rows
        self._by_row: dict[int, list[Pod]] | None = None

    @classmethod
    def of(cls, pods: PodsByRow) -> YieldedPods:
        """Return the same of pods that are given by row."""
        if isinstance(pods, YieldedPods):
            return pods
        stated = [(pod_id(pod), Nomination(pod, str(row))) for row, together in pods.items() for pod in together]
        rows = np.array([int(one.node) for _, one in stated], np.intp)
        return cls(NominatedColumns(stated, measure), np.arange(rows.size), rows)

    @property
    def distinct_rows(self) -> NDArray[np.intp]:
        """The rows, in ascending order."""
        return np.bincount(self.rows).nonzero()[0]

    def __getitem__(self, row: int) -> Sequence[Pod]:
        if self._by_row is None:
            self._by_row = {}
            for place, on in zip(self.places.tolist(), self.rows.tolist(), strict=True):
                self._by_row.setdefault(on, []).append(self.columns.pods[place])
        return self._by_row[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self.distinct_rows.tolist())

    def __len__(self) -> int:
        return self.distinct_rows.size

    def __bool__(self) -> bool:
        return bool(self.rows.size)


class Nominations:
    """Nominated pods by identity and by node."""

    __slots__ = ("_by_id", "_by_node", "_columns", "_measured", "generation")

    def __init__(self) -> None:
        self.generation = 0
        """How often a node began or ceased to be kept for a pod."""
        self._measured: dict[str, Measured] = {}
        self._columns: tuple[int, NominatedColumns] | None = None
        """What is worked out of them, with the generation that it is of."""
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
            if not self._by_id:
                self._columns = None
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

        Cost: O(nodes that are kept), and O(nominated pods) after a nomination came or went.
        """
        if self._columns is None or self._columns[0] != self.generation:
            columns = NominatedColumns(self._by_id.items(), lambda one: self.measured(one) or measure(one))
            self._columns = self.generation, columns
        return self._columns[1].yielded_to(pod_priority(pod), pod_id(pod), row_of)

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
