"""`filter_clauses`: splits a filter's condition into the operands of its `and`, each compiled as a filter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from policysched.language.ir.tree import Case, Expr, Logic
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.syntax.formatting import format_tree
from policysched.language.syntax.parser import parse
from policysched.model.objects import Metadata
from policysched.model.policy import FilterRule, Policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledPolicy


@dataclass(frozen=True, slots=True)
class Clause:
    """An operand of a filter's `and`, or the whole condition of a filter without `and`."""

    side: Expr
    text: str
    policy: CompiledPolicy
    """A copy of the policy whose only filter is this operand."""


def filter_clauses(policy: CompiledPolicy, rule: FilterRule) -> Iterator[Clause]:
    """Yield each operand of a filter's `and` as a clause."""
    parsed = parse(rule.require)
    if isinstance(parsed, Diagnostic | Case):
        return
    for side in parsed.operands if isinstance(parsed, Logic) and parsed.operator == "and" else (parsed,):
        text = format_tree(side)
        alone = replace(policy.spec, filters=(replace(rule, require=text),), scores=(), preemption=None)
        compiled = compile_policy(Policy(metadata=Metadata(name=policy.key), spec=alone)).policy
        if compiled is not None:
            yield Clause(side, text, compiled)
