"""`NominatedColumns`: nominated pods as arrays. `YieldedPods`: nominated pods that a decision treats as placed.

Source: pkg/scheduler/framework/runtime/framework.go, addGENominatedPods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.state.nominated.ports import NO_PORTS, PortLists
from policysched.state.nominated.terms import RepellingTerms
from policysched.state.placed.counter import PodCounter
from policysched.state.placed.pods import Measured, PlacedPod, PodSignatures, measure, pod_id
from policysched.state.tables.amounts import PodResources
from policysched.state.tables.sparse import is_sparse

PodsByRow = Mapping[int, Sequence[Pod]]
MOST_COUNTERS = 1024
"""Maximum number of pod counters whose weights of nominated pods are cached; beyond it, the cache is emptied."""
FIRST_PLACES = 16


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pending pod and the name of its nominated node."""

    pod: Pod
    node: str


class NominatedColumns:
    """Nominated pods as arrays, in the order of their nomination; a removed pod leaves a gap.

    Pods of a signature have the same kind, and weights are computed once per kind. Places and kinds never change, so
    that a `YieldedPods` stays valid; `compacted` returns a copy without empty places.

    Args:
        terms: The required anti-affinity of nominated pods.

    Shapes: P places or more; K kinds; kind_of and repelling (P,).
    """

    __slots__ = (
        *("_amounts", "_kinds", "_live", "_node_of", "_nodes", "_place_of", "_priorities", "_seen", "_weights"),
        *("kind_of", "measured", "numbers", "pods", "ports", "ports_of", "repelling", "samples", "terms"),
    )

    def __init__(self, terms: RepellingTerms) -> None:
        self.terms = terms
        self.pods: list[Pod] = []
        self.measured: list[Measured] = []
        self.kind_of: NDArray[np.intp] = np.zeros(FIRST_PLACES, np.intp)
        self.repelling: NDArray[np.intp] = np.zeros(FIRST_PLACES, np.intp)
        """For each nominated pod, the number of its required anti-affinity in `RepellingTerms`."""
        self._live: NDArray[np.bool_] = np.zeros(FIRST_PLACES, np.bool_)
        self._priorities: NDArray[np.int64] = np.zeros(FIRST_PLACES, np.int64)
        self._node_of: NDArray[np.intp] = np.zeros(FIRST_PLACES, np.intp)
        self._place_of: dict[str, int] = {}
        self._nodes: dict[str, int] = {}
        self._kinds: dict[SignatureKey, int] = {}
        self.samples: list[PlacedPod] = []
        """One nominated pod of each kind (kinds differ in labels, affinity, requests, …); its row has no meaning."""
        self.numbers: NDArray[np.intp] = np.zeros(0, np.intp)
        """For each kind of nominated pod, the signature number of alike placed pods; -1 without any. Shapes: (K,)."""
        self._seen = -1
        self._amounts: dict[str, NDArray[np.int64]] = {}
        self._weights: WeakKeyDictionary[PodCounter, tuple[NDArray[np.intp], int, NDArray[np.float64]]]
        self._weights = WeakKeyDictionary()
        self.ports = PortLists()
        self.ports_of: NDArray[np.intp] = np.zeros(FIRST_PLACES, np.intp)
        """For each nominated pod, the number of its list of host ports in `PortLists`."""

    def __contains__(self, identity: str) -> bool:
        return identity in self._place_of

    def enter(self, identity: str, one: Nomination, measured: Measured, repelling: int) -> None:
        """Add a nominated pod as the last entry of the arrays.

        Args:
            identity: The pod's identity.
            one: The nomination.
            measured: The pod's requests and signature.
            repelling: The number of the pod's required anti-affinity.

        Cost: O(1).
        """
        kind = self._kinds.setdefault(SignatureKey.of(measured.signature_key), len(self._kinds))
        if kind == len(self.samples):
            self.samples.append(PlacedPod(one.pod, -1, measured.resources, assumed=True))
        ports = self.ports.number(measured.resources)
        self._append(identity, one, measured, (kind, repelling, pod_priority(one.pod), ports))

    def renew(self, identity: str, one: Nomination) -> None:
        """Replace a nominated pod by a version in which nothing that scheduling reads differs, as the last entry."""
        place = self._place_of[identity]
        self._live[place] = False
        alike = (self.kind_of, self.repelling, self._priorities, self.ports_of)
        kind, repelling, priority, ports = (int(column[place]) for column in alike)
        known = kind, repelling, priority, ports
        self._append(identity, one, self.measured[place], known)

    def drop(self, identity: str) -> int:
        """Remove a nominated pod; return the number of its required anti-affinity in `RepellingTerms`."""
        place = self._place_of.pop(identity)
        self._live[place] = False
        return int(self.repelling[place])

    def repelling_of(self, identity: str) -> int:
        """Return the number of a nominated pod's required anti-affinity in `RepellingTerms`."""
        return int(self.repelling[self._place_of[identity]])

    def measured_of(self, identity: str) -> Measured:
        """Return a nominated pod's requests, and the key that alike pods share (its signature)."""
        return self.measured[self._place_of[identity]]

    @property
    def is_sparse(self) -> bool:
        """Whether most entries of the arrays are gaps that removed pods left."""
        return is_sparse(len(self.pods), len(self._place_of))

    def compacted(self) -> NominatedColumns:
        """Return a copy of the arrays without gaps, and without kinds of pods that no nominated pod has.

        Cost: O(places + kinds).
        """
        made = NominatedColumns(self.terms)
        places = self._live[: len(self.pods)].nonzero()[0]
        made.pods = [self.pods[place] for place in places.tolist()]
        made.measured = [self.measured[place] for place in places.tolist()]
        kinds, made.kind_of = np.unique(self.kind_of[places], return_inverse=True)
        nodes, made._node_of = np.unique(self._node_of[places], return_inverse=True)
        names = [*self._nodes]
        made._nodes = {names[number]: place for place, number in enumerate(nodes.tolist())}
        made.repelling, made._priorities = self.repelling[places], self._priorities[places]
        made._live = np.ones(places.size, np.bool_)
        made._place_of = dict(zip(self._place_of, range(places.size), strict=True))
        keys = [*self._kinds]
        made._kinds = {keys[kind]: place for place, kind in enumerate(kinds.tolist())}
        made.samples = [self.samples[kind] for kind in kinds.tolist()]
        if self.numbers.size == len(self.samples):
            made.numbers, made._seen = self.numbers[kinds], self._seen
            for counter, (numbers, seen, found) in [*self._weights.items()]:
                if found.size == len(self.samples):
                    made._weights[counter] = numbers[kinds], seen, found[kinds]
        full = len(self.samples)
        made._amounts = {resource: found[kinds] for resource, found in self._amounts.items() if found.size == full}
        used: NDArray[np.bool_] = np.zeros(len(self.ports), np.bool_)
        used[self.ports_of[places]] = used[NO_PORTS] = True
        made.ports, made.ports_of = self.ports.kept(used), (np.cumsum(used) - 1)[self.ports_of[places]]
        return made

    def yielded_to(self, priority: int, own: str, row_of: Mapping[str, int]) -> YieldedPods:
        """Return the nominated pods of at least a priority whose node exists, except the pod with identity `own`."""
        count = len(self.pods)
        rows = np.array([row_of.get(node, -1) for node in self._nodes], np.intp)[self._node_of[:count]]
        chosen = self._live[:count] & (rows >= 0) & (self._priorities[:count] >= priority)
        if own in self._place_of:
            chosen[self._place_of[own]] = False
        places = chosen.nonzero()[0]
        return YieldedPods(self, places, rows[places])

    def refresh(self, signatures: PodSignatures) -> None:
        """Look up, for each kind of nominated pod, the signature number of alike placed pods.

        Cost: O(kinds) after a signature was added or removed, else O(new kinds).
        """
        known = self.numbers.size if self._seen == signatures.stamp else 0
        self._seen = signatures.stamp
        if known == len(self.samples):
            return
        numbers = [signatures.number(key) for key in islice(self._kinds, known, None)]
        for placed, number in zip(self.samples[known:], numbers, strict=True):
            placed.signature = number
        self.numbers = np.concatenate((self.numbers[:known], np.array(numbers, np.intp)))

    def amounts(self, resource: str) -> NDArray[np.int64]:
        """Return the amount of a resource that each kind of nominated pod requests.

        Shapes: (K,).
        """
        found = self._amounts.get(resource)
        if found is None or found.size < len(self.samples):
            found = np.zeros(0, np.int64) if found is None else found
            amounts = [dict(one.pod_resources.amounts).get(resource, 0) for one in self.samples[found.size :]]
            found = self._amounts[resource] = np.concatenate((found, np.array(amounts, np.int64)))
        return found

    def weights(self, counter: PodCounter) -> NDArray[np.float64]:
        """Return how much a pod counter would count a pod of each kind of nominated pod; call `refresh` before.

        Shapes: (K,).
        """
        known, count = self._weights.get(counter), len(self.samples)
        if known is not None and known[1] == self._seen and known[2].size == count:
            return known[2]
        if known is None:
            if len(self._weights) >= MOST_COUNTERS:
                self._weights.clear()
            anew, found = [*range(count)], np.zeros(count)
        else:
            size = known[0].size
            moved = np.ones(count, np.bool_)
            moved[:size] = (known[0] >= 0) | (self.numbers[:size] >= 0) if known[1] != self._seen else False
            anew = moved.nonzero()[0].tolist()
            found = np.concatenate((known[2], np.zeros(count - size)))
        for kind in anew:
            found[kind] = counter.weight_of(self.samples[kind])
        self._weights[counter] = self.numbers, self._seen, found
        return found

    def _append(self, identity: str, one: Nomination, measured: Measured, known: tuple[int, int, int, int]) -> None:
        place = len(self.pods)
        if place >= self._live.size:
            self._grow()
        self.pods.append(one.pod)
        self.measured.append(measured)
        self.kind_of[place], self.repelling[place], self._priorities[place], self.ports_of[place] = known
        self._node_of[place] = self._nodes.setdefault(one.node, len(self._nodes))
        self._place_of.pop(identity, None)
        self._place_of[identity] = place
        self._live[place] = True

    def _grow(self) -> None:
        more = max(FIRST_PLACES, self._live.size)
        self.kind_of = np.concatenate((self.kind_of, np.zeros(more, np.intp)))
        self.repelling = np.concatenate((self.repelling, np.zeros(more, np.intp)))
        self.ports_of = np.concatenate((self.ports_of, np.zeros(more, np.intp)))
        self._node_of = np.concatenate((self._node_of, np.zeros(more, np.intp)))
        self._priorities = np.concatenate((self._priorities, np.zeros(more, np.int64)))
        self._live = np.concatenate((self._live, np.zeros(more, np.bool_)))


