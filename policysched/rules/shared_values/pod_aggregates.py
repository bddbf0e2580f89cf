"""The aggregates `node.pods.*`: from the state's pod counters, else computed over the pods when read.

Most depend on the placed pod alone, or on it and the pod that is decided about: those are counters of the state, which
a placement moves in one element. What else is asked (the pod's node, its name, the time) is counted over the pods when
it is read; a few changed rows cost a few pods.

Whether anything that graphs read moved, rows say through the journal and counters by themselves: most placements leave
a given counter as it was, and an aggregate over it is not computed again for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, RowNumbers, Rows
from policysched.language.evaluation.columns import Depends, depends, pod_aggregate_over, pod_weights_over
from policysched.language.evaluation.frames import FrameStrings
from policysched.language.evaluation.scalar import evaluate, weigh
from policysched.language.ir.graph import ANY_KEY, POD_AGGREGATES, TIME, Input, Op, Typed, per_graph, steps
from policysched.language.ir.types import Kind
from policysched.rules.compile.graphs import parts, reads_namespaces, walk
from policysched.rules.inputs import BEYOND_SIGNATURE, PodInputs, Scalar, aspects_read, node_column, peer_value
from policysched.rules.shared_values.context import EvaluationContext, Floats
from policysched.state.cluster import Cluster
from policysched.state.placed.counter import PodCounter
from policysched.state.placed.pod_kinds import Alike, PodKinds
from policysched.state.placed.pods import PlacedPod
from policysched.state.placed.signature_values import Demand
from policysched.state.tables.ages import STEP
from policysched.state.tables.columns import distinct, distinct_places
from policysched.state.tables.interner import MISSING

NUMBERS = frozenset(("priority", "requests", "image_bytes", "age"))
_WHOLE = frozenset((Op.INPUT, Op.ADD, Op.SUBTRACT, Op.ONLY, Op.IF, Op.ABS, Op.ROUND, Op.NEGATE, Op.DEFAULT,
                    Op.LEAST, Op.GREATEST, Op.CLAMP, Op.MULTIPLY))  # fmt: skip
PODS = int(Aspect.PODS)
MANY = 32
"""From how many kinds of placed pods on they are weighed as columns."""
_NOTHING = object()
"""What no placed pod has."""


def counter(context: EvaluationContext, node: Typed, pod: PodInputs) -> PodCounter | None:
    """Return the counter that keeps an aggregate over pods; asked again while somebody holds it, the same one.

    Missing: None where pods of one signature count differently: it has to be counted when it is read.
    """
    key = (node, generation(context, node))
    found: PodCounter | None = pod.found.get(key)
    if found is None:
        found = _make_counter(node, pod, context.cluster)
        if found is not None:
            pod.found[key] = found
    return found


def pod_aggregate_at(context: EvaluationContext, node: Typed, pod: PodInputs, rows: Rows) -> Floats:
    """Return what rows' pods count or sum up to.

    Shapes: (R,).
    Cost: O(rows), or O(pods on the rows) where there is no counter.
    """
    kept = counter(context, node, pod)
    return _count(node, pod, context, rows) if kept is None else np.asarray(kept.counts[rows], np.float64)


def generation(context: EvaluationContext, node: Typed) -> int:
    """Return what moves when a graph means something else: labels of namespaces, if it reads any."""
    return context.cluster.namespaces_stamp if reads_namespaces(node) else 0


def _make_counter(node: Typed, pod: PodInputs, cluster: Cluster) -> PodCounter | None:
    if depends(node) is Depends.ROW or any(item.path[0] in BEYOND_SIGNATURE for item in _peers(node)):
        return None
    reads_labels = any(item.path[0] == "namespace_labels" for item in _peers(node))
    key: Hashable = (node, pod.key(node.inputs), cluster.namespaces_stamp if reads_labels else 0)
    return cluster.counters.of(
        key,
        lambda placed: weigh(node, Peer(placed, pod, cluster)),
        fractions=not _is_whole(node),
        alike=_alike(node, pod, cluster),
        demand=_demand(node, pod, cluster),
    )


def _demand(node: Typed, pod: PodInputs, cluster: Cluster) -> Demand | None:
    """Return what a pod has to have to count: of the conditions that must be true, a text that the pod decides about.

    Missing: None where no condition says so.
    """
    found = _equality(node)
    if found is None:
        return None
    item, wanted = found
    value = evaluate(wanted, PodAlone(pod))
    return Demand(item, lambda placed: peer_value(placed, item, cluster), _NOTHING if value is None else value)


@per_graph
def _equality(node: Typed) -> tuple[Input, Typed] | None:
    """Find a text of the placed pod that has to equal one that no placed pod decides about, by its graph."""
    condition = node.inner[0]
    if node.op is Op.SUM_PODS:
        if condition.op is not Op.ONLY:
            return None
        condition = condition.args[0]
    for one in walk((condition,), lambda part: part.args if part.op is Op.AND else ()):
        if one.op is Op.EQ:
            left, right = one.args
            for peer, other in ((left, right), (right, left)):
                item = _text_of_peer(peer)
                if item is not None and not any(read.root == "peer" for read in other.inputs):
                    return item, other
    return None


def _text_of_peer(node: Typed) -> Input | None:
    """Return the text of the placed pod that a graph is, if that stays as it is as long as the pod's signature does."""
    item = node.data
    if node.op is not Op.INPUT or not isinstance(item, Input) or node.type.kind is not Kind.STRING:
        return None
    lasting = item.path[0] not in BEYOND_SIGNATURE and item.path[0] != "namespace_labels"
    return item if item.root == "peer" and lasting else None


