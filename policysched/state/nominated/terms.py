"""The required anti-affinity of nominated pods, filed by the pods that it means, and which of it is about a pod class.

Knows terms, labels and topology keys that nodes have, neither nominations nor rows. What pods state alike is held once,
by number. A class keeps one bit for each number and topology key: it asks about all that is stated when it first comes,
only what its labels lead to, and later about what has appeared since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Metadata, Pod
from policysched.model.selection.pod_affinity import PeerSelector, pod_terms
from policysched.state.placed.selector_index import IndexKey, index_keys_met, index_keys_of_peers
from policysched.state.tables.nodes import NodeTable

Stated = tuple[tuple[PeerSelector, tuple[str, ...]], ...]
"""Peers, each with the topology keys by which they are kept away."""
NONE: Final = 0
"""The number of pods that state no required anti-affinity."""
LEAST_LOGGED = 1024
"""How many numbers that appeared are known at least, beside as many as there are."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class _Holder:
    """What pods of one required anti-affinity state."""

    __slots__ = ("_generation", "_present", "filed", "key", "keys", "stated", "uses")

    def __init__(self, key: tuple[str, bytes], stated: Stated) -> None:
        self.key, self.stated, self.uses = key, stated, 1
        self.keys = (*dict.fromkeys(one for keys in dict.fromkeys(keys for _, keys in stated) for one in keys),)
        """The topology keys that are stated."""
        self.filed: Stated = ()
        """Under what it is filed, with the topology keys that nodes had then."""
        self._present: Stated = ()
        self._generation = -1

    def present(self, keys: Set[str], generation: int) -> Stated:
        """Return what it states by some topology keys, which are others when their generation is.

        Cost: O(topology keys stated) for another generation.
        """
        if self._generation != generation:
            self._generation = generation
            alike: dict[tuple[str, ...], tuple[str, ...]] = {}
            for stated in dict.fromkeys(stated for _, stated in self.stated):
                alike[stated] = tuple(key for key in stated if key in keys)
            self._present = tuple((peers, alike[stated]) for peers, stated in self.stated if alike[stated])
        return self._present


