"""ImageLocality: prefers nodes that already have the pod's images, weighted by size and spread.

The plugin uses image sizes by row. The spread of an image depends on all nodes, so the plugin's `stamp` is that of
the images, and all rows are scored once when a class is prepared.

Source: plugins/imagelocality/image_locality.go, v1.36 and v1.37.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Aspect, Cluster, Incremental, Rows, ScorePlugin, Scores, SizedState
from policysched.model.objects import Pod
from policysched.model.pod_requirements import container_count, pod_images
from policysched.plugins.bases import ScoresInRange
from policysched.plugins.columns import row_count
from policysched.state.tables.columns import from_floats, memory_of
from policysched.state.tables.nodes import NodeTable

MEBIBYTE = 1024 * 1024
LEAST = 23 * MEBIBYTE
MOST_PER_IMAGE = 1000 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class ImageScores(SizedState):
    """The scores of nodes by the pod's images; None if no node has any of these images."""

    nodes: NodeTable
    scores: Scores | None

    def memory(self, rows: int) -> int:
        """Estimate the memory of the state, whose arrays have `rows` elements. Units: bytes."""
        return memory_of(1, rows)


class ImageLocality(ScoresInRange, ScorePlugin[ImageScores], Incremental[ImageScores]):
    """The ImageLocality plugin: prefers nodes that have the pod's images."""

    name = "ImageLocality"
    score_reads = Aspect.IMAGES

    def __init__(self, *, volumes_count: bool = False) -> None:
        """Create the plugin.

        Args:
            volumes_count: Whether the largest sum of sizes grows with each image volume too.
        """
        self._volumes_count = volumes_count

    def prepare_score(self, pod: Pod, cluster: Cluster) -> ImageScores:
        """Return the scores of all nodes from the sizes of their images; an image in two containers counts twice."""
        nodes, images, there = cluster.nodes, pod_images(pod), False
        present = np.zeros(nodes.columns.capacity, np.int64)
        for name, times in Counter(images).items():
            found = cluster.images.rows_with(name)
            if found is not None:
                rows, size = found
                present[rows] += times * from_floats(np.array([size]) * (rows.size / nodes.count))
                there = True
        if not there:
            return ImageScores(nodes, None)
        most = MOST_PER_IMAGE * (len(images) if self._volumes_count else container_count(pod))
        bounded = np.where(present < LEAST, LEAST, np.minimum(present, most))
        return ImageScores(nodes, MAX_NODE_SCORE * (bounded - LEAST) // (most - LEAST))

    def score(self, state: ImageScores, rows: Rows) -> Scores:
        """Return the precomputed scores of nodes."""
        return np.zeros(row_count(state.nodes, rows), np.int64) if state.scores is None else state.scores[rows]

    def stamp(self, cluster: Cluster) -> Hashable:
        """Return a value that changes when a node gets or loses an image, or when the number of nodes changes."""
        return cluster.images.stamp
