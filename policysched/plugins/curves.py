"""Score curves: the score for each utilization, from the points in the plugin argument `shape`.

Source: plugins/helper/shape_score.go, apis/config/validation/validation_pluginargs.go (validateFunctionShape), v1.36
and v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE
from policysched.plugins.arguments import Fault, Given, Int32

FULL: Final = 100
"""Highest utilization of a curve. Units: percent."""
HIGHEST_POINT: Final = 10
"""Highest score of a point in the plugin argument `shape`."""
Curve: TypeAlias = NDArray[np.int64]
"""The scores, 0 to 100, for the utilizations from 0 to FULL percent."""


class ShapePoint(Given, frozen=True):
    """A point in the plugin argument `shape`: a utilization in percent with its score from 0 to 10."""

    utilization: Int32 = 0
    score: Int32 = 0


def shape_faults(shape: Sequence[ShapePoint]) -> Iterator[Fault]:
    """Yield the invalid fields of the plugin argument `shape`, each with the reason."""
    if not shape:
        yield "shape", "at least one point is required"
    for index, one in enumerate(shape):
        if not 0 <= one.utilization <= FULL:
            yield f"shape[{index}].utilization", f"{one.utilization} is not between 0 and {FULL}"
        if not 0 <= one.score <= HIGHEST_POINT:
            yield f"shape[{index}].score", f"{one.score} is not between 0 and {HIGHEST_POINT}"
    for index, (last, one) in enumerate(pairwise(shape), 1):
        if one.utilization <= last.utilization:
            yield f"shape[{index}].utilization", f"{one.utilization} is not greater than {last.utilization}"
            break


def curve_of(shape: Sequence[ShapePoint]) -> Curve:
    """Return the score curve through points that are ordered by utilization."""
    return np.array([score_at(shape, level) for level in range(FULL + 1)], np.int64)


def score_at(shape: Sequence[ShapePoint], level: int) -> int:
    """Return the score at a utilization, 0 to 100: linear between points, constant outside of them."""
    scale = MAX_NODE_SCORE // HIGHEST_POINT
    before = shape[0]
    for point in shape:
        if level <= point.utilization:
            if point is shape[0]:
                break
            climb = (point.score - before.score) * scale * (level - before.utilization)
            width = point.utilization - before.utilization
            # towards zero, as in Go
            return before.score * scale + (climb // width if climb >= 0 else -(-climb // width))
        before = point
    return before.score * scale
