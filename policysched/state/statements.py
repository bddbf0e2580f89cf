"""What placed pods state about other pods, each distinct statement once, findable by the pods that it is about.

Knows kinds of placed pods and their affinity terms, no nodes. Thousands of pods often state the same few terms, and
thousands of terms are often about a few pods each; so a statement is kept once, with the kinds that state it, and filed
under anchors of the pods that it means.

Source: pkg/scheduler/framework/types.go (NodeInfo.PodsWithAffinity, PodsWithRequiredAntiAffinity), v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from policysched.model.objects import Pod
from policysched.model.pod_affinity import AffinityTerm, Statement, statements
from policysched.state.anchors import Anchor, anchors_met, anchors_of_selector


class Statements:
    """The statements of the pods that are placed."""

    __slots__ = ("_by_anchor", "_by_kind", "_kinds", "ever", "read_namespaces", "version")

    def __init__(self) -> None:
        self.version = 0
        """Moves when a distinct statement appears. One that goes may stay with who knows it: nothing counts for it."""
        self.ever = False
        """Whether there ever was a statement."""
        self.read_namespaces = False
        """Whether there ever was one that depended on the labels of namespaces."""
        self._by_kind: dict[int, Mapping[Statement, int]] = {}
        self._kinds: dict[Statement, set[int]] = {}
        self._by_anchor: dict[Anchor, dict[Statement, None]] = {}

    def appear(self, kind: int, pod: Pod) -> None:
        """Take in what the pods of a new kind state."""
        stated = statements(pod)
        if not stated:
            return
        self._by_kind[kind] = stated
        for statement in stated:
            kinds = self._kinds.get(statement)
            if kinds is None:
                kinds = self._kinds[statement] = set()
                self._file(statement)
            kinds.add(kind)

    def vanish(self, kind: int) -> None:
        """Forget what the pods of a kind stated that has none any more."""
        for statement in self._by_kind.pop(kind, ()):
            kinds = self._kinds[statement]
            kinds.discard(kind)
            if not kinds:
                del self._kinds[statement]
                self._remove(statement)

    def about(
        self,
        pod: Pod,
        namespace_labels: Mapping[str, str],
        counts: Callable[[Statement], bool] = lambda statement: True,  # noqa: ARG005 - all count
    ) -> list[Statement]:
        """List the statements that count and mean a pod, given the labels of its namespace.

        Cost: O(labels of the pod + statements that one of them leads to).
        """
        metadata = pod.metadata
        return [
            statement
            for anchor in anchors_met(metadata.namespace, metadata.labels, self._by_anchor)
            for statement in self._by_anchor[anchor]
            if counts(statement) and statement.term.matches(pod, namespace_labels)
        ]

    def of_kind(self, kind: int) -> Mapping[Statement, int]:
        """Give how often the pods of a kind state what."""
        return self._by_kind.get(kind, {})

    def kinds(self, statement: Statement) -> Collection[int]:
        """Give the kinds whose pods state something."""
        return self._kinds.get(statement, ())

    def _file(self, statement: Statement) -> None:
        self.version += 1
        self.ever = True
        self.read_namespaces |= statement.term.reads_namespaces
        for anchor in _anchors(statement.term):
            self._by_anchor.setdefault(anchor, {})[statement] = None

    def _remove(self, statement: Statement) -> None:
        for anchor in _anchors(statement.term):
            filed = self._by_anchor[anchor]
            del filed[statement]
            if not filed:
                del self._by_anchor[anchor]


def _anchors(term: AffinityTerm) -> list[Anchor]:
    named = term.namespace_selector.selects_nothing
    return anchors_of_selector(term.pods, term.namespaces if named else None)
