"""Pods that wait for a node which is kept for them (nominated pods), of this scheduler and of others.

Kept apart from placed pods: they hold nothing yet, but a pod of no higher priority has to leave them their place. A
node's name may be that of a node that is gone, or is not there yet.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod, PodCondition
from policysched.model.pod_requirements import pod_priority
from policysched.pausing import Pausing, finished
from policysched.state.nominated_terms import RepellingTerms
from policysched.state.placed.counters import PodCounter
from policysched.state.placed.pods import Measured, PlacedPod, PodSignatures, measure, pod_id
from policysched.state.tables.amounts import PodResources, WantedPorts

PodsByRow = Mapping[int, Sequence[Pod]]
MOST_COUNTERS = 64
"""Of how many counters of pods it is kept at least what nominated pods weigh, and of how many wanted ports."""
MOST_WEIGHTS = 1 << 21
"""How many weights are kept where there are more counters."""
MOST_WANTED = 1000
"""Up to how many ports may be wanted for the answers to be kept: they keep what is wanted."""
FIRST_PLACES = 16
MOST_EMPTY = 16
"""How many places of pods that are not nominated any more may be empty, beside a quarter of those that are."""
BYTES_PER_PIECE = 1 << 16
"""After how much that nominated pods state there is a pause. Units: bytes of what tells their kind."""
PODS_PER_PIECE = 250


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod and the node that is kept for it."""

    pod: Pod
    node: str


