"""namescore: a score for each node, by its name."""

from __future__ import annotations

from policysched.plugin import CycleState, NodeInfo, Pod

SCORES = {"k8s-node01": 10, "k8s-node02": 90, "k8s-node03": 50}


class NameScore:
    """The plugin."""

    name = "namescore"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Give the node the score of its name."""
        return SCORES.get(node.name, 0)
