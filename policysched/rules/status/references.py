"""Where a policy's texts name something that nodes have: an input, or a value that an input is compared with.

Compiled programs know no positions, so that equal expressions are one; a warning about the cluster needs them. Only
what must be there for a rule to say anything is a reference: a value after `!=` or `not in` may well be absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from policysched.language.ir.graph import Input
from policysched.language.ir.tree import (
    Call,
    Case,
    Comparison,
    Expr,
    Keyword,
    Listing,
    Literal,
    LiteralKind,
    Path,
    Span,
    children,
)
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.syntax.parser import parse
from policysched.model.policy import PolicySpec
from policysched.rules.inputs.nodes import WELL_KNOWN_LABELS

KEYED = frozenset(("labels", "annotations", "allocatable", "requested", "free"))
EQUAL = frozenset(("==", "in"))


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a field's text.

    Attributes:
        field: The field, as `spec.filters[0].require`.
        text: Its text.
        span: The place in it.
        item: What is read of nodes.
        values: What it is compared with, each with its place; empty where the input itself is the point.
        converted: Whether its values are to be numbers.
    """

    field: str
    text: str
    span: Span
    item: Input
    values: tuple[tuple[str, Span], ...] = ()
    converted: bool = False


def references(spec: PolicySpec) -> tuple[Reference, ...]:
    """Find the references of a spec that compiles, in the order of its fields."""
    return tuple(one for in_text in references_by_text(spec) for one in in_text)


def references_by_text(spec: PolicySpec) -> Iterator[tuple[Reference, ...]]:
    """Find the references of a spec that compiles, one text at a time."""
    return (tuple(_in_text(field, text, start)) for field, text, start in _texts(spec))


def _texts(spec: PolicySpec) -> Iterator[tuple[str, str, str]]:
    """Give each text that may read nodes with its field and what it is: `expr` or `case`."""
    for index, let in enumerate(spec.let):
        yield f"spec.let[{index}].value", str(let.value), "expr"
    for index, rule in enumerate(spec.filters):
        yield f"spec.filters[{index}].require", rule.require, "expr"
    for index, score in enumerate(spec.scores):
        if score.value is not None:
            yield f"spec.scores[{index}].value", str(score.value), "expr"
        for line, case in enumerate(score.cases):
            yield f"spec.scores[{index}].cases[{line}]", case, "case"


def _in_text(field: str, text: str, start: str) -> Iterator[Reference]:
    tree = parse(text, start)
    if isinstance(tree, Diagnostic):
        return
    for expr in _walk(_roots(tree)):
        if isinstance(expr, Path):
            item = _input(expr)
            if item is not None:
                yield Reference(field, text, expr.span, item)
        elif isinstance(expr, Comparison) and expr.operator in EQUAL:
            yield from _compared(field, text, expr)
        elif isinstance(expr, Call) and expr.function.dotted == "number":
            item = _input(expr.arguments[0]) if isinstance(expr.arguments[0], Path) else None
            if item is not None:
                yield Reference(field, text, expr.arguments[0].span, item, converted=True)


def _roots(tree: Case | Expr) -> Iterable[Expr]:
    if not isinstance(tree, Case):
        return (tree,)
    return (tree.value,) if isinstance(tree.guard, Keyword) else (tree.guard, tree.value)


def _walk(roots: Iterable[Expr]) -> Iterator[Expr]:
    waiting = list(reversed(list(roots)))
    while waiting:
        expr = waiting.pop()
        yield expr
        waiting.extend(reversed(children(expr)))


def _compared(field: str, text: str, comparison: Comparison) -> Iterator[Reference]:
    for one, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        item = _input(one) if isinstance(one, Path) else None
        values = _strings(other)
        if item is not None and values:
            yield Reference(field, text, other.span, item, values)


def _strings(expr: Expr) -> tuple[tuple[str, Span], ...]:
    items = expr.items if isinstance(expr, Listing) else (expr,)
    texts = [(one.text, one.span) for one in items if isinstance(one, Literal) and one.kind is LiteralKind.STRING]
    return tuple(texts) if len(texts) == len(items) else ()


def _input(path: Path) -> Input | None:
    """Give what a path reads of nodes, None where every node has it or it is none of theirs."""
    root, *names = path.names
    if root == "metrics" and len(names) == 1:
        return Input(root, tuple(names))
    if root != "node" or len(names) != 1:
        return None
    if names[0] in KEYED and isinstance(path.key, Literal):
        return Input(root, (names[0],), path.key.text)
    return Input(root, (names[0],)) if names[0] in WELL_KNOWN_LABELS or names[0] == "name" else None