class NominatedColumns:
    """What is worked out of all nominated pods: each comes with a place behind the others, and leaves it empty.

    Pods of one signature are of one kind: what they weigh is worked out once. Places and kinds that are given stay as
    they are, so that who chose some may go on reading them; `compacted` makes others without the empty places.

    Args:
        terms: What the pods state that keeps others away.

    Shapes: P places and more; K kinds; kind_of and repelling (P,).
    """

    __slots__ = (
        *(
            "_amounts",
            "_kinds",
            "_lists_by_id",
            "_live",
            "_node_of",
            "_nodes",
            "_place_of",
            "_port_lists",
            "_port_numbers",
        ),
        *("_port_starts", "_ports", "_priorities", "_seen", "_weights", "kind_of", "measured", "numbers", "pods"),
        *("ports_of", "repelling", "samples", "terms"),
    )

    def __init__(self, terms: RepellingTerms) -> None:
        self.terms = terms
        self.pods: list[Pod] = []
        self.measured: list[Measured] = []
        self.kind_of: NDArray[np.intp] = np.zeros(FIRST_PLACES, np.intp)
        self.repelling: NDArray[np.intp] = np.zeros(FIRST_PLACES, np.intp)
        """The number of what each pod states that keeps others away."""
        self._live: NDArray[np.bool_] = np.zeros(FIRST_PLACES, np.bool_)
        self._priorities: NDArray[np.int64] = np.zeros(FIRST_PLACES, np.int64)
        self._node_of: NDArray[np.intp] = np.zeros(FIRST_PLACES, np.intp)
        self._place_of: dict[str, int] = {}
        self._nodes: dict[str, int] = {}
        self._kinds: dict[_SignatureKey, int] = {}
        self.samples: list[PlacedPod] = []
        """A pod of each kind; its row means nothing."""
        self.numbers: NDArray[np.intp] = np.zeros(0, np.intp)
        """Each kind's signature, -1 where no placed pod has it. Shapes: (K,)."""
        self._seen = -1
        self._amounts: dict[str, NDArray[np.int64]] = {}
        self._weights: WeakKeyDictionary[PodCounter, tuple[NDArray[np.intp], int, NDArray[np.float64]]]
        self._weights = WeakKeyDictionary()
        self.ports_of: NDArray[np.intp] = np.zeros(FIRST_PLACES, np.intp)
        """Which list of host ports each pod has; 0 is that of none."""
        self._port_lists: list[PodResources | None] = [None]
        self._lists_by_id: dict[int, int] = {}
        """The lists by the address of what states them, which is there as long as its list."""
        self._ports: dict[WantedPorts, NDArray[np.int64]] = {}
        self._port_numbers: NDArray[np.int64] = np.zeros(0, np.int64)
        """The numbers of the ports of all lists that were read, one list's after the other's."""
        self._port_starts: NDArray[np.intp] = np.zeros(2, np.intp)
        """Where those of each list begin, and where the last one's end."""

    def __contains__(self, identity: str) -> bool:
        return identity in self._place_of

    def enter(self, identity: str, one: Nomination, measured: Measured, repelling: int) -> None:
        """Give a pod the next place.

        Args:
            identity: Its identity.
            one: The pod and its node.
            measured: What is worked out of it.
            repelling: The number of what it states that keeps others away.

        Cost: O(1).
        """
        kind = self._kinds.setdefault(_SignatureKey.of(measured.signature_key), len(self._kinds))
        if kind == len(self.samples):
            self.samples.append(PlacedPod(one.pod, -1, measured.resources, assumed=True))
        ports = self._ports_like(measured.resources)
        self._append(identity, one, measured, (kind, repelling, pod_priority(one.pod), ports))

    def renew(self, identity: str, one: Nomination) -> None:
        """Move a pod that has a place behind the others, as a version of it that differs in nothing that counts."""
        place = self._place_of[identity]
        self._live[place] = False
        alike = (self.kind_of, self.repelling, self._priorities, self.ports_of)
        kind, repelling, priority, ports = (int(column[place]) for column in alike)
        known = kind, repelling, priority, ports
        self._append(identity, one, self.measured[place], known)

    def drop(self, identity: str) -> int:
        """Leave a pod's place empty; return the number of what it stated that keeps others away."""
        place = self._place_of.pop(identity)
        self._live[place] = False
        return int(self.repelling[place])

    def repelling_of(self, identity: str) -> int | None:
        """Return the number of what a pod states that keeps others away, None where it has no place."""
        place = self._place_of.get(identity)
        return None if place is None else int(self.repelling[place])

    @property
    def is_sparse(self) -> bool:
        """Whether there are many empty places."""
        live = len(self._place_of)
        return len(self.pods) - live > MOST_EMPTY + live // 4

    def compacted(self) -> NominatedColumns:
        """Return the same without empty places and kinds of which no pod is left.

        Cost: O(places + kinds).
        """
        made = NominatedColumns(self.terms)
        places = self._live[: len(self.pods)].nonzero()[0]
        made.pods = [self.pods[place] for place in places.tolist()]
        made.measured = [self.measured[place] for place in places.tolist()]
        kinds, made.kind_of = np.unique(self.kind_of[places], return_inverse=True)
        nodes, made._node_of = np.unique(self._node_of[places], return_inverse=True)
        names = [*self._nodes]
        made._nodes = {names[number]: place for place, number in enumerate(nodes.tolist())}
        made.repelling, made._priorities = self.repelling[places], self._priorities[places]
        made._live = np.ones(places.size, np.bool_)
        made._place_of = dict(zip(self._place_of, range(places.size), strict=True))
        keys = [*self._kinds]
        made._kinds = {keys[kind]: place for place, kind in enumerate(kinds.tolist())}
        made.samples = [self.samples[kind] for kind in kinds.tolist()]
        if self.numbers.size == len(self.samples):
            made.numbers, made._seen = self.numbers[kinds], self._seen
            for counter, (numbers, seen, found) in [*self._weights.items()]:
                if found.size == len(self.samples):
                    made._weights[counter] = numbers[kinds], seen, found[kinds]
        full = len(self.samples)
        made._amounts = {resource: found[kinds] for resource, found in self._amounts.items() if found.size == full}
        self._keep_ports(made, places)
        return made

    def yielded_to(self, priority: int, own: str, row_of: Mapping[str, int]) -> YieldedPods:
        """Choose those of a priority and above, but one, whose node has a row."""
        count = len(self.pods)
        rows = np.array([row_of.get(node, -1) for node in self._nodes], np.intp)[self._node_of[:count]]
        chosen = self._live[:count] & (rows >= 0) & (self._priorities[:count] >= priority)
        if own in self._place_of:
            chosen[self._place_of[own]] = False
        places = chosen.nonzero()[0]
        return YieldedPods(self, places, rows[places])

    def refresh(self, signatures: PodSignatures) -> None:
        """Look up which kinds are signatures of placed pods.

        Cost: O(kinds) after a signature appeared or went, else O(kinds that came).
        """
        known = self.numbers.size if self._seen == signatures.generation else 0
        self._seen = signatures.generation
        if known == len(self.samples):
            return
        numbers = [signatures.number(key) for key in islice(self._kinds, known, None)]
        for placed, number in zip(self.samples[known:], numbers, strict=True):
            placed.signature = number
        self.numbers = np.concatenate((self.numbers[:known], np.array(numbers, np.intp)))

    def amounts(self, resource: str) -> NDArray[np.int64]:
        """Return how much of a resource a pod of each kind takes.

        Shapes: (K,).
        """
        found = self._amounts.get(resource)
        if found is None or found.size < len(self.samples):
            found = np.zeros(0, np.int64) if found is None else found
            amounts = [dict(one.pod_resources.amounts).get(resource, 0) for one in self.samples[found.size :]]
            found = self._amounts[resource] = np.concatenate((found, np.array(amounts, np.int64)))
        return found

    def ports_met(self, wanted: WantedPorts) -> NDArray[np.int64]:
        """Return how many host ports of each list keep a pod out that wants some.

        Cost: O(host ports of the lists that came since anything was asked last), and array work over those that came
            since this was asked last.
        Shapes: (lists,).
        """
        found = self._ports.get(wanted)
        if found is None or found.size < len(self._port_lists):
            if found is None:
                if len(self._ports) >= MOST_COUNTERS:
                    self._ports.clear()
                found = np.zeros(1, np.int64)
            found = np.concatenate((found, self._ports_met(wanted, found.size)))
            if len(wanted) <= MOST_WANTED:
                self._ports[wanted] = found
        return found

    def _ports_met(self, wanted: WantedPorts, first: int) -> NDArray[np.int64]:
        """Count the host ports that meet some in the lists from one on."""
        self._read_ports()
        met: NDArray[np.int64] = np.zeros(len(self._port_lists) - first, np.int64)
        begin = self._port_starts[first]
        alike = np.isin(self._port_numbers[begin:], [number for _, number in wanted.addresses]).nonzero()[0] + begin
        lists = np.searchsorted(self._port_starts, alike, "right") - 1
        within = alike - self._port_starts[lists]
        for number, place in zip(lists.tolist(), within.tolist(), strict=True):
            listed = self._port_lists[number]
            if listed is not None:
                met[number - first] += wanted.count((listed.ports[place],))
        return met

    def _ports_like(self, resources: PodResources) -> int:
        """Return the list of host ports of pods that state the same; equal ones may be listed twice."""
        if not resources.ports:
            return 0
        number = self._lists_by_id.setdefault(id(resources), len(self._port_lists))
        if number == len(self._port_lists):
            self._port_lists.append(resources)
        return number

    def _read_ports(self) -> None:
        ports = [one.ports for one in self._port_lists[self._port_starts.size - 1 :] if one is not None]
        if ports:
            ends = self._port_numbers.size + np.cumsum([len(one) for one in ports], dtype=np.intp)
            self._port_starts = np.concatenate((self._port_starts, ends))
            numbers = np.array([number for one in ports for _, _, number in one], np.int64)
            self._port_numbers = np.concatenate((self._port_numbers, numbers))

    def _keep_ports(self, made: NominatedColumns, places: NDArray[np.intp]) -> None:
        """Give other columns the lists of host ports that pods of some places have."""
        used: NDArray[np.bool_] = np.zeros(len(self._port_lists), np.bool_)
        used[self.ports_of[places]] = used[0] = True
        made.ports_of = (np.cumsum(used) - 1)[self.ports_of[places]]
        if used.all():
            made._port_lists, made._lists_by_id = self._port_lists.copy(), self._lists_by_id.copy()
            made._ports = self._ports.copy()
            made._port_numbers, made._port_starts = self._port_numbers, self._port_starts
            return
        made._port_lists = [one for one, is_used in zip(self._port_lists, used.tolist(), strict=True) if is_used]
        made._lists_by_id = {id(one): number for number, one in enumerate(made._port_lists) if number}
        read = used[: self._port_starts.size - 1]
        lengths = np.diff(self._port_starts)
        made._port_numbers = self._port_numbers[np.repeat(read, lengths)]
        made._port_starts = np.concatenate((np.zeros(1, np.intp), np.cumsum(lengths[read], dtype=np.intp)))
        made._ports = {wanted: found[used[: found.size]] for wanted, found in self._ports.items()}

    def weights(self, counter: PodCounter) -> NDArray[np.float64]:
        """Return what a counter counts for a pod of each kind; the numbers are up to date.

        A kind that is no placed pod's weighs the same as long as it is not.

        Shapes: (K,).
        """
        known, count = self._weights.get(counter), len(self.samples)
        if known is not None and known[1] == self._seen and known[2].size == count:
            return known[2]
        if known is None:
            if len(self._weights) >= MOST_COUNTERS and len(self._weights) * count >= MOST_WEIGHTS:
                self._weights.clear()
            anew, found = [*range(count)], np.zeros(count)
        else:
            size = known[0].size
            moved = np.ones(count, np.bool_)
            moved[:size] = (known[0] >= 0) | (self.numbers[:size] >= 0) if known[1] != self._seen else False
            anew = moved.nonzero()[0].tolist()
            found = np.concatenate((known[2], np.zeros(count - size)))
        for kind in anew:
            found[kind] = counter.weight_of(self.samples[kind])
        self._weights[counter] = self.numbers, self._seen, found
        return found

    def _append(self, identity: str, one: Nomination, measured: Measured, known: tuple[int, int, int, int]) -> None:
        place = len(self.pods)
        if place >= self._live.size:
            self._grow()
        self.pods.append(one.pod)
        self.measured.append(measured)
        self.kind_of[place], self.repelling[place], self._priorities[place], self.ports_of[place] = known
        self._node_of[place] = self._nodes.setdefault(one.node, len(self._nodes))
        self._place_of.pop(identity, None)
        self._place_of[identity] = place
        self._live[place] = True

    def _grow(self) -> None:
        more = max(FIRST_PLACES, self._live.size)
        self.kind_of = np.concatenate((self.kind_of, np.zeros(more, np.intp)))
        self.repelling = np.concatenate((self.repelling, np.zeros(more, np.intp)))
        self.ports_of = np.concatenate((self.ports_of, np.zeros(more, np.intp)))
        self._node_of = np.concatenate((self._node_of, np.zeros(more, np.intp)))
        self._priorities = np.concatenate((self._priorities, np.zeros(more, np.int64)))
        self._live = np.concatenate((self._live, np.zeros(more, np.bool_)))