class SignatureKey(tuple[Any, ...]):
    """The key that alike pods share (their signature), with its hash, which is computed once."""

    _hash: int

    @classmethod
    def of(cls, key: Hashable) -> SignatureKey:
        """Return a signature's key in the form that caches its hash."""
        if isinstance(key, cls):
            return key
        made = cls(cast("tuple[Any, ...]", key))
        made._hash = hash(key)
        return made

    def __hash__(self) -> int:
        return self._hash


class YieldedPods(Mapping[int, Sequence[Pod]]):
    """The nominated pods, by node's row, for which a pod of lower or equal priority must leave room.

    Args:
        columns: All nominated pods.
        places: The places of the pods in the columns, in ascending order.
        rows: The row of each pod.

    Shapes: places and rows (Q,).
    """

    __slots__ = ("_by_row", "columns", "places", "rows")

    def __init__(self, columns: NominatedColumns, places: NDArray[np.intp], rows: NDArray[np.intp]) -> None:
        self.columns, self.places, self.rows = columns, places, rows
        self._by_row: dict[int, list[Pod]] | None = None

    @classmethod
    def of(cls, pods: PodsByRow, pod_resources: Callable[[Pod], PodResources]) -> YieldedPods:
        """Create `YieldedPods` from nominated pods by node's row; `pod_resources` returns a pod's requests."""
        if isinstance(pods, YieldedPods):
            return pods
        stated = [(pod_id(pod), Nomination(pod, str(row))) for row, together in pods.items() for pod in together]
        rows = np.array([int(one.node) for _, one in stated], np.intp)
        columns = NominatedColumns(RepellingTerms())
        for identity, one in stated:
            columns.enter(identity, one, measure(one.pod, pod_resources(one.pod)), columns.terms.enter(one.pod))
        return cls(columns, np.arange(rows.size), rows)

    @property
    def distinct_rows(self) -> NDArray[np.intp]:
        """The rows of the nodes with nominated pods, each once, in ascending order."""
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
