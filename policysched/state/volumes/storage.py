"""`Storage`: volumes and claims (kube-scheduler's assume caches), StorageClasses and CSI objects.

When a pod is assumed on a node, its volumes and claims are *assumed* too: an assumed version replaces the stored
version until the watch delivers a newer version.

A claim gets the smallest volume that fits, so `VolumePool` sorts the free volumes of a class by size.

Source: pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go; pkg/scheduler/backend/cache/snapshot.go
(IsPVCUsedByPods); component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

from policysched.model.kinds import Resource
from policysched.model.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Stored,
    VolumeAttachment,
)
from policysched.model.objects.storage import affinity_key, class_of
from policysched.model.quantity import ZERO, Quantity, parse
from policysched.state.cluster_events import Change, change_of
from policysched.state.object_selectors import ObjectSelector, ObjectSelectors
from policysched.state.object_tables import ObjectTables
from policysched.state.placed.pods import PlacedPod
from policysched.state.volumes.volume_users import VolumeUsers

S = TypeVar("S", PersistentVolume, PersistentVolumeClaim)


class FreeVolume(NamedTuple):
    """An available PersistentVolume without a claim; sorted by size, then by name."""

    size: int | Fraction
    """Size of the volume. Units: bytes."""
    name: str
    volume: PersistentVolume
    affinity: bytes
    """The volume's node affinity in encoded form; equal bytes mean that the same nodes can access the volume."""


class OutOfStepError(Exception):
    """Raised if an object cannot be assumed, because it was deleted or another version of it is stored."""


class Assumable(Generic[S]):
    """Objects of one kind by key, as stored on the API server and as assumed by the scheduler (an assume cache).

    Args:
        key: Returns an object's key.
        watch: Called with the old and the new object when the result of `get` changes.
    """

    __slots__ = ("_assumed", "_key", "_stored", "_watch")

    def __init__(self, key: Callable[[S], str], watch: Callable[[S | None, S | None], None] | None = None) -> None:
        self._key: Callable[[S], str] = key
        self._watch: Callable[[S | None, S | None], None] | None = watch
        self._stored: dict[str, S] = {}
        self._assumed: dict[str, S] = {}

    def put(self, obj: S) -> S | None:
        """Add or replace a stored object; return the previous version; a different version ends an assumption."""
        key = self._key(obj)
        old, before = self._stored.get(key), self.get(key)
        self._stored[key] = obj
        assumed = self._assumed.get(key)
        if assumed is not None and _version(assumed) != _version(obj):
            del self._assumed[key]
        self._tell(before, self.get(key))
        return old

    def drop(self, key: str) -> S | None:
        """Remove and return the stored version of an object."""
        before = self.get(key)
        self._assumed.pop(key, None)
        gone = self._stored.pop(key, None)
        self._tell(before, None)
        return gone

    def get(self, key: str) -> S | None:
        """Return the assumed version of an object, else the stored version; None if neither exists."""
        return self._assumed.get(key) or self._stored.get(key)

    def stored(self, key: str) -> S | None:
        """Return the stored version of an object."""
        return self._stored.get(key)

    def all_stored(self) -> Iterable[S]:
        """Return the stored versions of all objects."""
        return self._stored.values()

    def assume(self, obj: S) -> None:
        """Read an assumed version of an object instead of the stored object, which must be of the same version.

        Raises:
            OutOfStepError: Another version is stored, or none.
        """
        key = self._key(obj)
        stored = self._stored.get(key)
        if stored is None:
            raise OutOfStepError(f'"{key}" not found')
        if _version(stored) != _version(obj):
            raise OutOfStepError(f'"{key}" is out of sync (stored: {_version(stored)}, assume: {_version(obj)})')
        before = self.get(key)
        self._assumed[key] = obj
        self._tell(before, obj)

    def restore(self, obj: S) -> None:
        """Drop an assumed version, so that the stored object is read again, unless a newer version replaced it."""
        key = self._key(obj)
        assumed = self._assumed.get(key)
        if assumed is not None and _version(assumed) == _version(obj):
            del self._assumed[key]
            self._tell(assumed, self._stored.get(key))

    def _tell(self, old: S | None, new: S | None) -> None:
        if self._watch is not None and old is not new:
            self._watch(old, new)

    def __len__(self) -> int:
        return len(self._stored)


