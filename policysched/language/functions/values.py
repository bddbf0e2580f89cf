"""Functions of quantities and of any values (`has`, `if`, `scale`, …), and aggregates over nodes and over pods.

The expression in an aggregate is checked like any other and evaluated on the other rows. It may read their fields
(`peer` is a placed pod), but not use `normalize`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from policysched.language.functions.lists import extreme
from policysched.language.functions.signatures import (
    Checker,
    Function,
    all_of,
    least_or_greatest,
    number_of_arguments,
    one_type,
    over_cluster,
    quantities,
    warn_of_no_peer,
)
from policysched.language.ir.graph import Op, Typed, constant, make
from policysched.language.ir.tree import Call, Expr, Path
from policysched.language.ir.types import BOOL, NUMBER, Gap, Kind, Shape, Type, Unit
from policysched.language.messages import foreign_syntax, suggestions


def _has(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    argument = call.arguments[0]
    node = checker.check(argument)
    if node is not None and node.inputs and not node.type.optional:
        shown = checker.source(argument) or "..."
        hint = foreign_syntax.never_missing(shown) or f"`{shown}` is never missing"
        checker.report("W0703", call.span, value="true", hint=hint)
    return node and make(Op.HAS, (node,), BOOL.over(node.type).filled())


def _if(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    condition = checker.condition(call.arguments[0])
    arms = all_of(checker.alike(call.arguments[1:], unit))
    if condition is None or arms is None or not one_type(checker, call, arms):
        return None
    if not _no_list(checker, call.arguments[1], arms[0]):
        return None
    return make(Op.IF, (condition, *arms), arms[0].type.over(arms[1].type, condition.type))


def _only(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    condition = checker.condition(call.arguments[0])
    node = checker.check(call.arguments[1], unit)
    if condition is None or node is None or not _no_list(checker, call.arguments[1], node):
        return None
    return where_true(condition, node)


def _no_list(checker: Checker, expr: Expr, node: Typed) -> Typed | None:
    """Return a compiled expression, which must not be a list; report a list."""
    if node.type.kind is Kind.LIST:
        return checker.report("E0303", expr.span, type=node.type, hint=suggestions.to_number(node))
    return node


def where_true(condition: Typed, node: Typed) -> Typed:
    """Return a compiled expression with the value of `node` where a condition is true, and no value elsewhere."""
    result = node.type.over(condition.type)
    return make(Op.ONLY, (condition, node), result.at_least(Gap.OWN))


def _same_unit(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled call of `abs`, `least` or `greatest`, which has the unit of its arguments."""
    nodes = quantities(checker, call, unit)
    if nodes is None:
        return None
    return make(call.function.dotted, nodes, nodes[0].type.over(*(node.type for node in nodes)))


