"""`PodCounters`: all pod counters, with an index that finds the counters that may count a placed pod.

Affinity and spreading need the number of matching pods on each node; a counter has these numbers as a column, and a
placement changes one element. A counter exists as long as something refers to it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.state.placed.counter import PodCounter, Weigh
from policysched.state.placed.existing_terms import ExistingTerms
from policysched.state.placed.pod_kinds import Alike, PodKinds, weigh_by_kind
from policysched.state.placed.pods import PlacedPod, PodSignatures, PodTable
from policysched.state.placed.selector_index import ANYTHING, IndexKey, index_keys_met
from policysched.state.placed.signature_labels import SignatureLabels
from policysched.state.placed.signature_values import Demand, SharedValue, SignatureValues
from policysched.state.tables.columns import Column, ColumnSet

Facet = IndexKey | int | SharedValue
"""Index key of a pod counter: namespace and label, number of an affinity term, or another value of its pods.

All pods that the counter counts have at least one of the counter's facets.
"""
MOST_KINDS = 2**20
"""Maximum size of all cached groupings of placed pods (`PodKinds`); beyond it, all groupings are dropped."""
CROWD = 2048
"""Number of pod counters changed by one placed pod, from which `crowded` is set.

A counter with many terms is counted several times.
"""
MOST_TURNING = 16
"""Maximum number of counters that change to storing weights in an array because of one newly placed pod."""
T = TypeVar("T")
WeighAll = Callable[[SignatureLabels], NDArray[Any]]
"""Function that returns the weights of all signatures (sets of alike pods) in one pod counter. Shapes: (S,)."""


class PodCounters:
    """All pod counters in use, each with the number of matching pods on every node."""

    def __init__(
        self, columns: ColumnSet, pods: PodTable, signatures: PodSignatures, existing_terms: ExistingTerms
    ) -> None:
        self.crowded = False
        """True after a placement changed too many counters; the cache of results then drops entries, and resets it."""
        self.forgotten = 0
        """Number of stored weights that were removed together with their counters."""
        self._columns = columns
        self._pods = pods
        self._signatures = signatures
        self._existing_terms = existing_terms
        self._by_facet: dict[Facet | None, dict[Hashable, weakref.ref[PodCounter]]] = {}
        self._by_key: dict[Hashable, weakref.ref[PodCounter]] = {}
        self._by_signature: dict[int, dict[Hashable, weakref.ref[PodCounter]]] = {}
        """For each signature (set of alike pods), the counters that are not dense and give it a weight."""
        self._dense: dict[Hashable, weakref.ref[PodCounter]] = {}
        self._labels = SignatureLabels(signatures.present)
        self._indexes: weakref.WeakValueDictionary[Hashable, SignatureValues] = weakref.WeakValueDictionary()
        self._kinds: dict[Hashable, PodKinds] = {}
        self._kinds_of = -1

    def of(  # noqa: PLR0913 - options of a counter
        self,
        key: Hashable,
        weigh: Weigh,
        *,
        fractions: bool = False,
        among: Collection[Facet] | None = None,
        alike: Alike | None = None,
        demand: Demand | None = None,
        terms: int = 1,
        weigh_all: WeighAll | None = None,
    ) -> PodCounter:
        """Return the pod counter with a key; if there is none, create it and count all placed pods.

        Args:
            key: Identifies the weights: equal keys share a counter.
            weigh: Returns the weight of a pod; called once per signature.
            fractions: Whether weights may be fractions.
            among: Facets of which a counted pod has one; None if unknown. Other pods are not weighed.
            alike: How to weigh pods of a kind together; None to weigh each signature.
            demand: A shared value of all counted pods, in place of `among`; None if unknown.
            terms: Number of terms that `weigh` evaluates.
            weigh_all: Weighs all signatures at once when the counter is created; None to weigh one by one.
        """
        known = self._by_key.get(key)
        counter = known() if known is not None else None
        if counter is None:
            counter = PodCounter(self._column(fractions), weigh, terms)
            self._begin(counter, key, weigh_all, among if demand is None else (self._demanded(demand),), alike)
        return counter

    def get(self, key: Hashable) -> PodCounter | None:
        """Return the pod counter with a key; None if there is none."""
        known = self._by_key.get(key)
        return known() if known is not None else None

    def appear(self, signature: int, placed: PlacedPod) -> None:
        """Compute the weight of a new kind of pods (signature) in every pod counter that may count these pods."""
        self._labels.appear(signature, placed)
        held_by = self._that_may_count(signature, placed)
        counting: dict[Hashable, weakref.ref[PodCounter]] = {}
        effort = 0
        turning: list[tuple[Hashable, list[int]]] = []
        try:
            for key, held in held_by.items():
                counter = held()
                if counter is None:
                    continue
                effort += counter.effort
                if counter.weigh(signature, placed) and not counter.is_dense:
                    counting[key] = held
                    found_by = [] if len(turning) >= MOST_TURNING else counter.densify(len(self._signatures.present))
                    if found_by:
                        turning.append((key, found_by))
        finally:  # `vanish` can remove the signature even if a weight fails
            self.crowded = self.crowded or effort > CROWD
            if counting:
                self._by_signature[signature] = counting
            for key, found_by in turning:
                self._turn_dense(key, held_by[key], found_by)

    def _that_may_count(self, signature: int, placed: PlacedPod) -> dict[Hashable, weakref.ref[PodCounter]]:
        """Add a new kind of pods (signature) to the indexes; return the pod counters that may count these pods."""
        metadata = placed.pod.metadata
        index_keys = index_keys_met(metadata.namespace, metadata.labels, self._by_facet)
        values = [index.appear(signature, placed) for index in tuple(self._indexes.values())]
        found: dict[Hashable, weakref.ref[PodCounter]] = {}
        for facet in (None, *index_keys, *values, *self._existing_terms.of_signature(signature)):
            if facet in self._by_facet:
                found |= self._by_facet[facet]
        return found

    def vanish(self, signature: int, placed: PlacedPod) -> None:
        """Remove a kind of pods (signature) from all pod counters, because its last pod was removed."""
        self._labels.vanish(signature, placed)
        for index in tuple(self._indexes.values()):
            index.vanish(signature)
        for held in (*self._by_signature.pop(signature, {}).values(), *self._dense.values()):
            counter = held()
            if counter is not None:
                counter.forget(signature)

    def add(self, placed: PlacedPod, sign: int) -> None:
        """Add a placed pod to all pod counters; `sign` -1 subtracts a removed pod.

        Cost: O(counters of the pod's signature + dense counters).
        """
        counting = (*self._by_signature.get(placed.signature, {}).values(), *self._dense.values())
        if len(counting) > CROWD:
            self.crowded = True
        for held in counting:
            counter = held()
            if counter is not None and counter.counts_signature(placed.signature):
                counter.add(placed, sign, self._pods)

    def move(self, before: PlacedPod, after: PlacedPod) -> None:
        """Replace a placed pod in all pod counters by a newer version on the same node.

        Cost: O(counters of both signatures + dense counters).
        """
        of = self._by_signature
        counting = {**of.get(before.signature, {}), **of.get(after.signature, {}), **self._dense}
        for held in counting.values():
            counter = held()
            if counter is not None:
                counter.move(before, after, self._pods)

    def __len__(self) -> int:
        return len(self._by_key)

    def _column(self, fractions: bool) -> Column:
        return self._columns.new(np.float64 if fractions else np.int64)

    def _begin(
        self,
        counter: PodCounter,
        key: Hashable,
        weigh_all: WeighAll | None,
        among: Collection[Facet] | None,
        alike: Alike | None,
    ) -> None:
        """Compute the weights and sums of a new pod counter, and add the counter to the indexes."""
        held, size = weakref.ref(counter), len(self._signatures.present)
        counting: Sequence[int]
        if weigh_all is not None:
            weights, counter.reads = weigh_all(self._labels), self._labels.prepared()
            counting = counter.weigh_together(np.arange(size, dtype=np.intp), weights, size)
        elif among is None and alike is not None and alike.key is not None:
            kinds = self._all_kinds(alike)
            weights = np.asarray(alike.weigh(kinds), np.float64)[kinds.of_signature]
            counting = counter.weigh_together(kinds.signatures, weights, size)
        else:
            counting = self._weighed_each(counter, among, alike)
        if counter.is_dense:
            self._dense[key] = held
        for signature in counting:
            self._by_signature.setdefault(signature, {})[key] = held
        counter.fill(self._pods, size)
        self._by_key[key] = held
        facets: Collection[Facet | None] = (None,) if among is None else tuple(among)
        for facet in facets:
            self._by_facet.setdefault(facet, {})[key] = held
        weakref.finalize(counter, self._drop, key, held, counter.weights, facets).atexit = False

    def _turn_dense(self, key: Hashable, held: weakref.ref[PodCounter], found_by: Iterable[int]) -> None:
        """Record that a pod counter became dense: it is updated for every pod, instead of by signature (alike pods)."""
        self._dense[key] = held
        for signature in found_by:
            counting = self._by_signature[signature]
            del counting[key]
            if not counting:
                del self._by_signature[signature]

    def _weighed_each(self, counter: PodCounter, among: Collection[Facet] | None, alike: Alike | None) -> Sequence[int]:
        """Compute a counter's weight of each signature (alike pods); return those under which to index the counter."""
        present = self._signatures.present
        found = [(one, placed) for one in self._candidates(among) if (placed := present[one]) is not None]
        weights = weigh_by_kind([placed for _, placed in found], alike)
        counting = [
            signature
            for (signature, placed), weight in zip(found, weights, strict=True)
            if counter.weigh(signature, placed, weight)
        ]
        return () if counter.densify(len(present)) else counting

    def _all_kinds(self, alike: Alike) -> PodKinds:
        """Return all placed pods grouped as `alike` describes; cached until a signature appears or vanishes."""
        if self._kinds_of != self._signatures.stamp:
            self._kinds.clear()
            self._kinds_of = self._signatures.stamp
        found = self._kinds.get(alike.key)
        if found is None:
            if (len(self._kinds) + 1) * len(self._signatures.present) > MOST_KINDS:
                self._kinds.clear()
            found = self._kinds[alike.key] = PodKinds(self._signatures.present, alike.kind)
        return found

    def _demanded(self, demand: Demand) -> SharedValue:
        index = self._indexes.get(demand.key)
        if index is None:
            index = self._indexes[demand.key] = SignatureValues(demand.read, self._signatures.present)
        return SharedValue(index, demand.value)

    def _candidates(self, among: Collection[Facet] | None) -> Iterable[int]:
        """Return the signatures (sets of alike pods) that a counter with given index keys may count; all for None."""
        found: set[int] = set()
        namespaces: set[str | None] = set()
        for facet in (ANYTHING,) if among is None else among:
            if isinstance(facet, int):
                found.update(self._existing_terms.signatures(facet))
            elif isinstance(facet, SharedValue):
                found.update(facet.signatures.having(facet.value))
            else:
                namespaces.add(facet[0])
        if None in namespaces:
            return range(len(self._signatures.present))
        return found.union(*(self._signatures.of_namespace(name) for name in namespaces if name is not None))

    def _drop(
        self,
        key: Hashable,
        held: weakref.ref[PodCounter],
        weights: dict[int, float],
        facets: Collection[Facet | None],
    ) -> None:
        for counting in (
            self._by_key,
            self._dense,
            *(self._by_facet.get(facet, {}) for facet in facets),
            *(self._by_signature.get(signature, {}) for signature in tuple(weights)),
        ):
            if counting.get(key) is held:
                del counting[key]
        self.forgotten += len(weights)
        _without_empty(self._by_facet, facets)
        _without_empty(self._by_signature, tuple(weights))


def _without_empty(held: dict[T, dict[Hashable, weakref.ref[PodCounter]]], keys: Iterable[T]) -> None:
    """Remove the given keys whose dictionary is empty from a dictionary of dictionaries."""
    for key in keys:
        if key in held and not held[key]:
            del held[key]
