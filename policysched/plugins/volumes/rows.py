"""What a pod's claims mean for each row: what stands against it there, and which volumes it would take.

Knows sorted claims and the state. Every reason is one bit of a row's code, so that a row can have several; a row where
something cannot be told has a code beyond the bits.

Shapes: N rows in use.
Source: plugins/volumebinding/binder.go (FindPodVolumes, checkBoundClaims, findMatchingVolumes, checkVolumeProvisions,
hasEnoughCapacity), v1.36.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from policysched.framework import Cluster, Codes, Mask
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from policysched.model.objects.storage import NO_PROVISIONER, SELECTED_NODE, class_of
from policysched.model.quantity import value
from policysched.plugins.helper.bases import codes_where
from policysched.plugins.volumes.claims import Claims
from policysched.plugins.volumes.matching import Match, Matcher, smallest_first
from policysched.plugins.volumes.reach import Reach

UNREACHABLE, UNBINDABLE, TOO_SMALL, GONE = 1, 2, 4, 8
REASONS: Final = {
    UNREACHABLE: "node(s) didn't match PersistentVolume's node affinity",
    UNBINDABLE: "node(s) didn't find available persistent volumes to bind",
    TOO_SMALL: "node(s) did not have enough free storage",
    GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
FAILED: Final = 16
"""Codes from here on are errors."""


class VolumeRows:
    """The answers for one pod, for all rows at once."""

    def __init__(self, claims: Claims, cluster: Cluster, reach: Reach) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._reach = reach
        self.codes: Codes = np.zeros(cluster.nodes.size, np.int32)
        self.errors: list[str] = []
        self.matches: list[Match] = []
        self.provisions: list[tuple[PersistentVolumeClaim, Mask]] = []
        """Claims with the rows where a volume would be made for them."""
        self._everywhere = reach.everywhere
        self._allowed_of: dict[str, Mask] = {}
        self._check_bound(claims)
        if claims.waiting:
            self._check_waiting(claims)

    def bindings(self, row: int) -> list[tuple[PersistentVolume, PersistentVolumeClaim]]:
        """Give the volumes that the pod would take on a row, with their claims."""
        found = ((one.at(row), one.claim) for one in self.matches)
        return [(volume, claim) for volume, claim in found if volume is not None]

    def provisioned(self, row: int) -> list[PersistentVolumeClaim]:
        """Give the claims that a volume would be made for on a row."""
        return [claim for claim, rows in self.provisions if rows[row]]

    def _check_bound(self, claims: Claims) -> None:
        """Look at bound volumes one after another; the first that stands against a row is its reason."""
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
        asked: Mask = self.codes < FAILED
        names = self._cluster.nodes.name.data[: self.codes.size]
        open_claims = [claim for claim in claims.waiting if SELECTED_NODE not in claim.metadata.annotations]
        selected = []
        for claim in {claim.key: claim for claim in claims.waiting}.values():
            node = claim.metadata.annotations.get(SELECTED_NODE)
            if node is None:
                continue
            here = names == self._cluster.strings.find(node)
            self._object(asked & ~here, UNBINDABLE)
            asked = asked & here
            selected.append(claim)
        unmatched = self._match(smallest_first(open_claims), asked)
        if unmatched is None:
            return
        for claim, rows in [*((claim, asked) for claim in selected), *unmatched]:
            asked = self._provision(claim, asked & rows, asked)

    def _match(
        self, claims: list[PersistentVolumeClaim], asked: Mask
    ) -> list[tuple[PersistentVolumeClaim, Mask]] | None:
        """Match claims with volumes that exist; give those left over with their rows, None where that failed.

        A claim that is left over on every row is so each time that a volume names it, and is given once.
        """
        unmatched = []
        left_over: set[str] = set()
        matcher = Matcher(self._cluster, self._reach, several=len(claims) > 1)
        for claim in claims:
            if claim.key in left_over:
                continue
            one = matcher.match(claim)
            if isinstance(one, str):
                self._fail(asked, one)
                return None
            if one.volumes:
                self.matches.append(one)
            else:
                left_over.add(claim.key)
            left = one.open if one.volumes else self._everywhere
            if np.count_nonzero(left):
                unmatched.append((claim, left))
        return unmatched

    def _provision(self, claim: PersistentVolumeClaim, needed: Mask, asked: Mask) -> Mask:
        """Look whether a volume can be made for a claim; give the rows that go on."""
        if not np.count_nonzero(needed):
            return asked
        name = class_of(claim)
        of_class = self._storage.classes.get(name)
        if not name or of_class is None:
            text = f'failed to find storage class "{name}"' if name else f'no class for claim "{claim.key}"'
            self._fail(needed, text)
            return asked & ~needed
        if of_class.provisioner in ("", NO_PROVISIONER):
            self._object(needed, UNBINDABLE)
            return asked & ~needed
        allowed, enough = self._allowed(of_class), self._enough(claim, of_class)
        short = needed & ~(allowed & enough)
        if np.count_nonzero(short):
            self._object(needed & ~allowed, UNBINDABLE)
            self._object(short & allowed, TOO_SMALL)
            needed, asked = needed & ~short, asked & ~short
        self.provisions.append((claim, asked if np.array_equal(needed, asked) else needed))
        return asked

    def _allowed(self, of_class: StorageClass) -> Mask:
        """Tell where a class may provision, looked up once for all claims of the pod."""
        name = of_class.metadata.name
        if name not in self._allowed_of:
            self._allowed_of[name] = self._reach.allowed(of_class)
        return self._allowed_of[name]

    def _enough(self, claim: PersistentVolumeClaim, of_class: StorageClass) -> Mask:
        """Tell where the driver has room for a claim."""
        amount = claim.spec.resources.requests.get("storage")
        driver = self._storage.csi_drivers.get(of_class.provisioner)
        if amount is None or driver is None or not driver.spec.storage_capacity:
            return self._everywhere
        enough: Mask = self._reach.largest_capacity(of_class.metadata.name) >= value(amount)
        return enough

    def _object(self, rows: Mask, reason: int) -> None:
        if np.count_nonzero(rows):
            self.codes |= codes_where(rows, reason)

    def _fail(self, rows: Mask, text: str) -> None:
        self.codes[rows] = FAILED + len(self.errors)
        self.errors.append(text)
