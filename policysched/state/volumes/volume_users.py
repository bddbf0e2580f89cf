"""`VolumeUsers`: the placed pods that use each claim and each disk of an inline volume.

A pod may have tens of thousands of volumes, so pods are found by claim or disk, without a scan.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from policysched.model.objects import Pod, Volume
from policysched.model.objects.storage import claim_name
from policysched.state.placed.pods import PlacedPod, pod_id

K = TypeVar("K")
Disk = tuple[str, ...]
"""The identity of an inline volume's disk: kind of volume, and the fields that identify the disk."""
_NOBODY: Mapping[str, bool] = {}


class VolumeUsers:
    """The placed pods with volumes that scheduling reads, by claim and by inline disk."""

    __slots__ = ("_of_claim", "_of_disk", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, PlacedPod] = {}
        """The placed pods with volumes that scheduling reads, by pod identity."""
        self._of_claim: dict[str, dict[str, bool]] = {}
        """For each claim, the pods that use it by identity; false if it was created for the pod's ephemeral volume."""
        self._of_disk: dict[Disk, dict[str, bool]] = {}
        """For each inline disk, the pods that use it by identity, and whether the pod may write to it."""

    def of_claim(self, claim: str) -> Iterable[str]:
        """Return the identities of the pods that use the claim with the key `namespace/name`."""
        return self._of_claim.get(claim, _NOBODY)

    def rows_stating(self, claim: str) -> Iterator[int]:
        """Return the rows of the nodes with pods whose spec names the claim `namespace/name`."""
        return (self.pods[identity].row for identity, stated in self._of_claim.get(claim, _NOBODY).items() if stated)

    def of_disk(self, disk: Disk) -> Mapping[str, bool]:
        """Return the identities of the pods that use an inline disk, each with whether the pod may write to it."""
        return self._of_disk.get(disk, _NOBODY)

    def place(self, placed: PlacedPod) -> None:
        """Add a placed pod to the users of its claims and disks."""
        identity = pod_id(placed.pod)
        self.pods[identity] = placed
        for claim, stated in _claims_used(placed.pod).items():
            self._of_claim.setdefault(claim, {})[identity] = stated
        for disk, writable in disks_of(placed.pod).items():
            self._of_disk.setdefault(disk, {})[identity] = writable

    def take_version(self, before: PlacedPod, after: PlacedPod) -> bool:
        """Replace a placed pod by a newer version with equal volumes; if the volumes differ, only return False."""
        identity, old, new = pod_id(after.pod), before.pod, after.pod
        names = (old.metadata.namespace, old.metadata.name), (new.metadata.namespace, new.metadata.name)
        if self.pods.get(identity) is not before or names[0] != names[1] or old.spec.volumes != new.spec.volumes:
            return False
        self.pods[identity] = after
        return True

    def displace(self, placed: PlacedPod) -> bool:
        """Remove a placed pod from the users of claims and disks; return whether it was a user."""
        identity = pod_id(placed.pod)
        if self.pods.pop(identity, None) is None:
            return False
        for claim in _claims_used(placed.pod):
            _take_off(self._of_claim, claim, identity)
        for disk in disks_of(placed.pod):
            _take_off(self._of_disk, disk, identity)
        return True


def disks_of(pod: Pod) -> dict[Disk, bool]:
    """Return the disks of a pod's inline volumes, each with whether the pod may write to it."""
    found: dict[Disk, bool] = {}
    for volume in pod.spec.volumes:
        for disk, read_only in disks_of_volume(volume):
            found[disk] = not read_only or found.get(disk, False)
    return found


class DiskKind(NamedTuple):
    """A kind of inline volume that is a disk, such as gcePersistentDisk.

    Attributes:
        source: Returns the part of a volume that identifies the disk; None for other kinds.
        name: Returns the element after the kind in the `Disk` of such a part.
    """

    source: Callable[[Volume], Any]
    name: Callable[[Any], str]

    def named(self, volumes: Iterable[Volume], names: Container[str]) -> list[Volume]:
        """Return the volumes of this kind whose disk has a name in `names`."""
        source, name = self.source, self.name
        return [volume for volume in volumes if (disk := source(volume)) is not None and name(disk) in names]


DISK_KINDS: Final[Mapping[str, DiskKind]] = {
    "gce": DiskKind(attrgetter("gce_persistent_disk"), attrgetter("pd_name")),
    "aws": DiskKind(attrgetter("aws_elastic_block_store"), attrgetter("volume_id")),
    "iscsi": DiskKind(attrgetter("iscsi"), attrgetter("iqn")),
    "rbd": DiskKind(attrgetter("rbd"), attrgetter("pool")),
}


def disks_of_volume(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    """Return the disks of an inline volume, each with whether it is read-only; an RBD image has one per monitor."""
    if volume.gce_persistent_disk is not None:
        yield ("gce", volume.gce_persistent_disk.pd_name), volume.gce_persistent_disk.read_only
    if volume.aws_elastic_block_store is not None:
        yield ("aws", volume.aws_elastic_block_store.volume_id), False
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn), volume.iscsi.read_only
    if volume.rbd is not None:
        for monitor in volume.rbd.monitors:
            yield ("rbd", volume.rbd.pool, volume.rbd.image, monitor), volume.rbd.read_only


def _claims_used(pod: Pod) -> dict[str, bool]:
    """Return the claims that a pod uses as keys; the value is false for a claim created for an ephemeral volume."""
    found: dict[str, bool] = {}
    namespace = pod.metadata.namespace
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            key = f"{namespace}/{name}"
            found[key] = volume.persistent_volume_claim is not None or found.get(key, False)
    return found


def _take_off(users: dict[K, dict[str, bool]], used: K, identity: str) -> None:
    of_one = users.get(used, {})
    of_one.pop(identity, None)
    if not of_one:
        users.pop(used, None)
