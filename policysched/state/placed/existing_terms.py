"""What placed pods state about other pods, each distinct statement once, findable by the pods that it is about.

Knows kinds of placed pods and their affinity terms, no nodes. Thousands of pods often state the same few terms, and
thousands of terms are often about a few pods each; so a statement is kept once, with the kinds that state it. Those
that mean the same pods are kept together, so that they are asked once, and filed under anchors of these pods.

Source: pkg/scheduler/framework/types.go (NodeInfo.PodsWithAffinity, PodsWithRequiredAntiAffinity), v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from policysched.model.objects import Pod
from policysched.model.selection.pod_affinity import PeerSelector, Statement, statements
from policysched.state.placed.selector_index import Anchor, anchors_met, anchors_of_peers

ByNumber = dict[int, Statement]


class Statements:
    """The statements of the pods that are placed.

    Each has a number that is never given to another, so that who knows it keeps the number and not what it says.
    """

    __slots__ = (
        *("_by_anchor", "_by_kind", "_by_peers", "_kinds", "_next", "_numbers"),
        *("ever", "read_namespaces", "version"),
    )

    def __init__(self) -> None:
        self.version = 0
        """Moves when a distinct statement appears. One that goes may stay with who knows it: nothing counts for it."""
        self.ever = False
        """Whether there ever was a statement."""
        self.read_namespaces = False
        """Whether there ever was one that depended on the labels of namespaces."""
        self._next = 0
        self._numbers: dict[Statement, int] = {}
        self._by_kind: dict[int, dict[int, int]] = {}
        self._kinds: dict[int, tuple[Statement, set[int]]] = {}
        self._by_peers: dict[PeerSelector, ByNumber] = {}
        self._by_anchor: dict[Anchor, dict[PeerSelector, ByNumber]] = {}

    def appear(self, kind: int, pod: Pod) -> None:
        """Take in what the pods of a new kind state."""
        stated = statements(pod)
        if not stated:
            return
        times_by_number = self._by_kind[kind] = {}
        for statement, times in stated.items():
            number = self._numbers.get(statement)
            if number is None:
                number = self._file(statement)
            self._kinds[number][1].add(kind)
            times_by_number[number] = times

    def vanish(self, kind: int) -> None:
        """Forget what the pods of a kind stated that has none any more."""
        for number in self._by_kind.pop(kind, ()):
            statement, kinds = self._kinds[number]
            kinds.discard(kind)
            if not kinds:
                self._remove(number, statement)

    def about(
        self,
        pod: Pod,
        namespace_labels: Mapping[str, str],
        counts: Callable[[Statement], bool] = lambda statement: True,  # noqa: ARG005 - all count
    ) -> list[tuple[int, Statement]]:
        """List the statements that count and mean a pod, given the labels of its namespace, with their numbers.

        Cost: O(labels of the pod + peers that one of them leads to + statements about the pod).
        """
        metadata = pod.metadata
        return [
            (number, statement)
            for anchor in anchors_met(metadata.namespace, metadata.labels, self._by_anchor)
            for peers, stated in self._by_anchor[anchor].items()
            if peers.matches(pod, namespace_labels)
            for number, statement in stated.items()
            if counts(statement)
        ]

    def of_kind(self, kind: int) -> Mapping[int, int]:
        """Give how often the pods of a kind state what, by number."""
        return self._by_kind.get(kind, {})

    def kinds(self, number: int) -> Collection[int]:
        """Give the kinds whose pods state something."""
        return self._kinds[number][1] if number in self._kinds else ()

    def __len__(self) -> int:
        return len(self._numbers)

    def _file(self, statement: Statement) -> int:
        self.version += 1
        self.ever = True
        number = self._numbers[statement] = self._next
        self._next += 1
        self._kinds[number] = statement, set()
        peers = statement.term.peers
        together = self._by_peers.get(peers)
        if together is None:
            together = self._file_peers(peers)
        together[number] = statement
        return number

    def _file_peers(self, peers: PeerSelector) -> ByNumber:
        self.read_namespaces |= peers.reads_namespaces
        together: ByNumber = {}
        self._by_peers[peers] = together
        for anchor in anchors_of_peers(peers):
            self._by_anchor.setdefault(anchor, {})[peers] = together
        return together

    def _remove(self, number: int, statement: Statement) -> None:
        del self._kinds[number]
        del self._numbers[statement]
        peers = statement.term.peers
        together = self._by_peers[peers]
        del together[number]
        if together:
            return
        del self._by_peers[peers]
        for anchor in anchors_of_peers(peers):
            filed = self._by_anchor[anchor]
            del filed[peers]
            if not filed:
                del self._by_anchor[anchor]
