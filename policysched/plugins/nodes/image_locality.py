"""ImageLocality: prefer nodes that have the pod's images already, the more so the larger and the wider spread.

Knows sizes of images by row. How far an image has spread depends on all nodes, so the generation of the images is this
plugin's, and rows are scored once for all when a class is prepared.

Source: plugins/imagelocality/image_locality.go, v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Aspect, Cluster, Rows, Scores
from policysched.model.objects import Pod
from policysched.model.pod_requirements import container_count, pod_images
from policysched.plugins.bases import FinalScores, ScoresInRange
from policysched.plugins.columns import row_count
from policysched.state.tables.columns import from_floats
from policysched.state.tables.nodes import NodeTable

MEBIBYTE = 1024 * 1024
LEAST = 23 * MEBIBYTE
MOST_PER_CONTAINER = 1000 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class ImageScores:
    """What rows score by the pod's images; None where no node has any of them."""

    nodes: NodeTable
    scores: Scores | None

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return 0 if self.scores is None else self.scores.nbytes


class ImageLocality(FinalScores, ScoresInRange):
    """The plugin."""

    name = "ImageLocality"
    score_reads = Aspect.IMAGES

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Add up the sizes of the images that rows have, one that is used twice counting twice, and score them."""
        nodes, there = cluster.nodes, False
        present = np.zeros(nodes.columns.capacity, np.int64)
        for name, times in Counter(pod_images(pod)).items():
            found = cluster.images.rows_with(name)
            if found is not None:
                rows, size = found
                present[rows] += times * from_floats(np.array([size]) * (rows.size / nodes.count))
                there = True
        if not there:
            return ImageScores(nodes, None)
        most = MOST_PER_CONTAINER * container_count(pod)
        bounded = np.where(present < LEAST, LEAST, np.minimum(present, most))
        return ImageScores(nodes, MAX_NODE_SCORE * (bounded - LEAST) // (most - LEAST))

    def score(self, state: ImageScores, rows: Rows) -> Scores:
        """Return the scores of rows."""
        return np.zeros(row_count(state.nodes, rows), np.int64) if state.scores is None else state.scores[rows]

    def generation(self, cluster: Cluster) -> Hashable:
        """Return what moves when any image comes or goes, or the number of nodes changes."""
        return cluster.images.generation