def _alike(node: Typed, pod: PodInputs, cluster: Cluster) -> Alike | None:
    """Return what decides about a pod's weight, the values that are read of it, and how many are weighed at once.

    Missing: None where which values are read is computed.
    """
    read = tuple(dict.fromkeys(_peers(node)))
    if any(item.key == ANY_KEY for item in read):
        return None
    labels = cluster.namespaces_stamp if any(item.path[0] == "namespace_labels" for item in read) else 0

    def weigh_all(placed: Sequence[PlacedPod]) -> Sequence[float]:
        if len(placed) < MANY:
            return [weigh(node, Peer(one, pod, cluster)) for one in placed]
        weights: list[float] = pod_weights_over(node, KindFrame(placed, pod, cluster)).tolist()
        return weights

    return Alike(lambda placed: tuple(peer_value(placed, item, cluster) for item in read), weigh_all, (read, labels))


def _count(node: Typed, pod: PodInputs, context: EvaluationContext, rows: Rows) -> Floats:
    """Count over the pods of rows, whatever the aggregate reads."""
    cluster = context.cluster
    places = np.arange(cluster.nodes.columns.capacity)[rows]
    if places.size > cluster.nodes.size // 2:
        slots = np.flatnonzero(cluster.pods.rows >= 0)
    else:
        slots = np.array([one.slot for row in distinct(places) for one in cluster.pods.on_row(int(row))], np.int64)
    frame = PeerFrame(slots, pod, context)
    return pod_aggregate_over(node, frame, frame.places, cluster.nodes.columns.capacity)[places]


class PodAlone:
    """The pod that is decided about for the interpreter, of graphs that read no node."""

    __slots__ = ("_pod",)

    def __init__(self, pod: PodInputs) -> None:
        self._pod = pod

    def value(self, item: Input) -> Scalar:
        """Return an input of the pod."""
        return self._pod.value(item)

    def _unasked(self) -> Any:
        """Fail: a counter reads neither the time nor other rows."""
        raise AssertionError

    now: Any = property(_unasked)
    feasible: Any = property(_unasked)
    nodes: Any = property(_unasked)
    pods: Any = property(_unasked)


