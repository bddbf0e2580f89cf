"""Limits for all policies in force together: evaluation cost, number of policies, metric queries.

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
"""Maximum cost of a profile's policies, in units of about 4 µs at 5,000 nodes; further policies wait."""
MAX_POLICIES = 512
"""Maximum number of policies in force; further policies wait."""
MAX_QUERIES = 256
"""Maximum number of different metric queries, each about 1 MB at 5,000 nodes; further policies wait."""
DISABLED: Final = "Disabled"


class BudgetLimit(StrEnum):
    """A limit that a policy exceeds, as a variant of the error E0601."""

    UNITS = "room"
    POLICIES = "places"
    QUERIES = "queries"


class PolicyBudget:
    """The cost, number and metric queries of the policies in force, by which further policies are admitted."""

    def __init__(self) -> None:
        self._policies = 0
        self._for_all = 0
        self._named: Counter[str] = Counter()
        self._queries: Counter[MetricKey] = Counter()

    def take(self, policy: CompiledPolicy, before: CompiledPolicy | None = None) -> BudgetLimit | None:
        """Admit a policy in place of its earlier generation; if it would exceed a limit, return this limit instead."""
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
    """Return a compilation result with the error that the policy would exceed a limit if put in force."""
    policy = result.policy
    units, queries = (0, 0) if policy is None else (policy.units, len(_queries(policy)))
    number, limit = {
        BudgetLimit.UNITS: (units, MAX_UNITS),
        BudgetLimit.POLICIES: (1, MAX_POLICIES),
        BudgetLimit.QUERIES: (queries, MAX_QUERIES),
    }[shortage]
    found = diagnose("E0601", "", Span(0, 0), shortage.value, number=number, limit=limit)
    return CompilationResult(None, (*result.diagnostics, replace(found, field="spec")), result.cost)
