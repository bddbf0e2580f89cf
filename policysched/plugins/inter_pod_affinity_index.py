"""The terms of placed pods, each distinct one once, findable by the pods that they are about.

Knows kinds of placed pods and what they state, no nodes. Thousands of pods often state the same few terms, and
thousands of terms are often about a few pods each; so a statement is kept once, filed under a namespace and a label
that a pod must have to be meant. Statements whose pods are gone may stay filed for a while: nothing counts for them
any more, and leaving them costs less than looking for them at each removal.

Source: plugins/interpodaffinity (getExistingAntiAffinityCounts, processExistingPod), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policysched.model.objects import Pod
from policysched.model.pod_affinity import AffinityTerm, Statement, statements
from policysched.model.selectors import Operator
from policysched.state.kinds import Kinds
from policysched.state.pods import PlacedPod
from policysched.state.tallies import Tallies, Tally

Anchor = tuple[str | None, str | None, str | None]
"""A namespace, a label and its value that a pod must have to be meant; None stands for any."""
SPARE = 64


class ExistingTerms:
    """What the placed pods of one cluster state about other pods."""

    def __init__(self, kinds: Kinds, tallies: Tallies) -> None:
        self.version = 0
        """Moves when a distinct statement is filed."""
        self.used = False
        """Whether any placed pod ever stated anything."""
        self.reads_namespaces = False
        """Whether any statement ever depended on the labels of namespaces."""
        self._kinds = kinds
        self._tallies = tallies
        self._epoch = -1
        self._seen: dict[int, PlacedPod] = {}
        self._stated: dict[int, tuple[PlacedPod, Mapping[Statement, int]]] = {}
        self._filed: dict[Statement, None] = {}
        self._by_anchor: dict[Anchor, list[Statement]] = {}
        self._limit = 0

    def catch_up(self) -> None:
        """File what came since the last time.

        Cost: O(affine kinds that came); now and then, after as many new statements, O(affine kinds).
        """
        if self._epoch == self._kinds.affine_epoch:
            return
        self._epoch = self._kinds.affine_epoch
        for kind, placed in self._newcomers():
            self._seen[kind] = placed
            self._file_all(placed)
        if len(self._filed) > self._limit:
            self._start_over()

    def about(self, pod: Pod, namespace_labels: Mapping[str, str]) -> list[Statement]:
        """List the distinct statements that mean a pod, given the labels of its namespace.

        Cost: O(labels of the pod + statements that one of them leads to).
        """
        labels: list[tuple[str | None, str | None]] = [(None, None), *pod.metadata.labels.items()]
        found = [
            statement
            for namespace in (pod.metadata.namespace, None)
            for key, value in labels
            for statement in self._by_anchor.get((namespace, key, value), ())
        ]
        return [one for one in found if one.term.matches(pod, namespace_labels)]

    def tally(self, statement: Statement) -> Tally:
        """Count by row how often placed pods state something."""
        return self._tallies.of(("affinity statement", statement), lambda placed: self._times(placed, statement))

    def _newcomers(self) -> list[tuple[int, PlacedPod]]:
        """List the affine kinds that were not filed yet, oldest first; they are the last of the table."""
        found = []
        for kind, placed in reversed(self._kinds.affine.items()):
            if self._seen.get(kind) is placed:
                break
            found.append((kind, placed))
        return found[::-1]

    def _file_all(self, placed: PlacedPod) -> None:
        for statement in self._statements(placed):
            if statement not in self._filed:
                self._file(statement)

    def _file(self, statement: Statement) -> None:
        self._filed[statement] = None
        self.version += 1
        self.used = True
        self.reads_namespaces |= statement.term.reads_namespaces
        for anchor in _anchors(statement.term):
            self._by_anchor.setdefault(anchor, []).append(statement)

    def _start_over(self) -> None:
        """File the statements of the pods that are there, and allow for as many that go."""
        self._seen = dict(self._kinds.affine)
        self._stated = {kind: kept for kind, kept in self._stated.items() if self._seen.get(kind) is kept[0]}
        self._filed, self._by_anchor = {}, {}
        for placed in self._seen.values():
            self._file_all(placed)
        self._limit = 2 * len(self._filed) + len(self._seen) // 8 + SPARE

    def _statements(self, placed: PlacedPod) -> Mapping[Statement, int]:
        kept = self._stated.get(placed.kind)
        if kept is None or kept[0] is not placed:
            kept = self._stated[placed.kind] = (placed, statements(placed.pod))
        return kept[1]

    def _times(self, placed: PlacedPod, statement: Statement) -> int:
        return 0 if placed.pod.spec.affinity is None else self._statements(placed).get(statement, 0)


def _anchors(term: AffinityTerm) -> Iterator[Anchor]:
    """Name what a pod must have one of to be meant."""
    if term.pods.selects_nothing:
        return
    exact = next((one for one in term.pods.requirements or () if one.operator is Operator.IN), None)
    labels: list[tuple[str | None, str | None]] = [(None, None)]
    if exact is not None:
        labels = [(exact.key, value) for value in exact.values]
    named = term.namespace_selector.selects_nothing
    for namespace in term.namespaces if named else (None,):
        for key, value in labels:
            yield namespace, key, value