class _SignatureKey(tuple[Any, ...]):
    """The key of a signature, equal to it as it is, whose hash is worked out once."""

    _hash: int

    @classmethod
    def of(cls, key: Hashable) -> _SignatureKey:
        """Return the same key so."""
        if isinstance(key, cls):
            return key
        made = cls(cast("tuple[Any, ...]", key))
        made._hash = hash(key)
        return made

    def __hash__(self) -> int:
        return self._hash


class YieldedPods(Mapping[int, Sequence[Pod]]):
    """The nominated pods that a pod has to leave their place, by row.

    Args:
        columns: What is known of all nominated pods.
        places: The places of those among them, in their order.
        rows: The row of each.

    Shapes: places and rows (Q,).
    """

    __slots__ = ("_by_row", "columns", "places", "rows")

    def __init__(self, columns: NominatedColumns, places: NDArray[np.intp], rows: NDArray[np.intp]) -> None:
        self.columns, self.places, self.rows = columns, places, rows
        self._by_row: dict[int, list[Pod]] | None = None

    @classmethod
    def of(cls, pods: PodsByRow) -> YieldedPods:
        """Return the same of pods that are given by row."""
        if isinstance(pods, YieldedPods):
            return pods
        stated = [(pod_id(pod), Nomination(pod, str(row))) for row, together in pods.items() for pod in together]
        rows = np.array([int(one.node) for _, one in stated], np.intp)
        columns = NominatedColumns(RepellingTerms())
        for identity, one in stated:
            columns.enter(identity, one, measure(one.pod), columns.terms.enter(one.pod))
        return cls(columns, np.arange(rows.size), rows)

    @property
    def distinct_rows(self) -> NDArray[np.intp]:
        """The rows, in ascending order."""
        return np.bincount(self.rows).nonzero()[0]

    def __getitem__(self, row: int) -> Sequence[Pod]:
        if self._by_row is None:
            self._by_row = {}
            for place, on in zip(self.places.tolist(), self.rows.tolist(), strict=True):
                self._by_row.setdefault(on, []).append(self.columns.pods[place])
        return self._by_row[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self.distinct_rows.tolist())

    def __len__(self) -> int:
        return self.distinct_rows.size

    def __bool__(self) -> bool:
        return bool(self.rows.size)


