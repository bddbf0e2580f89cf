"""Functions over lists: `any` and `all`, and `min` and `max` with two arguments.

The second argument is evaluated for each item, which it reads as `item`. It may also read the pod, the cluster and
constants, so a list is evaluated once per pod, not once per node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.functions.signatures import Checker, Function, over_cluster
from policysched.language.ir.graph import ITEM, Op, Typed, constant, make
from policysched.language.ir.tree import Call
from policysched.language.ir.types import BOOL, NUMBER, Gap, Kind, Shape, Type, Unit

_OF_NODES: Final = frozenset({"node", "peer", "victim", "metrics"})


def is_over_list(name: str, arguments: int) -> bool:
    """Return whether a function evaluates its second argument for each item of its first argument, a list."""
    return name in LISTS or (name in {"min", "max"} and arguments == 2)


def _any(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    items = list_argument(checker, call)
    count = items and _count(checker, call, items)
    return count and make(Op.GT, (count, constant(0.0, NUMBER)), BOOL.filled(count.type.gap))


def _all(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    items = list_argument(checker, call)
    count = items and _count(checker, call, items)
    if items is None or count is None:
        return None
    size = make(Op.COUNT_ITEMS, (items,), count.type, inner=(constant(True, BOOL),))
    return make(Op.GE, (count, size), BOOL.filled(count.type.gap))


def list_argument(checker: Checker, call: Call) -> Typed | None:
    """Return the compiled first argument of a call, which must be a list; report any other expression."""
    node = checker.check(call.arguments[0])
    if node is not None and node.type.kind is not Kind.LIST:
        name = call.function.dotted
        hint = over_cluster(checker, call) or None
        return checker.report("E0309", call.arguments[0].span, "first", name=name, type=node.type, help=hint)
    return node


def _count(checker: Checker, call: Call, items: Typed) -> Typed | None:
    with checker.over_items(items.type):
        condition = checker.condition(call.arguments[1])
    if not _reads_items_alone(checker, call, condition):
        return None
    return condition and make(Op.COUNT_ITEMS, (items,), NUMBER.filled(items.type.gap), inner=(condition,))


def extreme(checker: Checker, call: Call, items: Typed, unit: Unit | None) -> Typed | None:
    """Return the compiled call of `min` or `max` over a list; report errors."""
    argument = call.arguments[1]
    with checker.over_items(items.type):
        value = checker.quantity(argument, checker.check(argument, unit))
    if value is None or not _reads_items_alone(checker, call, value):
        return None
    op = Op.MIN_ITEMS if call.function.dotted == "min" else Op.MAX_ITEMS
    gap = max(items.type.gap, value.type.gap, Gap.OWN)
    return make(op, (items,), Type(Kind.QUANTITY, value.type.unit, Shape.SCALAR, gap), inner=(value,))


def _reads_items_alone(checker: Checker, call: Call, node: Typed | None) -> bool:
    """Return whether an expression over list items reads neither nodes nor placed pods; report other expressions."""
    if node is not None and any(item.root in _OF_NODES for item in node.inputs):
        checker.report("E0308", call.arguments[1].span, "item", name=call.function.dotted)
        return False
    if node is not None and node.inputs and ITEM not in node.inputs:
        checker.report("W0703", call.arguments[1].span, "each", each="item of the list", hint="use `item` for the item")
    return True


LISTS: Final[Mapping[str, Function]] = {
    "any": Function(
        _any,
        2,
        2,
        "list, c",
        "true if `c` is true for an item of the list",
        example='any(pod.images, ends_with(item, ":latest"))',
    ),
    "all": Function(
        _all,
        2,
        2,
        "list, c",
        "true if `c` is true for all items of the list",
        example='all(pod.images, starts_with(item, "registry.example/"))',
    ),
}
