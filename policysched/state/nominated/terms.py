"""`RepellingTerms`: required anti-affinity of nominated pods. `RepelledClass`: which of it matches certain pods.

Pods with equal anti-affinity share a number. A class evaluates each number once, until the label keys of nodes or the
labels of the class's namespace change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Metadata, Pod
from policysched.model.selection.pod_affinity import PeerSelector, pod_terms
from policysched.state.tables.nodes import NodeTable
from policysched.state.tables.sparse import is_sparse

Stated = Mapping[PeerSelector, Sequence[str]]
"""A pod's required anti-affinity: for each selector of other pods, the topology keys of its terms."""
NONE: Final = 0
"""The number that stands for no required anti-affinity."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class _Holder:
    """The required anti-affinity of one or more nominated pods, with the number of these pods."""

    __slots__ = ("key", "stated", "uses")

    def __init__(self, key: tuple[str, bytes], stated: Stated) -> None:
        self.key, self.stated, self.uses = key, stated, 1


class RepellingTerms:
    """The different required anti-affinities of nominated pods, by number; a freed number is used again."""

    __slots__ = ("_by_key", "_first", "_free", "_holders", "_log", "reads_namespaces")

    def __init__(self) -> None:
        self._first = 0
        """Position of the oldest entry that is left in the log of assigned anti-affinity numbers."""
        self._log: list[int] = []
        """The numbers of anti-affinities that were assigned most recently, in the order of assignment."""
        self.clear()

    def clear(self) -> None:
        """Remove the anti-affinity of all nominated pods."""
        self.reads_namespaces = False
        """Whether a namespaceSelector of any term reads labels."""
        self._holders: list[_Holder | None] = [None]
        self._free: list[int] = []
        self._by_key: dict[tuple[str, bytes], int] = {}
        self._first = self.position + 1
        self._log = []

    @property
    def position(self) -> int:
        """Position after the newest entry in the log of assigned anti-affinity numbers."""
        return self._first + len(self._log)

    @property
    def size(self) -> int:
        """The highest number that is given to a required anti-affinity, plus 1."""
        return len(self._holders)

    def enter(self, pod: Pod) -> int:
        """Add a nominated pod; return the number that stands for its required anti-affinity.

        Cost: O(required anti-affinity terms of the pod).
        """
        affinity = pod.spec.affinity
        away = None if affinity is None else affinity.pod_anti_affinity
        if away is None or not away.required:
            return NONE
        key = pod.metadata.namespace, _ENCODER.encode(away.required)
        number = self._by_key.get(key)
        held = None if number is None else self._holders[number]
        if number is None or held is None:
            return self._add(key, pod)
        held.uses += 1
        return number

    def leave(self, number: int) -> None:
        """Remove a nominated pod whose required anti-affinity has the given number."""
        held = self._holders[number]
        if held is None:
            return
        held.uses -= 1
        if not held.uses:
            del self._by_key[held.key]
            self._holders[number] = None
            self._free.append(number)

    def since(self, position: int) -> Sequence[int] | None:
        """Return the anti-affinity numbers assigned since a log position; None if the log no longer has them all."""
        return None if position < self._first else self._log[position - self._first :]

    def stated(self, number: int) -> Stated:
        """Return the required anti-affinity that a number stands for."""
        held = self._holders[number]
        return {} if held is None else held.stated

    def _add(self, key: tuple[str, bytes], pod: Pod) -> int:
        keys_of: dict[PeerSelector, dict[str, None]] = {}
        for term in pod_terms(pod).anti_affinity:
            keys_of.setdefault(term.peers, {})[term.topology_key] = None
        if not keys_of:
            return NONE
        self.reads_namespaces = self.reads_namespaces or any(peers.reads_namespaces for peers in keys_of)
        held = _Holder(key, {peers: (*keys,) for peers, keys in keys_of.items()})
        if self._free:
            number = self._free.pop()
            self._holders[number] = held
        else:
            number = len(self._holders)
            self._holders.append(held)
        self._by_key[key] = number
        self._log.append(number)
        if is_sparse(len(self._log), len(self._holders)):
            gone = len(self._log) // 2
            self._first += gone
            del self._log[:gone]
        return number


class RepelledClass:
    """The required anti-affinities of nominated pods that match pods with a given namespace and labels.

    Args:
        pod: A pod of the class; only its namespace and labels are read.
    """

    __slots__ = ("_labels", "_matching", "_pod", "_position", "_stamp", "_terms")

    def __init__(self, pod: Pod) -> None:
        self._pod = Pod(metadata=Metadata(namespace=pod.metadata.namespace, labels=pod.metadata.labels))
        self._terms: RepellingTerms | None = None
        self._position = self._stamp = -1
        self._labels: Mapping[str, str] = {}
        self._matching: dict[str, NDArray[np.bool_]] = {}
        """For each topology key, mask of the numbers of those anti-affinities with this key that match the pods."""

    def by_key(
        self, terms: RepellingTerms, nodes: NodeTable, namespace_labels: Mapping[str, str]
    ) -> Mapping[str, NDArray[np.bool_]]:
        """Return, for each topology key that nodes have, a mask of the numbers of the anti-affinities that match.

        Args:
            terms: The terms of nominated pods.
            nodes: The nodes.
            namespace_labels: The labels of the class's namespace.

        Cost: O(terms of new numbers), or of all numbers after label keys of nodes changed.
        Shapes: (numbers,), valid until the next change.
        """
        is_current = self._is_current(terms, nodes, namespace_labels)
        if is_current and self._position == terms.position:
            return self._matching
        appeared: Iterable[int] | None = terms.since(self._position) if is_current else None
        if appeared is None:
            self._matching, appeared = {}, range(1, terms.size)
        self._labels = namespace_labels
        self._evaluate(dict.fromkeys(appeared), terms, nodes)
        self._terms, self._position, self._stamp = terms, terms.position, nodes.label_keys_stamp
        return self._matching

    @property
    def nbytes(self) -> int:
        """Memory of the cached results. Units: bytes."""
        return sum(matching.nbytes + 128 for matching in self._matching.values())

    def _is_current(self, terms: RepellingTerms, nodes: NodeTable, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the cached results, of numbers that were evaluated before, are still valid."""
        if self._terms is not terms or self._stamp != nodes.label_keys_stamp:
            return False
        return self._labels is namespace_labels or not terms.reads_namespaces or self._labels == namespace_labels

    def _evaluate(self, numbers: Iterable[int], terms: RepellingTerms, nodes: NodeTable) -> None:
        """Evaluate the anti-affinities of newly assigned numbers against the pods' namespace and labels."""
        matching, size = self._matching, terms.size
        for key, known in matching.items():
            if known.size < size:
                matching[key] = np.concatenate((known, np.zeros(size - known.size, np.bool_)))
        answers: dict[PeerSelector, bool] = {}
        for number in numbers:
            for known in matching.values():
                known[number] = False
            for key in self._keys_of(terms.stated(number), nodes, answers):
                if key not in matching:
                    matching[key] = np.zeros(size, np.bool_)
                matching[key][number] = True

    def _keys_of(self, stated: Stated, nodes: NodeTable, answers: dict[PeerSelector, bool]) -> set[str]:
        """Return the topology keys, of those that nodes have, whose terms in an anti-affinity match the pods."""
        found: set[str] = set()
        for peers, keys in stated.items():
            more = [key for key in keys if key not in found and nodes.has_label(key)]
            if not more:
                continue
            matches = answers.get(peers)
            if matches is None:
                matches = answers[peers] = peers.matches(self._pod, self._labels)
            if matches:
                found.update(more)
        return found
