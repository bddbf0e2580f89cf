"""Splitting of a policy's filters: each operand of an `and` is compiled and evaluated on its own."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from msgspec.structs import replace

from policysched.app.why.changes import Edit, edited, keyed
from policysched.app.why.variants import VariantEvaluator
from policysched.framework import SKIP, Mask, RowNumbers, Status
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import AGGREGATES, ANY_KEY, POD_AGGREGATES, POD_EXTREMES, Input, Op, steps
from policysched.language.ir.tree import Call, Comparison, Expr, Literal, LiteralKind, Path, children
from policysched.language.ir.types import Kind, Unit
from policysched.language.messages.amounts import written
from policysched.language.syntax.formatting import format_tree
from policysched.model.objects import Metadata, Pod
from policysched.model.policy import FilterRule, Policy, PolicySpec
from policysched.rules.compile.clauses import Clause, filter_clauses
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.inputs import node_column
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.policies import PolicyFilters
from policysched.rules.results.rule_rows import FINE, shortened
from policysched.visible import visible

MOST_VALUES: Final = 4
"""Largest number of inputs and aggregates whose values are shown for one condition."""
_AGGREGATES: Final = frozenset({*POD_AGGREGATES, *AGGREGATES})
_MISSING: Final = "missing"


@dataclass(frozen=True, slots=True)
class RulePart:
    """One condition of a rule, and the nodes on which the condition is not true."""

    key: str
    """Names of the policy and the rule."""
    rule: str
    text: str
    rows: Mask
    text_for: Callable[[RowNumbers], str]
    """Function that returns the condition as text, with the values of the first of some nodes."""
    on_node: Edit | None = None
    on_node_text: str = ""


def rule_parts(variants: VariantEvaluator, active: ActivePolicy, pod: Pod) -> Iterator[RulePart]:
    """Yield the conditions in a policy's filters that exclude nodes; a filter that cannot be split is one condition."""
    matrix = active.filter_matrix(pod, variants.cluster)
    if matrix is None or isinstance(matrix, Status):
        return
    for row, codes in list(matrix.by_rule(0, slice(0, variants.size))):
        if not (codes != FINE).any():
            continue
        rule = next(one for one in active.policy.spec.filters if one.name == row.rule.name)
        yield from [_part(variants, rule, clause, pod) for clause in filter_clauses(active.policy, rule)]


def _part(variants: VariantEvaluator, rule: FilterRule, clause: Clause, pod: Pod) -> RulePart:
    side, text, compiled, alone = clause.side, clause.text, clause.policy, clause.policy.spec
    codes, _ = variants.filter_codes(PolicyFilters([ActivePolicy(compiled)]), pod)
    rejected: Mask = codes != 0
    computed = [format_tree(one) for one in _computed(side, {one.name for one in alone.let})]
    edit, label = _labelled(side)
    shown = f"policy {compiled.key}/{rule.name}: {shortened(text)}"

    def text_for(rows: RowNumbers) -> str:
        made = (_computed_value(variants, alone, pod, one, rows[:1]) for one in dict.fromkeys(computed))
        first = islice((one for one in (*made, *_values(variants, compiled, pod, rows[:1])) if one), MOST_VALUES)
        values = ", ".join(first)
        return f"{shown} ({values})" if values else shown

    return RulePart(f"{compiled.key}/{rule.name}", rule.name, shown, rejected, text_for, edit, label)


def _labelled(side: Expr) -> tuple[Edit | None, str]:
    """Return an edit of a node that sets the label that a comparison requires, and the edit as text."""
    if not isinstance(side, Comparison) or side.operator != "==":
        return None, ""
    for path, other in ((side.left, side.right), (side.right, side.left)):
        if isinstance(path, Path) and path.dotted == "node.labels":
            key, value = _text(path.key), _text(other)
            if key and value is not None:
                return edited("metadata.labels", keyed(key, value)), f"label {key}={value}"
    return None, ""


def _text(one: object) -> str | None:
    return one.text if isinstance(one, Literal) and one.kind is LiteralKind.STRING else None


def _computed(expr: Expr, lets: Container[str]) -> Iterator[Expr]:
    """Yield the parts of an expression with computed values: the outermost aggregates, and the `let` names."""
    if isinstance(expr, Call) and expr.function.dotted in _AGGREGATES:
        yield expr
    elif isinstance(expr, Path):
        if expr.dotted in lets:
            yield expr
    else:
        for one in children(expr):
            yield from _computed(one, lets)


def _computed_value(variants: VariantEvaluator, spec: PolicySpec, pod: Pod, text: str, rows: RowNumbers) -> str:
    """Return the number that an expression has on a node, as text; empty if the value is not a number."""
    probe = replace(spec, filters=(FilterRule(name="value", require=f"has({text})"),))
    compiled = compile_policy(Policy(metadata=Metadata(name="value"), spec=probe)).policy
    if compiled is None or compiled.filters[0].require.root.op != Op.HAS:
        return ""
    (node,) = compiled.filters[0].require.root.args
    if node.type.kind is not Kind.QUANTITY:
        return ""
    context = ActivePolicy(compiled).context(variants.cluster)
    value = evaluate_columns(node, context.frame(context.inputs(pod), rows))
    number = _shown(float(np.broadcast_to(value, rows.shape)[0]), node.type.unit)
    why = ": no pod on the node has a value" if number == _MISSING and node.op in POD_EXTREMES else ""
    return f"{shortened(text)} is {number}{why}"


def _values(variants: VariantEvaluator, compiled: CompiledPolicy, pod: Pod, rows: RowNumbers) -> Iterator[str]:
    """Yield the values that a condition reads on a node, as texts."""
    program = compiled.filters[0].require
    read = [item for item in program.inputs if item.root in {"node", "pod", "group", "metrics"}]
    units = {node.data: node.type.unit for node in steps(program.root, inner=True) if isinstance(node.data, Input)}
    for item in dict.fromkeys(read):
        if text := _shown(_value(variants, compiled, pod, item, rows), units.get(item)):
            yield f"{item.text} is {text}"


def _value(variants: VariantEvaluator, compiled: CompiledPolicy, pod: Pod, item: Input, rows: RowNumbers) -> object:
    """Return a value that a condition reads on a node; SKIP (a marker) for values that are not shown, such as lists."""
    if item.key == ANY_KEY:
        return SKIP
    if item.root in {"pod", "group"}:
        return ActivePolicy(compiled).context(variants.cluster).inputs(pod).value(item)
    if item.root == "node" and item.path[0] in {"age", "pods"}:
        return SKIP
    found = node_column(variants.cluster, pod, item, rows)[0]
    if isinstance(found, np.int32):
        return variants.cluster.strings.text(int(found)) if found >= 0 else None
    return found.item()


def _shown(value: object, unit: Unit | None) -> str:
    if value is SKIP:
        return ""
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return _MISSING
    if isinstance(value, str):
        return f'"{visible(shortened(value))}"'
    if isinstance(value, bool):
        return str(value).lower()
    return written(value, unit) if isinstance(value, int | float) else visible(shortened(str(value)))
