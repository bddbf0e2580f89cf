"""Mutants of a policy: copies with one operator, bound, unit, case or rule changed.

Expressions are changed as syntax trees and formatted as texts, so a mutant is an ordinary policy. Changes that do not
compile, or compile to the same program, are skipped. Mutants are in the order of fields and texts.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, cast

from policysched.app.checking.findings import expressions, policy_key, with_expressions
from policysched.language.ir.graph import Program, Typed
from policysched.language.ir.tree import (
    Call,
    Case,
    Chain,
    Comparison,
    Expr,
    Inversion,
    Keyword,
    Listing,
    Literal,
    LiteralKind,
    Logic,
    Negation,
    Path,
)
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.syntax.formatting import format_tree
from policysched.language.syntax.parser import parse
from policysched.model.policy import PolicyKey, decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledFilter, CompiledScore

_COMPARISONS: Final = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "in": "not in", "not in": "in",
}  # fmt: skip
_OPERATORS: Final = {"+": "-", "-": "+", "*": "/", "/": "*"}
_LOGIC: Final = {"and": "or", "or": "and"}
_FUNCTIONS: Final = {
    "starts_with": "ends_with", "ends_with": "starts_with", "least": "greatest", "greatest": "least", "min": "max",
    "max": "min", "sum": "avg", "avg": "sum",
}  # fmt: skip
_UNITS: Final = {
    "Ki": "Mi", "Mi": "Gi", "Gi": "Mi", "Ti": "Gi", "Pi": "Ti", "Ei": "Pi", "m": "", "k": "M", "M": "G", "G": "M",
    "T": "G", "P": "T", "E": "P", "%": "", "ms": "s", "s": "min", "min": "h", "h": "min", "d": "h",
}  # fmt: skip
_DIGITS: Final = "0123456789."
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutant: a copy of a policy with one small change that a test should notice."""

    policy: PolicyKey
    change: str
    """The change in one line, unique within the policy."""
    field: str
    """Path of the changed field."""
    changed: Object


def mutants(policy: Object) -> Iterator[Mutant]:
    """Yield the mutants of a policy; mutants that do not compile, or are equivalent to the policy, are omitted."""
    key, graphs = policy_key(policy), _graphs(policy)
    seen: Counter[str] = Counter()
    for change, field, changed in (*_of_texts(policy), *_of_structure(policy)):
        made = _graphs(changed)
        if made is not None and made != graphs:
            seen[change] += 1
            again = f" ({seen[change]})" if seen[change] > 1 else ""
            yield Mutant(key, f"{key}: {change}{again}", field, changed)


def _graphs(policy: Object) -> object:
    """Return a value that is equal for equivalent policies; None if a policy does not compile."""
    made = compile_policy(decode_policy(policy)).policy
    if made is None:
        return None
    rules, placement = _rules(made.filters, made.scores), made.placement
    guard = None if made.preemption is None else made.preemption.written.root
    selected = (made.spec.pod_selector, made.spec.namespace_selector, made.spec.scheduler_names)
    placed = placement and (placement.topology_key, _rules(placement.filters, placement.scores))
    tier = made.spec.tier if made.scores or (placement and placement.scores) else 0
    return selected, _root(made.applies_to), rules, tier, guard, placed


def _rules(filters: Iterable[CompiledFilter], scores: Iterable[CompiledScore]) -> object:
    return (
        [(rule.name, _root(rule.when), rule.written.root) for rule in filters],
        [(rule.name, _root(rule.when), rule.value.root, rule.value.missing_arm, rule.takes_maximum) for rule in scores],
    )


def _root(program: Program | None) -> Typed | None:
    return None if program is None else program.root


def _of_texts(policy: Object) -> Iterator[tuple[str, str, Object]]:
    for one in expressions(policy):
        tree = parse(one.text, one.start)
        if isinstance(tree, Diagnostic):
            continue
        name = _name(policy, one.field)
        for before, after, whole in _changed(tree):
            text = format_tree(whole)
            changed = with_expressions(policy, lambda other, one=one, text=text: text if other == one else other.text)  # type: ignore[misc]
            yield f"{name}: {format_tree(before)} → {format_tree(after)}", one.field, changed


