"""What policies in force may take together: units of a decision, places, and queries of metrics.

Source: docs/reference/language.md#limits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from typing import Final

from policysched.language.ir.tree import Span
from policysched.language.messages.diagnostics import diagnose
from policysched.model.policy import MetricKey
from policysched.rules.compile.compiler import CompilationResult
from policysched.rules.compile.policy import CompiledPolicy, MetricInput

MAX_UNITS = 12_000
"""How much the enforced policies of a profile may cost together; 5,000 nodes take about 4 µs a unit."""
MAX_POLICIES = 512
"""How many policies may be in force: each takes its part of a swap, of an edit of another one and of an attempt."""
MAX_QUERIES = 256
"""How many different queries of metrics they may ask: of 5,000 nodes the answers of each take a megabyte."""
DISABLED: Final = "Disabled"


class BudgetLimit(StrEnum):
    """What may be exceeded; the variants of E0601 that say so."""

    UNITS = "room"
    POLICIES = "places"
    QUERIES = "queries"


class PolicyBudget:
    """What policies in force cost together, by the scheduler names that they are for."""

    def __init__(self) -> None:
        self._policies = 0
        self._for_all = 0
        self._named: Counter[str] = Counter()
        self._queries: Counter[MetricKey] = Counter()

    def take(self, policy: CompiledPolicy, before: CompiledPolicy | None = None) -> BudgetLimit | None:
        """Count a policy in place of one that is counted, if there is room for it; else tell of what there is none."""
        if before is not None:
            self._add(before, -1)
        self._add(policy, 1)
        shortage = self._shortage(policy)
        if shortage is not None:
            self._add(policy, -1)
            if before is not None:
                self._add(before, 1)
        return shortage

    def _shortage(self, policy: CompiledPolicy) -> BudgetLimit | None:
        if policy.spec.mode == DISABLED:
            return None
        if self._policies > MAX_POLICIES:
            return BudgetLimit.POLICIES
        if len(self._queries) > MAX_QUERIES and _queries(policy):
            return BudgetLimit.QUERIES
        if policy.units and self._for_all + max(self._named.values(), default=0) > MAX_UNITS:
            return BudgetLimit.UNITS
        return None

    def _add(self, policy: CompiledPolicy, sign: int) -> None:
        if policy.spec.mode == DISABLED:
            return
        self._policies += sign
        names = set(policy.spec.scheduler_names)
        if not names:
            self._for_all += sign * policy.units
        for name in names:
            self._named[name] += sign * policy.units
        for query in _queries(policy):
            self._queries[query] += sign
            if not self._queries[query]:
                del self._queries[query]


def _queries(policy: CompiledPolicy) -> set[MetricKey]:
    return {item.metric for item in policy.inputs if isinstance(item, MetricInput)}


def crowded_out(result: CompilationResult, shortage: BudgetLimit) -> CompilationResult:
    """Return what compiling a policy gave, for which there is no room."""
    policy = result.policy
    units, queries = (0, 0) if policy is None else (policy.units, len(_queries(policy)))
    number, limit = {
        BudgetLimit.UNITS: (units, MAX_UNITS),
        BudgetLimit.POLICIES: (1, MAX_POLICIES),
        BudgetLimit.QUERIES: (queries, MAX_QUERIES),
    }[shortage]
    found = diagnose("E0601", "", Span(0, 0), shortage.value, number=number, limit=limit)
    return CompilationResult(None, (*result.diagnostics, replace(found, field="spec")), result.cost)
