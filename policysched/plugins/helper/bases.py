"""The small parts that most column plugins share.

They know nothing of any plugin. Each is a base class of one or two members, so that a plugin states only what is
its own; nothing derives further.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask, Rows, Scores
from policysched.state.tables.nodes import NodeTable

T = TypeVar("T", bound=np.generic)


def constant(value: float) -> NDArray[Any]:
    """Give a number as an array without axes: for few rows NumPy takes that in half the time of a plain number."""
    return np.array(value)


ONE: Final[NDArray[np.int64]] = constant(1)


class OwnRowOnly:
    """A plugin whose answers depend on their own row alone, so prepared states never go stale as a whole."""

    lasting = True

    def generation(self, cluster: Cluster) -> Hashable:  # noqa: ARG002 - the protocol's signature
        """Give the same value always."""
        return 0


class ScoresInRange:
    """A score plugin whose final scores are 0 to 100 whatever objects say."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the protocol's signature
        """Give True."""
        return True


class FinalScores:
    """A score plugin without normalisation."""

    normalizes = False

    def normalize(self, state: object, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - as above
        """Leave the scores as they are."""
        return scores


def codes_where(mask: Mask, code: int = 1) -> NDArray[np.int32]:
    """Give the reason code where the mask holds, else 0."""
    return mask.astype(np.int32) if code == 1 else np.where(mask, np.int32(code), np.int32(0))


def levelled(values: NDArray[T], mask: Mask) -> NDArray[T]:
    """Put one of a mask's values in the place of all that are outside: lowest and highest are those of the mask then.

    Shapes: (N,) -> (N,); of an empty mask (0,).
    """
    [outside] = (~mask).nonzero()
    if outside.size == values.size:
        return values[:0]
    made = values.copy()
    made[outside] = values[mask.argmax()]
    return made


def row_count(nodes: NodeTable, rows: Rows) -> int:
    """Count the rows selected."""
    return len(nodes.present.data[rows])