def _name(policy: Object, field: str) -> str:
    """Return the path of a field for messages, with the names of rules in place of indexes."""
    parts = field.removeprefix("spec.").replace("]", "").replace("[", ".").split(".")
    value: Any = policy["spec"]
    said = []
    for part in parts:
        value = value[int(part)] if part.isdigit() else value[part]
        named = isinstance(value, Mapping) and part.isdigit()
        said.append(str(value["name"]) if named else str(int(part) + 1) if part.isdigit() else part)
    return " ".join(one for one in said if one not in {"filters", "scores"})


def _changed(tree: Expr | Case) -> Iterator[tuple[Expr | Case, Expr | Case, Expr | Case]]:
    """Yield the mutations of a syntax tree: the changed part's text before and after, and the changed tree."""
    if not isinstance(tree, Case):
        for new in _CHANGES.get(type(tree), _nothing)(tree):
            yield tree, new, new
    for child, rebuild in _children(tree):
        for before, after, whole in _changed(child):
            made = rebuild(cast("Expr", whole))
            # A literal alone does not identify the place.
            told = (tree, made) if isinstance(before, Literal) and not isinstance(tree, Case) else (before, after)
            yield *told, made


def _children(tree: Expr | Case) -> Iterator[tuple[Expr, Callable[[Expr], Expr | Case]]]:
    """Yield the direct children of a syntax tree, each with a function that replaces the child in the tree."""
    for field in dataclasses.fields(tree):
        value = getattr(tree, field.name)
        if field.name == "function" or isinstance(value, Keyword):
            continue
        if isinstance(value, _EXPRESSIONS):
            yield value, lambda new, name=field.name: dataclasses.replace(tree, **{name: new})  # type: ignore[misc]
        elif field.name in {"arguments", "items", "operands"}:
            for index, one in enumerate(value):
                yield one, lambda new, name=field.name, index=index: _with_item(tree, name, index, new)  # type: ignore[misc]
        elif field.name == "steps":
            for index, step in enumerate(value):
                yield (
                    step.operand,
                    lambda new, index=index, step=step: _with_item(  # type: ignore[misc]
                        tree, "steps", index, dataclasses.replace(step, operand=new)
                    ),
                )


def _with_item(tree: Any, name: str, index: int, new: Any) -> Any:
    items = getattr(tree, name)
    return dataclasses.replace(tree, **{name: (*items[:index], new, *items[index + 1 :])})


_EXPRESSIONS: Final = (Literal, Path, Call, Listing, Negation, Inversion, Chain, Comparison, Logic)


def _nothing(_: Any) -> Iterator[Expr]:
    yield from ()


def _comparison(tree: Comparison) -> Iterator[Expr]:
    yield dataclasses.replace(tree, operator=_COMPARISONS[tree.operator])


def _logic(tree: Logic) -> Iterator[Expr]:
    yield dataclasses.replace(tree, operator=_LOGIC[tree.operator])


def _operand(tree: Inversion | Negation) -> Iterator[Expr]:
    yield tree.operand


def _chain(tree: Chain) -> Iterator[Expr]:
    for index, step in enumerate(tree.steps):
        if step.operator in _OPERATORS:
            other = dataclasses.replace(step, operator=_OPERATORS[step.operator])
            yield _with_item(tree, "steps", index, other)
    if tree.steps[-1].operator == "??":
        rest = tree.steps[:-1]
        yield dataclasses.replace(tree, steps=rest) if rest else tree.first


def _call(tree: Call) -> Iterator[Expr]:
    other = _FUNCTIONS.get(tree.function.dotted)
    if other is not None:
        yield dataclasses.replace(tree, function=dataclasses.replace(tree.function, names=(other,)))
    if tree.by is not None:
        yield dataclasses.replace(tree, by=None)