class Peer(PodAlone):
    """A placed pod for the interpreter: what pods of its signature have in common."""

    __slots__ = ("_cluster", "_placed")

    def __init__(self, placed: PlacedPod, pod: PodInputs, cluster: Cluster) -> None:
        super().__init__(pod)
        self._placed = placed
        self._cluster = cluster

    def value(self, item: Input) -> Scalar:
        """Return an input of the placed pod, or of the pod that is decided about."""
        return peer_value(self._placed, item, self._cluster) if item.root == "peer" else self._pod.value(item)


class PeerFrame:
    """What `language.Frame` asks for, over placed pods."""

    def __init__(self, slots: NDArray[np.int64], pod: PodInputs, context: EvaluationContext) -> None:
        cluster = context.cluster
        self._slots = slots
        self._pod = pod
        self._cluster = cluster
        self._context = context
        self.strings = FrameStrings(cluster.strings)
        self.places: RowNumbers = cluster.pods.rows[slots].astype(np.intp)
        self.rows = slots.size
        self.feasible = None
        self.memo: dict[Any, Any] = dict(pod.scalars)

    @property
    def now(self) -> float:
        """The present."""
        return self._cluster.time.seconds

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return the values of the pods themselves (`peer.`, `victim.`), or those of each pod's node."""
        if item.root not in {"peer", "victim"}:
            return node_column(self._cluster, self._pod.given, item, self.places)
        if item.path[0] == "age":
            return self._ages()
        if item.path[0] in BEYOND_SIGNATURE:
            by_slot = self._cluster.pods.by_slot
            return self._column([by_slot[slot] for slot in self._slots.tolist()], item)
        signatures, places = distinct_places(self._cluster.pods.signatures[self._slots])
        present = self._cluster.signatures.present
        return self._column([present[one] for one in signatures.tolist()], item)[places]

    def _ages(self) -> Floats:
        """Return the ages of the pods, NaN where the creation time is not known."""
        created = self._cluster.pods.created(self._slots)
        ages = np.maximum(np.floor((self.now - created) / STEP) * STEP, 0.0)
        return np.where(np.isfinite(created), ages, np.nan)

    def _column(self, placed: Sequence[PlacedPod | None], item: Input) -> NDArray[Any]:
        return _column(placed, item, self.strings, self._cluster)

    def scalar(self, item: Input, /) -> Scalar:
        """Return an input of the pod that is decided about, or of the cluster."""
        return self._pod.value(item)

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Return an aggregate at each pod's node."""
        return self._context.aggregate(self._context, node, self._pod, self.places)

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Never asked for: aggregates over pods do not stand in each other."""
        raise AssertionError(node)


class KindFrame:
    """What `language.Frame` asks for, over placed pods of which only what their signatures share is read."""

    def __init__(self, placed: Sequence[PlacedPod], pod: PodInputs, cluster: Cluster) -> None:
        self._placed, self._pod, self._cluster = placed, pod, cluster
        self.strings = FrameStrings(cluster.strings)
        self.rows = len(placed)
        self.feasible = None
        self.memo: dict[Any, Any] = dict(pod.scalars)

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return the values of the pods; all kinds of pods are read once for all counters."""
        if not isinstance(self._placed, PodKinds):
            return _column(self._placed, item, self.strings, self._cluster)
        kept = self._placed.read
        if item.path[0] in NUMBERS:
            if item not in kept:
                kept[item] = _column(self._placed, item, self.strings, self._cluster)
            numbers: Floats = kept[item]
            return numbers
        if item not in kept:
            kept[item] = _distinct_texts(self._placed, item, self._cluster)
        texts, places = kept[item]
        codes = [MISSING if text is None else self.strings.code(text) for text in texts]
        column: NDArray[Any] = np.array(codes, np.int32)[places]
        return column

    def scalar(self, item: Input, /) -> Scalar:
        """Return an input of the pod that is decided about."""
        return self._pod.value(item)

    @property
    def now(self) -> float:
        """Never asked for: a counter reads no time."""
        raise AssertionError

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Never asked for: a counter reads no node."""
        raise AssertionError(node)

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Never asked for: aggregates over pods do not stand in each other."""
        raise AssertionError(node)


