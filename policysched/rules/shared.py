"""What the rules of all policies share on one cluster, so that nothing is found out twice.

Frames by rows, aggregates, counters and the answers of rules that read nothing of the pod. It lasts as long as a
policy set does; what belongs to a pod class goes with the last state that holds it.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, RowNumbers, Rows
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import AGGREGATES, TALLIES, TIME, Input, Typed, per_graph
from policysched.language.ir.types import Shape
from policysched.model.objects import Pod
from policysched.rules.aggregates import Aggregate
from policysched.rules.domains import Domains
from policysched.rules.frame import RuleFrame
from policysched.rules.metrics import MetricInput
from policysched.rules.sources import (
    Gathered,
    ImageSizes,
    Source,
    Watch,
    boundaries,
    comparable,
    plain_scalars,
    reads_image_sizes,
    reads_namespaces,
)
from policysched.rules.subject import Subject
from policysched.rules.tallies import counted, counter
from policysched.rules.walk import own_parts, walk
from policysched.state.tallies import Tally


class Shared:
    """One for a policy set and a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.nobody = Subject(None, cluster)
        """Stands in for the pod where rules read nothing of it."""
        self._aggregates: weakref.WeakValueDictionary[Hashable, Aggregate] = weakref.WeakValueDictionary()
        self._subject: tuple[Pod, object, Subject] | None = None
        self._frames: dict[bool, tuple[object, Subject, dict[Hashable, RuleFrame]]] = {}
        self._changes: tuple[int, dict[tuple[int, int], tuple[RowNumbers | None, int]]] = (-1, {})
        self._everything: tuple[int, Rows] = (-1, slice(0, 0))

    def subject(self, pod: Pod) -> Subject:
        """Give the subject of a pod at this moment; asked again, the same one."""
        version = self.version
        if self._subject is None or self._subject[0] is not pod or self._subject[1] != version:
            self._subject = (pod, version, Subject(pod, self.cluster))
        return self._subject[2]

    def frame(self, subject: Subject, rows: Rows) -> RuleFrame:
        """Give the frame of some rows; asked again before anything changed, the same one while that has room.

        Frames of one pod class are kept beside those of no pod, so that a class's arrays go with the next decision.
        """
        place = subject is self.nobody
        kept = self._frames.get(place)
        if kept is None or kept[1] is not subject or kept[0] != self.version:
            kept = self._frames[place] = (self.version, subject, {})
        key: Hashable = (rows.start, rows.stop) if isinstance(rows, slice) else id(rows)
        frame = kept[2].get(key)
        if frame is None or not frame.has_room():
            frame = kept[2][key] = RuleFrame(self.cluster, subject, self, rows)
        return frame

    def aggregate(self, node: Typed, subject: Subject, rows: Rows) -> NDArray[np.float64] | float:
        """Give an aggregate on rows."""
        return self._aggregate(node, subject).at(rows)

    def counter(self, node: Typed, subject: Subject) -> Tally | None:
        """Give the counter that keeps a tally, None where it has to be counted when it is read."""
        key = (node, self.epoch(node))
        found: Tally | None = subject.found.get(key)
        if found is None:
            found = counter(node, subject, self.cluster)
            if found is not None:
                subject.found[key] = found
        return found

    def tally(self, node: Typed, subject: Subject, rows: Rows) -> NDArray[np.float64]:
        """Give what rows' pods count or sum up to."""
        kept = self.counter(node, subject)
        if kept is not None:
            return np.asarray(kept.counts[rows], np.float64)
        return counted(node, subject, self.cluster, self, rows)

    def sources(self, roots: Iterable[Typed], subject: Subject) -> list[Source]:
        """Give what rows of some graphs look at together."""
        roots = list(roots)
        found: list[Source] = [self._source(node, subject) for node in boundaries(roots, timed=subject is self.nobody)]
        return [*found, ImageSizes(self.cluster)] if reads_image_sizes(roots) else found

    def hold(self, roots: Iterable[Typed], subject: Subject) -> tuple[object, ...]:
        """Give what has to be held so that graphs find it kept: counters, aggregates, ages and metrics."""
        kept = [_kept(root) for root in roots]
        held: list[object] = [self.counter(node, subject) for nodes, _ in kept for node in nodes if node.op in TALLIES]
        held += [self._aggregate(node, subject) for nodes, _ in kept for node in nodes if node.op in AGGREGATES]
        for item in {item for _, items in kept for item in items}:
            if isinstance(item, MetricInput):
                held.append(self.cluster.metrics.gauge(item.metric, item.max_age))
            else:
                held.append(self.cluster.ages.held())
        return tuple(one for one in held if one is not None)

    def plain(self, subject: Subject) -> RuleFrame:
        """Give a frame without rows, for what is made of the pod alone; it is remembered for all frames of it."""
        frame = RuleFrame(self.cluster, subject, self)
        frame.memo = subject.scalars
        return frame

    def values(self, pod: Pod, nodes: Sequence[Typed]) -> Hashable:
        """Give what some graphs make of a pod and this moment."""
        frame = self.plain(self.subject(pod))
        return tuple(comparable(evaluate_columns(node, frame)) for node in nodes)

    def seed(self, subject: Subject, roots: Iterable[Typed]) -> None:
        """Find out what graphs make of the pod alone, for all frames of it."""
        frame = self.plain(subject)
        for root in roots:
            for node in plain_scalars(root, timed=subject is self.nobody):
                evaluate_columns(node, frame)

    def changed(self, since: int, reads: int) -> tuple[RowNumbers | None, int]:
        """Give the rows that changed in some aspects after a position of the journal, each once, and these aspects.

        Missing: None for rows where it is too long ago to tell.
        """
        journal = self.cluster.journal
        if self._changes[0] != journal.position:
            self._changes = (journal.position, {})
        known = self._changes[1].get((since, reads))
        if known is None:
            known = self._changes[1][since, reads] = _selected(journal.since(since), reads)
        return known

    def everything(self) -> Rows:
        """Give the rows of all nodes."""
        position, nodes = self.cluster.journal.position, self.cluster.nodes
        if self._everything[0] != position:
            full = nodes.count == nodes.size
            present = np.flatnonzero(nodes.present.data[: nodes.size])
            self._everything = (position, slice(0, nodes.size) if full else present)
        return self._everything[1]

    @property
    def version(self) -> object:
        """A value that differs whenever anything may have changed."""
        cluster = self.cluster
        return cluster.journal.position, cluster.moment.seconds, cluster.namespaces_epoch, cluster.strings.generation

    def epoch(self, node: Typed) -> int:
        """Give what moves when a graph means something else: labels of namespaces, if it reads any."""
        return self.cluster.namespaces_epoch if reads_namespaces(node) else 0

    def domains(self, key: Typed, subject: Subject) -> Domains:
        """Give the domains of a key."""
        about = subject if subject.key(key.inputs) else self.nobody
        place = ("domains", key, self.epoch(key))
        found: Domains | None = about.found.get(place)
        if found is None:
            found = about.found[place] = Domains(key, about, self)
        return found

    def begin_anew(self) -> None:
        """Forget what rules made that may be gone; those that stay make it again."""
        self.nobody.scalars.clear()

    def _source(self, node: Typed, subject: Subject) -> Source:
        key = ("source", node, self.epoch(node))
        found: Source | None = subject.found.get(key)
        if found is None:
            make = Watch if node.type.shape is Shape.SCALAR else Gathered
            found = subject.found[key] = make(node, subject, self)
        return found

    def _aggregate(self, node: Typed, subject: Subject) -> Aggregate:
        epoch = self.epoch(node)
        found: Aggregate | None = subject.found.get((node, epoch))
        if found is None:
            found = subject.found[node, epoch] = self._common_aggregate(node, subject, epoch)
        return found

    def _common_aggregate(self, node: Typed, subject: Subject, epoch: int) -> Aggregate:
        own = subject.key(node.inputs)
        if own and TIME in node.inputs:
            # to a subject it stays the time when its pod was looked at, which others' aggregates do not know
            own = (own, subject)
        found = self._aggregates.get((node, own, epoch))
        if found is None:
            about = subject if own else self.nobody
            held = self.hold((*node.args, *node.inner), about)
            found = self._aggregates[node, own, epoch] = Aggregate(node, about, self, held)
        return found


def _selected(entries: tuple[RowNumbers, NDArray[np.int32]] | None, reads: int) -> tuple[RowNumbers | None, int]:
    if entries is None:
        return None, reads
    rows, aspects = entries
    relevant = aspects & reads
    chosen = rows[relevant != 0]
    return np.unique(chosen) if chosen.size > 1 else chosen, int(np.bitwise_or.reduce(relevant))


@per_graph
def _kept(root: Typed) -> tuple[tuple[Typed, ...], tuple[Input, ...]]:
    """Give the tallies and aggregates of a graph, and what it reads that is kept while it is held.

    What stands in tallies belongs to it; aggregates hold their own.
    """
    seen = list(walk([root], own_parts))
    read = dict.fromkeys(item for node in seen for item in node.inputs)
    return (
        tuple(node for node in seen if node.op in TALLIES or node.op in AGGREGATES),
        tuple(item for item in read if isinstance(item, MetricInput) or (item.root, item.path[0]) == ("node", "age")),
    )