def _literal(tree: Literal) -> Iterator[Expr]:
    match tree.kind:
        case LiteralKind.TRUE | LiteralKind.FALSE:
            kind = LiteralKind.FALSE if tree.kind is LiteralKind.TRUE else LiteralKind.TRUE
            yield dataclasses.replace(tree, kind=kind, text=kind.value.lower())
        case LiteralKind.STRING:
            yield dataclasses.replace(tree, text=f"{tree.text}x")
        case _:
            digits = tree.text[: len(tree.text) - len(tree.text.lstrip(_DIGITS))]
            unit = tree.text[len(digits) :]
            yield dataclasses.replace(tree, text=f"{_next(digits)}{unit}")
            if unit in _UNITS:
                kind = tree.kind if _UNITS[unit] else LiteralKind.NUMBER
                yield dataclasses.replace(tree, kind=kind, text=f"{digits}{_UNITS[unit]}")


def _next(digits: str) -> str:
    """Return a number with its last digit increased by one."""
    number = Decimal(digits)
    return str(number + Decimal(1).scaleb(int(number.as_tuple().exponent)))


_CHANGES: Final[Mapping[type, Callable[[Any], Iterator[Expr]]]] = {
    Comparison: _comparison, Logic: _logic, Inversion: _operand, Negation: _operand, Chain: _chain, Call: _call,
    Literal: _literal,
}  # fmt: skip


def _of_structure(policy: Object) -> Iterator[tuple[str, str, Object]]:
    """Yield mutations of a policy's structure: of rules, of cases and of the selection of pods."""
    spec = policy["spec"]
    for name in ("appliesTo", "podSelector", "namespaceSelector", "schedulerNames", "tier", "preemption"):
        if name in spec:
            yield f"without {name}", f"spec.{name}", _without(policy, name)
    yield from _of_rules(policy, (), spec)
    placement = spec.get("placement") or {}
    if "topologyKey" in placement:
        yield "without topologyKey", "spec.placement.topologyKey", _without(policy, "placement", "topologyKey")
    yield from _of_rules(policy, ("placement",), placement)


def _of_rules(policy: Object, place: tuple[str, ...], holder: Object) -> Iterator[tuple[str, str, Object]]:
    """Yield mutations of the filters and scores in a part of the spec."""
    for kind in ("filters", "scores"):
        for index, rule in enumerate(holder.get(kind) or ()):
            at, name = (*place, kind, index), " ".join((*place, rule["name"]))
            path = f"{'.'.join(('spec', *place, kind))}[{index}]"
            yield f"without {name}", path, _without(policy, *at)
            for field in ("when", "normalize"):
                if field in rule:
                    yield f"{name} without {field}", f"{path}.{field}", _without(policy, *at, field)
            yield from _of_cases(policy, at, path, name)


def _of_cases(policy: Object, at: tuple[str | int, ...], path: str, name: str) -> Iterator[tuple[str, str, Object]]:
    cases = _part(policy["spec"], at).get("cases") or ()
    for index in range(len(cases) if len(cases) > 1 else 0):
        yield (
            f"{name} without case {index + 1}",
            f"{path}.cases[{index}]",
            _without(policy, *at, "cases", index),
        )
    for index in range(len(cases) - 1):

        def swap(made: Any, index: int = index) -> None:
            lines = _part(made, at)["cases"]
            lines[index], lines[index + 1] = lines[index + 1], lines[index]

        text = f"{name} with cases {index + 1} and {index + 2} swapped"
        yield text, f"{path}.cases[{index}]", _edited(policy, swap)


def _without(policy: Object, *path: str | int) -> Object:
    """Return a copy of a policy without a part of its spec."""
    return _edited(policy, lambda made: _part(made, path[:-1]).pop(path[-1]))


def _part(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def _edited(policy: Object, change: Callable[[Any], object]) -> Object:
    made = copy.deepcopy(dict(policy))
    change(made["spec"])
    return made
