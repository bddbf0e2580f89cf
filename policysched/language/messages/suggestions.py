"""Suggestions in diagnostics: the nearest name for a misspelt name, and the conversion for a type error.

Functions use only names, types and inputs, and return one sentence, or an empty text if no suggestion is certain. Long
texts are not compared with names. Of many names, only the most similar ones are compared exactly, so any text is cheap.
"""

from __future__ import annotations

import difflib
import functools
import heapq
import importlib.resources
import itertools
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from policysched.language.ir.graph import Op, Typed
from policysched.language.ir.tree import (
    Call,
    Chain,
    Comparison,
    Expr,
    Inversion,
    Listing,
    Literal,
    LiteralKind,
    Logic,
    Path,
    Step,
    children,
    walk,
)
from policysched.language.ir.types import CHOICES, FIELDS, Gap, Kind, Type, Unit
from policysched.language.messages.diagnostics import Diagnostic, message_table

_LONGEST = 40
_SEPARATOR = re.compile(r"[,;|]")
_COMPARED = 16
"""Maximum number of names that are compared with a misspelt name letter by letter, which is slow."""


def table(name: str) -> Mapping[str, str]:
    """Return a table of the file `suggestions.toml`: the suggestion for each text that the user wrote."""
    return _tables()[name]


@functools.cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    text = importlib.resources.files(__package__).joinpath("suggestions.toml").read_text("utf-8")
    return {name: dict(_entries(entries)) for name, entries in tomllib.loads(text).items()}


def _entries(entries: Mapping[str, str | list[str]]) -> Iterator[tuple[str, str]]:
    for key, value in entries.items():
        if isinstance(value, str):
            yield key, value
        else:
            yield from ((one, key) for one in value)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known name that is nearest to a misspelt name; empty if none is near.

    Of several near names, one with a longer equal start has priority: `a100-01` for `a100-99`, not `a10-19`.
    """
    if not 0 < len(name) <= _LONGEST:
        return ""
    close = difflib.get_close_matches(name, sorted(_nearest(name, known)), n=_COMPARED, cutoff=0.65)
    best = max(close, key=lambda one: _similarity(name, one), default="")
    return f"did you mean `{best}`?" if best else ""


def _similarity(name: str, other: str) -> float:
    """Return the share of equal letters of two names, raised towards 1 by the share of an equal start."""
    ratio = difflib.SequenceMatcher(None, other, name).ratio()
    start = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
    return ratio + (1 - ratio) * start / len(name)


def one_of(text: str, known: Sequence[str]) -> str:
    """Return a sentence with the possible text nearest to a wrong text, or with all possible texts."""
    same = [one for one in known if one.lower() == text.lower()]
    return did_you_mean(text, same or known).replace("`", '"') or "write one of " + ", ".join(
        f'"{one}"' for one in known
    )


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that share most pairs of letters with a misspelt name."""
    names = list(known)
    if len(names) <= _COMPARED:
        return names
    pairs = _pairs(name)
    return heapq.nlargest(_COMPARED, names, key=lambda one: 2 * len(pairs & _pairs(one)) - abs(len(one) - len(name)))


@functools.lru_cache(maxsize=1024)
def _pairs(name: str) -> frozenset[str]:
    """Return the pairs of adjacent letters at the start of a name, and its first and last letter."""
    name = name[:_LONGEST]
    return frozenset((name[:1], name[-1:], *map("".join, itertools.pairwise(name))))


