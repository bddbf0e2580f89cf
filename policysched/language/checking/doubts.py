"""Warnings about parts that are valid but suspicious: numbers of cores, texts, percentages.

Each check reads one place of the syntax tree and its graph. `estimates` has checks based on ranges of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from policysched.language.checking.exclusion import implied
from policysched.language.functions.signatures import Checker
from policysched.language.ir.graph import Input, Op, Typed, per_graph
from policysched.language.ir.tree import Call, Chain, Comparison, Expr, Listing, Literal, LiteralKind
from policysched.language.ir.types import CHOICES, Gap, Unit
from policysched.language.messages import suggestions
from policysched.language.messages.suggestions import shown

MANY_CORES: Final = 500
"""Number of cores from which a comparison with a node is reported. Units: cores."""
MANY_OF_A_POD: Final = 250
"""Number of cores from which a comparison with a pod is reported. Units: cores."""
_PODS: Final = frozenset({"pod", "peer", "victim"})


def warn_of_cores(checker: Checker, operands: Sequence[Expr], nodes: Sequence[Typed | None]) -> None:
    """Report numbers of cores that no node or pod has, because millicores were probably meant."""
    beside = [one for one, expr in zip(nodes, operands, strict=True) if one and not isinstance(expr, Literal | Listing)]
    if not beside or not all(map(_counts_cores, beside)):
        return
    roots = {item.root for one in beside for item in one.inputs}
    most = MANY_OF_A_POD if roots <= _PODS else MANY_CORES
    for literal in _literals(operands):
        if literal.kind is LiteralKind.NUMBER and float(literal.text) >= most:
            checker.report("W0708", literal.span, number=literal.text)


def _literals(operands: Sequence[Expr]) -> Iterator[Literal]:
    for expr in operands:
        for one in expr.items if isinstance(expr, Listing) else (expr,):
            if isinstance(one, Literal):
                yield one


# Arguments that determine the cores of a result; products and quotients are not cores.
_GIVE: Final[Mapping[str, Callable[[Typed], Sequence[Typed]]]] = {
    **dict.fromkeys((Op.ADD, Op.SUBTRACT, Op.NEGATE, Op.DEFAULT, Op.ABS), lambda node: node.args),
    **dict.fromkeys((Op.LEAST, Op.GREATEST), lambda node: node.args),
    **dict.fromkeys((Op.IF, Op.ONLY), lambda node: node.args[1:]),
    Op.CLAMP: lambda node: node.args[:1],
    Op.SUM_PODS: lambda node: node.inner,
}


@per_graph
def _counts_cores(root: Typed) -> bool:
    """Return whether a value is of the magnitude of a node's or pod's cores."""
    seen = {root}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type.unit is not Unit.CPU or (node.op not in _GIVE and node.op not in {Op.INPUT, Op.KEYED}):
            return False
        given = _GIVE[node.op](node) if node.op in _GIVE else ()
        new = [part for part in given if part.op != Op.CONSTANT and part not in seen]
        seen.update(new)
        waiting.extend(new)
    return True


def warn_of_choices(checker: Checker, comparison: Comparison, node: Typed) -> None:
    """Report a comparison with a text that the field never has, so that the result is always the same."""
    for one, other, expr in zip(node.args, reversed(node.args), (comparison.right, comparison.left), strict=True):
        if not isinstance(one.data, Input) or other.op != Op.CONSTANT:
            continue
        choices = CHOICES.get((one.data.root, *one.data.path), ())
        for item in expr.items if isinstance(expr, Listing) and choices else (expr,):
            if choices and isinstance(item, Literal) and item.text not in choices:
                hint = suggestions.one_of(item.text, choices)
                checker.report("W0714", item.span, input=one.data.text, value=shown(item.text), hint=hint)


def warn_of_effect(checker: Checker, call: Call, key: Typed) -> None:
    """Report an argument of `has_effect` that is not a taint effect."""
    choices = CHOICES.get(call.function.names, ())
    if choices and key.op == Op.CONSTANT and key.data not in choices and call.function.names[-1] == "has_effect":
        text = str(key.data)
        hint = suggestions.one_of(text, choices)
        checker.report("W0714", call.arguments[0].span, "effect", value=shown(text), hint=hint)


def warn_of_percentage(checker: Checker, expr: Expr) -> None:
    """Report a score whose value is a percentage."""
    found = _percentage(expr)
    if found is not None:
        checker.report("W0704", found.span)


def _percentage(expr: Expr) -> Literal | None:
    match expr:
        case Literal() if expr.kind is LiteralKind.PERCENT:
            return expr
        case Chain() if expr.steps[-1].operator == "??":
            return _percentage(expr.steps[-1].operand) or _percentage(expr.first)
        case Call() if expr.function.dotted == "if":
            return _percentage(expr.arguments[1]) or _percentage(expr.arguments[2])
        case Call() if expr.function.dotted == "clamp":
            return _percentage(expr.arguments[2])
        case _:
            return None


class Doubt(NamedTuple):
    """A reason why a value can be missing: an input with its fault, such as "be missing"."""

    input: str
    what: str = "be missing"


_CONVERTED: Final[Mapping[str, str]] = {Op.NUMBER: "not be a number", Op.VERSION: "not be a version"}
_MOST_PLACES: Final = 1000
"""Maximum number of parts of an expression that are searched for missing values; the others are ignored."""


def required(guard: Typed) -> frozenset[Typed]:
    """Return the values that are present whenever a condition is true."""
    return _present(implied(guard))


def doubt(root: Typed, guard: Typed | None = None, present: frozenset[Typed] = frozenset()) -> Doubt | None:
    """Return why a value can be missing; None if checks with `has` exclude every reason.

    Args:
        root: The graph of the value.
        guard: The condition under which the value is used.
        present: Other values that are never missing.
    """
    waiting = [(root, present if guard is None else present | required(guard))]
    seen = set(waiting)
    converted: Doubt | None = None
    while waiting and len(seen) < _MOST_PLACES:
        node, present = waiting.pop()
        if node in present or node.type.gap is not Gap.INPUT:
            continue
        parts = [one for one in _with_present(node, present) if one not in seen]
        causes = [part for part, there in parts if part.type.gap is Gap.INPUT and part not in there]
        if isinstance(node.data, Input) and not causes:
            return Doubt(node.data.text)
        if node.op in _CONVERTED and not causes and converted is None and node.inputs:
            converted = Doubt(node.inputs[0].text, _CONVERTED[node.op])
        seen.update(parts)
        waiting.extend(reversed(parts))
    return converted


def doubt_of_own(root: Typed, present: frozenset[Typed] = frozenset()) -> Doubt | None:
    """Return the part of a condition that is missing on a node without pods or in a division by zero; else None.

    Args:
        root: The graph of the condition.
        present: The values that are compared, or checked with `has`, where the condition applies.
    """
    waiting = [(root, present)]
    seen = set(waiting)
    while waiting and len(seen) < _MOST_PLACES:
        node, present = waiting.pop()
        if node.type.gap is Gap.NONE or node in present:
            continue
        if node.op in _OF_PODS and not any(map(_counts_pods, present)):
            return Doubt(f"{node.op}(...)", "be missing on a node without pods")
        if node.op == Op.DIVIDE and _is_request(node.args[1]) and node.args[1] not in present:
            return Doubt(node.args[1].inputs[0].text, "be 0")
        parts = [one for one in _with_present(node, present) if one not in seen]
        seen.update(parts)
        waiting.extend(reversed(parts))
    return None


_OF_PODS: Final = frozenset({Op.MIN_PODS, Op.MAX_PODS})


def _counts_pods(node: Typed) -> bool:
    """Return whether a value is the number of pods on a node."""
    own = isinstance(node.data, Input) and node.data.root == "node" and node.data.path[-1:] == ("pods",)
    return own or node.op == Op.COUNT_PODS


def _is_request(node: Typed) -> bool:
    """Return whether a value is an amount that a pod requests, which can be 0."""
    return (
        node.op == Op.INPUT
        and isinstance(node.data, Input)
        and node.data.path[0] == "requests"
        and node.data.path != ("requests", "pods")
    )


def _with_present(node: Typed, present: frozenset[Typed]) -> list[tuple[Typed, frozenset[Typed]]]:
    """Return the parts of a compiled expression, each with the values that are present if the part is evaluated."""
    if node.op in {Op.AND, Op.OR}:
        # The condition can be unknown; then no part that can be unknown is true or false.
        present |= _present(one for one in implied(node, truth=node.op == Op.AND) if not one.type.optional)
    if node.op == Op.ONLY:
        return [(node.args[0], present), (node.args[1], present | _present(implied(node.args[0])))]
    if node.op == Op.IF:
        condition, first, second = node.args
        both = ((first, True), (second, False))
        return [(condition, present), *((arm, present | _present(implied(condition, truth=way))) for arm, way in both)]
    return [(part, present) for part in (*node.inner, *node.args)]


_NEEDS_ARGUMENTS: Final = frozenset({
    Op.HAS, Op.EQ, Op.IN, Op.LT, Op.LE, Op.GT, Op.GE, Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS, Op.GLOB,
})  # fmt: skip
"""The operations whose result can be true only if all arguments are present."""
_FROM_ARGUMENTS: Final = frozenset({Op.NUMBER, Op.VERSION, Op.CONCAT, Op.SPLIT, Op.KEYED})
"""The operations that have a value only if all arguments are present."""


def _differs(node: Typed) -> bool:
    """Return whether a condition is `!=` of two values that are never missing."""
    return node.op == Op.NE and not any(one.type.optional for one in node.args)


def _present(conditions: Iterable[Typed]) -> frozenset[Typed]:
    """Return the values that are present whenever all given conditions are true."""
    found: set[Typed] = set()
    for one in conditions:
        inner = one.args[0] if one.op == Op.NOT and one.args[0].type.optional else one
        waiting = list(inner.args) if inner.op in _NEEDS_ARGUMENTS or _differs(inner) else []
        while waiting:
            value = waiting.pop()
            if value not in found:
                found.add(value)
                waiting.extend(value.args if value.op in _FROM_ARGUMENTS else ())
    return frozenset(found)
