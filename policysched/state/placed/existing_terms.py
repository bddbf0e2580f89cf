"""`ExistingTerms`: the different affinity terms of placed pods, indexed by the incoming pods that they match.

Each term is stored once, with the signatures of the pods that have it. Terms that match the same pods share a
`PeerSelector`, which is evaluated once and indexed by labels of these pods.

Source: pkg/scheduler/framework/types.go (NodeInfo.PodsWithAffinity, PodsWithRequiredAntiAffinity), v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from itertools import takewhile

from policysched.model.objects import Pod
from policysched.model.selection.pod_affinity import ExistingTerm, PeerSelector, existing_terms
from policysched.state.placed.selector_index import IndexKey, index_keys_met, index_keys_of_peers

ByNumber = dict[int, ExistingTerm]


class ExistingTerms:
    """The different affinity terms of placed pods; each term has a number that no other term ever gets."""

    __slots__ = (
        *("_by_index_key", "_by_signature", "_by_peers", "_namespace_keys", "_signatures", "_next", "_numbers"),
        "ever",
    )

    def __init__(self) -> None:
        self.ever = False
        """Whether a placed pod ever had an affinity term."""
        self._next = 0
        self._numbers: dict[ExistingTerm, int] = {}
        self._by_signature: dict[int, dict[int, int]] = {}
        self._signatures: dict[int, tuple[ExistingTerm, set[int]]] = {}
        self._by_peers: dict[PeerSelector, ByNumber] = {}
        self._by_index_key: dict[IndexKey, dict[PeerSelector, ByNumber]] = {}
        self._namespace_keys: Counter[str] = Counter()
        """For each namespace label, the number of affinity terms' pod selectors that read it."""

    def appear(self, signature: int, pod: Pod) -> None:
        """Add the affinity terms of a newly placed pod's signature, which all alike pods share."""
        stated = existing_terms(pod)
        if not stated:
            return
        times_by_number = self._by_signature[signature] = {}
        for existing, times in stated.items():
            number = self._numbers.get(existing)
            if number is None:
                number = self._file(existing)
            self._signatures[number][1].add(signature)
            times_by_number[number] = times

    def vanish(self, signature: int) -> None:
        """Remove the affinity terms of a signature (set of alike pods) whose last pod was removed."""
        for number in self._by_signature.pop(signature, ()):
            existing, signatures = self._signatures[number]
            signatures.discard(signature)
            if not signatures:
                self._remove(number, existing)

    def about(
        self,
        pod: Pod,
        namespace_labels: Mapping[str, str],
        counts: Callable[[ExistingTerm], bool] = lambda term: True,  # noqa: ARG005 - selects all
        since: int = 0,
    ) -> list[tuple[int, ExistingTerm]]:
        """Return the affinity terms of placed pods that match a pod, each with its number.

        Args:
            pod: The pod.
            namespace_labels: The labels of the pod's namespace.
            counts: Selects terms.
            since: Smallest number of the terms to return.

        Cost: O(labels of the pod + peer selectors found by them + matching terms), or O(terms from `since` on) if that
            is less.
        """
        metadata = pod.metadata
        met = index_keys_met(metadata.namespace, metadata.labels, self._by_index_key)
        if since and self._next - since <= sum(len(self._by_index_key[index_key]) for index_key in met):
            newest = takewhile(lambda number: number >= since, reversed(self._signatures))
            stated = [(number, self._signatures[number][0]) for number in newest]
            return [one for one in stated if counts(one[1]) and one[1].term.peers.matches(pod, namespace_labels)]
        found: list[tuple[int, ExistingTerm]] = []
        for index_key in met:
            for peers, together in self._by_index_key[index_key].items():
                if next(reversed(together)) < since:
                    continue
                counting = [one for one in together.items() if one[0] >= since and counts(one[1])]
                if counting and peers.matches(pod, namespace_labels):
                    found += counting
        return found

    @property
    def read_namespaces(self) -> bool:
        """Whether the namespaceSelector of any term reads labels."""
        return bool(self._namespace_keys)

    def read_any(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Return whether any term reads a namespace label that differs between two versions of a namespace's labels."""
        return any(
            before.get(key) != after.get(key) for key in self._namespace_keys.keys() & (before.keys() | after.keys())
        )

    def of_signature(self, signature: int) -> Mapping[int, int]:
        """Return, by number, the affinity terms of alike pods (a signature), with how often each term occurs."""
        return self._by_signature.get(signature, {})

    def signatures(self, number: int) -> Collection[int]:
        """Return the signatures (sets of alike pods) that have the affinity term with a given number."""
        return self._signatures[number][1] if number in self._signatures else ()

    @property
    def next_number(self) -> int:
        """The number that the next new affinity term gets; removing terms does not change it."""
        return self._next

    def __contains__(self, number: int) -> bool:
        return number in self._signatures

    def __len__(self) -> int:
        return len(self._numbers)

    def _file(self, existing: ExistingTerm) -> int:
        self.ever = True
        number = self._numbers[existing] = self._next
        self._next += 1
        self._signatures[number] = existing, set()
        peers = existing.term.peers
        together = self._by_peers.get(peers)
        if together is None:
            together = self._file_peers(peers)
        together[number] = existing
        return number

    def _file_peers(self, peers: PeerSelector) -> ByNumber:
        together: ByNumber = {}
        self._by_peers[peers] = together
        self._namespace_keys.update(peers.namespace_selector.keys)
        for index_key in index_keys_of_peers(peers):
            self._by_index_key.setdefault(index_key, {})[peers] = together
        return together

    def _remove(self, number: int, existing: ExistingTerm) -> None:
        del self._signatures[number]
        del self._numbers[existing]
        peers = existing.term.peers
        together = self._by_peers[peers]
        del together[number]
        if together:
            return
        del self._by_peers[peers]
        for key in peers.namespace_selector.keys:
            self._namespace_keys[key] -= 1
            if not self._namespace_keys[key]:
                del self._namespace_keys[key]
        for index_key in index_keys_of_peers(peers):
            filed = self._by_index_key[index_key]
            del filed[peers]
            if not filed:
                del self._by_index_key[index_key]
