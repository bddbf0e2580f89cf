"""The small parts that most column plugins share.

They know nothing of any plugin. Each is a base class of one or two members, so that a plugin states only what is
its own; nothing derives further.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask, Rows, Scores
from policysched.state.nodes import NodeTable


class OwnRowOnly:
    """A plugin whose answers depend on their own row alone, so prepared states never go stale as a whole."""

    lasting = True

    def epoch(self, cluster: Cluster) -> Hashable:  # noqa: ARG002 - the protocol's signature
        """Give the same value always."""
        return 0


class FinalScores:
    """A score plugin without normalisation."""

    normalizes = False

    def normalize(self, state: object, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - as above
        """Leave the scores as they are."""
        return scores


def codes_where(mask: Mask, code: int = 1) -> NDArray[np.int32]:
    """Give the reason code where the mask holds, else 0."""
    return mask.astype(np.int32) if code == 1 else np.where(mask, np.int32(code), np.int32(0))


def row_count(nodes: NodeTable, rows: Rows) -> int:
    """Count the rows selected."""
    return len(nodes.present.data[rows])
