"""Translation of conditions about a pod into CEL expressions of admission policies.

`may_be` returns an expression that is true at least for every pod for which a condition has a truth value. Strings of
pods are optionals of CEL, because labels can be missing. The expressions read a pod as an API server admits it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from policysched.language.evaluation.scalar import ScalarFrame, evaluate
from policysched.language.ir.graph import Input, Op, Typed
from policysched.language.ir.types import Kind, Shape
from policysched.rules.translation.conditions import Folded

LABELS: Final = "object.metadata.?labels[?{}]"
_MAPS: Final = {
    "labels": LABELS,
    "annotations": "object.metadata.?annotations[?{}]",
    "namespace_labels": "namespaceObject.metadata.?labels[?{}]",
}
_STRINGS: Final = {
    "namespace": "optional.of(request.namespace)",
    "service_account": 'optional.of(object.spec.?serviceAccountName.orValue("default"))',
    "priority_class": "object.spec.?priorityClassName",
}
_NO_FRAME: Final = cast("ScalarFrame", None)
_PRIORITY: Final = "double(object.spec.?priority.orValue(0))"
_ORDER: Final = {Op.EQ: "==", Op.NE: "!=", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">="}
_OPPOSITE: Final = {
    Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT, Op.IN: Op.NOT_IN,
    Op.NOT_IN: Op.IN,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CelCondition:
    """A CEL expression that is true at least for the pods for which a condition has a given value, true or false."""

    text: str
    is_exact: bool = True
    """Whether the expression is false for all other pods."""

    def __and__(self, other: CelCondition) -> CelCondition:
        for one, rest in ((self, other), (other, self)):
            if one == NEVER or rest == ALWAYS:
                return one
        for one, rest in ((self, other), (other, self)):
            if rest == POSSIBLE:
                return CelCondition(one.text, is_exact=False)
        return CelCondition(f"({self.text} && {other.text})", self.is_exact and other.is_exact)

    def __or__(self, other: CelCondition) -> CelCondition:
        for one, rest in ((self, other), (other, self)):
            if one == ALWAYS or rest == NEVER:
                return one
        if POSSIBLE in (self, other):
            return POSSIBLE
        return CelCondition(f"({self.text} || {other.text})", self.is_exact and other.is_exact)


ALWAYS: Final = CelCondition("true")
NEVER: Final = CelCondition("false")
POSSIBLE: Final = CelCondition("true", is_exact=False)
"""The translation of a condition that CEL does not express."""
FIXED_LABELS: Final = frozenset(("labels", "namespace_labels", "namespace"))
"""The fields of `pod.` whose values are valid values of labels."""


def constant_value(node: Typed) -> Folded | None:
    """Return the value of an expression without inputs; None for other expressions."""
    if not node.local or node.over_pods or node.inputs or node.type.shape is not Shape.SCALAR:
        return None
    return Folded(evaluate(node, _NO_FRAME))


def pod_string(node: Typed) -> str | None:
    """Return a CEL optional with the value of a string of a pod; None for other expressions."""
    item = node.data
    if node.op not in {Op.INPUT, Op.KEYED} or not isinstance(item, Input) or item.root != "pod":
        return None
    if len(item.path) > 1:
        return None
    if item.path[0] in _STRINGS:
        return _STRINGS[item.path[0]]
    if item.path[0] not in _MAPS:
        return None
    key = item.key
    if node.op == Op.KEYED:
        folded = constant_value(node.args[0])
        key = folded.value if folded is not None and isinstance(folded.value, str) else None
    return None if key is None else _MAPS[item.path[0]].format(quoted(key))


def quoted(text: str) -> str:
    """Return a text as a CEL string."""
    return json.dumps(text, ensure_ascii=False)


def may_be(node: Typed, *, truth: bool) -> CelCondition:
    """Return a CEL expression that is true at least if a condition can be true or, with `truth=False`, can be false."""
    folded = constant_value(node)
    if folded is not None:
        return ALWAYS if folded.value is truth else NEVER
    args = node.args
    match node.op:
        case Op.NOT:
            return may_be(args[0], truth=not truth)
        case Op.AND | Op.OR:
            return _combined(args, truth=truth, all_of=(node.op == Op.AND) is truth)
        case Op.IF:
            return (may_be(args[0], truth=True) & may_be(args[1], truth=truth)) | (
                may_be(args[0], truth=False) & may_be(args[2], truth=truth)
            )
        case Op.DEFAULT:
            return may_be(args[0], truth=truth) | (_unknown(args[0]) & may_be(args[1], truth=truth))
        case _:
            text = _leaf(node, truth=truth)
            return POSSIBLE if text is None else CelCondition(text)


def _combined(conditions: tuple[Typed, ...], *, truth: bool, all_of: bool) -> CelCondition:
    found = ALWAYS if all_of else NEVER
    for condition in conditions:
        one = may_be(condition, truth=truth)
        found = found & one if all_of else found | one
    return found


def _unknown(condition: Typed) -> CelCondition:
    """Return a CEL expression that is true at least if a condition is unknown."""
    true, false = may_be(condition, truth=True), may_be(condition, truth=False)
    if not condition.type.optional:
        return NEVER
    if not (true.is_exact and false.is_exact):
        return POSSIBLE
    return CelCondition(f"!({true.text} || {false.text})")


def _leaf(node: Typed, *, truth: bool) -> str | None:
    """Return a CEL expression for a condition without operands that are conditions; None if CEL cannot express it."""
    if node.op == Op.HAS:
        read = pod_string(node.args[0])
        return None if read is None else f"{'' if truth else '!'}{read}.hasValue()"
    if node.op not in _OPPOSITE:
        return None
    operator = node.op if truth else _OPPOSITE[Op(node.op)]
    kinds = {one.type.kind for one in node.args}
    compare: Callable[[Op, Typed, Typed], str | None] = _strings if Kind.STRING in kinds else _priority
    return compare(Op(operator), *node.args)


def _strings(operator: Op, left: Typed, right: Typed) -> str | None:
    """Return the CEL comparison of a string of a pod with constants; a missing string equals none of them."""
    if operator in {Op.EQ, Op.NE} and constant_value(left) is not None:
        left, right = right, left
    read, folded = _with_default(left), constant_value(right)
    if read is None or folded is None:
        return None
    values = folded.value if isinstance(folded.value, tuple) else (folded.value,)
    texts = [quoted(one) for one in values if isinstance(one, str)]
    if len(texts) != len(values):
        return None
    among = f"({read}.hasValue() && {read}.value() in [{', '.join(texts)}])"
    return {Op.EQ: among, Op.IN: among, Op.NE: f"!{among}", Op.NOT_IN: f"!{among}"}.get(operator)


def _with_default(node: Typed) -> str | None:
    """Return a CEL optional with the value of a string of a pod, or of `?? "default"` behind it."""
    if node.op != Op.DEFAULT:
        return pod_string(node)
    read, folded = pod_string(node.args[0]), constant_value(node.args[1])
    if read is None or folded is None or not isinstance(folded.value, str):
        return None
    return f"{read}.or(optional.of({quoted(folded.value)}))"


def _priority(operator: Op, left: Typed, right: Typed) -> str | None:
    """Return the CEL comparison of a pod's priority with a number."""
    sides = [_number(one) for one in (left, right)]
    if operator not in _ORDER or None in sides or _PRIORITY not in sides:
        return None
    return f"({sides[0]} {_ORDER[operator]} {sides[1]})"


def _number(node: Typed) -> str | None:
    if node.op == Op.INPUT and isinstance(node.data, Input) and node.data == Input("pod", ("priority",)):
        return _PRIORITY
    folded = constant_value(node)
    value = folded.value if folded is not None else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return repr(float(value))