def shown(text: str) -> str:
    """Return a text for a quotation in a message, cut if it is long."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_LABELS = frozenset({"labels", "annotations", "namespace_labels"})


def difference(left: Typed, right: Typed, *written: Expr) -> str:
    """Return the help text on how to give two values the same type; `written` are their expressions."""
    kinds = {left.type.kind, right.type.kind}
    if Kind.VERSION in kinds:
        return next((said for kind, said in table("version").items() if Kind(kind) in kinds), "")
    for one, other in ((left, right), (right, left)):
        if one.type.kind is Kind.STRING and other.type.kind in {Kind.QUANTITY, Kind.BOOL}:
            return _string(one, other)
        if one.type.is_number and other.type.unit is Unit.DURATION and (said := minutes(written)):
            return said
        if one.type.is_number and other.type.kind is Kind.QUANTITY and other.type.unit is not None:
            return _to_unit(one, other, written)
        if one.type.kind is Kind.LIST:
            return "write `x in [...]` to search for a value in a list"
    return ""


def _to_unit(number: Typed, other: Typed, written: Sequence[Expr]) -> str:
    """Return the help text on how to give a number and a quantity the same type; `written` are their expressions."""
    unit = cast("Unit", other.type.unit).value
    if said := undeclared(number, other):
        return said
    parts = [part for expr in written for part in (children(expr) if isinstance(expr, Comparison) else (expr,))]
    literals = [one for one in itertools.chain.from_iterable(map(walk, parts)) if _is_number(one)]
    if not parts or (not number.inputs and literals):
        return _share(other) if any(map(_is_percent, literals)) else table("unit")[unit]
    if said := _of_let(number, parts, unit):
        return said
    amount = next((one for one in parts if isinstance(one, Literal) and one.kind in _WITH_UNIT), None)
    if amount is None or not isinstance(other.data, float):
        return f"one side is a plain number; {table('divisor')[unit]}"
    return f"the other side is a plain number; write `{other.data:.15g}` instead of `{amount.text}`"


def _share(value: Typed) -> str:
    """Return the help text on how to convert a quantity into a share, to compare it with a percentage."""
    read = value.inputs[0] if value.op == Op.INPUT else None
    total = ("node", "allocatable", *read.path[1:]) if read is not None and len(read.path) > 1 else ()
    if read is None or total not in FIELDS or ("node", *read.path) == total:
        return table("share")[cast("Unit", value.type.unit).value]
    return f"for a share, write `{read.text} / {'.'.join(total)}`"


def _of_let(number: Typed, parts: Sequence[Expr], unit: str) -> str:
    """Return the suggestion to add a unit to a `let` whose plain number is combined with a quantity."""
    if number.op != Op.CONSTANT or not isinstance(number.data, float) or abs(number.data) <= 1:
        return ""
    name = next((one.dotted for one in parts if isinstance(one, Path) and len(one.names) == 1), "")
    return table("of_let").get(unit, "").format(name=name) if name else ""


_WITH_UNIT = frozenset({LiteralKind.QUANTITY, LiteralKind.DURATION})


def _is_number(expr: Expr) -> bool:
    """Return whether an expression is a literal that can be a plain number."""
    if not isinstance(expr, Literal) or expr.kind is LiteralKind.DURATION:
        return False
    return expr.kind in {LiteralKind.NUMBER, LiteralKind.PERCENT} or expr.text.endswith("m")


def _is_percent(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.kind is LiteralKind.PERCENT


def undeclared(number: Typed, other: Typed) -> str:
    """Return the suggestion to declare a unit for a metric whose plain number is combined with a quantity.

    Else empty.
    """
    metric = next((one for one in number.inputs if one.root == "metrics"), None)
    if metric is None or not number.type.is_number or other.type.unit in {None, Unit.NUMBER}:
        return ""
    return f"declare `unit: {cast('Unit', other.type.unit).value}` for the metric `{metric.path[0]}`"


def minutes(exprs: Iterable[Expr]) -> str:
    """Return the help text on how to write minutes, if amounts (`5m`) were probably meant as minutes; else empty."""
    found = [one.text for one in itertools.chain.from_iterable(map(_amounts, exprs)) if one.text[-1] in "mM"]
    if not found:
        return ""
    unit, of = found[0][-1], "thousandths" if found[0][-1] == "m" else "millions"
    same = dict.fromkeys(f"`{text[:-1]}min`" for text in found if text[-1] == unit)
    return f"`{unit}` means {of}; for minutes write {', '.join(itertools.islice(same, _MOST_AMOUNTS))}"


_MOST_AMOUNTS = 3
"""Maximum number of amounts that a help text repeats."""
_OF_ONE_UNIT = frozenset({Op.LEAST, Op.GREATEST, Op.ABS, Op.CLAMP})


def _amounts(expr: Expr) -> Iterator[Literal]:
    """Yield the quantities with suffix that determine the unit of an expression."""
    if isinstance(expr, Literal) and expr.kind is LiteralKind.QUANTITY:
        yield expr
    elif not isinstance(expr, Path | Call) or (isinstance(expr, Call) and expr.function.dotted in _OF_ONE_UNIT):
        for one in children(expr):
            yield from _amounts(one)


def _string(node: Typed, other: Typed) -> str:
    """Return the help text on how to compare a string with a number or a condition."""
    if other.type.kind is Kind.BOOL:
        return f'{_plural(node)} are strings; write `"{_truth(node, other)}"`' if other.op == Op.CONSTANT else ""
    return "write numbers without quotes" if node.op == Op.CONSTANT else to_number(node)


def _truth(node: Typed, other: Typed) -> str:
    """Return the help text on how a string field spells `true` or `false`."""
    text = str(other.data).lower()
    read = node.inputs[-1] if node.op == Op.INPUT else None
    choices = CHOICES.get((read.root, *read.path), ()) if read is not None else ()
    return next((one for one in choices if one.lower() == text), text)


def to_condition(node: Typed, text: str, *, inverted: bool = False) -> str:
    """Return the help text on how to convert a value into a condition.

    Args:
        node: The value.
        text: Its source text; empty if it is long.
        inverted: Whether `not` precedes it.
    """
    if node.op == Op.CONSTANT and _is_field(str(node.data)):
        return f"write `{node.data}` without quotes"
    if node.op == Op.CONSTANT and text and node.type.kind in {Kind.STRING, Kind.QUANTITY}:
        return f"compare a value with it, as in `x {'>' if node.type.unit else '=='} {text}`"
    may_miss = node.type.gap is Gap.INPUT and node.type.kind is not Kind.LIST
    shown = text or "..."
    if inverted and may_miss:
        return f"write `not has({shown})`, or compare: `{shown} {table('other_than')[node.type.kind.value]}`"
    said = table("condition").get(node.type.kind.value, "").replace("...", shown, 1)
    return f"{said}, or `has({shown})`" if may_miss else said


Source: TypeAlias = Callable[[Expr], str]
"""Function that returns an expression as a help text shows it, in parentheses where necessary; empty if too long."""


def member_of(logic: Logic, index: int, source: Source) -> tuple[str, int]:
    """Return the suggestion for `x == "a" or "b" or "c"`, and how many operands it replaces.

    Args:
        logic: The operands and their operator.
        index: Position of the first operand that is not a condition, such as `"b"`.
        source: Returns the source text of an expression.
    """
    before = logic.operands[index - 1] if index else None
    operator = _LISTED.get((before.operator, logic.operator)) if isinstance(before, Comparison) else None
    if operator is None or not isinstance(before, Comparison):
        return "", 0
    items = [*itertools.takewhile(_is_item, logic.operands[index:])]
    meant = _in_list(operator, before.left, (before.right, *items), source) if items else ""
    return meant, len(items) if meant else 0


_LISTED: Mapping[tuple[str, str], str] = {
    ("==", "or"): "in",
    ("!=", "or"): "not in",
    ("!=", "and"): "not in",
}
"""The list operator to suggest, by comparison operator and by the word (`and`, `or`) between the values."""


def _in_list(operator: str, value: Expr, items: Sequence[Expr], source: Source) -> str:
    """Return the suggestion to compare a value with a list; empty if the values cannot be items of a list."""
    if not all(map(_is_item, items)) or any(map(_quoted_name, items[1:])):
        return ""
    meant = source(Comparison(operator, value, Listing(tuple(items), value.span), value.span))
    return meant and f"write `{meant}`"


def _is_item(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.kind not in {LiteralKind.TRUE, LiteralKind.FALSE}


def one_of_several(comparison: Comparison, source: Source) -> tuple[str, Logic] | None:
    """Return the suggestion for `x == ("a" or "b")` and the expression to mark as wrong; None for other comparisons."""
    for value, logic in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        if isinstance(logic, Logic) and not isinstance(value, Logic):
            operator = _LISTED.get((_EQUALITY.get(comparison.operator, ""), logic.operator), "")
            said = _in_list(operator, value, logic.operands, source) if operator else ""
            return (said, logic) if said else None
    return None


_EQUALITY: Mapping[str, str] = {"==": "==", "in": "==", "!=": "!=", "not in": "!="}


def default_of(logic: Logic, expr: Expr, behind: Expr | None, source: Source) -> str:
    """Return the suggestion for `x or "a"`, which probably means a default value."""
    if logic.operator != "or" or not isinstance(expr, Path) or not isinstance(behind, Literal) or _quoted_name(behind):
        return ""
    is_text = behind.kind in (LiteralKind.STRING, LiteralKind.NUMBER)
    meant = source(Chain(expr, (Step("??", behind, behind.span.end),), expr.span)) if is_text else ""
    return meant and f"write `{meant}`"


def instead_of_comparing(comparison: Comparison, source: Source) -> str:
    """Return the suggestion for a comparison of two conditions."""
    for one, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        if not isinstance(other, Literal) or other.text not in _TRUTHS or comparison.operator not in {"==", "!="}:
            continue
        inverted = (other.text == "true") is not (comparison.operator == "==")
        meant = source(_opposite(one) if inverted else one)
        # The condition can be next to an operator that binds more tightly.
        return (
            f"write `({meant})`" if isinstance(one, Logic) and not inverted and meant else meant and f"write `{meant}`"
        )
    return "write `a and b`, `a or b` or `not a`"


_TRUTHS = frozenset({"true", "false"})


def _opposite(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Inversion) else Inversion(expr, expr.span)


def quoted_condition(comparison: Comparison, left: Typed, right: Typed, source: Source) -> str:
    """Return the suggestion for a condition compared with `"true"` or `"false"`; empty for other comparisons."""
    for node, other in ((left, right), (right, left)):
        if node.type.kind is Kind.BOOL and other.op == Op.CONSTANT and other.data in _TRUTHS:
            return instead_of_comparing(comparison, source)
    return ""


def items(left: Type, right: Type) -> str:
    """Return the help text on how to give the items of a list the same type."""
    if Kind.STRING in {left.kind, right.kind}:
        return "write all items in quotes or none"
    return "write all items in one unit"


def constant(phase: str, value: str, expr: Expr) -> str:
    """Return the help text for a condition that is always true or always false: its effect or its probable cause."""
    quoted = next((text for text in map(_quoted_name, walk(expr)) if text), "")
    if quoted:
        return f"write `{quoted}` without quotes"
    if phase in {"pod", "group"}:
        return table("constant")[value]
    if phase == "placement":
        return f"the filter rejects {'no' if value == 'true' else 'every'} placement"
    if phase == "preemption":
        return "the condition protects no pod" if value == "true" else "the condition protects every pod"
    return "the filter rejects no node" if value == "true" else "the filter rejects every node"


def _quoted_name(expr: Expr) -> str:
    if not isinstance(expr, Literal) or expr.kind is not LiteralKind.STRING:
        return ""
    return expr.text if _is_field(expr.text) else ""


def _is_field(text: str) -> bool:
    return tuple(text.split(".")) in FIELDS


def _plural(node: Typed) -> str:
    """Return the plural noun for a value in a message: "labels", "annotations", or "these" for other strings."""
    read = node.inputs[-1] if node.op in {Op.INPUT, Op.KEYED} else None
    return read.path[0].removeprefix("namespace_") if read is not None and read.path[0] in _LABELS else "these"


def to_number(node: Typed) -> str:
    """Return the help text on how to convert a value into a number."""
    if node.op == Op.WEEKDAY:
        return 'days are strings: "mon" "tue" "wed" "thu" "fri" "sat" "sun"'
    if node.type.kind is Kind.STRING and (plural := _plural(node)) != "these":
        return f"{plural} are strings; convert them with number(...)"
    return table("number").get(node.type.kind.value, "")


def to_string(node: Typed) -> str:
    """Return the help text on how to convert a value into a string."""
    return "write it in double quotes" if node.op == Op.CONSTANT else table("string").get(node.type.kind.value, "")


def of_place(error: Diagnostic, text: str, phase: str, *, score: bool) -> Diagnostic:
    """Return a syntax error; if it is a case outside of a score, add what the field may contain.

    Args:
        error: The error.
        text: The text with the error.
        phase: Kind of field, as in `Environment`.
        score: Whether it is the value of a score.
    """
    variant = "score" if score else phase
    sentences = message_table()["E0505"].sentences
    if error.code != "E0505" or variant not in sentences:
        return error
    case = " ".join(text.replace("->", "→").split())
    message, hint = sentences[variant]
    return replace(error, message=message, help=hint.format(case=case if len(case) <= _LONGEST else "guard → number"))


def addition(operator: str, node: Typed) -> str:
    """Return the help text on how to combine values that cannot be added, because they are not numbers."""
    return "join strings with concat(...)" if operator == "+" and node.type.kind is Kind.STRING else to_number(node)


def default(left: Typed, right: Typed, *written: Expr) -> str:
    """Return the help text on how to give a value and its default the same type; `written` are their expressions."""
    if right.type.kind is Kind.BOOL:
        return "`??` binds tighter than comparisons: write `(x < 1) ?? true`"
    return difference(left, right, *written)


def member(left: Typed, right: Typed, listing: Expr) -> str:
    """Return the help text on how to give a value the type of a list's items."""
    if left.type.kind is Kind.QUANTITY and right.type.unit is Unit.NUMBER and left.type.unit is not None:
        said = minutes((listing,)) if left.type.unit is Unit.DURATION else ""
        return said or table("unit")[left.type.unit.value]
    if said := undeclared(left, right):
        return said
    if left.type.kind is Kind.QUANTITY and right.type.unit is None:
        return "write the items without quotes" if right.op == Op.CONSTANT else ""
    return to_number(left) if left.type.kind is Kind.STRING else ""


