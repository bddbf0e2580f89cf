"""`PodTable`: the placed and assumed pods of each node. `PodSignatures`: sets of pods that rules treat alike.

Finished pods are omitted. The pods of a row have the order that they have in kube-scheduler: an added or updated pod
becomes the last pod, and the last pod takes the place of a removed pod. Each pod has a slot in arrays such as `rows`,
for computations over all pods; free slots are reused.

Pods of a signature are equal in all fields that affinity terms, spread constraints and rules about pods on a node read
(namespace, labels and so on, but not the name), so these are evaluated once per signature.

Source: pkg/scheduler/framework/types.go (AddPod, RemovePod), pkg/scheduler/backend/cache/cache.go (updatePod).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Pod
from policysched.model.objects.meta import seconds_of
from policysched.model.pod_requirements import pod_priority, qos_class
from policysched.state.tables.amounts import PodResources

FIRST_SLOTS = 64
_ENCODER = msgspec.json.Encoder(order="deterministic")


class PlacedPod(msgspec.Struct, gc=False):
    """A placed or assumed pod, with the row of its node."""

    pod: Pod
    row: int
    pod_resources: PodResources
    assumed: bool
    signature: int = -1
    """The number of the pod's signature, which alike pods share; -1 if no placed pod has the signature."""
    slot: int = -1
    """Index of the pod in the arrays of the pod table."""


def pod_id(pod: Pod) -> str:
    """Return the identity of a pod: the UID, or `namespace/name` for a pod without a UID."""
    return pod.metadata.uid or pod.key