class RepellingTerms:
    """What nominated pods state that keeps others away, by number; numbers of what nobody states are used again.

    It is filed when somebody lists what is about a class, so that what no node's labels have costs no list anything.
    """

    __slots__ = ("_by_index_key", "_by_key", "_by_peers", "_first", "_followed", "_free", "_holders", "_keys",
                 "_labels", "_log", "_unfiled", "generation", "reads_namespaces", "unfiled")  # fmt: skip

    def __init__(self) -> None:
        self._first = 0
        """The position of the first number in the log."""
        self._log: list[int] = []
        self.generation = 0
        """Moves when nodes have other ones of the topology keys that are stated."""
        self.clear()

    def clear(self) -> None:
        """Forget all of it: nobody states anything."""
        self.reads_namespaces = False
        """Whether there was a term that depends on the labels of namespaces."""
        self._holders: list[_Holder | None] = [None]
        self._free: list[int] = []
        self._by_key: dict[tuple[str, bytes], int] = {}
        self._unfiled: OrderedDict[int, int] = OrderedDict()
        """What is not filed yet, with the number of its peers."""
        self.unfiled = 0
        """How many peers are to be filed before the next list."""
        self._by_peers: dict[PeerSelector, dict[int, tuple[str, ...]]] = {}
        self._by_index_key: dict[IndexKey, dict[PeerSelector, dict[int, tuple[str, ...]]]] = {}
        self._keys: set[str] = set()
        """The topology keys that are stated and nodes have; some may not be stated any more."""
        self._labels = self._followed = -1
        """The generation of nodes' label keys, and the version, that they are of."""
        self._first = self.version + 1
        self._log = []

    @property
    def version(self) -> int:
        """How many have appeared."""
        return self._first + len(self._log)

    @property
    def size(self) -> int:
        """One more than the highest number."""
        return len(self._holders)

    def enter(self, pod: Pod, like: int | None = None) -> int:
        """Count a pod; return the number of what it states.

        Args:
            pod: The pod.
            like: The number of a pod that states the same, None where that is not known.

        Cost: O(required anti-affinity terms of the pod), O(1) where it is like another.
        """
        if like is not None:
            held = self._holders[like]
            if held is not None:
                held.uses += 1
            return like
        affinity = pod.spec.affinity
        away = None if affinity is None else affinity.pod_anti_affinity
        if away is None or not away.required:
            return NONE
        key = pod.metadata.namespace, _ENCODER.encode(away.required)
        number = self._by_key.get(key)
        return self._appear(key, pod) if number is None else self.enter(pod, number)

    def leave(self, number: int) -> None:
        """Take a pod's count back.

        Cost: O(what it states) where no other pod states the same.
        """
        held = self._holders[number]
        if held is None:
            return
        held.uses -= 1
        if held.uses:
            return
        self._unfile(number, held)
        del self._by_key[held.key]
        self._holders[number] = None
        self._free.append(number)

    def since(self, position: int) -> Sequence[int] | None:
        """Return the numbers that appeared from a position of the version on, None where that is not known any more."""
        return None if position < self._first else self._log[position - self._first :]

    def follow(self, nodes: NodeTable) -> None:
        """Look which topology keys nodes have.

        Cost: O(topology keys stated) by what appeared, or by all after a node was the first or last to have a label.
        """
        if self._labels != nodes.label_keys_generation:
            self._labels, self._followed = nodes.label_keys_generation, self.version
            keys = {key for held in self._holders if held is not None for key in held.keys if nodes.has_label(key)}
            if keys != self._keys:
                self._keys = keys
                self.generation += 1
                self._file_anew()
        elif self._followed != self.version:
            appeared = self.since(self._followed)
            self._followed = self.version
            for held in self._holders if appeared is None else map(self._holders.__getitem__, appeared):
                if held is not None:
                    self._keys.update(key for key in held.keys if nodes.has_label(key))

    def stated(self, number: int, nodes: NodeTable) -> Stated:
        """Return what the pods of a number state by topology keys that nodes have."""
        self.follow(nodes)
        held = self._holders[number] if number < len(self._holders) else None
        return () if held is None else held.present(self._keys, self.generation)

    def led_to(self, pod: Pod) -> int:
        """Count the peers that are filed and have to be asked whether they mean a pod.

        Cost: O(labels of the pod).
        """
        metadata = pod.metadata
        met = index_keys_met(metadata.namespace, metadata.labels, self._by_index_key)
        return sum(len(self._by_index_key[index_key]) for index_key in met)

    def file(self, nodes: NodeTable) -> None:
        """File what is not filed by the topology keys that nodes have.

        Cost: O(peers not filed).
        """
        for number in [*self._unfiled]:
            self._file(number, nodes)

    def about(self, pod: Pod, namespace_labels: Mapping[str, str], bits: dict[str, bytearray]) -> None:
        """Mark what is filed and means a pod.

        Args:
            pod: The pod.
            namespace_labels: The labels of its namespace.
            bits: By topology key, and there by number, 1 for what means the pod; taken as far as it is known already.

        Cost: O(labels of the pod + peers that one of them leads to).
        """
        metadata = pod.metadata
        for index_key in index_keys_met(metadata.namespace, metadata.labels, self._by_index_key):
            for peers, together in self._by_index_key[index_key].items():
                if _is_news(together, bits) and peers.matches(pod, namespace_labels):
                    _mark_all(bits, together, self.size)

    def _file_anew(self) -> None:
        self._by_peers, self._by_index_key, self._unfiled, self.unfiled = {}, {}, OrderedDict(), 0
        for number, held in enumerate(self._holders):
            if held is not None:
                held.filed = ()
                self._put_off(number, held)

    def _put_off(self, number: int, held: _Holder) -> None:
        self._unfiled[number] = len(held.stated)
        self.unfiled += len(held.stated)

    def _file(self, number: int, nodes: NodeTable) -> None:
        stated, held = self.stated(number, nodes), self._holders[number]
        self.unfiled -= self._unfiled.pop(number)
        if held is None:
            return
        held.filed = stated
        for peers, keys in held.filed:
            together = self._by_peers.get(peers)
            if together is None:
                together = self._by_peers[peers] = {}
                for index_key in index_keys_of_peers(peers):
                    self._by_index_key.setdefault(index_key, {})[peers] = together
            together[number] = keys

    def _appear(self, key: tuple[str, bytes], pod: Pod) -> int:
        by_peers: dict[PeerSelector, dict[str, None]] = {}
        for term in pod_terms(pod).anti_affinity:
            by_peers.setdefault(term.peers, {})[term.topology_key] = None
        alike: dict[tuple[str, ...], tuple[str, ...]] = {}
        stated = tuple((peers, alike.setdefault(one, one)) for peers, keys in by_peers.items() for one in [(*keys,)])
        if not stated:
            return NONE
        self.reads_namespaces = self.reads_namespaces or any(peers.reads_namespaces for peers in by_peers)
        held = _Holder(key, stated)
        if self._free:
            number = self._free.pop()
            self._holders[number] = held
        else:
            number = len(self._holders)
            self._holders.append(held)
        self._by_key[key] = number
        self._put_off(number, held)
        self._log.append(number)
        if len(self._log) > LEAST_LOGGED + 2 * len(self._holders):
            gone = len(self._log) // 2
            self._first += gone
            del self._log[:gone]
        return number

    def _unfile(self, number: int, held: _Holder) -> None:
        self.unfiled -= self._unfiled.pop(number, 0)
        for peers, _ in held.filed:
            together = self._by_peers[peers]
            del together[number]
            if together:
                continue
            del self._by_peers[peers]
            for index_key in index_keys_of_peers(peers):
                filed = self._by_index_key[index_key]
                del filed[peers]
                if not filed:
                    del self._by_index_key[index_key]


