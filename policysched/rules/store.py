"""The policies as the API server has them, each with the generation that is in force.

A policy whose spec does not compile keeps its last good generation: the one in memory, or after a restart the one its
annotation keeps; what its status says counts for nothing, because others may write that. An object deleted and made
again under its name starts anew.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from policysched.framework import PREFIX
from policysched.language.costs import Cost
from policysched.language.pausing import Pausing
from policysched.model.decode import ObjectError
from policysched.model.policy import LAST_GOOD, Policy, decode_last_good
from policysched.rules.compile import Result, compiling
from policysched.rules.compiled import CompiledPolicy
from policysched.rules.metrics import finding
from policysched.rules.policyset import PolicySet


@dataclass(frozen=True, slots=True)
class Entry:
    """One policy: the newest object, what compiling it gave, and what is in force."""

    policy: Policy
    result: Result
    active: CompiledPolicy | None
    refused: str = ""
    """Why what the object says of a last good generation is not in force."""


class PolicyStore:
    """Policies by name."""

    def __init__(self, on_failure: Callable[[Policy, Exception], None] | None = None) -> None:
        self._on_failure = on_failure or _nobody
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
        result = yield from self._compiling(policy)
        active, refused = result.policy, ""
        if active is None and known is not None:
            active, refused = known.active, known.refused
        elif active is None:
            active, refused = yield from _remembered(policy)
        before = self._entries.get(policy.name)
        self._entries[policy.name] = Entry(policy, result, active, refused)
        return active is not (before.active if before is not None else None)

    def refuse(self, name: str, error: Exception, before: Entry | None) -> None:
        """Take a policy out of force that compiles and cannot act all the same; what was in force before stays."""
        policy = self._entries[name].policy
        self._on_failure(policy, error)
        self._entries[name] = Entry(policy, failed(error), before.active if before is not None else None)

    def _compiling(self, policy: Policy) -> Pausing[Result]:
        """Compile a policy; one at which the compiler itself fails is a policy with an error."""
        try:
            return (yield from compiling(policy))
        except Exception as error:
            self._on_failure(policy, error)
            return failed(error)

    def _same_spec(self, known: Entry, policy: Policy) -> bool:
        """Take an object whose spec means the same, perhaps as another generation."""
        result, active, generation = known.result, known.active, policy.metadata.generation
        renumbered = result.policy is not None and result.policy.generation != generation
        if result.policy is not None and renumbered:
            active = replace(result.policy, generation=generation)
            result = replace(result, policy=active)
        self._entries[policy.name] = Entry(policy, result, active, known.refused)
        return renumbered

    def remove(self, name: str) -> bool:
        """Forget a policy; tell whether it was in force."""
        entry = self._entries.pop(name, None)
        return entry is not None and entry.active is not None


def plugin_name(policy: str) -> str:
    """Give the plugin name of a policy."""
    return PREFIX + policy


def failed(error: Exception) -> Result:
    """Give what compiling a policy gave that ended in an exception."""
    said = f"it cannot be compiled: {type(error).__name__}; the scheduler's log says more"
    return Result(None, (replace(finding("E0601", said), field="spec"),), Cost())


def _nobody(_: Policy, error: Exception) -> None:
    raise error


def _remembered(policy: Policy) -> Generator[None, None, tuple[CompiledPolicy | None, str]]:
    """Compile the last good generation that the annotation keeps; else say why what is told of one is not used."""
    status = policy.status
    try:
        kept = decode_last_good(policy)
    except ObjectError as error:
        return None, f"the annotation {LAST_GOOD} is not used: {error.reason}"
    if kept is not None:
        result = yield from compiling(policy, kept.spec, kept.generation)
        return result.policy, "" if result.policy else f"the annotation {LAST_GOOD} is not used: it does not compile"
    if status.active_spec is None and not status.active_generation:
        return None, ""
    told = f"generation {status.active_generation} that the status tells of"
    return None, f"{told} is not used: it counts only where the annotation {LAST_GOOD} keeps it"
