"""Which existing volume a claim would take on each row: the smallest that fits, or the one that is meant for it.

Knows one claim and the volumes of its class. What of a volume does not depend on the node is looked at once; then the
volumes are tried from the smallest, until every row has one.

Shapes: N rows in use; a choice is an index into the volumes, −1 for none: (N,) int32.
Source: component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume), v0.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim
from policysched.model.quantity import ZERO, Quantity, parse
from policysched.model.selectors import EVERYTHING, LabelMatcher, SelectorError, compile_selector
from policysched.plugins.volume_reach import affinity_holds

Choice = NDArray[np.int32]
NONE = -1


@dataclass(frozen=True, slots=True)
class Match:
    """A claim, and the volume that it would take on each row."""

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    choice: Choice

    @property
    def found(self) -> Mask:
        """Which rows have a volume for it."""
        found: Mask = self.choice != NONE
        return found

    def at(self, row: int) -> PersistentVolume | None:
        """Give the volume of a row."""
        index = int(self.choice[row])
        return None if index == NONE else self.volumes[index]


def smallest_first(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Sort claims by size, so that small ones do not take what only large ones fit into."""
    return sorted(claims, key=lambda claim: _number(requested(claim)))


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
    claim: PersistentVolumeClaim,
    volumes: Sequence[PersistentVolume],
    selector: LabelMatcher,
    taken: Sequence[Match],
    cluster: Cluster,
) -> Match:
    """Choose a volume on each row.

    Args:
        claim: The claim.
        volumes: Those of its class.
        selector: Its selector.
        taken: What the pod's other claims have chosen.
        cluster: The rows.
    """
    choice = np.full(cluster.nodes.size, NONE, np.int32)
    usable = [index for index, volume in enumerate(volumes) if _may_take(claim, volume)]
    meant = next((index for index in usable if is_meant_for(volumes[index], claim)), None)
    if meant is not None:
        choice[affinity_holds(volumes[meant].spec.node_affinity, cluster)] = meant
        return Match(claim, volumes, choice)
    fitting = [index for index in usable if _fits(claim, volumes[index], selector)]
    for index in sorted(fitting, key=lambda index: _number(capacity(volumes[index]))):
        open_rows = choice == NONE
        if not open_rows.any():
            break
        reached = affinity_holds(volumes[index].spec.node_affinity, cluster)
        choice[open_rows & reached & ~_taken(volumes[index], taken)] = index
    return Match(claim, volumes, choice)


def capacity(volume: PersistentVolume) -> Quantity:
    """Give how much a volume holds."""
    amount = volume.spec.capacity.get("storage")
    return ZERO if amount is None else parse(amount)


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
        (spec.claim_ref is None or is_meant_for(volume, claim))
        and not requested(claim).exceeds(capacity(volume))
        and (claim.spec.volume_mode or "Filesystem") == (spec.volume_mode or "Filesystem")
        and (claim.spec.volume_attributes_class_name or "") == (spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume, selector: LabelMatcher) -> bool:
    return (
        volume.status.phase == "Available"
        and selector.matches(volume.metadata.labels)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _taken(volume: PersistentVolume, taken: Sequence[Match]) -> Mask | np.bool_:
    """Tell on which rows another claim of the pod has chosen the volume."""
    mask: Mask | np.bool_ = np.False_
    for one in taken:
        for index, other in enumerate(one.volumes):
            if other.metadata.name == volume.metadata.name:
                mask = mask | (one.choice == index)
    return mask


def _number(quantity: Quantity) -> Fraction:
    return Fraction(quantity.mantissa) * Fraction(10) ** quantity.exponent