class _Waiting(NamedTuple):
    """A pod that has no place in the columns yet."""

    nomination: Nomination
    repelling: int | None
    """The number of what it states that keeps others away, where a version of it before stated the same."""


class Nominations:
    """Nominated pods by identity and by node.

    A pod gets its place in the columns with the next question about those to yield to, so that it costs what it states
    once and not each time that it changes in between.
    """

    __slots__ = ("_by_id", "_by_node", "_columns", "_left", "_measured", "_waiting", "generation", "terms")

    def __init__(self) -> None:
        self.generation = 0
        """How often a node began or ceased to be kept for a pod, or for one that differs in what counts."""
        self.terms = RepellingTerms()
        """What those with a place in the columns state that keeps others away."""
        self._measured: dict[str, Measured] = {}
        self._columns: NominatedColumns | None = None
        self._waiting: dict[str, _Waiting] = {}
        self._left: list[int] = []
        """The numbers of what pods stated that lost their place, not counted off yet: others may state the same."""
        self._by_id: dict[str, Nomination] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}

    def set(self, pod: Pod, node: str) -> None:
        """Keep a node for a pod, and no other; an empty name keeps none.

        Cost: O(1), a comparison of the pod with its version before included; what it states is read later.
        """
        identity = pod_id(pod)
        known = self._by_id.get(identity)
        if known is not None and known.node == node and _is_alike(known.pod, pod):
            self._replace(identity, Nomination(pod, node))
            return
        if not node:
            self.discard(identity)
            return
        repelling = None if known is None else self._repelling_alike(identity, known.pod, pod)
        self._take_out(identity)
        self.generation += 1
        self._by_id[identity] = one = Nomination(pod, node)
        self._waiting[identity] = _Waiting(one, repelling)
        self._by_node.setdefault(node, {})[identity] = pod

    def update(self, pod: Pod) -> Nomination | None:
        """Take a pending pod as it is now; return the nomination that its new version took away.

        What its status says counts; while that has said nothing yet, the node stays that was kept for it here.
        """
        known = self._by_id.get(pod_id(pod))
        stated = pod.status.nominated_node_name
        if known is None:
            self.set(pod, stated)
            return None
        was = known.pod.status.nominated_node_name
        self.set(pod, stated if was or stated else known.node)
        return Nomination(known.pod, was) if was and was != stated else None

    def discard(self, identity: str) -> Nomination | None:
        """Keep no node for a pod any more; return its nomination, if it had one."""
        if identity not in self._by_id:  # as of each pod that is placed
            return None
        known = self._take_out(identity)
        if not self._by_id:
            self._columns, self._left = None, []
            self.terms.clear()
        return known

    def get(self, identity: str) -> Nomination | None:
        """Return a pod's nomination."""
        return self._by_id.get(identity)

    def named(self, key: str) -> Nomination | None:
        """Return the nomination of the pod of a namespace and name.

        Cost: O(nominated pods).
        """
        return next((one for one in self._by_id.values() if one.pod.key == key), None)

    def rows(self, row_of: Mapping[str, int]) -> frozenset[int]:
        """Return the rows of the nodes that are kept for some pod.

        Cost: O(nodes that are kept).
        """
        return frozenset(row_of[node] for node in self._by_node if node in row_of)

    def on_node(self, node: str) -> list[Pod]:
        """List the pods that a node is kept for."""
        return list(self._by_node.get(node, {}).values())

    def yielded_to(self, pod: Pod, row_of: Mapping[str, int]) -> PodsByRow:
        """Return the pods that a pod has to leave their place: others of equal or higher priority, by their node's row.

        Cost: O(nodes that are kept), a few operations over all nominated pods, and O(what those state that came or
            changed since the last question).
        """
        finished(self.entering())
        columns = self._columns
        return {} if columns is None else columns.yielded_to(pod_priority(pod), pod_id(pod), row_of)

    @property
    def waiting(self) -> int:
        """How many pods have no place in the columns yet."""
        return len(self._waiting)

    def entering(self) -> Pausing[None]:
        """Read what pods state that came or changed, pausing now and then."""
        pods = length = 0
        while self._waiting:
            identity = next(iter(self._waiting))
            one, repelling = self._waiting[identity]
            measured = self.measured(one.pod) or measure(one.pod)
            if self._columns is None:
                self._columns = NominatedColumns(self.terms)
            self._columns.enter(identity, one, measured, self.terms.enter(one.pod, repelling))
            del self._waiting[identity]
            pods, length = pods + 1, length + _length(measured)
            if pods >= PODS_PER_PIECE or length >= BYTES_PER_PIECE:
                pods = length = 0
                yield
        left, self._left = self._left, []
        for number in left:
            self.terms.leave(number)
        if self._columns is not None and self._columns.is_sparse:
            self._columns = self._columns.compacted()

    def repelling_of(self, pod: Pod) -> int | None:
        """Return the number of what a nominated pod states that keeps others away, None for any other pod.

        A pod that has no place in the columns yet is like any other.
        """
        identity = pod_id(pod)
        known = self._by_id.get(identity)
        if known is None or known.pod is not pod or self._columns is None or identity in self._waiting:
            return None
        return self._columns.repelling_of(identity)

    def measured(self, pod: Pod) -> Measured | None:
        """Return what is worked out of a nominated pod, once as long as it stays as it is; None for any other one."""
        identity = pod_id(pod)
        known = self._by_id.get(identity)
        if known is None or known.pod is not pod:
            return None
        found = self._measured.get(identity)
        if found is None:
            found = measure(pod)
            found = self._measured[identity] = Measured(found.resources, _SignatureKey.of(found.signature_key))
        return found

    def __len__(self) -> int:
        return len(self._by_id)

    def _take_out(self, identity: str) -> Nomination | None:
        known = self._by_id.pop(identity, None)
        if known is not None:
            self.generation += 1
            self._measured.pop(identity, None)
            pods = self._by_node[known.node]
            del pods[identity]
            if not pods:
                del self._by_node[known.node]
            if self._waiting.pop(identity, None) is None and self._columns is not None:
                self._left.append(self._columns.drop(identity))
        return known

    def _replace(self, identity: str, one: Nomination) -> None:
        """Take a version of a pod that differs in nothing that counts; it comes behind the others, as any version."""
        del self._by_id[identity]
        self._by_id[identity] = one
        pods = self._by_node[one.node]
        del pods[identity]
        pods[identity] = one.pod
        waiting = self._waiting.pop(identity, None)
        if waiting is not None:
            self._waiting[identity] = _Waiting(one, waiting.repelling)
        elif self._columns is not None:
            self._columns.renew(identity, one)

    def _repelling_alike(self, identity: str, before: Pod, after: Pod) -> int | None:
        """Return the number of what a version of a pod states that keeps others away, if it is that of another one."""
        if before.metadata.namespace != after.metadata.namespace or before.spec.affinity != after.spec.affinity:
            return None
        waiting = self._waiting.get(identity)
        if waiting is not None:
            return waiting.repelling
        return None if self._columns is None else self._columns.repelling_of(identity)