class PodTable:
    """Placed and assumed pods, by identity and by node's row, with arrays of their values.

    Shapes: `rows`, `signatures` and `places` (P,), one element per slot; a free slot has the row −1.
    """

    __slots__ = ("_by_row", "_created", "_free", "_going", "_starts", "by_id", "by_slot", "places", "rows",
                 "signatures")  # fmt: skip

    def __init__(self) -> None:
        self.by_id: dict[str, PlacedPod] = {}
        self.rows: NDArray[np.int32] = np.full(FIRST_SLOTS, -1, np.int32)
        self.signatures: NDArray[np.int32] = np.zeros(FIRST_SLOTS, np.int32)
        self.places: NDArray[np.int32] = np.zeros(FIRST_SLOTS, np.int32)
        """The index of each pod among the pods of its row."""
        self.by_slot: list[PlacedPod | None] = [None] * FIRST_SLOTS
        self._starts: NDArray[np.float64] = np.full(FIRST_SLOTS, np.nan)
        # Valid if the start is not NaN. Creation times are read at the first use.
        self._created: NDArray[np.float64] = np.full(FIRST_SLOTS, np.nan)
        self._going: NDArray[np.bool_] = np.zeros(FIRST_SLOTS, np.bool_)
        self._by_row: dict[int, list[PlacedPod]] = {}
        self._free = list(range(FIRST_SLOTS - 1, -1, -1))

    def on_row(self, row: int) -> list[PlacedPod]:
        """Return the pods on the node of a row."""
        return self._by_row.get(row, []).copy()

    def by_row(self) -> list[PlacedPod]:
        """Return all pods, node by node."""
        return [placed for pods in self._by_row.values() for placed in pods]

    def has_row(self, row: int) -> bool:
        """Return whether any pod is on the node of a row."""
        return row in self._by_row

    def insert(self, identity: str, placed: PlacedPod) -> None:
        """Add a placed pod to its node and to the arrays."""
        self.by_id[identity] = placed
        if not self._free:
            self._grow()
        placed.slot = self._free.pop()
        self.rows[placed.slot], self.signatures[placed.slot] = placed.row, placed.signature
        self.by_slot[placed.slot] = placed
        self._starts[placed.slot] = np.nan
        self._append(placed)

    def remove(self, identity: str) -> PlacedPod:
        """Remove a placed pod from its node and return the pod."""
        placed = self.by_id.pop(identity)
        self.rows[placed.slot] = -1
        self.by_slot[placed.slot] = None
        self._free.append(placed.slot)
        self._take_out(placed)
        return placed

    def replace(self, identity: str, version: PlacedPod) -> None:
        """Replace a placed pod by a version with another signature, such as other labels, as its node's last pod."""
        placed = self.by_id.pop(identity)
        self._take_out(placed)
        slot = version.slot = placed.slot
        self.by_id[identity] = self.by_slot[slot] = version
        self.signatures[slot] = version.signature
        self._starts[slot] = np.nan
        self._append(version)

    def update(self, placed: PlacedPod, pod: Pod) -> None:
        """Replace a placed pod by a version with the same signature (labels, requests, …), as its node's last pod."""
        placed.pod, placed.assumed = pod, False
        self._starts[placed.slot] = np.nan
        self._take_out(placed)
        self._append(placed)

    def arrange(self, row: int, identities: Sequence[str]) -> None:
        """Put the pods on the node of a row in an order that `on_row` returned before."""
        pods = self._by_row[row] = [self.by_id[identity] for identity in identities]
        self.places[[placed.slot for placed in pods]] = np.arange(len(pods))

    def _append(self, placed: PlacedPod) -> None:
        pods = self._by_row.setdefault(placed.row, [])
        self.places[placed.slot] = len(pods)
        pods.append(placed)

    def _take_out(self, placed: PlacedPod) -> None:
        pods, place = self._by_row[placed.row], int(self.places[placed.slot])
        last = pods.pop()
        if last is not placed:
            pods[place] = last
            self.places[last.slot] = place
        elif not pods:
            del self._by_row[placed.row]

    def starts(self, slots: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the start times of the pods with given indexes (slots); infinity for a pod that has not started.

        Units: seconds since 1970.
        """
        self._read(slots)
        return self._starts[slots]

    def created(self, slots: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the creation times of the pods with given slots; infinity if unknown. Units: seconds since 1970."""
        self._read(slots)
        for slot in slots[np.isnan(self._created[slots])].tolist():
            placed = self.by_slot[slot]
            seconds = None if placed is None else seconds_of(placed.pod.metadata.creation_timestamp)
            self._created[slot] = math.inf if seconds is None else seconds
        return self._created[slots]

    def terminating(self, slots: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return a mask of the pods with given indexes (slots) that are being deleted."""
        self._read(slots)
        return self._going[slots]

    def _read(self, slots: NDArray[np.intp]) -> None:
        unread = slots[np.isnan(self._starts[slots])]
        self._created[unread] = np.nan
        for slot in unread.tolist():
            placed = self.by_slot[slot]
            seconds = None if placed is None else seconds_of(placed.pod.status.start_time)
            self._starts[slot] = math.inf if seconds is None else seconds
            self._going[slot] = placed is not None and placed.pod.metadata.deletion_timestamp is not None

    def __len__(self) -> int:
        return len(self.by_id)

    def _grow(self) -> None:
        size = self.rows.size
        self.by_slot += [None] * size
        self._starts = np.concatenate((self._starts, np.full(size, np.nan)))
        self._created = np.concatenate((self._created, np.full(size, np.nan)))
        self._going = np.concatenate((self._going, np.zeros(size, np.bool_)))
        self.rows = np.concatenate((self.rows, np.full(size, -1, np.int32)))
        self.places = np.concatenate((self.places, np.zeros(size, np.int32)))
        self.signatures = np.concatenate((self.signatures, np.zeros(size, np.int32)))
        self._free = list(range(2 * size - 1, size - 1, -1))


class PodSignatures:
    """The signatures of placed pods (one for all pods with equal labels, affinity, requests, …), by number."""

    __slots__ = ("_by_priority", "_columns", "_columns_of", "_counts", "_free", "_ids", "_keys", "_spaces",
                 "present", "stamp")  # fmt: skip

    def __init__(self) -> None:
        self.present: list[PlacedPod | None] = []
        """One pod of each signature (alike pods); None for an unused number. Its row and `assumed` mean nothing."""
        self.stamp = 0
        """A number that changes if a signature (set of alike pods) is added or removed."""
        self._ids: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._counts: list[int] = []
        self._free: list[int] = []
        self._spaces: dict[str, dict[int, None]] = {}
        self._by_priority: dict[int, int] = {}
        """Number of signatures (sets of alike pods) of each priority."""
        self._columns: dict[str, NDArray[np.int64]] = {}
        self._columns_of = -1

    def priorities(self) -> NDArray[np.int64]:
        """Return the priority of the pods of each signature (alike pods); undefined for unused numbers.

        Shapes: (S,).
        Cost: O(signatures) after a signature was added or removed.
        """
        return self._column("", lambda placed: pod_priority(placed.pod))

    def lowest_priority(self) -> float:
        """Return the lowest priority of all placed pods; infinity without placed pods."""
        return min(self._by_priority, default=math.inf)

    def amounts(self, resource: str) -> NDArray[np.int64]:
        """Return the amount of a resource that pods of each signature (alike pods) request; undefined if unused."""
        return self._column(resource, lambda placed: dict(placed.pod_resources.amounts).get(resource, 0))

    def _column(self, key: str, value: Callable[[PlacedPod], int]) -> NDArray[np.int64]:
        if self._columns_of != self.stamp:
            self._columns.clear()
            self._columns_of = self.stamp
        found = self._columns.get(key)
        if found is None:
            values = [0 if placed is None else value(placed) for placed in self.present]
            found = self._columns[key] = np.array(values, np.int64)
        return found

    def of_namespace(self, namespace: str) -> Collection[int]:
        """Return the signatures (sets of alike pods) of the placed pods in a namespace."""
        return self._spaces.get(namespace, {})

    def find(self, placed: PlacedPod) -> int:
        """Return the number of a pod's signature; −1 if no placed pod is alike."""
        return self.number(signature_key(placed))

    def number(self, key: Hashable) -> int:
        """Return the number of the signature (set of alike pods) with a key; −1 if no placed pod has it."""
        return self._ids.get(key, -1)

    def enter(self, placed: PlacedPod) -> tuple[int, bool]:
        """Count a placed pod in its signature; return the signature's number, and whether no pod had it before."""
        key = signature_key(placed)
        signature = self._ids.get(key)
        if signature is not None:
            self._counts[signature] += 1
            return signature, False
        return self._appear(key, placed), True

    def leave(self, signature: int) -> bool:
        """Remove a pod from the count of its signature; return whether it was the last of these alike pods."""
        self._counts[signature] -= 1
        if self._counts[signature]:
            return False
        gone = self.present[signature]
        if gone is not None:
            self._forget(gone.pod, signature)
        del self._ids[self._keys[signature]]
        self.present[signature] = None
        self._keys[signature] = None
        self._free.append(signature)
        self.stamp += 1
        return True

    def _appear(self, key: Hashable, placed: PlacedPod) -> int:
        if self._free:
            signature = self._free.pop()
            self.present[signature], self._keys[signature], self._counts[signature] = placed, key, 1
        else:
            signature = len(self.present)
            self.present.append(placed)
            self._keys.append(key)
            self._counts.append(1)
        self._ids[key] = signature
        self._spaces.setdefault(placed.pod.metadata.namespace, {})[signature] = None
        priority = pod_priority(placed.pod)
        self._by_priority[priority] = self._by_priority.get(priority, 0) + 1
        self.stamp += 1
        return signature

    def _forget(self, pod: Pod, signature: int) -> None:
        namespace, priority = pod.metadata.namespace, pod_priority(pod)
        space = self._spaces[namespace]
        del space[signature]
        if not space:
            del self._spaces[namespace]
        self._by_priority[priority] -= 1
        if not self._by_priority[priority]:
            del self._by_priority[priority]


def signature_key(placed: PlacedPod) -> Hashable:
    """Return a pod's signature: all fields that rules about other pods may read, as a hashable key."""
    metadata, spec = placed.pod.metadata, placed.pod.spec
    owner = next(((one.kind, one.name) for one in metadata.owner_references if one.controller), None)
    return (
        metadata.namespace,
        frozenset(metadata.labels.items()),
        metadata.deletion_timestamp is not None,
        None if spec.affinity is None else _ENCODER.encode(spec.affinity),
        pod_priority(placed.pod),
        spec.priority_class_name,
        owner,
        spec.service_account_name,
        qos_class(placed.pod),
        placed.pod_resources.amounts,
    )


class Measured(NamedTuple):
    """A pod's requests, and its signature (all fields that rules about other pods may read) as a key."""

    resources: PodResources
    signature_key: Hashable


def measure(pod: Pod, resources: PodResources) -> Measured:
    """Return a pod's requests, and its signature (all fields that rules about other pods may read) as a key."""
    return Measured(resources, signature_key(PlacedPod(pod, -1, resources, assumed=True)))


def has_another_signature(old: Pod, new: Pod) -> bool:
    """Return whether a field that rules about other pods read may differ between two versions, besides requests."""
    before, after = old.metadata, new.metadata
    return (
        before.labels != after.labels
        or (before.deletion_timestamp is None) != (after.deletion_timestamp is None)
        or before.owner_references != after.owner_references
        or old.spec.affinity != new.spec.affinity
        or old.spec.priority != new.spec.priority
        or old.spec.priority_class_name != new.spec.priority_class_name
        or old.spec.service_account_name != new.spec.service_account_name
        or old.status.qos_class != new.status.qos_class
    )
