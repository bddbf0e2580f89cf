"""`VolumeTable`: the free volumes of a StorageClass as bit sets, to choose volumes for many claims quickly.

A pod may name thousands of claims, and a cluster may have thousands of volumes. The volumes that suit a claim are the
intersection of sets: the volumes with an access mode, with a value of a label, and so on. A set is an integer with one
bit for each volume; the lowest bit is the smallest volume.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from policysched.model.objects import PersistentVolumeClaim
from policysched.model.quantity import Quantity
from policysched.model.selection.indexed_selector import IndexedSelector
from policysched.state.volumes.storage import FreeVolume

FILESYSTEM: Final = "Filesystem"
"""The default volumeMode of claims and volumes."""
FEW: Final = 64
"""Number of volumes with the same text beyond which the bit set of the text is cached."""


class VolumeTable:
    """The free volumes of one StorageClass as bit sets, without volumes that are chosen on all nodes they can reach.

    Args:
        volumes: The volumes, the smallest first.
    """

    __slots__ = ("_attributes", "_kinds", "_labels", "_modes", "_of_affinity", "_used_up", "volumes")

    def __init__(self, volumes: Sequence[FreeVolume]) -> None:
        self.volumes = volumes
        self._used_up = 0
        specs = [one.volume.spec for one in volumes]
        self._modes = PlacesByText(len(volumes), ((place, set(one.access_modes)) for place, one in enumerate(specs)))
        self._kinds = PlacesByText(
            len(volumes), ((place, (one.volume_mode or FILESYSTEM,)) for place, one in enumerate(specs))
        )
        self._attributes = PlacesByText(
            len(volumes), ((place, (one.volume_attributes_class_name or "",)) for place, one in enumerate(specs))
        )
        self._of_affinity: defaultdict[bytes, list[int]] = defaultdict(list)
        for place, volume in enumerate(volumes):
            self._of_affinity[volume.affinity].append(place)
        self._labels: Mapping[str, PlacesByText] | None = None
        """The volumes by label key and value; None until a claim has a selector."""

    def suiting(self, claim: PersistentVolumeClaim, selector: IndexedSelector | None, size: Quantity) -> int:
        """Return the bit set of the volumes that fulfil a claim."""
        spec, begin = claim.spec, bisect_left(self.volumes, (size.number, ""))
        found = self._everything >> begin << begin
        found &= self._kinds.having(spec.volume_mode or FILESYSTEM)
        found &= self._attributes.having(spec.volume_attributes_class_name or "")
        for mode in set(spec.access_modes):
            found &= self._modes.having(mode)
        return found if selector is None or not found else found & self._selected(selector)

    def usable(self, suiting: int, used_up: Collection[str], reached: Collection[bytes]) -> Iterator[FreeVolume]:
        """Yield the volumes of a bit set, smallest first, except the volumes to skip.

        Args:
            suiting: The set.
            used_up: The names of volumes to skip, for all claims from now on.
            reached: The node affinities of volumes to skip; it may grow during the iteration.
        """
        left = suiting & ~self._used_up
        while left:
            lowest = left & -left
            left ^= lowest
            one = self.volumes[lowest.bit_length() - 1]
            if one.name in used_up:
                self._used_up |= lowest
                continue
            if one.affinity not in reached:
                yield one
            if one.affinity in reached:
                left &= ~bits(self._of_affinity[one.affinity], len(self.volumes))

    @property
    def _everything(self) -> int:
        return (1 << len(self.volumes)) - 1

    def _selected(self, selector: IndexedSelector) -> int:
        """Return the bit set of the volumes that a selector matches.

        Cost: O(labels of the volumes, or labels that the selector demands).
        """
        if self._labels is None:
            self._labels = _by_label(self.volumes)
        if not selector.may_select(self._labels):
            return 0
        found = self._everything
        for key in selector.labels_among(self._labels):
            said, label = selector.on(key), self._labels[key]
            if said is None:
                continue
            kept = 0
            if said.present:
                kept = label.all if said.allowed is None else label.having(*label.among(said.allowed))
                kept &= ~label.having(*label.among(said.banned))
            found &= kept | ~label.all if said.absent else kept
            if not found:
                break
        return found


class PlacesByText:
    """The indices of volumes by a text of the volume, such as the value of a label.

    Args:
        size: The number of volumes.
        said: Places, each with its texts.
    """

    __slots__ = ("_places", "_sets", "_size", "all")

    def __init__(self, size: int, said: Iterable[tuple[int, Iterable[str]]]) -> None:
        self._size = size
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._sets: dict[str, int] = {}
        for place, texts in said:
            for text in texts:
                self._places[text].append(place)
        self.all = bits((place for places in self._places.values() for place in places), size)
        """The bit set of the volumes that have at least one text."""

    def among(self, texts: Set[str]) -> Set[str]:
        """Return those of the given texts that at least one volume has."""
        return self._places.keys() & texts

    def having(self, *texts: str) -> int:
        """Return the bit set of the volumes that have one of the given texts."""
        found, few = 0, list[int]()
        for text in texts:
            places = self._places.get(text, ())
            if len(places) <= FEW:
                few += places
            else:
                if text not in self._sets:
                    self._sets[text] = bits(places, self._size)
                found |= self._sets[text]
        return found | bits(few, self._size) if few else found


def bits(places: Iterable[int], size: int) -> int:
    """Return indices as a bit set, an integer with one bit for each index."""
    found = bytearray(size // 8 + 1)
    for place in places:
        found[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(found, "little")


def _by_label(volumes: Sequence[FreeVolume]) -> dict[str, PlacesByText]:
    said: defaultdict[str, list[tuple[int, tuple[str]]]] = defaultdict(list)
    for place, one in enumerate(volumes):
        for label, value in one.volume.metadata.labels.items():
            said[label].append((place, (value,)))
    return {label: PlacesByText(len(volumes), values) for label, values in said.items()}