def no_list(comparison: Comparison, left: Typed | None, right: Typed, source: Source) -> str:
    """Return the suggestion for `x in y` where `y` is not a list but a string, a field or another value."""
    if left is None or not left.type.like(right.type) or right.type.kind is Kind.BOOL:
        return ""
    meant: tuple[Expr, ...]
    if isinstance(comparison.right, Literal):
        operator = "==" if comparison.operator == "in" else "!="
        several = _several(comparison.right)
        listed = replace(comparison, right=Listing(several or (comparison.right,), comparison.span))
        meant = (listed,) if several else (replace(comparison, operator=operator), listed)
    elif right.type.kind is Kind.STRING and isinstance(comparison.right, Path) and isinstance(comparison.left, Literal):
        found: Expr = _call("contains", comparison.right, comparison.left)
        meant = (found if comparison.operator == "in" else Inversion(found, found.span),)
        if right.inputs and right.inputs[0].path[0] in _LABELS:
            meant = (*meant, replace(comparison, right=_split(comparison.right)))
    elif right.type.kind is Kind.STRING and isinstance(comparison.right, Path):
        meant = (replace(comparison, right=_split(comparison.right)),)
    else:
        return ""
    texts = [source(one) for one in meant]
    return f"write {' or '.join(f'`{text}`' for text in texts)}" if all(texts) else ""


def _several(literal: Literal) -> tuple[Literal, ...]:
    """Return the items of a text that lists several, separated by commas, semicolons or bars; else empty."""
    texts = [one.strip() for one in _SEPARATOR.split(literal.text)] if literal.kind is LiteralKind.STRING else []
    return tuple(replace(literal, text=one) for one in texts) if len(texts) > 1 and all(texts) else ()


def _split(expr: Expr) -> Call:
    return _call("split", expr, Literal(LiteralKind.STRING, ",", expr.span))


def _call(name: str, *arguments: Expr) -> Call:
    span = arguments[0].span
    return Call(Path((name,), None, span, (span,), span), arguments, None, span)


def score(node: Typed) -> str:
    """Return the help text on how to convert a value into a score."""
    if node.type.kind is Kind.QUANTITY:
        return "write scale(x, lo, hi), or divide by a value of the same unit"
    return to_number(node)
