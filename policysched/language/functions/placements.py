"""Functions over the nodes of a placement, `placement.nodes.*`, in placement rules.

They are aggregates over nodes whose graph has the mark `PLACEMENT`: the frame evaluates them over the placement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.functions.signatures import Checker, Function
from policysched.language.functions.values import aggregate_type, aggregated
from policysched.language.ir.graph import AGGREGATES, PLACEMENT, Input, Op, Typed, constant, make
from policysched.language.ir.tree import Call
from policysched.language.ir.types import BOOL, FIELDS, NUMBER, Unit

_OPS: Final = {f"placement.nodes.{op}": op for op in AGGREGATES}


def _over_placement(checker: Checker, call: Call, unit: Unit | None, op: Op | None = None) -> Typed | None:
    """Return a compiled aggregate over the nodes of a placement; report errors."""
    if not checker.placing:
        return checker.report("E0210", call.function.name_spans[0])
    op = op or _OPS[call.function.dotted]
    node = aggregated(checker, call, op, unit, placement=True)
    return node and make(op, (), aggregate_type(op, node.type, None), PLACEMENT, (node,))


def _any_node(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled `placement.nodes.any(c)`: the number of nodes with `c` is greater than 0."""
    count = _over_placement(checker, call, unit, Op.COUNT_NODES)
    return count and make(Op.GT, (count, constant(0.0, NUMBER)), BOOL)


def _all_nodes(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled `placement.nodes.all(c)`: the number of nodes with `c` is that of all nodes."""
    count = _over_placement(checker, call, unit, Op.COUNT_NODES)
    size = make(Op.INPUT, (), FIELDS["placement", "size"].type, Input("placement", ("size",)))
    return count and make(Op.GE, (count, size), BOOL)


_ARGUMENT: Final = slice(0, 1)
OVER_PLACEMENT: Final[Mapping[str, Function]] = {
    "placement.nodes.count": Function(
        _over_placement,
        1,
        1,
        "c",
        "number of nodes for which `c` is true",
        example="placement.nodes.count(node.ready) >= 4",
    ),
    "placement.nodes.any": Function(
        _any_node, 1, 1, "c", "true if `c` is true for a node", example="placement.nodes.any(node.group_members > 0)"
    ),
    "placement.nodes.all": Function(
        _all_nodes, 1, 1, "c", "true if `c` is true for all nodes", example="placement.nodes.all(not node.cordoned)"
    ),
    "placement.nodes.sum": Function(
        _over_placement,
        1,
        1,
        "x",
        "sum of `x`; 0 if no node has a value",
        _ARGUMENT,
        "placement.nodes.sum(node.free.cpu) >= group.requests.cpu",
    ),
    "placement.nodes.avg": Function(
        _over_placement,
        1,
        1,
        "x",
        "mean of `x`; missing if no node has a value",
        _ARGUMENT,
        "(placement.nodes.avg(node.free.cpu) > 2) ?? false",
    ),
    "placement.nodes.min": Function(
        _over_placement,
        1,
        1,
        "x",
        "smallest `x`; missing if no node has a value",
        _ARGUMENT,
        "(placement.nodes.min(node.age) > 1h) ?? false",
    ),
    "placement.nodes.max": Function(
        _over_placement,
        1,
        1,
        "x",
        "largest `x`; missing if no node has a value",
        _ARGUMENT,
        '(placement.nodes.max(node.free["nvidia.com/gpu"]) >= 8) ?? false',
    ),
}
