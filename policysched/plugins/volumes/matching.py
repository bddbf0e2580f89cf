"""Chooses existing volumes for unbound claims on each node: first volumes reserved for the claim, then the smallest.

The volumes of a class are tried in ascending order of size, until each row has a volume.

Shapes: N rows in use; a choice is an index into the chosen volumes, −1 for none: (N,) int32.
Source: component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume), v0.36.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask, RowNumbers
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim
from policysched.model.objects.storage import class_of
from policysched.model.quantity import ZERO, Quantity, parse
from policysched.model.selection.indexed_selector import IndexedSelector
from policysched.plugins.volumes.volume_table import FILESYSTEM, VolumeTable
from policysched.plugins.volumes.volume_topology import VolumeTopology
from policysched.state.volumes.storage import FreeVolume, capacity

Choice = NDArray[np.int32]
NONE = -1
FEW_CLAIMS: Final = 8
"""Maximum number of claims for which volumes are tried one by one; for more claims, a `VolumeTable` is faster."""
Usable: TypeAlias = Callable[[Collection[str], Collection[bytes]], Iterator[FreeVolume]]
"""Function that yields the volumes that a claim can use, smallest first, without the volumes to skip."""


class Match:
    """A claim, with the volume that it would use on each node."""

    __slots__ = ("choice", "claim", "rows", "volumes")

    def __init__(self, claim: PersistentVolumeClaim, rows: int) -> None:
        self.claim = claim
        self.rows = rows
        self.volumes: list[PersistentVolume] = []
        self.choice: Choice | None = None

    @property
    def open(self) -> Mask:
        """Return a mask of the nodes on which no volume is chosen yet, as a new array."""
        mask: Mask = np.ones(self.rows, np.bool_) if self.choice is None else self.choice == NONE
        return mask

    def at(self, row: int) -> PersistentVolume | None:
        """Return the volume that is chosen on a node; None if no volume is chosen."""
        index = NONE if self.choice is None else int(self.choice[row])
        return None if index == NONE else self.volumes[index]

    def take(self, volume: PersistentVolume, rows: Mask | RowNumbers) -> None:
        """Choose a volume for the claim on the given nodes."""
        if self.choice is None:
            self.choice = np.full(self.rows, NONE, np.int32)
        self.choice[rows] = len(self.volumes)
        self.volumes.append(volume)


def smallest_first(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Sort claims by size, so that small claims do not use volumes that only suit large claims."""
    if len(claims) < 2:
        return list(claims)
    return sorted(claims, key=lambda claim: requested(claim).number)


def requested(claim: PersistentVolumeClaim) -> Quantity:
    """Return the storage size that a claim requests."""
    amount = claim.spec.resources.requests.get("storage")
    return ZERO if amount is None else parse(amount)


class Candidates:
    """The free volumes of a claim's StorageClass that are large enough, smallest first; evaluated one by one."""

    __slots__ = ("_claim", "_found", "_more", "_selected", "_selector", "_suits")

    def __init__(self, claim: PersistentVolumeClaim, selector: IndexedSelector | None, cluster: Cluster) -> None:
        self._claim, self._selector = claim, selector
        self._found: list[FreeVolume] = []
        self._more = cluster.storage.pool.free(class_of(claim), requested(claim))
        self._suits: dict[str, bool] = {}
        self._selected: dict[frozenset[tuple[str, str]], bool] = {}
        """Whether the claim's selector matches, by the labels of volumes."""

    def usable(self, used_up: Collection[str], reached: Collection[bytes]) -> Iterator[FreeVolume]:
        """Yield the volumes that the claim can use, except volumes with given names or node affinities.

        Args:
            used_up: Names of volumes that are not yielded.
            reached: Node affinities of volumes that are not yielded; the collection may grow during the iteration.
        """
        suits = self._suits
        self._found = [one for one in self._found if one.name not in used_up and suits.get(one.name, True)]
        for one in self._found:
            if one.affinity not in reached and self._is_suited(one.volume):
                yield one
        note = self._found.append
        for one in self._more:
            note(one)
            if one.name not in used_up and one.affinity not in reached and self._is_suited(one.volume):
                yield one

    def _is_suited(self, volume: PersistentVolume) -> bool:
        suits = self._suits.get(volume.metadata.name)
        if suits is None:
            suits = _is_alike(self._claim, volume) and _has_modes(self._claim, volume) and self._selects(volume)
            self._suits[volume.metadata.name] = suits
        return suits

    def _selects(self, volume: PersistentVolume) -> bool:
        if self._selector is None:
            return True
        labels = frozenset(volume.metadata.labels.items())
        selected = self._selected.get(labels)
        if selected is None:
            selected = self._selected[labels] = self._selector.matches(volume.metadata.labels)
        return selected


