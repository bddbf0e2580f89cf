"""tonodename-scoring-plugin: 80 points for one node and 20 for every other; normalised, 100 and 25."""

from __future__ import annotations

import logging

from policysched.plugin import CycleState, NodeInfo, NodeScore, Pod

log = logging.getLogger(__name__)


class ToNodeName:
    """The plugin."""

    name = "tonodename-scoring-plugin"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Give the node its points."""
        return 80 if node.name == "piworknode001" else 20

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> None:
        """Bring the points to 0..100, from 0 and not from the lowest."""
        highest = max(one.score for one in scores)
        for one in scores:
            one.score = 100 * one.score // highest
            log.info("pod=%s node=%s score=%d", pod.key, one.name, one.score)