class Storage:
    """Volumes, claims, StorageClasses and CSI objects, and the placed pods that use them."""

    def __init__(self, objects: ObjectTables) -> None:
        self._objects = objects
        self.pool = VolumePool()
        self.volumes: Assumable[PersistentVolume] = Assumable(lambda volume: volume.metadata.name, self.pool.follow)
        self.claims: Assumable[PersistentVolumeClaim] = Assumable(lambda claim: claim.key)
        self.classes = objects.of(StorageClass)
        self.csi_nodes = objects.of(CSINode)
        self.csi_drivers = objects.of(CSIDriver)
        self.capacities = objects.of(CSIStorageCapacity)
        """The CSIStorageCapacities by `namespace/name`."""
        self.capacities_stamp = 0
        """A number that changes if a CSIStorageCapacity is added, changed or deleted."""
        self.claim_classes_stamp = 0
        """A number that changes if a claim is added or deleted, or gets another StorageClass."""
        self.attachments = objects.of(VolumeAttachment)
        self.volume_users = VolumeUsers()
        self.pods = self.volume_users.pods
        """The placed pods with volumes that scheduling reads, by pod identity."""
        self._attached: dict[str, dict[str, VolumeAttachment]] = {}
        """The VolumeAttachments by node and name."""
        self._attachments_of: dict[str, dict[str, VolumeAttachment]] = {}
        """The VolumeAttachments by volume and name."""
        self._claims_of: dict[str, set[str]] = {}
        self._selectors = ObjectSelectors()
        """The compiled volume selectors of claims."""

    def users(self, claim: str) -> Iterable[str]:
        """Return the identities of the placed pods that use the claim with the key `namespace/name`."""
        return self.volume_users.of_claim(claim)

    def attached_to(self, node: str) -> Iterable[VolumeAttachment]:
        """Return the VolumeAttachments that attach a volume to a node."""
        return self._attached.get(node, {}).values()

    def attachments_of(self, volume: str) -> Iterable[VolumeAttachment]:
        """Return the VolumeAttachments that attach a volume to any node."""
        return self._attachments_of.get(volume, {}).values()

    def claims_of(self, volume: str) -> Iterable[str]:
        """Return the keys `namespace/name` of the claims whose `volumeName` is a given volume."""
        return self._claims_of.get(volume, ())

    def selector_of(self, claim: PersistentVolumeClaim) -> ObjectSelector | None:
        """Return the compiled volume selector of a claim; None if the claim accepts any volume."""
        return None if claim.spec.selector is None else self._selectors.of(claim.key, claim.spec.selector)

    def put(self, obj: Stored) -> Change:
        """Add or replace a volume, claim, StorageClass or CSI object."""
        if isinstance(obj, PersistentVolume):
            change = change_of(Resource.VOLUME, self.volumes.put(obj), obj)
        elif isinstance(obj, PersistentVolumeClaim):
            change = change_of(Resource.CLAIM, self.claims.put(obj), obj)
        else:
            change = self._objects.put(obj)
        self._index(change.old, obj)
        return change

    def drop(self, obj: Stored) -> Change:
        """Remove a volume, claim, StorageClass or CSI object."""
        if isinstance(obj, PersistentVolume):
            change = change_of(Resource.VOLUME, self.volumes.drop(obj.metadata.name), None)
        elif isinstance(obj, PersistentVolumeClaim):
            change = change_of(Resource.CLAIM, self.claims.drop(obj.key), None)
        else:
            change = self._objects.drop(obj)
        self._index(change.old, None)
        return change

    def _index(self, old: Stored | None, new: Stored | None) -> None:
        """Update the indexes and stamps that depend on a changed claim, VolumeAttachment or CSIStorageCapacity."""
        self.capacities_stamp += isinstance(new or old, CSIStorageCapacity) and old != new
        self.claim_classes_stamp += _class_of(old) != _class_of(new)
        claim = new or old
        if isinstance(claim, PersistentVolumeClaim):
            self._selectors.put(claim.key, None if new is None else claim.spec.selector)
        for obj, come in ((old, False), (new, True)):
            if isinstance(obj, PersistentVolumeClaim) and obj.spec.volume_name:
                claims = self._claims_of.setdefault(obj.spec.volume_name, set())
                (claims.add if come else claims.discard)(obj.key)
                if not claims:
                    del self._claims_of[obj.spec.volume_name]
            elif isinstance(obj, VolumeAttachment):
                _file(self._attached, obj.spec.node_name, obj, come=come)
                _file(self._attachments_of, obj.spec.source.persistent_volume_name or "", obj, come=come)

    def place(self, placed: PlacedPod) -> bool:
        """Record a placed pod as a user of its volumes; return whether it has volumes that scheduling reads."""
        if not has_volumes(placed.pod):
            return False
        self.volume_users.place(placed)
        return True

    def take_version(self, before: PlacedPod, after: PlacedPod) -> bool:
        """Replace a placed pod by a newer version with equal volumes; if the volumes differ, only return False."""
        return self.volume_users.take_version(before, after)

    def displace(self, placed: PlacedPod) -> bool:
        """Remove a placed pod from the users of volumes; return whether it had volumes that scheduling reads."""
        return self.volume_users.displace(placed)


