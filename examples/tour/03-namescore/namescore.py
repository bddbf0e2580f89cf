"""namescore: scores each node by its name."""

from __future__ import annotations

from policysched.plugin import CycleState, NodeInfo, Pod, ScoreMethods

SCORES = {"k8s-node01": 10, "k8s-node02": 90, "k8s-node03": 50}


class NameScore(ScoreMethods):
    """Scores nodes by a fixed table."""

    name = "namescore"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the score of a node, 0 if the table does not list it."""
        return SCORES.get(node.name, 0)
