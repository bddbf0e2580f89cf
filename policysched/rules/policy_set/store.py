"""Every policy as the API server has it, and which generation of it is in force.

A policy whose spec does not compile keeps its last good generation: the one in memory, or after a restart the one its
annotation keeps; what its status says counts for nothing, because others may write that. So it is with one that
compiles and for which the others leave no room, until there is. An object deleted and made again under its name starts
anew.

A decision asks all policies of a profile, and nothing else runs meanwhile; so what they cost together is bounded
(`budget`), counted before any of them is evaluated. What is in force stays there: a generation comes into force where
there is room for it beside the others, in place of the one of its policy that is. Of several that wait the oldest
policy comes first, because newcomers take nobody's room.

Source: docs/reference/language.md#limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from policysched.language.checking.estimates import Cost
from policysched.model.decode import ObjectError
from policysched.model.policy import LAST_GOOD, LastGood, Policy, PolicyKey, UnreadablePolicy, decode_last_good
from policysched.rules.compile.compiler import CompilationResult, compile_policy
from policysched.rules.compile.policy import CompiledPolicy, finding
from policysched.rules.policy_set.budget import BudgetLimit, PolicyBudget, crowded_out
from policysched.rules.policy_set.policy_set import PolicySet

NO_ROOM: Final = f"the annotation {LAST_GOOD} is ignored: the cost limit for all policies is reached"


def age(policy: Policy) -> tuple[bool, str, str]:
    """Order policies by age, those without a time last, and by name."""
    since = policy.metadata.creation_timestamp
    return (not since, since or "", policy.key)


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """One policy: the newest object, what compiling it gave, and what is in force."""

    policy: Policy
    result: CompilationResult
    active: CompiledPolicy | None
    refused: str = ""
    """Why what the object says of a last good generation is not in force."""
    waiting: CompilationResult | None = None
    """What compiling the newest object gave, where it compiles and there is no room for it yet."""
    shortage: BudgetLimit | None = None
    """What there is too little of for that."""


class PolicyStore:
    """Policies by key."""

    def __init__(self, on_failure: Callable[[Policy, Exception], None] | None = None) -> None:
        self._on_failure = on_failure or _nobody
        self._entries: dict[PolicyKey, StoredPolicy] = {}
        self._settled: dict[PolicyKey, CompiledPolicy] = {}
        """What is in force, but for what was compiled since."""
        self._last: PolicySet | None = None

    def get(self, key: PolicyKey) -> StoredPolicy | None:
        """Find a policy's entry."""
        return self._entries.get(key)

    def listed(self) -> frozenset[PolicyKey]:
        """List all policies."""
        return frozenset(self._entries)

    def policy_set(self) -> PolicySet:
        """Make the set of what is in force."""
        active = [entry.active for entry in self._entries.values() if entry.active is not None]
        self._last = PolicySet.of(active, self._last)
        return self._last

    def apply(self, policy: Policy) -> frozenset[PolicyKey]:
        """Take a policy as it is now; return the policies of which another generation is in force then."""
        known = self._entries.get(policy.key)
        self.compile(policy)
        if known is not None and _compiled_alike(known, self._entries[policy.key]):
            return frozenset()  # its status or annotations changed, as after a write of ours
        return self.settle()

    def change(self, policies: Iterable[Policy], gone: Iterable[PolicyKey] = ()) -> frozenset[PolicyKey]:
        """Apply several changes at once; return the policies of which another generation is in force then.

        Args:
            policies: Policies as they are now.
            gone: Policies that were deleted.
        """
        for key in gone:
            self._entries.pop(key, None)
        for policy in policies:
            self.compile(policy)
        return self.settle()

    def remove(self, key: PolicyKey) -> frozenset[PolicyKey]:
        """Forget a policy; return the policies of which another generation is in force then."""
        return self.change((), (key,))

    def compile(self, policy: Policy) -> None:
        """Take a policy as it is now, and compile it; `settle` puts it in force where there is room."""
        known = self._entries.get(policy.key)
        if known is not None and known.policy.metadata.uid != policy.metadata.uid:
            known = None
        unreadable = isinstance(policy, UnreadablePolicy) or (known and isinstance(known.policy, UnreadablePolicy))
        if known is not None and policy.spec == known.policy.spec and not unreadable:
            self._entries[policy.key] = _same_spec(known, policy)
            return
        newest = None if known is None else known.waiting or known.result
        result = self._compiled(policy, before=newest)
        if known is not None:
            active, refused = known.active, known.refused
        else:
            active, refused = self._remembered(policy, result.policy)
        waiting = result if result.policy is not None else None
        self._entries[policy.key] = StoredPolicy(policy, result, active, refused, waiting)

    def settle(self) -> frozenset[PolicyKey]:
        """Put in force what there is room for; return the policies of which another generation is in force then."""
        keys, budget = sorted(self._entries, key=lambda key: age(self._entries[key].policy)), PolicyBudget()
        for key in keys:
            self._keep(key, budget)
        keys.sort(key=lambda key: _grows(self._entries[key]))
        was_admitted = True
        while was_admitted:  # what takes less of one thing than before makes room for those that had none
            was_admitted = False
            for key in keys:
                was_admitted |= self._admit(key, budget)
        before, after = self._settled, self._active()
        self._settled = after
        return frozenset(key for key in before.keys() | after.keys() if before.get(key) is not after.get(key))

    def _keep(self, key: PolicyKey, budget: PolicyBudget) -> None:
        """Leave in force what is, as far as there is room."""
        entry = self._entries[key]
        if entry.active is not None and budget.take(entry.active) is not None:
            self._entries[key] = replace(entry, active=None, refused=NO_ROOM)

    def _admit(self, key: PolicyKey, budget: PolicyBudget) -> bool:
        """Put in force what waits, if there is room; return whether there was."""
        entry = self._entries[key]
        if entry.waiting is None or entry.waiting.policy is None:
            return False
        shortage = budget.take(entry.waiting.policy, entry.active)
        if shortage is None:
            self._entries[key] = _admitted(entry)
            return True
        if entry.result is entry.waiting or entry.shortage is not shortage:
            result = crowded_out(entry.waiting, shortage)
            self._entries[key] = replace(entry, result=result, shortage=shortage)
        return False

    def _active(self) -> dict[PolicyKey, CompiledPolicy]:
        return {key: entry.active for key, entry in self._entries.items() if entry.active is not None}

    def refuse(self, key: PolicyKey, error: Exception, acting: CompiledPolicy | None) -> None:
        """Take a policy out of force that compiles and cannot act all the same.

        What acts of it stays; after a restart that is what the annotation keeps.
        """
        policy, refused = self._entries[key].policy, ""
        self._on_failure(policy, error)
        if acting is None:
            acting, refused = self._remembered(policy, None)
        self._entries[key] = StoredPolicy(policy, failed(error), acting, refused)
        self._settled = self._active()

    def _compiled(
        self, policy: Policy, kept: LastGood | None = None, before: CompilationResult | None = None
    ) -> CompilationResult:
        """Compile a policy, or what its annotation keeps, but for texts that were compiled before.

        One that cannot be read, or at which the compiler itself fails, is one with an error.
        """
        if isinstance(policy, UnreadablePolicy) and kept is None:
            return CompilationResult(None, (replace(finding("E0001", policy.reason), field=policy.field),), Cost())
        try:
            if kept is not None:
                return compile_policy(policy, kept.spec, kept.generation)
            return compile_policy(policy, before=before)
        except Exception as error:
            self._on_failure(policy, error)
            return failed(error)

    def _remembered(self, policy: Policy, newest: CompiledPolicy | None) -> tuple[CompiledPolicy | None, str]:
        """Return the last good generation that the annotation keeps; else say why what is told of one is not used.

        Args:
            policy: The object.
            newest: Its own spec, where that compiles.
        """
        status = policy.status
        try:
            kept = decode_last_good(policy)
        except ObjectError as error:
            return None, f"the annotation {LAST_GOOD} is ignored: {error.reason}"
        if kept is not None:
            if newest is not None and kept.spec == newest.spec:
                return newest, ""
            compiled = self._compiled(policy, kept).policy
            return compiled, "" if compiled else f"the annotation {LAST_GOOD} is ignored: it does not compile"
        if status.active_spec is None and not status.active_generation:
            return None, ""
        told = f"generation {status.active_generation}" if status.active_generation else "the specification"
        return (
            None,
            f"{told} in the status is ignored: only the annotation {LAST_GOOD} restores it",
        )