def _column(placed: Sequence[PlacedPod | None], item: Input, strings: FrameStrings, cluster: Cluster) -> NDArray[Any]:
    values = [peer_value(one, item, cluster) for one in placed if one is not None]
    if item.path[0] in NUMBERS:
        return np.array(values, np.float64)
    return np.array([MISSING if value is None else strings.code(str(value)) for value in values], np.int32)


def _distinct_texts(
    placed: Sequence[PlacedPod], item: Input, cluster: Cluster
) -> tuple[list[str | None], NDArray[np.intp]]:
    """Return the texts of pods, each once, and the place of each pod's. Shapes: (P,) the places."""
    found: dict[str | None, int] = {}
    values = (peer_value(one, item, cluster) for one in placed)
    places = [found.setdefault(None if value is None else str(value), len(found)) for value in values]
    return list(found), np.array(places, np.intp)


class VictimFrame(PeerFrame):
    """What `language.Frame` asks for, over placed pods that would have to go (`victim.`), each on its node."""

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Return what is made of the pods of each one's node."""
        return self._context.pod_aggregate(self._context, node, self._pod, self.places)


def _peers(node: Typed) -> list[Input]:
    return [item for item in node.inner[0].inputs if item.root == "peer"]


def _is_whole(node: Typed) -> bool:
    """Whether an aggregate can only have whole numbers as weights."""
    if node.op is Op.COUNT_PODS:
        return True
    for step in steps(node.inner[0]):
        if step.type.kind is not Kind.QUANTITY:
            continue
        if step.op is Op.CONSTANT:
            if not isinstance(step.data, float) or not step.data.is_integer():
                return False
        elif step.op not in _WHOLE:
            return False
    return True


class Reads:
    """The aspects of rows that some graphs read, and their counters."""

    __slots__ = ("_counters", "_versions", "aspects")

    def __init__(self, roots: Iterable[Typed], pod: PodInputs, context: EvaluationContext) -> None:
        self.aspects = int(Aspect.PRESENCE)
        """Without the pods that only counters look at."""
        counters: dict[Typed, PodCounter] = {}
        for node in walk(roots, lambda node: () if node in counters else parts(node)):
            kept = counter(context, node, pod) if node.op in POD_AGGREGATES else None
            if kept is None:
                self.aspects |= int(_own_aspects(node))
            else:
                counters[node] = kept
        self._counters = list(counters.values())
        self._versions = [-1] * len(self._counters)

    @property
    def counts(self) -> bool:
        """Whether there are counters among it."""
        return bool(self._counters)

    def counted(self) -> bool:
        """Return whether a counter moved since this was last asked."""
        versions = [counter.stamp for counter in self._counters]
        before, self._versions = self._versions, versions
        return versions != before


class Version:
    """Whether what a graph is made of may have changed, and on which rows."""

    __slots__ = ("_context", "_reads", "_seen", "_timed", "rows", "touched")

    def __init__(self, node: Typed, pod: PodInputs, context: EvaluationContext) -> None:
        self._context = context
        self._reads = Reads((node,), pod, context)
        self._timed = TIME in node.inputs
        self._seen: tuple[int, float] | None = None
        self.rows: RowNumbers | None = None
        """The rows that changed between the last two questions; None where any may have."""
        self.touched = 0
        """The aspects in which any row changed then."""

    def is_past(self) -> bool:
        """Return whether it may be another since this was last asked."""
        cluster = self._context.cluster
        now = (cluster.journal.position, cluster.time.seconds if self._timed else 0.0)
        before, self._seen = self._seen, now
        if before == now:
            return False
        counted = self._reads.counted()
        self.rows = None
        if before is None or before[1] != now[1]:
            return True
        reads = self._reads.aspects | (PODS if counted else 0)
        self.rows, self.touched = self._context.changed(before[0], reads)
        return self.rows is None or self.rows.size > 0


def _own_aspects(node: Typed) -> Aspect:
    if node.op in POD_AGGREGATES:
        return Aspect.PODS
    return aspects_read((node.data,)) if isinstance(node.data, Input) else Aspect.NONE