def _round(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = quantities(checker, call, Unit.NUMBER)
    if nodes is None:
        return None
    if not nodes[0].type.is_number:
        hint = "divide by a unit first, as in `/ 1Gi`"
        return checker.report("E0303", call.arguments[0].span, type=nodes[0].type, hint=hint)
    return make(Op.ROUND, nodes, nodes[0].type)


def _bounds(nodes: Sequence[Typed]) -> tuple[float, float] | None:
    low, high = nodes[1].data, nodes[2].data
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def _clamp(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    node = _same_unit(checker, call, unit)
    bounds = _bounds(node.args) if node else None
    if bounds and bounds[0] > bounds[1]:
        return checker.report("E0312", call.span, "clamp")
    return node


def _scale(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = quantities(checker, call, None)
    if nodes is None:
        return None
    bounds = _bounds(nodes)
    if bounds and bounds[0] == bounds[1]:
        return checker.report("E0312", call.span, "scale")
    result = NUMBER.over(*(node.type for node in nodes))
    return make(Op.SCALE, nodes, result if bounds else result.at_least(Gap.OWN))


def _normalize(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = quantities(checker, call, None)
    if checker.environment.phase not in {"score", "let"}:
        return checker.report("E0506", call.function.span)
    if checker.reducing:
        return checker.report("E0506", call.function.span, "inner")
    if nodes is None:
        return None
    return make(Op.NORMALIZE, nodes, Type(Kind.QUANTITY, Unit.NUMBER, Shape.NODES, nodes[0].type.gap))


_ALL: Final = slice(0, None)
VALUES: Final[Mapping[str, Function]] = {
    "has": Function(
        _has, 1, 1, "x", "true if `x` is present, false if `x` is missing", example='has(node.labels["gpu"])'
    ),
    "if": Function(
        _if,
        3,
        3,
        "c, a, b",
        "`a` if `c` is true, `b` if `c` is false, missing if `c` is unknown",
        slice(1, 3),
        "if(node.cordoned, 0, 50)",
    ),
    "only": Function(
        _only, 2, 2, "c, x", "`x` if `c` is true, otherwise missing", slice(1, 2), "only(node.ready, node.free.cpu)"
    ),
    "abs": Function(_same_unit, 1, 1, "x", "absolute value of `x`", _ALL, "abs(node.free.cpu - pod.requests.cpu) < 1"),
    "round": Function(
        _round, 1, 1, "x", "`x` rounded to the nearest integer, halves up", example="round(node.free.memory / 1Gi)"
    ),
    "clamp": Function(
        _clamp,
        3,
        3,
        "x, lo, hi",
        "`x` limited to the range from `lo` to `hi`",
        _ALL,
        "clamp(node.free.memory, 1Gi, 64Gi)",
    ),
    "scale": Function(
        _scale,
        3,
        3,
        "x, lo, hi",
        "0 at `lo`, 100 at `hi`, linear between them, clipped to 0..100; `lo` greater than `hi` inverts the score; "
        "missing if `lo` equals `hi`",
        example="scale(node.free.memory, 0, 256Gi)",
    ),
    "normalize": Function(
        _normalize,
        1,
        1,
        "x",
        "100 · `x` / maximum of `x` over the feasible nodes; 0 if the maximum is 0 or less; only in scores",
        example="normalize(node.free.memory)",
    ),
    "least": Function(
        _same_unit,
        1,
        None,
        "a, …",
        "smallest argument; missing if an argument is missing",
        _ALL,
        "least(node.free.cpu, 4)",
    ),
    "greatest": Function(
        _same_unit,
        1,
        None,
        "a, …",
        "largest argument; missing if an argument is missing",
        _ALL,
        "greatest(node.free.cpu / node.allocatable.cpu, 10%)",
    ),
}


MAX_NESTING: Final = 4
_COUNTING: Final = frozenset({Op.COUNT_NODES, Op.SUM_NODES})


def _aggregate(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    name = call.function.dotted
    if checker.environment.phase in {"pod", "group"}:
        return checker.report("E0405", call.function.span, checker.early, name=name)
    if call.by is not None and not checker.is_over_nodes:
        return checker.report("E0406", call.span, name=f"{name}(...) by")
    op = Op(name)
    node = aggregated(checker, call, op, unit)
    key = _domain(checker, call.by) if call.by is not None else None
    if node is None or (key is None and call.by is not None):
        return None
    return make(op, (key,) if key else (), aggregate_type(op, node.type, key), inner=(node,))


def _extreme(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled call of `min` or `max`, over a list (two arguments) or over nodes."""
    if len(call.arguments) == 1:
        return _aggregate(checker, call, unit)
    items = checker.check(call.arguments[0])
    if items is None:
        return None
    if items.type.kind is Kind.LIST and call.by is None:
        return extreme(checker, call, items, unit)
    form = over_cluster(checker, call).removeprefix("write `").removesuffix("`") or least_or_greatest(checker, call)
    name, expected = call.function.dotted, number_of_arguments(1)
    return checker.report("E0206", call.span, name=name, expected=expected, number=2, form=form)


def aggregated(checker: Checker, call: Call, op: Op, unit: Unit | None, *, placement: bool = False) -> Typed | None:
    """Return the compiled argument of an aggregate over all nodes, or over the nodes of a placement."""
    argument = call.arguments[0]
    with checker.over(placement=placement):
        if op == Op.COUNT_NODES:
            node = checker.condition(argument)
        else:
            node = checker.quantity(argument, checker.check(argument, unit))
    if node is not None and node.type.shape is not Shape.NODES:
        variant = "pods" if node.type.shape is Shape.PODS else ""
        return checker.report("E0403", argument.span, variant, name=call.function.dotted)
    if node is not None and node.nesting >= MAX_NESTING:
        return checker.report("E0108", call.function.span, "aggregates", limit=MAX_NESTING)
    return node


def _domain(checker: Checker, path: Path) -> Typed | None:
    """Return the compiled `by` key of an aggregate; report a key that is no string field of the node."""
    key = checker.check(path)
    if key is None:
        return None
    if key.type.kind is not Kind.STRING:
        return checker.report("E0404", path.span, type=key.type)
    if key.type.shape is not Shape.NODES or key.op not in {Op.INPUT, Op.KEYED}:
        variant = "computed" if key.type.shape is Shape.NODES else "other"
        return checker.report("E0404", path.span, variant)
    return key


def aggregate_type(op: Op, values: Type, key: Typed | None) -> Type:
    """Return the type of an aggregate; without `by`, its value is missing if there are no nodes."""
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
    if condition is not None:
        warn_of_no_peer(checker, call.arguments[0], condition)
    return condition and make(Op.COUNT_PODS, (), _over_nodes(NUMBER), inner=(condition,))


def _any_pod(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled `node.pods.any(c)`: the number of pods with `c` is greater than 0."""
    count = _count_pods(checker, call, unit)
    return count and make(Op.GT, (count, constant(0.0, NUMBER)), _over_nodes(BOOL))


def _sum_pods(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled `node.pods.sum(x, c)`; report errors."""
    node = _over_pods(checker, call, unit)
    return node and make(Op.SUM_PODS, (), _over_nodes(node.type).filled(), inner=(node,))


def _over_pods(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled `x` in `node.pods.f(x, c)`, for pods on which `c` is true; other pods are ignored."""
    if not _may_read_pods(checker, call.function):
        return None
    with checker.over(pods=True):
        value = checker.quantity(call.arguments[0], checker.check(call.arguments[0], unit))
        conditions = all_of([checker.condition(argument) for argument in call.arguments[1:]])
    if value is None or conditions is None:
        return None
    # A value that is the same for each pod can be meant if a condition selects the pods.
    warn_of_no_peer(checker, call.arguments[-1], conditions[0] if conditions else value)
    return where_true(conditions[0], value) if conditions else value


def _all_pods(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled `node.pods.all(c)`: the number of pods with `c` is that of all pods."""
    count = _count_pods(checker, call, unit)
    every = make(Op.COUNT_PODS, (), _over_nodes(NUMBER), inner=(constant(True, BOOL),))
    return count and make(Op.GE, (count, every), _over_nodes(BOOL))


def _extreme_pod(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Return the compiled `node.pods.min(x, c)` or `node.pods.max(x, c)`; report errors."""
    node = _over_pods(checker, call, unit)
    if node is None or node.type.unit is None:
        return None
    result = Type(Kind.QUANTITY, node.type.unit, Shape.NODES, max(node.type.gap, Gap.OWN))
    return make(Op(call.function.dotted), (), result, inner=(node,))


def _may_read_pods(checker: Checker, function: Path) -> bool:
    if checker.environment.phase in {"pod", "group"}:
        checker.report("E0405", function.span, checker.early, name=function.dotted)
    elif not checker.is_over_nodes:
        checker.report("E0406", function.span, name=function.dotted)
    elif checker.peers:
        checker.report("E0402", function.span, name=function.dotted)
    else:
        return True
    return False


def _over_nodes(result: Type) -> Type:
    return Type(result.kind, result.unit, Shape.NODES)


_ARGUMENT: Final = slice(0, 1)
OVER_NODES: Final[Mapping[str, Function]] = {
    "sum": Function(
        _aggregate,
        1,
        1,
        "x",
        "sum of `x`; 0 if no node has a value",
        _ARGUMENT,
        "sum(node.requested.cpu) by node.zone < 200",
    ),
    "avg": Function(
        _aggregate,
        1,
        1,
        "x",
        "mean of `x`; missing if no node has a value",
        _ARGUMENT,
        "node.free.cpu > avg(node.free.cpu)",
    ),
    "min": Function(
        _extreme,
        1,
        2,
        "[list, ]x",
        "smallest `x`; missing if no node has a value. With a list, the smallest `x` of its items",
        _ARGUMENT,
        "node.age == min(node.age)",
    ),
    "max": Function(
        _extreme,
        1,
        2,
        "[list, ]x",
        "largest `x`; missing if no node has a value. With a list, the largest `x` of its items",
        _ARGUMENT,
        'max(node.free["nvidia.com/gpu"]) > 4',
    ),
    "count": Function(
        _aggregate,
        1,
        1,
        "c",
        "number of nodes for which `c` is true",
        example='count(node.ready) by node.labels["rack"] >= 3',
    ),
}
OVER_PODS: Final[Mapping[str, Function]] = {
    "node.pods.count": Function(
        _count_pods,
        1,
        1,
        "c",
        "number of placed pods for which `c` is true",
        example='node.pods.count(peer.labels["app"] == "db") < 2',
    ),
    "node.pods.any": Function(
        _any_pod,
        1,
        1,
        "c",
        "true if `c` is true for a placed pod",
        example="not node.pods.any(peer.namespace != pod.namespace)",
    ),
    "node.pods.all": Function(
        _all_pods,
        1,
        1,
        "c",
        "true if `c` is true for all placed pods",
        example="node.pods.all(peer.namespace == pod.namespace)",
    ),
    "node.pods.min": Function(
        _extreme_pod,
        1,
        2,
        "x[, c]",
        "smallest `x` of the placed pods; missing if no pod has a value",
        _ARGUMENT,
        "(node.pods.min(peer.age) > 5min) ?? true",
    ),
    "node.pods.max": Function(
        _extreme_pod,
        1,
        2,
        "x[, c]",
        "largest `x` of the placed pods; missing if no pod has a value",
        _ARGUMENT,
        "(node.pods.max(peer.priority) <= pod.priority) ?? true",
    ),
    "node.pods.sum": Function(
        _sum_pods,
        1,
        2,
        "x[, c]",
        "sum of `x` over the placed pods; with `c`, over the pods for which `c` is true",
        _ARGUMENT,
        "node.pods.sum(peer.requests.cpu, peer.priority < 1000)",
    ),
}