class RepelledClass:
    """Which of what nominated pods state keeps the pods of one class away.

    Args:
        pod: A pod of the class: its namespace and labels are read.
    """

    __slots__ = ("_bits", "_generation", "_labels", "_pod", "_position", "_terms")

    def __init__(self, pod: Pod) -> None:
        self._pod = Pod(metadata=Metadata(namespace=pod.metadata.namespace, labels=pod.metadata.labels))
        self._terms: RepellingTerms | None = None
        self._position = self._generation = -1
        self._labels: Mapping[str, str] = {}
        self._bits: dict[str, bytearray] = {}

    def by_key(
        self, terms: RepellingTerms, nodes: NodeTable, namespace_labels: Mapping[str, str]
    ) -> Mapping[str, NDArray[np.bool_]]:
        """Return by topology key which numbers keep the class away; keys that no node has are left out.

        Args:
            terms: What nominated pods state.
            nodes: The nodes.
            namespace_labels: The labels of the class's namespace.

        Cost: O(peers that appeared), or those that the labels of the class lead to where these are fewer; all that
            these lead to when nodes got other label keys.
        Shapes: (numbers,), to be read at once.
        """
        self._renew(terms, nodes, namespace_labels)
        return {key: np.frombuffer(bits, np.bool_) for key, bits in self._bits.items()}

    def _renew(self, terms: RepellingTerms, nodes: NodeTable, namespace_labels: Mapping[str, str]) -> None:
        terms.follow(nodes)
        holds = self._is_about(terms, namespace_labels)
        if holds and self._position == terms.version:
            return
        appeared = terms.since(self._position) if holds else None
        self._terms, self._labels = None, namespace_labels  # until it is done
        if appeared is None or self._is_listed_sooner(appeared, terms, nodes):
            self._bits = {}
            terms.file(nodes)
            terms.about(self._pod, namespace_labels, self._bits)
        else:
            self._take(appeared, terms, nodes)
        for key, bits in self._bits.items():
            if len(bits) < terms.size:
                self._bits[key] = bits + bytes(terms.size - len(bits))
        self._terms, self._position, self._generation = terms, terms.version, terms.generation

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return sum(len(bits) + 128 for bits in self._bits.values())

    def _is_about(self, terms: RepellingTerms, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether what is known holds, as far as it goes."""
        if self._terms is not terms or self._generation != terms.generation:
            return False
        return self._labels is namespace_labels or not terms.reads_namespaces or self._labels == namespace_labels

    def _is_listed_sooner(self, appeared: Iterable[int], terms: RepellingTerms, nodes: NodeTable) -> bool:
        """Return whether more is asked about what appeared than if all were listed anew."""
        asked = sum(len(terms.stated(number, nodes)) for number in appeared)
        return asked > terms.unfiled + terms.led_to(self._pod)

    def _take(self, appeared: Iterable[int], terms: RepellingTerms, nodes: NodeTable) -> None:
        """Ask about what appeared; a number may have stood for something else before."""
        answers: dict[PeerSelector, bool] = {}
        for number in dict.fromkeys(appeared):
            for of_key in self._bits.values():
                of_key[number : number + 1] = bytes(len(of_key[number : number + 1]))
            for peers, keys in terms.stated(number, nodes):
                if _is_news({number: keys}, self._bits) and self._is_meant(peers, answers):
                    _mark(self._bits, number, keys, terms.size)

    def _is_meant(self, peers: PeerSelector, answers: dict[PeerSelector, bool]) -> bool:
        answer = answers.get(peers)
        if answer is None:
            answer = answers[peers] = peers.matches(self._pod, self._labels)
        return answer


def _is_news(together: Mapping[int, Sequence[str]], bits: Mapping[str, bytearray]) -> bool:
    """Return whether any of some numbers and topology keys is not marked."""
    for number, keys in together.items():
        for key in keys:
            of_key = bits.get(key)
            if of_key is None or number >= len(of_key) or not of_key[number]:
                return True
    return False


def _mark_all(bits: dict[str, bytearray], together: Mapping[int, Sequence[str]], size: int) -> None:
    for number, keys in together.items():
        _mark(bits, number, keys, size)


def _mark(bits: dict[str, bytearray], number: int, keys: Sequence[str], size: int) -> None:
    for key in keys:
        of_key = bits.get(key, bytearray())
        if len(of_key) <= number:
            bits[key] = of_key = of_key + bytes(
                max(size, number + 1) - len(of_key)
            )  # another one: somebody may look at the first
        of_key[number] = 1