def _class_of(obj: Stored | None) -> str | None:
    """Return the StorageClass name of an object that is a claim; None for other objects and claims without a class."""
    return obj.spec.storage_class_name if isinstance(obj, PersistentVolumeClaim) else None


def _file(table: dict[str, dict[str, VolumeAttachment]], key: str, attachment: VolumeAttachment, *, come: bool) -> None:
    """Add a VolumeAttachment to an index under a key; if `come` is false, remove it."""
    filed = table.setdefault(key, {})
    filed.pop(attachment.metadata.name, None)
    if come:
        filed[attachment.metadata.name] = attachment
    if not filed:
        del table[key]


def has_volumes(pod: Pod) -> bool:
    """Return whether a pod has volumes of a kind that scheduling reads."""
    return any(
        volume.persistent_volume_claim
        or volume.ephemeral
        or volume.gce_persistent_disk
        or volume.aws_elastic_block_store
        or volume.azure_disk
        or volume.azure_file
        or volume.cinder
        or volume.vsphere_volume
        or volume.portworx_volume
        or volume.iscsi
        or volume.rbd
        for volume in pod.spec.volumes
    )


def _version(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    return obj.metadata.resource_version


class VolumePool:
    """The current PersistentVolumes: the free volumes of each StorageClass, and the volumes reserved for a claim."""

    __slots__ = ("_free", "_meant", "_volumes")

    def __init__(self) -> None:
        self._volumes: dict[str, PersistentVolume] = {}
        self._free: dict[str, list[FreeVolume]] = {}
        self._meant: dict[tuple[str, str], set[str]] = {}

    def free(self, of_class: str, at_least: Quantity) -> Iterator[FreeVolume]:
        """Return the free volumes of a StorageClass that have at least a given size, sorted by size, then by name."""
        free = self._free.get(of_class, [])
        return map(free.__getitem__, range(bisect_left(free, (at_least.number, "")), len(free)))

    def meant_for(self, of_class: str, claim: str) -> list[PersistentVolume]:
        """Return the volumes of a StorageClass whose claimRef is the claim `namespace/name`, sorted by name."""
        return [self._volumes[name] for name in sorted(self._meant.get((of_class, claim), ()))]

    def follow(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        """Replace a PersistentVolume by a new version; None stands for a volume that did not or no longer exists."""
        if old is not None:
            self._remove(old)
        if new is not None:
            self._add(new)

    def _add(self, volume: PersistentVolume) -> None:
        name, of_class, claim = volume.metadata.name, class_of(volume), _claim(volume)
        if claim is not None:
            self._meant.setdefault((of_class, claim), set()).add(name)
        elif _is_free(volume):
            free = FreeVolume(capacity(volume).number, name, volume, affinity_key(volume.spec.node_affinity))
            insort(self._free.setdefault(of_class, []), free)
        self._volumes[name] = volume

    def _remove(self, volume: PersistentVolume) -> None:
        name = volume.metadata.name
        if name not in self._volumes:
            return
        del self._volumes[name]
        claim, of_class = _claim(volume), class_of(volume)
        if claim is not None:
            names = self._meant[of_class, claim]
            names.discard(name)
            if not names:
                del self._meant[of_class, claim]
        elif _is_free(volume):
            free = self._free[of_class]
            del free[bisect_left(free, (capacity(volume).number, name))]
            if not free:
                del self._free[of_class]


def capacity(volume: PersistentVolume) -> Quantity:
    """Return the size of a PersistentVolume in bytes."""
    amount = volume.spec.capacity.get("storage")
    return ZERO if amount is None else parse(amount)


def _is_free(volume: PersistentVolume) -> bool:
    return volume.status.phase == "Available" and volume.metadata.deletion_timestamp is None


def _claim(volume: PersistentVolume) -> str | None:
    reference = volume.spec.claim_ref
    return None if reference is None else f"{reference.namespace}/{reference.name}"
