"""tonodename-scoring-plugin: scores one node 80 and every other node 20, normalized to 100 and 25."""

from __future__ import annotations

import logging

from policysched.plugin import CycleState, NodeInfo, NodeScore, NormalizeScoreMethods, Pod, ScoreMethods

log = logging.getLogger(__name__)


class ToNodeName(ScoreMethods, NormalizeScoreMethods):
    """Scores the preferred node higher than all others."""

    name = "tonodename-scoring-plugin"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the score of a node before normalization."""
        return 80 if node.name == "piworknode001" else 20

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> None:
        """Scale the scores so that the highest is 100; 0 stays 0."""
        highest = max(one.score for one in scores)
        for one in scores:
            one.score = 100 * one.score // highest
            log.info("pod=%s node=%s score=%d", pod.key, one.name, one.score)
