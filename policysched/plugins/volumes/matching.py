"""Which existing volume a claim would take on each row: the smallest that fits, or the one that is meant for it.

Knows one claim and the volumes of its class. These are tried from the smallest, until every row has one.

Shapes: N rows in use; a choice is an index into the volumes that were chosen, −1 for none: (N,) int32.
Source: component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume), v0.36.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim
from policysched.model.objects.storage import class_of
from policysched.model.quantity import ZERO, Quantity, parse
from policysched.model.selection.selectors import EVERYTHING, LabelMatcher, SelectorError, compile_selector
from policysched.plugins.volumes.reach import Reach
from policysched.state.volume_pool import capacity

Choice = NDArray[np.int32]
NONE = -1


class Match:
    """A claim, and the volume that it would take on each row."""

    __slots__ = ("choice", "claim", "volumes")

    def __init__(self, claim: PersistentVolumeClaim, rows: int) -> None:
        self.claim = claim
        self.volumes: list[PersistentVolume] = []
        self.choice: Choice = np.full(rows, NONE, np.int32)

    @property
    def open(self) -> Mask:
        """Which rows have no volume for it."""
        mask: Mask = self.choice == NONE
        return mask

    def at(self, row: int) -> PersistentVolume | None:
        """Give the volume of a row."""
        index = int(self.choice[row])
        return None if index == NONE else self.volumes[index]

    def take(self, volume: PersistentVolume, rows: Mask) -> None:
        """Choose a volume on rows."""
        if np.count_nonzero(rows):
            np.putmask(self.choice, rows, len(self.volumes))
            self.volumes.append(volume)

    def taken(self, volume: PersistentVolume) -> Mask | None:
        """Tell on which rows a volume is chosen, None where it is on none."""
        names = [one.metadata.name for one in self.volumes]
        return self.choice == names.index(volume.metadata.name) if volume.metadata.name in names else None


def smallest_first(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Sort claims by size, so that small ones do not take what only large ones fit into."""
    if len(claims) < 2:
        return list(claims)
    return sorted(claims, key=lambda claim: requested(claim).number)


def requested(claim: PersistentVolumeClaim) -> Quantity:
    """Give how much a claim asks for."""
    amount = claim.spec.resources.requests.get("storage")
    return ZERO if amount is None else parse(amount)


def selector_of(claim: PersistentVolumeClaim) -> LabelMatcher | str:
    """Compile a claim's selector, or say what is wrong with it."""
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return compile_selector(claim.spec.selector)
    except SelectorError as error:
        return f"error creating internal label selector for claim: {claim.key}: {error}"


def match(
    claim: PersistentVolumeClaim, selector: LabelMatcher, others: Sequence[Match], cluster: Cluster, reach: Reach
) -> Match:
    """Choose a volume on each row.

    Args:
        claim: The claim.
        selector: Its selector.
        others: What the pod's other claims have chosen.
        cluster: The rows.
        reach: What was found out about nodes that reach volumes.
    """
    made = Match(claim, cluster.nodes.size)
    undecided = _choose_meant(made, others, cluster, reach)
    if np.count_nonzero(undecided):
        _choose_free(made, undecided, selector, others, cluster, reach)
    return made


def _choose_meant(made: Match, others: Sequence[Match], cluster: Cluster, reach: Reach) -> Mask:
    """Choose volumes that name the claim; give the rows for which any other will do.

    A row that does not reach the first volume meant for the claim stays without.
    """
    claim, undecided = made.claim, made.open
    for volume in cluster.storage.pool.meant_for(class_of(claim), claim.key):
        if is_meant_for(volume, claim) and _may_take(claim, volume):
            rows = undecided & _not_taken(volume, others)
            made.take(volume, rows & reach.holds(volume.spec.node_affinity))
            undecided &= ~rows
    return undecided


def _choose_free(
    made: Match, undecided: Mask, selector: LabelMatcher, others: Sequence[Match], cluster: Cluster, reach: Reach
) -> None:
    """Choose the smallest volume that is free, on each of some rows; the mask is used up."""
    claim = made.claim
    reached: set[bytes] = set()
    for volume, affinity in cluster.storage.pool.free(class_of(claim), requested(claim)):
        if affinity in reached or not (_may_take(claim, volume) and _fits(claim, volume, selector)):
            continue
        rows = undecided & reach.holds(volume.spec.node_affinity, affinity)
        if others:
            rows &= _not_taken(volume, others)
        made.take(volume, rows)
        undecided &= ~rows
        if not np.count_nonzero(undecided):
            break
        if not others:
            # the nodes that reach it have a volume now, so another one that they reach as well cannot help
            reached.add(affinity)


def _not_taken(volume: PersistentVolume, others: Sequence[Match]) -> Mask | np.bool_:
    """Tell on which rows no other claim of the pod has chosen a volume."""
    mask: Mask | np.bool_ = np.True_
    for taken in (one.taken(volume) for one in others):
        if taken is not None:
            mask = mask & ~taken
    return mask


def is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether a volume names the claim as its own.

    Source: component-helpers/storage/volume/pv_helpers.go (IsVolumeBoundToClaim).
    """
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    metadata = claim.metadata
    if (reference.name, reference.namespace) != (metadata.name, metadata.namespace):
        return False
    return not reference.uid or reference.uid == metadata.uid


def _may_take(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    spec = volume.spec
    return (
        not requested(claim).exceeds(capacity(volume))
        and (claim.spec.volume_mode or "Filesystem") == (spec.volume_mode or "Filesystem")
        and (claim.spec.volume_attributes_class_name or "") == (spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume, selector: LabelMatcher) -> bool:
    modes = set(claim.spec.access_modes)
    return selector.matches(volume.metadata.labels) and modes <= set(volume.spec.access_modes)
