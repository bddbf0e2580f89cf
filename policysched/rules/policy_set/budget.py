"""How much the policies in force may cost together, counted before any of them is evaluated.

A decision asks all policies of a profile, and nothing else runs meanwhile; so their sum is bounded as each of them is.
What is in force stays there: a generation comes into force where there is room for it beside the others, in place of
the one of its policy that is. Of several that wait the oldest policy comes first, because newcomers take nobody's room.

Source: docs/language.md#limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from policysched.language.ir.tree import Span
from policysched.language.messages.diagnostics import diagnose
from policysched.model.policy import Policy
from policysched.rules.compile.compiler import CompilationResult
from policysched.rules.compile.policy import CompiledPolicy

MAX_UNITS = 12_000
"""How much the enforced policies of a profile may cost together; 5,000 nodes take about 4 µs a unit."""


class Budget:
    """What policies in force cost together, by the scheduler names that they are for."""

    def __init__(self, policies: Iterable[CompiledPolicy] = ()) -> None:
        self._for_all = 0
        self._named: Counter[str] = Counter()
        for policy in policies:
            self._add(policy, 1)

    def takes(self, policy: CompiledPolicy, before: CompiledPolicy | None = None) -> bool:
        """Count a policy in place of one that is counted, if there is room for it; tell whether there is."""
        if before is not None:
            self._add(before, -1)
        self._add(policy, 1)
        if not policy.units or self._for_all + max(self._named.values(), default=0) <= MAX_UNITS:
            return True
        self._add(policy, -1)
        if before is not None:
            self._add(before, 1)
        return False

    def _add(self, policy: CompiledPolicy, sign: int) -> None:
        names = set(policy.spec.scheduler_names)
        if not names:
            self._for_all += sign * policy.units
        for name in names:
            self._named[name] += sign * policy.units


def age(policy: Policy) -> tuple[bool, str, str]:
    """Order policies by age, those without a time last, and by name."""
    since = policy.metadata.creation_timestamp
    return (not since, since or "", policy.key)


def crowded_out(result: CompilationResult) -> CompilationResult:
    """Give what compiling a policy gave, for which there is no room."""
    units = result.policy.units if result.policy is not None else 0
    found = diagnose("E0601", "", Span(0, 0), "room", number=units, limit=MAX_UNITS)
    return CompilationResult(None, (*result.diagnostics, replace(found, field="spec")), result.cost)
