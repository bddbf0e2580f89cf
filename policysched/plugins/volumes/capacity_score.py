"""Scores of VolumeBinding by utilization: of existing volumes, or of the storage from which volumes are provisioned.

On a row where claims take existing volumes, only these are scored; elsewhere, the volumes to be provisioned. For each
class, the requested size is compared with the capacity: of all chosen volumes together, or of the storage from which
the driver provisions. The score of a row is the mean over its classes.

Shapes: N rows in use.
Source: plugins/volumebinding/volume_binding.go (Score), scorer.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, Scores
from policysched.model.objects import PersistentVolumeClaim
from policysched.model.objects.storage import class_of
from policysched.model.quantity import value
from policysched.plugins.curves import FULL, Curve
from policysched.plugins.volumes.capacities import CapacityRows
from policysched.plugins.volumes.matching import NONE, Match
from policysched.state.tables.columns import quotients

Bytes = NDArray[np.int64]


class ChosenStorage(NamedTuple):
    """The existing volumes of one StorageClass that a pod's claims would use on each node. Shapes: (N,)."""

    requested: Bytes
    capacity: Bytes
    applies: Mask
    """Mask of the nodes on which a claim would use a volume of the StorageClass."""


def storage_scores(
    matches: Sequence[Match], provisioned: Iterable[tuple[PersistentVolumeClaim, CapacityRows]], curve: Curve, size: int
) -> Scores:
    """Return the score of each node, 0 to 100, by utilization of storage; 0 if no claim can be scored.

    Args:
        matches: The claims that take existing volumes, each with its volume on each row.
        provisioned: The unbound claims whose drivers report capacities, each with the capacities of its class. They are
            scored on the rows where no claim takes an existing volume.
        curve: The score by utilization.
        size: The number of rows.

    Shapes: (N,).
    """
    chosen = _chosen(matches, size)
    if not chosen:
        return _provisioned_scores(provisioned, curve, size)
    total, classes = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for one in chosen.values():
        total += np.where(one.applies, _scores(one.requested, one.capacity, curve), 0)
        classes += one.applies
    if np.count_nonzero(classes) == size:
        return _mean(total, classes)
    elsewhere = _provisioned_scores(provisioned, curve, size)
    return np.where(classes, _mean(total, np.maximum(classes, 1)), elsewhere)


def _mean(total: Scores, classes: Scores | int) -> Scores:
    """Return the mean of the scores of the StorageClasses; halves are rounded up."""
    return (2 * total + classes) // (2 * classes)


def _scores(requested: Bytes, capacity: Bytes, curve: Curve) -> Scores:
    """Return the score of each utilization (requested divided by capacity), with kube-scheduler's overflows."""
    full = (capacity == 0) | (requested > capacity)
    shares = quotients(requested * FULL, np.where(full, 1, capacity))
    return curve.take(np.where(full, FULL, shares), mode="clip")


def _chosen(matches: Sequence[Match], size: int) -> dict[str, ChosenStorage]:
    """Return by StorageClass the existing volumes that the claims would use."""
    found: dict[str, ChosenStorage] = {}
    for one in matches:
        if one.choice is None:
            continue
        requested = _requested(one.claim)
        for name, of_class, capacities in _by_class(one):
            if name not in found:
                zeros = np.zeros((2, size), np.int64)
                found[name] = ChosenStorage(zeros[0], zeros[1], np.zeros(size, np.bool_))
            here = of_class[one.choice]
            np.add(found[name].requested, requested, out=found[name].requested, where=here)
            np.add(found[name].capacity, capacities[one.choice], out=found[name].capacity, where=here)
            np.logical_or(found[name].applies, here, out=found[name].applies)
    return found


def _by_class(match: Match) -> Iterator[tuple[str, Mask, Bytes]]:
    """Yield, for each StorageClass among a claim's volumes, a mask of its volumes, and the capacities of all volumes.

    Shapes: (V + 1,) for V volumes.
    """
    assert NONE == -1, "no volume is the last element"  # noqa: S101
    stated = [one.spec.capacity.get("storage", 0) for one in match.volumes]
    values = {amount: value(amount) for amount in set(stated)}  # most volumes have one of few sizes
    capacities = np.array([*(values[amount] for amount in stated), 0], np.int64)
    names = [one.spec.storage_class_name for one in match.volumes]
    for name in dict.fromkeys(names):
        yield name, np.array([*(one == name for one in names), False]), capacities


def _provisioned_scores(
    claims: Iterable[tuple[PersistentVolumeClaim, CapacityRows]], curve: Curve, size: int
) -> Scores:
    """Return the scores of nodes by utilization of the storage from which volumes would be provisioned.

    The last claim of a class determines the capacity.
    """
    requested: dict[str, Bytes] = {}
    capacities: dict[str, CapacityRows] = {}
    for claim, rows in claims:
        stated = claim.spec.storage_class_name
        name = class_of(claim) if stated is None else stated
        requested[name] = requested.get(name, np.zeros(1, np.int64)) + _requested(claim)
        capacities[name] = rows
    found = [one.on_rows(_scores(requested[name], one.amounts, curve)) for name, one in capacities.items()]
    if len(found) == 1:
        return found[0]
    return _mean(np.sum(found, axis=0), len(found)) if found else np.zeros(size, np.int64)


def _requested(claim: PersistentVolumeClaim) -> Bytes:
    """Return the storage size that a claim requests, as an array. Shapes: (1,)."""
    amount = claim.spec.resources.requests.get("storage")
    return np.array([0 if amount is None else value(amount)], np.int64)