def _is_alike(before: Pod, after: Pod) -> bool:
    """Return whether versions of a nominated pod differ in nothing that decisions about other pods read.

    That leaves annotations, what the API server counts, and what the status says of scheduling.
    """
    if before.spec != after.spec:
        return False
    old, new = before.metadata, after.metadata
    if (
        old.labels != new.labels
        or old.namespace != new.namespace
        or old.name != new.name
        or old.deletion_timestamp != new.deletion_timestamp
        or old.creation_timestamp != new.creation_timestamp
        or old.generate_name != new.generate_name
        or old.owner_references != new.owner_references
    ):
        return False
    was, now = before.status, after.status
    return was is now or (
        was.phase == now.phase
        and was.qos_class == now.qos_class
        and was.start_time == now.start_time
        and was.container_statuses == now.container_statuses
        and was.init_container_statuses == now.init_container_statuses
        and was.resources == now.resources
        and was.allocated_resources == now.allocated_resources
        and was.resource_claim_statuses == now.resource_claim_statuses
        and was.extended_resource_claim_status == now.extended_resource_claim_status
        and _conditions(was.conditions) == _conditions(now.conditions)
    )


def _conditions(conditions: Sequence[PodCondition]) -> list[PodCondition]:
    return [one for one in conditions if one.type != "PodScheduled"]


def _length(measured: Measured) -> int:
    """Return about how much a pod states. Units: bytes."""
    key = measured.signature_key
    length = 0
    for part in key if isinstance(key, tuple) else ():
        length += len(part) if isinstance(part, bytes) else 16 * len(part) if isinstance(part, tuple | frozenset) else 0
    return length
