"""What InterPodAffinity prepares for a pod class, and how it keeps that up to date.

Knows compiled terms, tallies and domains. A state lists the statements of placed pods about its class itself, so that
new ones concern only the classes they mean; what a class states of its own is fixed when it is prepared.

Source: plugins/interpodaffinity/filtering.go and scoring.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policysched.framework import NO_ROWS, Codes, RowNumbers, Rows, Scores
from policysched.model.objects import Pod
from policysched.model.pod_affinity import AffinityTerm, Sort, Statement
from policysched.model.selectors import LabelMatcher
from policysched.plugins.bases import row_count
from policysched.plugins.inter_pod_affinity_sums import DomainSums, Part, SummedTallies, renewed
from policysched.state.anchors import Anchor, anchors_of_selector
from policysched.state.cluster import Cluster
from policysched.state.pods import PlacedPod
from policysched.state.tallies import Tally

KeyedPart = tuple[str, Part]
"""A topology key and what is summed up over its domains."""
NEAR, AWAY, REPELLED = 1, 2, 3
"""Reason codes: affinity, anti-affinity of the pod's own, and anti-affinity of placed pods."""


@dataclass(frozen=True, slots=True)
class Meant:
    """Which placed pods a term of the pod to place is about; None in place of namespaces stands for all."""

    pods: LabelMatcher
    namespaces: frozenset[str] | None

    def matches(self, pod: Pod) -> bool:
        """Tell whether a pod is meant."""
        inside = self.namespaces is None or pod.metadata.namespace in self.namespaces
        return inside and self.pods.matches(pod.metadata.labels)

    @property
    def anchors(self) -> list[Anchor]:
        """What a pod that is meant has one of."""
        return anchors_of_selector(self.pods, self.namespaces)


def _openness(anchors: Collection[Anchor]) -> int:
    return sum(part is None for anchor in anchors for part in anchor)


def meant_by(term: AffinityTerm, namespaces: Mapping[str, Mapping[str, str]]) -> Meant:
    """Resolve the namespaces of a term of the pod to place.

    kube-scheduler adds the namespaces that the selector matches and then still asks the selector, but about no labels
    at all: one that only says what must not be there means every namespace.
    """
    selector = term.namespace_selector
    if selector.matches({}):
        return Meant(term.pods, None)
    selected = (name for name, labels in namespaces.items() if selector.matches(labels))
    return Meant(term.pods, term.namespaces.union(selected))


class Surroundings:
    """What all states over one cluster share."""

    __slots__ = ("_journal", "_nodes", "_summed", "_tallies", "reads_namespaces", "statements")

    def __init__(self, cluster: Cluster) -> None:
        self.statements = cluster.statements
        self.reads_namespaces = False
        """Whether a term of a pod to place ever depended on the labels of namespaces."""
        self._nodes = cluster.nodes
        self._journal = cluster.journal
        self._summed = SummedTallies(cluster.domains, cluster.nodes, cluster.journal)
        self._tallies = cluster.tallies

    @property
    def position(self) -> int:
        """How far the journal is: all that states read is told there."""
        return self._journal.position

    @property
    def all_rows(self) -> slice:
        """All rows in use."""
        return slice(0, self._nodes.size)

    def count(self, rows: Rows) -> int:
        """Count the rows selected."""
        return row_count(self._nodes, rows)

    def matching(self, meant: Iterable[Meant]) -> Tally:
        """Count by row the pods that all of these mean."""
        wanted = frozenset(meant)

        def counts(placed: PlacedPod) -> bool:
            return all(one.matches(placed.pod) for one in wanted)

        narrowest = min((one.anchors for one in wanted), key=lambda anchors: (_openness(anchors), len(anchors)))
        return self._tallies.of(("affinity", wanted), counts, among=narrowest)

    def stating(self, statement: Statement) -> Tally:
        """Count by row how often placed pods state something."""
        statements = self.statements

        def times(placed: PlacedPod) -> int:
            return statements.of_kind(placed.kind).get(statement, 0)

        return self._tallies.of(("affinity statement", statement), times, among=(statement,))

    def sums(self, parts: Iterable[KeyedPart]) -> list[DomainSums]:
        """Sum up parts by topology key."""
        by_key: dict[str, list[Part]] = {}
        for key, part in parts:
            by_key.setdefault(key, []).append(part)
        return [DomainSums(key, parts, self._summed) for key, parts in by_key.items()]