def _same_spec(known: StoredPolicy, policy: Policy) -> StoredPolicy:
    """Take an object whose spec means the same, perhaps as another generation."""
    newest, generation = known.waiting or known.result, policy.metadata.generation
    if newest.policy is None or newest.policy.generation == generation:
        return replace(known, policy=policy)
    result = replace(newest, policy=replace(newest.policy, generation=generation))
    return replace(known, policy=policy, result=result, waiting=result)


def _compiled_alike(one: StoredPolicy, other: StoredPolicy) -> bool:
    """Return whether two entries of a policy hold the same of what compiling it gave."""
    return one.result is other.result and one.waiting is other.waiting and one.active is other.active


def _grows(entry: StoredPolicy) -> bool:
    """Return whether what waits takes more than what is in force; what takes less makes room for the others."""
    newest = entry.waiting.policy if entry.waiting is not None else None
    return newest is not None and newest.units > (0 if entry.active is None else entry.active.units)


def _admitted(entry: StoredPolicy) -> StoredPolicy:
    """Put in force what waits."""
    result = entry.waiting or entry.result
    return StoredPolicy(entry.policy, result, result.policy)


def failed(error: Exception) -> CompilationResult:
    """Return what compiling a policy gave that ended in an exception."""
    said = f"internal error while compiling: {type(error).__name__}; see the log of the scheduler"
    return CompilationResult(None, (replace(finding("E0601", said), field="spec"),), Cost())


def _nobody(_: Policy, error: Exception) -> None:
    raise error
