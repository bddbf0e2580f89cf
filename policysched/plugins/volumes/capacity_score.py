"""Scores of VolumeBinding: how full the volumes would be that the pod's claims take, or the storage of their classes.

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


class ClassStorage(NamedTuple):
    """The storage of one class on each row. Shapes: (N,)."""

    requested: Bytes
    capacity: Bytes
    applies: Mask
    """The rows on which the class is scored."""


def storage_scores(
    matches: Sequence[Match], provisioned: Iterable[tuple[PersistentVolumeClaim, CapacityRows]], curve: Curve, size: int
) -> Scores:
    """Return the score of each row, 0 to 100; 0 without claims to score.

    Args:
        matches: The claims that take existing volumes, each with its volume on each row.
        provisioned: The unbound claims whose drivers report capacities, each with the capacities of its class. They are
            scored on the rows where no claim takes an existing volume.
        curve: The score by utilization.
        size: The number of rows.

    Shapes: (N,).
    """
    storage = [*_chosen(matches, size).values()]
    elsewhere: Mask = np.ones(size, np.bool_)
    for one in storage:
        elsewhere &= ~one.applies
    storage += _provisioned(provisioned, elsewhere)
    total, classes = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for one in storage:
        total += np.where(one.applies, curve.take(_utilization(one), mode="clip"), 0)
        classes += one.applies
    counted = np.maximum(classes, 1)
    mean: Scores = (2 * total + counted) // (2 * counted)  # halves are rounded up
    return mean


def _utilization(one: ClassStorage) -> Bytes:
    """Return the requested percentage of the capacity, with the overflows of kube-scheduler; 100 if it is exceeded."""
    full = (one.capacity == 0) | (one.requested > one.capacity)
    return np.where(full, FULL, quotients(one.requested * FULL, np.where(full, 1, one.capacity)))


def _chosen(matches: Sequence[Match], size: int) -> dict[str, ClassStorage]:
    """Return the storage of the existing volumes that claims take, by the class of the volumes."""
    found: dict[str, ClassStorage] = {}
    for one in matches:
        if one.choice is None:
            continue
        requested = _requested(one.claim)
        for name, of_class, capacities in _by_class(one):
            if name not in found:
                found[name] = ClassStorage(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_))
            here = of_class[one.choice]
            np.add(found[name].requested, requested, out=found[name].requested, where=here)
            np.add(found[name].capacity, capacities[one.choice], out=found[name].capacity, where=here)
            np.logical_or(found[name].applies, here, out=found[name].applies)
    return found


def _by_class(match: Match) -> Iterator[tuple[str, Mask, Bytes]]:
    """Yield the classes of a claim's volumes, each with its volumes and their capacities; the last element is NONE's.

    Shapes: (V + 1,) for V volumes.
    """
    assert NONE == -1, "no volume is the last element"  # noqa: S101
    stated = [one.spec.capacity.get("storage") for one in match.volumes]
    capacities = np.array([*(0 if one is None else value(one) for one in stated), 0], np.int64)
    names = [one.spec.storage_class_name for one in match.volumes]
    for name in dict.fromkeys(names):
        yield name, np.array([*(one == name for one in names), False]), capacities


def _provisioned(claims: Iterable[tuple[PersistentVolumeClaim, CapacityRows]], applies: Mask) -> list[ClassStorage]:
    """Return the storage from which volumes would be provisioned; the last claim of a class determines the capacity."""
    requested: dict[str, Bytes] = {}
    capacity: dict[str, Bytes] = {}
    for claim, capacities in claims:
        stated = claim.spec.storage_class_name
        name = class_of(claim) if stated is None else stated
        requested[name] = requested.get(name, np.zeros(1, np.int64)) + _requested(claim)
        capacity[name] = capacities.amounts
    return [ClassStorage(requested[name], capacity[name], applies) for name in requested]


def _requested(claim: PersistentVolumeClaim) -> Bytes:
    """Return the size that a claim requests. Shapes: (1,)."""
    amount = claim.spec.resources.requests.get("storage")
    return np.array([0 if amount is None else value(amount)], np.int64)
