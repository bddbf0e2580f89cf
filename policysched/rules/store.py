"""The policies as the API server has them, each with the generation that is in force.

A policy whose spec does not compile keeps its last good generation: the one in memory, or after a restart the one its
status remembers. An object deleted and made again under its name starts anew.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

from policysched.framework import PREFIX
from policysched.model.decode import ObjectError
from policysched.model.policy import Policy, PolicySpec, decode_active_spec
from policysched.rules.compile import Result, compiling
from policysched.rules.compiled import CompiledPolicy
from policysched.rules.policyset import PolicySet


@dataclass(frozen=True, slots=True)
class Entry:
    """One policy: the newest object, what compiling it gave, and what is in force."""

    policy: Policy
    result: Result
    active: CompiledPolicy | None


class PolicyStore:
    """Policies by name."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._last: PolicySet | None = None

    def get(self, name: str) -> Entry | None:
        """Find a policy's entry."""
        return self._entries.get(name)

    def names(self) -> frozenset[str]:
        """Name all policies."""
        return frozenset(self._entries)

    def policy_set(self) -> PolicySet:
        """Make the set of what is in force."""
        active = [entry.active for entry in self._entries.values() if entry.active is not None]
        self._last = PolicySet.of(active, self._last)
        return self._last

    def applying(self, policy: Policy) -> Generator[None, None, bool]:
        """Take a policy as it is now, pausing after each compiled field; returns whether what is in force changed."""
        known = self._entries.get(policy.name)
        if known is not None and known.policy.metadata.uid != policy.metadata.uid:
            known = None
        if known is not None and known.policy.spec == policy.spec:
            return self._same_spec(known, policy)
        result = yield from compiling(policy)
        active = result.policy
        if active is None:
            active = known.active if known is not None else (yield from _remembered(policy))
        before = self._entries.get(policy.name)
        self._entries[policy.name] = Entry(policy, result, active)
        return active is not (before.active if before is not None else None)

    def _same_spec(self, known: Entry, policy: Policy) -> bool:
        """Take an object whose spec means the same, perhaps as another generation."""
        result, active, generation = known.result, known.active, policy.metadata.generation
        renumbered = result.policy is not None and result.policy.generation != generation
        if result.policy is not None and renumbered:
            active = replace(result.policy, generation=generation)
            result = replace(result, policy=active)
        self._entries[policy.name] = Entry(policy, result, active)
        return renumbered

    def remove(self, name: str) -> bool:
        """Forget a policy; tell whether it was in force."""
        entry = self._entries.pop(name, None)
        return entry is not None and entry.active is not None


def plugin_name(policy: str) -> str:
    """Give the plugin name of a policy."""
    return PREFIX + policy


def _remembered(policy: Policy) -> Generator[None, None, CompiledPolicy | None]:
    try:
        spec: PolicySpec | None = decode_active_spec(policy)
    except ObjectError:
        return None
    if spec is None:
        return None
    result = yield from compiling(policy, spec, policy.status.active_generation)
    return result.policy
