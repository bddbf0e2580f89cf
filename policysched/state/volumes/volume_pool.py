"""Volumes that a claim can still take, by class and size, and those that are meant for a claim already.

A claim takes the smallest volume that fits, so the free ones of a class are kept in order of size: most claims are
decided by the first few of thousands. Whether one fits a claim otherwise is no question for this module.

Source: component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume), v0.36.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from fractions import Fraction

from policysched.model.objects import PersistentVolume
from policysched.model.objects.storage import affinity_key, class_of
from policysched.model.quantity import ZERO, Quantity, parse

Sized = tuple[int | Fraction, str]
"""A volume's size in bytes, and its name."""


class VolumePool:
    """Volumes as they are assumed, or else stored."""

    __slots__ = ("_affinities", "_free", "_meant", "_volumes")

    def __init__(self) -> None:
        self._volumes: dict[str, PersistentVolume] = {}
        self._affinities: dict[str, bytes] = {}
        self._free: dict[str, list[Sized]] = {}
        self._meant: dict[tuple[str, str], set[str]] = {}

    def free(self, of_class: str, at_least: Quantity) -> Iterator[tuple[PersistentVolume, bytes]]:
        """Give the free volumes of a class that hold so much, the smallest first, then by name.

        Each comes with what its node affinity says: volumes of equal bytes are reached from the same nodes.
        """
        sized = self._free.get(of_class, [])
        for place in range(bisect_left(sized, (at_least.number, "")), len(sized)):
            name = sized[place][1]
            yield self._volumes[name], self._affinities[name]

    def meant_for(self, of_class: str, claim: str) -> list[PersistentVolume]:
        """Give the volumes of a class that name a claim (`namespace/name`), by name."""
        return [self._volumes[name] for name in sorted(self._meant.get((of_class, claim), ()))]

    def follow(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        """Take note of a volume that came, changed or went."""
        if old is not None:
            self._remove(old)
        if new is not None:
            self._add(new)

    def _add(self, volume: PersistentVolume) -> None:
        name, of_class, claim = volume.metadata.name, class_of(volume), _claim(volume)
        reached_from, sized = affinity_key(volume.spec.node_affinity), _sized(volume)
        self._volumes[name], self._affinities[name] = volume, reached_from
        if claim is not None:
            self._meant.setdefault((of_class, claim), set()).add(name)
        elif _is_free(volume):
            insort(self._free.setdefault(of_class, []), sized)

    def _remove(self, volume: PersistentVolume) -> None:
        if volume.metadata.name not in self._volumes:
            return
        del self._volumes[volume.metadata.name], self._affinities[volume.metadata.name]
        claim, of_class = _claim(volume), class_of(volume)
        if claim is not None:
            names = self._meant[of_class, claim]
            names.discard(volume.metadata.name)
            if not names:
                del self._meant[of_class, claim]
        elif _is_free(volume):
            sized = self._free[of_class]
            del sized[bisect_left(sized, _sized(volume))]
            if not sized:
                del self._free[of_class]


def capacity(volume: PersistentVolume) -> Quantity:
    """Give how much a volume holds."""
    amount = volume.spec.capacity.get("storage")
    return ZERO if amount is None else parse(amount)


def _is_free(volume: PersistentVolume) -> bool:
    return volume.status.phase == "Available" and volume.metadata.deletion_timestamp is None


def _claim(volume: PersistentVolume) -> str | None:
    reference = volume.spec.claim_ref
    return None if reference is None else f"{reference.namespace}/{reference.name}"


def _sized(volume: PersistentVolume) -> Sized:
    return capacity(volume).number, volume.metadata.name
