"""`PlacementFrame`: the values that placement rules read, for one placement of a pod group."""

from __future__ import annotations

from policysched.framework import RowNumbers
from policysched.language.evaluation.columns import aggregate_over
from policysched.language.ir.graph import PLACEMENT, Input, Typed
from policysched.rules.inputs import PodInputs, Scalar
from policysched.rules.shared_values.context import EvaluationContext, Floats, RuleFrame


class PlacementFrame(RuleFrame):
    """The values that placement rules read for a placement (a frame); each rule has one value for all its nodes.

    Args:
        context: The context of the policies on the cluster.
        pod: The inputs of a pod of the group.
        name: The name of the placement.
        rows: The nodes of the placement.
    """

    __slots__ = ("_name",)

    def __init__(self, context: EvaluationContext, pod: PodInputs, name: str, rows: RowNumbers) -> None:
        super().__init__(context, pod, rows)
        self._name = name

    def scalar(self, item: Input, /) -> Scalar | Floats:
        """Return the value of a `placement.`, `group.` or `cluster.` input."""
        if item.root == "placement":
            return self._name if item.path[0] == "name" else float(self.rows)
        return super().scalar(item)

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Return the value of an aggregate over the nodes of the placement, or over all nodes."""
        return aggregate_over(node, self) if node.data == PLACEMENT else super().aggregate(node)