class Concerning:
    """The statements of placed pods that mean one pod class, of the sorts with a weight."""

    __slots__ = ("_labels", "_pod", "_shared", "_statements", "_version", "_weights")

    def __init__(self, pod: Pod, cluster: Cluster, shared: Surroundings, weights: Mapping[Sort, int]) -> None:
        self._pod = pod
        self._labels = cluster.namespaces.get(pod.metadata.namespace, {})
        self._shared = shared
        self._weights = weights
        self._version = -1
        self._statements: list[Statement] = []

    def renew(self) -> bool:
        """Look for new statements; tell whether the list is another."""
        statements = self._shared.statements
        if self._version == statements.version:
            return False
        self._version = statements.version
        before = self._statements
        self._statements = [one for one in statements.about(self._pod, self._labels) if one.sort in self._weights]
        return self._statements != before

    def parts(self) -> list[KeyedPart]:
        """Give what the statements add, by topology key; a preference adds its own weight besides."""
        return [
            (one.term.topology_key, Part(self._shared.stating(one), self._weights[one.sort] + one.weight))
            for one in self._statements
        ]


class Demands:
    """Where a pod may go.

    Args:
        near: the pods that its required affinity means, by topology key.
        away: the pods that its required anti-affinity means, by topology key.
        concerning: what placed pods state about it.
        shared: what all states share.
        may_be_first: whether it meets its own affinity, so that the first of a group is not kept out.
    """

    __slots__ = (
        *("_away", "_concerning", "_first", "_judged", "_may_be_first", "_near", "_position", "_repelling", "_shared"),
    )

    def __init__(
        self,
        near: Sequence[KeyedPart],
        away: Sequence[KeyedPart],
        concerning: Concerning,
        shared: Surroundings,
        *,
        may_be_first: bool,
    ) -> None:
        self._shared = shared
        self._near = shared.sums(near)
        self._away = shared.sums(away)
        self._concerning = concerning
        self._repelling: list[DomainSums] = []
        self._may_be_first = may_be_first
        self._first = False
        self._judged = slice(0, 0)
        self._position = -1

    def renew(self, changed: RowNumbers) -> Rows:
        """Catch up; give the rows that may be judged otherwise now."""
        if self._position == self._shared.position:
            return NO_ROWS
        self._position = self._shared.position
        other = self._concerning.renew()
        if other:
            self._repelling = self._shared.sums(self._concerning.parts())
        reached = renewed((*self._near, *self._away, *self._repelling), changed, signs=True)
        first = self._may_be_first and not any(sums.counts_any() for sums in self._near)
        # a row that was never in use was never judged, and affinity rejects even rows without any label
        other |= first is not self._first or self._judged != self._shared.all_rows
        self._first, self._judged = first, self._shared.all_rows
        return self._judged if other else reached

    def judge(self, rows: Rows) -> Codes:
        """Give the reason codes of rows, of several the one that kube-scheduler names."""
        codes: Codes = np.zeros(self._shared.count(rows), np.int32)
        for sums in self._repelling:
            codes[sums.of(rows) > 0] = REPELLED
        for sums in self._away:
            codes[sums.of(rows) > 0] = AWAY
        for sums in self._near:
            codes[~sums.labelled(rows) if self._first else sums.of(rows) <= 0] = NEAR
        return codes


class Wishes:
    """Where a pod, and the pods that are placed, would like it to go.

    Args:
        own: the pods that its preferences mean and what one of them adds, by topology key.
        concerning: what placed pods state about it.
        shared: what all states share.
    """

    __slots__ = ("_concerning", "_own", "_position", "_shared", "_sums", "shared_sums")

    def __init__(self, own: Sequence[KeyedPart], concerning: Concerning, shared: Surroundings) -> None:
        self._shared = shared
        self._own = tuple(own)
        self._concerning = concerning
        self._sums = shared.sums(own)
        self._position = -1
        self.shared_sums: DomainSums | None = None
        """All that matters, where that is one label whose values rows share: scores are known by domain then."""

    def renew(self, changed: RowNumbers) -> Rows:
        """Catch up; give the rows whose scores may be others now."""
        if self._position == self._shared.position:
            return NO_ROWS
        self._position = self._shared.position
        other = self._concerning.renew()
        if other:
            self._sums = self._shared.sums((*self._own, *self._concerning.parts()))
        reached = renewed(self._sums, changed, signs=False)
        before = self.shared_sums
        self.shared_sums = self._sums[0] if len(self._sums) == 1 and self._sums[0].by_domain else None
        if other or self.shared_sums is not before:
            return self._shared.all_rows
        return reached if before is None else NO_ROWS

    def score(self, rows: Rows) -> Scores:
        """Add up what the pods around each row add; where scores are known by domain, mark that there are any."""
        if self.shared_sums is not None:
            return np.ones(self._shared.count(rows), np.int64)
        if not self._sums:
            return np.zeros(self._shared.count(rows), np.int64)
        scores: Scores = self._sums[0].of(rows)
        for sums in self._sums[1:]:
            scores += sums.of(rows)
        return scores

    @property
    def idle(self) -> bool:
        """Whether no placed pod has anything to do with the class."""
        return not any(sums.counts_any() for sums in self._sums)
