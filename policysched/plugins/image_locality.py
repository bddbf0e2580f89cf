"""ImageLocality: prefer nodes that have the pod's images already, the more so the larger and the wider spread.

Knows sizes of images by row. How far an image has spread depends on all nodes, so the epoch of the images is this
plugin's.

Source: plugins/imagelocality/image_locality.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Aspect, Cluster, Rows, Scores
from policysched.model.images import container_count, pod_images
from policysched.model.objects import Pod
from policysched.plugins.bases import FinalScores, row_count
from policysched.state.columns import Column
from policysched.state.nodes import NodeTable

MEBIBYTE = 1024 * 1024
LEAST = 23 * MEBIBYTE
MOST_PER_CONTAINER = 1000 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pod's images that some node has: their sizes by row, and on which share of the nodes they are.

    Units: `most` in bytes.
    """

    nodes: NodeTable
    images: tuple[tuple[Column, float], ...]
    most: int


class ImageLocality(FinalScores):
    """The plugin."""

    name = "ImageLocality"
    score_reads = Aspect.IMAGES

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Find the columns of the pod's images; one that is used twice counts twice."""
        found = (cluster.images.column(name) for name in pod_images(pod))
        images = tuple((one[0], one[1] / cluster.nodes.count) for one in found if one is not None)
        return Wanted(cluster.nodes, images, MOST_PER_CONTAINER * container_count(pod))

    def score(self, state: Wanted, rows: Rows) -> Scores:
        """Scale the bytes that need not be pulled to 0..100."""
        present = np.zeros(row_count(state.nodes, rows), np.int64)
        for column, spread in state.images:
            present += (column.data[rows] * spread).astype(np.int64)
        bounded = np.where(present < LEAST, LEAST, np.minimum(present, state.most))
        return MAX_NODE_SCORE * (bounded - LEAST) // (state.most - LEAST)

    def epoch(self, cluster: Cluster) -> Hashable:
        """Give what moves when any image comes or goes, or the number of nodes changes."""
        return cluster.images.epoch
