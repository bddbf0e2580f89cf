"""`VolumeRows`: the results of a pod's volume claims on each node: reason codes, scores, and the volumes to use.

Shapes: N rows in use.
Source: plugins/volumebinding/binder.go (FindPodVolumes, checkBoundClaims, findMatchingVolumes, checkVolumeProvisions,
hasEnoughCapacity), v1.36 to v1.38.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from policysched.framework import Cluster, Codes, Mask, Scores
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from policysched.model.objects.storage import NO_PROVISIONER, SELECTED_NODE, class_of
from policysched.plugins.columns import codes_where
from policysched.plugins.curves import Curve
from policysched.plugins.volumes.capacities import CapacityRows, Size
from policysched.plugins.volumes.capacity_score import storage_scores
from policysched.plugins.volumes.claims import Claims
from policysched.plugins.volumes.matching import Match, Matcher, smallest_first
from policysched.plugins.volumes.volume_topology import VolumeTopology

UNREACHABLE, UNBINDABLE, TOO_SMALL, GONE = 1, 2, 4, 8
REASONS: Final = {
    UNREACHABLE: "node(s) didn't match PersistentVolume's node affinity",
    UNBINDABLE: "node(s) didn't find available persistent volumes to bind",
    TOO_SMALL: "node(s) did not have enough free storage",
    GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
FAILED: Final = 16
"""The first reason code that stands for an error."""


class VolumeRows:
    """The results of a pod's volume claims on each node: reason codes, and the volumes that the pod would use.

    Each reason is one bit of a row's code, so a row can have several reasons; the codes of errors begin at FAILED.

    Shapes: N rows in use.
    """

    def __init__(self, claims: Claims, cluster: Cluster, reach: VolumeTopology) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._reach = reach
        self._waiting = claims.waiting
        self.codes: Codes = np.zeros(cluster.nodes.size, np.int32)
        self.errors: list[str] = []
        self.matches: list[Match] = []
        self.provisions: list[tuple[PersistentVolumeClaim, Mask]] = []
        """The claims for which volumes would be provisioned, each with the nodes where that is possible."""
        self._everywhere = reach.everywhere
        self._allowed_of: dict[str, Mask] = {}
        self._room: dict[str, tuple[Mask, Size | float]] = {}
        """By StorageClass, the nodes that its last claim left feasible, and the size up to which volumes fit on all."""
        self._check_bound(claims)
        if claims.waiting:
            self._check_waiting(claims)

    def bindings(self, row: int) -> list[tuple[PersistentVolume, PersistentVolumeClaim]]:
        """Return the existing volumes that the pod would use on a node, each with its claim."""
        found = ((one.at(row), one.claim) for one in self.matches)
        return [(volume, claim) for volume, claim in found if volume is not None]

    def provisioned(self, row: int) -> list[PersistentVolumeClaim]:
        """Return the claims for which a volume would be provisioned on a node."""
        return [claim for claim, rows in self.provisions if rows[row]]

    def scores(self, curve: Curve) -> Scores:
        """Return the scores of nodes by storage utilization. Shapes: (N,)."""
        return storage_scores(self.matches, self._limited(), curve, self.codes.size)

    def _limited(self) -> Iterator[tuple[PersistentVolumeClaim, CapacityRows]]:
        """Yield the claims to provision whose drivers publish capacities, each with these capacities.

        A claim of several volumes is repeated.
        """
        selected = [one for one in self._waiting if SELECTED_NODE in one.metadata.annotations]
        others = [one for one in self._waiting if SELECTED_NODE not in one.metadata.annotations]
        for claim in (*selected, *smallest_first(others)):
            of_class = self._storage.classes.get(class_of(claim))
            if of_class is None or "storage" not in claim.spec.resources.requests:
                continue
            if self._has_capacities(of_class):
                yield claim, self._reach.capacities(of_class.metadata.name)

    def _check_bound(self, claims: Claims) -> None:
        """Evaluate the volumes of bound claims; of several volumes that reject a node, the first sets the reason."""
        asked = self._everywhere
        for name in dict.fromkeys(claim.spec.volume_name for claim in claims.bound):
            volume = self._storage.volumes.get(name)
            if volume is None:
                self._object(asked, GONE)
                break
            reached, unclear, why = self._reach.of(volume)
            if unclear is not None:
                self._fail(asked & unclear, why)
                asked = asked & ~unclear
            self._object(asked & ~reached, UNREACHABLE)
            asked = asked & reached

    def _check_waiting(self, claims: Claims) -> None:
        asked = self.codes < FAILED if self.errors else self._everywhere
        open_claims = [claim for claim in claims.waiting if SELECTED_NODE not in claim.metadata.annotations]
        selected: list[PersistentVolumeClaim] = []
        if len(open_claims) < len(claims.waiting):
            selected = [one for one in claims.waiting if SELECTED_NODE in one.metadata.annotations]
            selected = list({claim.key: claim for claim in selected}.values())
            asked = self._on_selected(selected, asked)
        unmatched = self._match(smallest_first(open_claims), asked)
        if unmatched is None:
            return
        for claim, rows in [*((claim, self._everywhere) for claim in selected), *unmatched]:
            asked = self._provision(claim, asked if rows is self._everywhere else asked & rows, asked)

    def _on_selected(self, claims: list[PersistentVolumeClaim], asked: Mask) -> Mask:
        """Reject the nodes other than the selected nodes of claims; return the nodes that are not rejected."""
        names = self._cluster.nodes.name.data[: self.codes.size]
        for node in dict.fromkeys(claim.metadata.annotations[SELECTED_NODE] for claim in claims):
            here = names == self._cluster.strings.find(node)
            self._object(asked & ~here, UNBINDABLE)
            asked = asked & here
            if not np.count_nonzero(asked):
                break
        return asked

    def _match(
        self, claims: list[PersistentVolumeClaim], asked: Mask
    ) -> list[tuple[PersistentVolumeClaim, Mask]] | None:
        """Choose existing volumes for claims; return claims with the nodes where they got none; None after an error.

        A claim without a volume on any row is returned once, even if several volumes of the pod name it.
        """
        unmatched = []
        left_over: set[str] = set()
        matcher = Matcher(self._cluster, self._reach, len(claims))
        for claim in claims:
            if claim.key in left_over:
                continue
            one = matcher.match(claim)
            if isinstance(one, str):
                self._fail(asked, one)
                return None
            if one is None:
                left_over.add(claim.key)
                if self._everywhere.size:
                    unmatched.append((claim, self._everywhere))
                continue
            self.matches.append(one)
            left = one.open
            if np.count_nonzero(left):
                unmatched.append((claim, left))
        return unmatched

    def _provision(self, claim: PersistentVolumeClaim, needed: Mask, asked: Mask) -> Mask:
        """Reject the nodes on which no volume can be provisioned for a claim; return the nodes that are not rejected.

        Cost: O(nodes), unless the rows are those of the previous claim of the class and all have room.
        """
        name = class_of(claim)
        if needed is asked and self._has_known_room(claim, name, asked):
            self.provisions.append((claim, asked))
            return asked
        if not np.count_nonzero(needed):
            return asked
        of_class = self._storage.classes.get(name)
        if not name or of_class is None:
            text = f'failed to find storage class "{name}"' if name else f'no class for claim "{claim.key}"'
            self._fail(needed, text)
            return asked & ~needed
        if of_class.provisioner in ("", NO_PROVISIONER):
            self._object(needed, UNBINDABLE)
            return asked & ~needed
        if name not in self._allowed_of:
            self._allowed_of[name] = self._reach.allowed(of_class)
        allowed, enough = self._allowed_of[name], self._enough(claim, of_class)
        same = needed is asked
        short = needed & ~(allowed & enough)
        if np.count_nonzero(short):
            self._object(needed & ~allowed, UNBINDABLE)
            self._object(short & allowed, TOO_SMALL)
            needed, asked = needed & ~short, asked & ~short
        if same or np.array_equal(needed, asked):
            needed = asked
            self._note_room(of_class, asked)
        self.provisions.append((claim, needed))
        return asked

    def _has_known_room(self, claim: PersistentVolumeClaim, name: str, rows: Mask) -> bool:
        """Return whether an earlier claim of the StorageClass left the same nodes, all with room for this claim."""
        room = self._room.get(name)
        if room is None or room[0] is not rows:
            return False
        amount = claim.spec.resources.requests.get("storage")
        return amount is None or self._reach.measure(amount) <= room[1]

    def _note_room(self, of_class: StorageClass, rows: Mask) -> None:
        """Store the nodes that a claim left feasible, and the size up to which volumes of its class fit on all."""
        if not np.count_nonzero(rows):
            return
        least: Size | float = math.inf
        if self._has_capacities(of_class):
            least = self._reach.capacities(of_class.metadata.name).largest_everywhere(rows)
        self._room[of_class.metadata.name] = rows, least

    def _has_capacities(self, of_class: StorageClass) -> bool:
        driver = self._storage.csi_drivers.get(of_class.provisioner)
        return driver is not None and bool(driver.spec.storage_capacity)

    def _enough(self, claim: PersistentVolumeClaim, of_class: StorageClass) -> Mask:
        """Return the nodes on which the driver has enough capacity for a claim."""
        amount = claim.spec.resources.requests.get("storage")
        if amount is None or not self._has_capacities(of_class):
            return self._everywhere
        return self._reach.capacities(of_class.metadata.name).enough_for(self._reach.measure(amount))

    def _object(self, rows: Mask, reason: int) -> None:
        if np.count_nonzero(rows):
            self.codes |= codes_where(rows, reason)

    def _fail(self, rows: Mask, text: str) -> None:
        self.codes[rows] = FAILED + len(self.errors)
        self.errors.append(text)
