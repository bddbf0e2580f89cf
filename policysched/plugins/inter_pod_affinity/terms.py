"""Which placed pods an affinity term matches, and the summed weight of many terms for one placed pod.

Knows selectors, namespaces and placed pods, neither nodes nor plugins. A few terms are counted each by itself, so that
all classes that state one share its counter; of many with one topology key, selectors that are equal are asked once for
all their namespaces, and only those whose index key a pod has are asked at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.model.selection.pod_affinity import AffinityTerm, PeerSelector, PodTerms
from policysched.model.selection.selectors import LabelMatcher
from policysched.plugins.inter_pod_affinity.namespaces import (
    BYTES_PER_NAME,
    Namespaces,
    NamespaceSet,
)
from policysched.plugins.inter_pod_affinity.sums import KeyedCounter
from policysched.state.object_tables import NamespaceChanges
from policysched.state.placed.existing_terms import ExistingTerms
from policysched.state.placed.pods import PlacedPod
from policysched.state.placed.selector_index import (
    MOST,
    MOST_PER_TERM,
    IndexKey,
    index_keys_met,
    index_keys_of_selector,
)
from policysched.state.placed.signature_labels import SignatureLabels
from policysched.state.tables.label_columns import Chosen

T = TypeVar("T")
NO_NAMES: Final[frozenset[str]] = frozenset()
_Inside = tuple[NamespaceSet | None, frozenset[str]]
"""Of which namespaces pods are meant: those of a shared set, None for all, and others."""
TOGETHER: Final = 256
"""How many requirements the terms of a pod to place have that are resolved, or counted, together."""
FEW: Final = 8
"""Up to how many terms of one topology key are counted each by itself."""
MOST_ASKED: Final = 10_000
"""Up to how often selectors are asked about namespaces that changed before all of them are resolved anew."""
BYTES_PER_TERM = 1 << 10
"""The memory that a compiled term takes beside its labels and names. Units: bytes."""


@dataclass(frozen=True, slots=True)
class ResolvedPeers:
    """The placed pods that an affinity term matches, its namespaces resolved.

    Attributes:
        pods: What their labels are.
        namespaces: Those that the term's namespaceSelector selects, None for all; terms share equal ones.
        also: Those that it names besides.
    """

    pods: LabelMatcher
    namespaces: NamespaceSet | None
    also: frozenset[str] = NO_NAMES

    def is_in(self, namespace: str) -> bool:
        """Return whether pods of a namespace are meant."""
        return self.namespaces is None or namespace in self.namespaces or namespace in self.also

    def matches(self, pod: Pod) -> bool:
        """Return whether a pod is meant."""
        return self.is_in(pod.metadata.namespace) and self.pods.matches(pod.metadata.labels)

    def restrict(self, chosen: Chosen, labels: SignatureLabels) -> None:
        """Take out of some signatures those that are not meant; the columns are prepared.

        Shapes: chosen (S,).
        """
        labels.within(chosen, self.namespaces, self.also)
        labels.restrict(chosen, self.pods)

    @property
    def index_keys(self) -> list[IndexKey]:
        """What a pod that is meant has one of."""
        if self.namespaces is None or len(self.namespaces) + len(self.also) > MOST:
            return index_keys_of_selector(self.pods, None)
        return index_keys_of_selector(self.pods, self.also.union(self.namespaces))


def terms_nbytes(terms: Iterable[Weighted[ResolvedPeers]]) -> int:
    """Estimate the memory of terms.

    Units: bytes.
    """
    shared = {id(one.said.namespaces): one.said.namespaces for one in terms if one.said.namespaces is not None}
    own = sum(BYTES_PER_TERM + one.said.pods.nbytes + BYTES_PER_NAME * len(one.said.also) for one in terms)
    return own + sum(one.nbytes for one in shared.values())


class Weighted(NamedTuple, Generic[T]):
    """Something that is said about pods: by which topology key, and what each of these pods adds."""

    key: str
    weight: int
    said: T


def meant_by(peers: PeerSelector, namespaces: Namespaces) -> ResolvedPeers:
    """Resolve the namespaces of a term of the pod to place.

    kube-scheduler adds the namespaces that the selector matches and then still asks the selector, but about no labels
    at all: one that only says what must not be there means every namespace.
    """
    selector = peers.namespace_selector
    if selector.matches({}):
        return ResolvedPeers(peers.pods, None)
    return ResolvedPeers(peers.pods, namespaces.selected(selector), peers.namespaces)


class ResolvedTerms:
    """Terms of a pod to place with the namespaces that their namespaceSelectors select, and whether these are others.

    Args:
        stated: What the terms were read of; it is not held, as it may be far longer than what is resolved.
        labels: The labels of namespaces at any time.
        changes: Which of them changed.

    Attributes:
        terms: The terms.
        nbytes: The memory that they take. Units: bytes.
        counted: The counters of the pods that they mean by topology keys that nodes have, and at which generation of
            nodes' labels these were found; None where they were not.
    """

    __slots__ = ("__weakref__", "_changes", "_labels", "_seen", "_selecting", "_stated", "counted", "nbytes", "terms")

    def __init__(self, stated: PodTerms, labels: Mapping[str, Mapping[str, str]], changes: NamespaceChanges) -> None:
        self._stated = ref(stated)
        self._labels, self._changes = labels, changes
        self._seen = changes.position
        self.terms: list[Weighted[ResolvedPeers]] = []
        self._selecting: Sequence[tuple[PeerSelector, NamespaceSet]] = ()
        """The peers whose namespaces depend on labels, with the names that were found."""
        self.nbytes = 0
        self.counted: tuple[int, list[KeyedCounter]] | None = None

    def resolve(self, terms: Iterable[tuple[int, AffinityTerm]], namespaces: Namespaces) -> None:
        """Resolve terms, each with its weight."""
        resolved: dict[PeerSelector, ResolvedPeers] = {}
        for some in in_portions([*terms], lambda one: len(one[1].peers.namespace_selector.requirements or ())):
            namespaces.refresh()
            namespaces.prepare(term.peers.namespace_selector for _, term in some)
            for weight, (peers, key) in some:
                found = resolved.get(peers)
                if found is None:
                    found = resolved[peers] = meant_by(peers, namespaces)
                self.terms.append(Weighted(key, weight, found))
        self._selecting = [
            (peers, found.namespaces)
            for peers, found in resolved.items()
            if peers.reads_namespaces and found.namespaces is not None
        ]
        self.nbytes = terms_nbytes(self.terms)

    def are_of(self, stated: PodTerms) -> bool:
        """Return whether they were read of these very terms of a pod."""
        return self._stated() is stated

    def are_outdated(self) -> bool:
        """Return whether the selectors may select other namespaces now.

        Cost: O(selectors times namespaces that changed since they were asked last), where these are not very many.
        """
        if self._seen == self._changes.position:
            return False
        if self._selecting:
            changed = self._changes.since(self._seen)
            if changed is None or len(changed) * len(self._selecting) > MOST_ASKED:
                return True
            for name in changed:
                labels = self._labels.get(name)
                for peers, names in self._selecting:
                    is_in = labels is not None and peers.namespace_selector.matches(labels)
                    if is_in != (name in names):
                        return True
        self._seen = self._changes.position
        return False


class WeighedByTerms:
    """What a placed pod weighs by many terms.

    Args:
        terms: what each of them adds for a pod that it means.
    """

    __slots__ = ("_by_index_key", "_by_selector", "index_keys")

    def __init__(self, terms: Iterable[tuple[ResolvedPeers, int]]) -> None:
        by_selector: dict[LabelMatcher, dict[_Inside, int]] = {}
        terms = [*terms]
        for meant, weight in terms:
            by_namespaces = by_selector.setdefault(meant.pods, {})
            inside = meant.namespaces, meant.also
            by_namespaces[inside] = by_namespaces.get(inside, 0) + weight
        self._by_selector: Mapping[LabelMatcher, Mapping[_Inside, int]] = by_selector
        self._by_index_key: dict[IndexKey, list[tuple[LabelMatcher, Mapping[_Inside, int]]]] = {}
        for selector, weights in by_selector.items():
            for index_key in index_keys_of_selector(selector, None, MOST_PER_TERM):
                self._by_index_key.setdefault(index_key, []).append((selector, weights))
        self.index_keys: Collection[IndexKey] = self._with_namespaces(meant for meant, _ in terms)
        """What a pod that any of them means has one of: of many, a label in any namespace."""

    def _with_namespaces(self, terms: Iterable[ResolvedPeers]) -> Collection[IndexKey]:
        """Return the index keys of terms, those without namespaces where they are many."""
        index_keys: dict[IndexKey, None] = {}
        for meant in terms:
            index_keys |= dict.fromkeys(meant.index_keys)
            if len(index_keys) > max(MOST, len(self._by_index_key)):
                return tuple(self._by_index_key)
        return tuple(index_keys)

    def __call__(self, placed: PlacedPod) -> int:
        """Weigh a pod."""
        namespace, labels = placed.pod.metadata.namespace, placed.pod.metadata.labels
        total = 0
        for index_key in index_keys_met(namespace, labels, self._by_index_key):
            for selector, weights in self._by_index_key[index_key]:
                weight = sum(
                    one
                    for (namespaces, also), one in weights.items()
                    if namespaces is None or namespace in namespaces or namespace in also
                )
                if weight and selector.matches(labels):
                    total += weight
        return total

    def all(self, labels: SignatureLabels) -> NDArray[np.int64]:
        """Weigh all signatures. Shapes: (S,)."""
        labels.prepare(self._by_selector)
        present = labels.present()
        totals: NDArray[np.int64] = np.zeros(present.size, np.int64)
        of_label: dict[_Inside, dict[str, list[tuple[LabelMatcher, int]]]] = {}
        for selector, weights in self._by_selector.items():
            if len(selector.keys) == 1:
                (label,) = selector.keys
                for inside, weight in weights.items():
                    of_label.setdefault(inside, {}).setdefault(label, []).append((selector, weight))
                continue
            chosen = present.copy()
            labels.restrict(chosen, selector)
            for inside, weight in weights.items():
                meant = chosen.copy()
                labels.within(meant, *inside)
                totals[meant] += weight
        for inside, by_its_label in of_label.items():
            added: NDArray[np.int64] = np.zeros(present.size, np.int64)
            added += sum(labels.add_by_label(added, label, weighted) for label, weighted in by_its_label.items())
            meant = present.copy()
            labels.within(meant, *inside)
            totals[meant] += added[meant]
        return totals


class WeighedByExistingTerms:
    """What a placed pod weighs by what it states.

    Args:
        existing_terms: who states what.
        weights: what each existing term adds that counts, by number.
    """

    __slots__ = ("_existing_terms", "_weights")

    def __init__(self, existing_terms: ExistingTerms, weights: Iterable[tuple[int, int]]) -> None:
        self._existing_terms = existing_terms
        self._weights = dict(weights)

    def __call__(self, placed: PlacedPod) -> int:
        """Weigh a pod."""
        weights = self._weights
        stated = self._existing_terms.of_signature(placed.signature)
        if len(weights) < len(stated):
            return sum(stated.get(one, 0) * weight for one, weight in weights.items())
        return sum(times * weights.get(one, 0) for one, times in stated.items())


def apart(said: Iterable[Weighted[T]]) -> dict[tuple[str, int], list[Weighted[T]]]:
    """Part what is said by topology key and by what adds, what takes away and what does neither (1, -1, 0).

    So sums in each part are 0 only where nothing counts.
    """
    parts: dict[tuple[str, int], list[Weighted[T]]] = {}
    for one in said:
        sign = (one.weight > 0) - (one.weight < 0)
        parts.setdefault((one.key, sign), []).append(one)
    return parts


def sizes(alike: Iterable[Weighted[T]]) -> frozenset[tuple[T, int]]:
    """Return what each adds or takes away, 1 where that is nothing."""
    found: dict[T, int] = {}
    for one in alike:
        found[one.said] = found.get(one.said, 0) + (abs(one.weight) or 1)
    return frozenset(found.items())


def in_portions(said: Sequence[T], requirements: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Part what is said so that each part has about so many requirements."""
    start = stated = 0
    for end, one in enumerate(said, 1):
        stated += 1 + requirements(one)
        if stated >= TOGETHER or end == len(said):
            yield said[start:end]
            start, stated = end, 0
