"""Aggregate functions: over all nodes, and over the pods of a node (`node.pods.*`).

The expression in them is checked like any other and evaluated on those other rows. So it may read what they have (a
peer stands for a placed pod), and may not take a maximum of the rows at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.functions.rules import Checker, Function, all_of
from policysched.language.functions.values import where_true
from policysched.language.ir.graph import Op, Typed, constant, make
from policysched.language.ir.tree import Call, Path
from policysched.language.ir.types import BOOL, NUMBER, Gap, Kind, Shape, Type, Unit

MAX_NESTING: Final = 4
_COUNTING: Final = frozenset({Op.COUNT_NODES, Op.SUM_NODES})


def _aggregate(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    name = call.function.dotted
    if checker.environment.phase == "pod":
        return checker.report("E0405", call.function.span, name=name)
    op = Op(name)
    node = _aggregated(checker, call, op, unit)
    key = _domain(checker, call.by) if call.by is not None else None
    if node is None or (key is None and call.by is not None):
        return None
    if node.nesting >= MAX_NESTING:
        return checker.report("E0108", call.function.span, "aggregates", limit=MAX_NESTING)
    return make(op, (key,) if key else (), _result(op, node.type, key), inner=(node,))


def _aggregated(checker: Checker, call: Call, op: Op, unit: Unit | None) -> Typed | None:
    argument = call.arguments[0]
    with checker.over():
        if op == Op.COUNT_NODES:
            node = checker.condition(argument)
        else:
            node = checker.quantity(argument, checker.check(argument, unit))
    if node is not None and node.type.shape is not Shape.NODES:
        variant = "pods" if node.type.shape is Shape.PODS else ""
        return checker.report("E0403", argument.span, variant, name=call.function.dotted)
    return node


def _domain(checker: Checker, path: Path) -> Typed | None:
    """Check a `by` key: a string column of the node as it is."""
    key = checker.check(path)
    if key is None:
        return None
    if key.type.kind is not Kind.STRING:
        return checker.report("E0404", path.span, type=key.type)
    if key.type.shape is not Shape.NODES or key.op not in {Op.INPUT, Op.KEYED}:
        variant = "computed" if key.type.shape is Shape.NODES else "other"
        return checker.report("E0404", path.span, variant)
    return key


def _result(op: Op, values: Type, key: Typed | None) -> Type:
    """Return the type of an aggregate: a row's domain has the row itself in it, all nodes may be none."""
    unit = Unit.NUMBER if op == Op.COUNT_NODES else values.unit
    gap = Gap.NONE if op in _COUNTING else values.gap
    if key is None:
        return Type(Kind.QUANTITY, unit, Shape.SCALAR, gap if op in _COUNTING else max(gap, Gap.OWN))
    return Type(Kind.QUANTITY, unit, Shape.NODES, max(gap, key.type.gap))


def _count_pods(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    if not _may_read_pods(checker, call.function):
        return None
    with checker.over(pods=True):
        condition = checker.condition(call.arguments[0])
    return condition and make(Op.COUNT_PODS, (), _over_nodes(NUMBER), inner=(condition,))


def _any_pod(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check `node.pods.any(c)`, which is a count above 0."""
    count = _count_pods(checker, call, unit)
    return count and make(Op.GT, (count, constant(0.0, NUMBER)), _over_nodes(BOOL))


def _sum_pods(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check `node.pods.sum(x, c)`: a value that is missing where the condition is not true is left out."""
    if not _may_read_pods(checker, call.function):
        return None
    with checker.over(pods=True):
        value = checker.quantity(call.arguments[0], checker.check(call.arguments[0], unit))
        conditions = all_of([checker.condition(argument) for argument in call.arguments[1:]])
    if value is None or conditions is None:
        return None
    node = where_true(conditions[0], value) if conditions else value
    return make(Op.SUM_PODS, (), _over_nodes(value.type).filled(), inner=(node,))


def _may_read_pods(checker: Checker, function: Path) -> bool:
    if checker.environment.phase == "pod":
        checker.report("E0405", function.span, name=function.dotted)
    elif checker.peers:
        checker.report("E0402", function.span, name=function.dotted)
    else:
        return True
    return False


def _over_nodes(result: Type) -> Type:
    return Type(result.kind, result.unit, Shape.NODES)


_ARGUMENT: Final = slice(0, 1)
OVER_NODES: Final[Mapping[str, Function]] = {
    "sum": Function(_aggregate, 1, 1, "x", "the sum over all nodes; nodes without a value are left out", _ARGUMENT),
    "avg": Function(_aggregate, 1, 1, "x", "the mean over all nodes that have a value, missing if none has", _ARGUMENT),
    "min": Function(_aggregate, 1, 1, "x", "the smallest value of all nodes, missing if none has one", _ARGUMENT),
    "max": Function(_aggregate, 1, 1, "x", "the largest value of all nodes, missing if none has one", _ARGUMENT),
    "count": Function(_aggregate, 1, 1, "c", "the number of nodes where a condition is true"),
}
OVER_PODS: Final[Mapping[str, Function]] = {
    "node.pods.count": Function(_count_pods, 1, 1, "c", "the number of pods on the node for which a condition is true"),
    "node.pods.any": Function(_any_pod, 1, 1, "c", "whether a condition is true for a pod on the node"),
    "node.pods.sum": Function(
        _sum_pods,
        1,
        2,
        "x[, c]",
        "the sum over the pods on the node, or over those where a condition is true",
        _ARGUMENT,
    ),
}
