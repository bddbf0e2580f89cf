"""Parts of graphs that read nothing of a row but which domain it is in: made of aggregates and values for all rows."""

from __future__ import annotations

from policysched.language.ir.graph import AGGREGATES, TALLIES, Op, Typed, steps
from policysched.language.ir.types import Shape
from policysched.rules.walk import walk


def rowless(root: Typed) -> dict[Typed, bool]:
    """Tell of each node of a graph whether it is made of aggregates and of values for all rows alone."""
    found: dict[Typed, bool] = {}
    for node in steps(root):
        if node.type.shape is Shape.SCALAR or node.op in AGGREGATES:
            found[node] = True
        else:
            reads = not node.args or node.op is Op.KEYED or node.op in TALLIES
            found[node] = not reads and all(found[arg] for arg in node.args)
    return found


def key_of(root: Typed) -> Typed | None:
    """Give the key that all aggregates of a rowless graph go by, None where they go by several."""
    found = walk([root], lambda node: () if node.op in AGGREGATES else node.args)
    keys = {key for node in found if node.op in AGGREGATES for key in node.args}
    return keys.pop() if len(keys) == 1 else None
