"""The part of a pod group's decision record about placement rules, by placement, rule and clause.

A filter that rejects a placement is split at `and`; each clause that is not true is listed with the values of its
functions over the nodes, of `let` names and of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from policysched.framework.pod_groups import CandidatePlacement, PodGroupContext
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import Op
from policysched.language.ir.tree import Call, Case, Expr, Logic, Path, children
from policysched.language.ir.types import PLACEMENT_FUNCTIONS, Kind
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.syntax.formatting import format_tree
from policysched.language.syntax.parser import parse
from policysched.model.objects import Metadata
from policysched.model.policy import FilterRule, PlacementRules, Policy, PolicySpec
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledFilter
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.guard import shown_value
from policysched.rules.plugin.placements import AppliedPlacementRules, PolicyPlacements
from policysched.rules.plugin.record import score_number
from policysched.rules.results.rule_rows import FINE, filter_rows, shortened

MOST_VALUES: Final = 4
"""Maximum number of values that a record lists for a clause."""
_FUNCTIONS: Final = frozenset(map(".".join, PLACEMENT_FUNCTIONS))
Record = dict[str, Any]


def describe_placements(
    policies: Sequence[ActivePolicy],
    context: PodGroupContext,
    placements: Sequence[CandidatePlacement],
    fits: Sequence[bool],
) -> list[Record]:
    """Return the results of the placement rules by policy, for each of the given placements.

    Args:
        policies: The policies, including Shadow ones.
        context: The pod group; no pod of the attempt has a node.
        placements: The placements.
        fits: Whether the group fits each placement; scores are described for these placements.
    """
    found: list[Record] = [{} for _ in placements]
    for active in policies:
        if active.policy.placement is None:
            continue
        plugin = PolicyPlacements(active)
        attempt = plugin.attempt(context)
        if attempt is None:
            continue
        feasible = [one for one, there in enumerate(fits) if there]
        scores = plugin.values(attempt, [placements[one] for one in feasible])
        for index, placement in enumerate(placements):
            rejecting = _rejecting(plugin, attempt, active.policy.spec, placement)
            at = feasible.index(index) if fits[index] else -1
            values = {row.rule.name: score_number(row.rule, own, at) for row, own in scores if fits[index]}
            told = {key: value for key, value in (("filters", rejecting), ("scores", values)) if value}
            if told:
                found[index][active.policy.key] = {"mode": active.policy.spec.mode, **told}
    return found


def _rejecting(
    plugin: PolicyPlacements, attempt: AppliedPlacementRules, spec: PolicySpec, placement: CandidatePlacement
) -> Record:
    """Return the filters that reject a placement, each with its clauses that are not true."""
    codes = plugin.filter_codes(attempt, placement) if placement.rows.size else []
    return {
        row.rule.name: {
            "result": "missing" if row.is_unknown(code) else "false",
            "clauses": dict(_clauses(spec, row.rule, attempt, placement)),
        }
        for row, code in codes
        if code != FINE
    }


def _clauses(
    spec: PolicySpec, rule: CompiledFilter, attempt: AppliedPlacementRules, placement: CandidatePlacement
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the clauses of a filter that are not true for a placement, with the values that they read."""
    parsed = parse(rule.written.text)
    if isinstance(parsed, Diagnostic | Case):
        return
    lets = {one.name for one in spec.let}
    for side in parsed.operands if isinstance(parsed, Logic) and parsed.operator == "and" else (parsed,):
        text = format_tree(side)
        clause = _compiled(spec, text)
        if clause is None or filter_rows((clause,))[0].result(attempt.frame(placement))[0] == FINE:
            continue
        read = list(dict.fromkeys(format_tree(one) for one in _read(side, lets)))[:MOST_VALUES]
        values = ((one, _value(spec, one, attempt, placement)) for one in read)
        yield shortened(text), {shortened(one): value for one, value in values if value}


def _read(expr: Expr, lets: set[str]) -> Iterator[Expr]:
    """Yield the outermost aggregates over nodes, inputs and `let` names in an expression."""
    if isinstance(expr, Path) or (isinstance(expr, Call) and expr.function.dotted in _FUNCTIONS):
        yield expr
    else:
        for one in children(expr):
            yield from _read(one, lets)


def _compiled(spec: PolicySpec, text: str) -> CompiledFilter | None:
    """Return a condition compiled as the only placement filter of a policy."""
    rules = PlacementRules(filters=[FilterRule(name="clause", require=text)])
    alone = replace(spec, filters=[], scores=[], preemption=None, placement=rules)
    compiled = compile_policy(Policy(metadata=Metadata(name="clause"), spec=alone)).policy
    return None if compiled is None or compiled.placement is None else compiled.placement.filters[0]


def _value(spec: PolicySpec, text: str, attempt: AppliedPlacementRules, placement: CandidatePlacement) -> str:
    """Return the value of an expression for a placement as text; empty for a condition."""
    probe = _compiled(spec, f"has({text})")
    if probe is None or probe.require.root.op != Op.HAS:
        return ""
    (root,) = probe.require.root.args
    value = evaluate_columns(root, attempt.frame(placement))
    if root.type.kind is Kind.BOOL:
        return ""
    return shown_value(value.item() if isinstance(value, np.ndarray) else value, root.type.unit)