class Matcher:
    """Chooses a volume for each claim of a pod on each node; on a node, a volume is chosen for one claim only.

    To bound the work for a pod with very many claims, or with one claim very often:

    - A volume that is chosen on all rows that it reaches is skipped.
    - The volumes that a claim may take are computed once, for many claims from a table of all volumes.
    - If no volume is left for a claim, equal claims after it are skipped.

    Args:
        cluster: The rows.
        reach: The nodes that volumes reach.
        claims: The number of claims, a claim of several volumes several times.
    """

    __slots__ = (
        "_cluster",
        "_left",
        "_many",
        "_nothing_for",
        "_reach",
        "_several",
        "_tables",
        "_taken",
        "_usable",
        "_used_up",
    )

    def __init__(self, cluster: Cluster, reach: VolumeTopology, claims: int) -> None:
        self._cluster, self._reach, self._several, self._many = cluster, reach, claims > 1, claims > FEW_CLAIMS
        self._usable: dict[str, Usable] = {}
        """The function that yields the volumes that a claim can use, by `namespace/name` of the claim."""
        self._tables: dict[str, VolumeTable] = {}
        """The table of free volumes of each StorageClass."""
        self._taken: dict[str, Mask] = {}
        """The nodes on which each volume is chosen, by name of the volume."""
        self._left: dict[str, RowNumbers] = {}
        """The nodes on which each volume is still free, by name, for volumes that only few nodes can reach."""
        self._used_up: set[str] = set()
        self._nothing_for: set[Hashable] = set()
        """The keys, as `_asked_of_free` returns them, of claims for which no volume is left."""

    def match(self, claim: PersistentVolumeClaim) -> Match | str | None:
        """Choose a volume for a claim on each node; return None if no node has one, a text for an invalid claim."""
        asked = self._asked_of_free(claim) if self._many else None
        if asked is not None and asked in self._nothing_for:
            return None
        made = self._matched(claim)
        if not isinstance(made, Match) or made.volumes:
            return made
        if asked is not None:
            self._nothing_for.add(asked)
        return None

    def _asked_of_free(self, claim: PersistentVolumeClaim) -> Hashable | None:
        """Return a key shared by claims that can use the same volumes; None for a claim with selector or own volumes.

        For a class without volumes, the key is the class.
        """
        spec, name = claim.spec, class_of(claim)
        if spec.selector is not None or self._cluster.storage.pool.meant_for(name, claim.key):
            return None
        if name in self._tables and not self._tables[name].volumes:
            return name
        modes = frozenset(spec.access_modes)
        return name, requested(claim).number, modes, spec.volume_mode, spec.volume_attributes_class_name

    def _matched(self, claim: PersistentVolumeClaim) -> Match | str:
        usable = self._usable.get(claim.key)
        if usable is None:
            compiled = self._cluster.storage.selector_of(claim)
            if compiled is not None and compiled.error:
                return f"error creating internal label selector for claim: {claim.key}: {compiled.error}"
            selector = None if compiled is None else compiled.selector
            usable = self._usable[claim.key] = self._usable_by(claim, selector)
        made = Match(claim, self._cluster.nodes.size)
        undecided = self._choose_meant(made)
        if np.count_nonzero(undecided):
            self._choose_free(made, undecided, usable)
        return made

    def _usable_by(self, claim: PersistentVolumeClaim, selector: IndexedSelector | None) -> Usable:
        if not self._many:
            return Candidates(claim, selector, self._cluster).usable
        name, size = class_of(claim), requested(claim)
        table = self._tables.get(name)
        if table is None:  # no claim after this one is smaller
            table = self._tables[name] = VolumeTable(list(self._cluster.storage.pool.free(name, size)))
        return partial(table.usable, table.suiting(claim, selector, size))

    def _choose_meant(self, made: Match) -> Mask:
        """Choose volumes whose claimRef names the claim; return the nodes on which other volumes may be chosen instead.

        A row that does not reach the first of these volumes gets no volume.
        """
        claim, undecided = made.claim, made.open
        for volume in self._cluster.storage.pool.meant_for(class_of(claim), claim.key):
            too_small = requested(claim).exceeds(capacity(volume))
            if not too_small and is_meant_for(volume, claim) and _is_alike(claim, volume):
                taken = self._taken.get(volume.metadata.name)
                rows = undecided if taken is None else undecided & ~taken
                self._take(made, volume, rows, self._reach.holds(volume.spec.node_affinity))
                undecided = undecided & ~rows
        return undecided

    def _choose_free(self, made: Match, undecided: Mask, usable: Usable) -> None:
        """Choose the smallest free volume on each undecided node, and remove these nodes from `undecided`."""
        reached: set[bytes] = set()
        open_rows = int(np.count_nonzero(undecided))
        for _, name, volume, affinity in usable(self._used_up, reached):
            few = self._reach.few_rows(volume.spec.node_affinity, affinity)
            taken: Mask | RowNumbers | None
            if few is not None:
                taken = self._left.get(name)
                open_rows -= self._take_few(made, volume, few if taken is None else taken, undecided)
            else:
                taken = self._taken.get(name)
                rows = undecided if taken is None else undecided & ~taken
                undecided ^= self._take(made, volume, rows, self._reach.holds(volume.spec.node_affinity, affinity))
                open_rows = int(np.count_nonzero(undecided))
            if not open_rows:
                break
            if taken is None:
                # the nodes that it reaches have a volume now, so another volume of the same nodes cannot help
                reached.add(affinity)

    def _take_few(self, made: Match, volume: PersistentVolume, reached: RowNumbers, undecided: Mask) -> int:
        """Choose a volume on the undecided nodes of `reached`; remove them from `undecided`; return their number."""
        has_none = undecided[reached]
        rows = reached[has_none]
        if rows.size:
            made.take(volume, rows)
            undecided[rows] = False
        if self._several:
            left = self._left[volume.metadata.name] = reached[~has_none]
            if not left.size:
                self._used_up.add(volume.metadata.name)
        return int(rows.size)

    def _take(self, made: Match, volume: PersistentVolume, rows: Mask, reached: Mask) -> Mask:
        """Choose a volume on those of the given nodes that can reach it; return these nodes."""
        rows = rows & reached
        if np.count_nonzero(rows):
            made.take(volume, rows)
            if self._several:
                self._note(volume.metadata.name, rows, reached)
        elif self._several and not np.count_nonzero(reached):
            self._used_up.add(volume.metadata.name)
        return rows

    def _note(self, name: str, rows: Mask, reached: Mask) -> None:
        """Record the nodes on which a volume is chosen, and whether it is now chosen on all nodes that can reach it."""
        taken = self._taken.get(name)
        self._taken[name] = rows if taken is None else taken | rows
        if not np.count_nonzero(reached & ~self._taken[name]):
            self._used_up.add(name)


def is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume's claimRef names the claim.

    Source: component-helpers/storage/volume/pv_helpers.go (IsVolumeBoundToClaim).
    """
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    metadata = claim.metadata
    if (reference.name, reference.namespace) != (metadata.name, metadata.namespace):
        return False
    return not reference.uid or reference.uid == metadata.uid


def _is_alike(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    spec = volume.spec
    return (
        (claim.spec.volume_mode or FILESYSTEM) == (spec.volume_mode or FILESYSTEM)
        and (claim.spec.volume_attributes_class_name or "") == (spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _has_modes(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return set(claim.spec.access_modes) <= set(volume.spec.access_modes)
