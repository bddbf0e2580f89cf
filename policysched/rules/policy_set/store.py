"""`PolicyStore`: the SchedulingPolicy objects, and which generation of each is in force.

If the newest spec of a policy does not compile, the last good generation stays in force: the generation in memory, or
after a restart the generation in the policy's annotation. The policy's status is ignored, because other users may write
it. The last good generation also stays in force if the newest spec compiles and exceeds the limits of all policies,
until there is room. A policy that is deleted and created again under its name inherits nothing.

A decision evaluates all policies of a profile without yielding, so their total cost has a limit (`budget`), which is
checked before any policy is evaluated. A generation takes force if the limits permit it together with all other
generations in force; it replaces the generation of its own policy and never that of another policy. Generations that
make room are admitted first, then the others by age of the policy, the oldest first.

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
    """Return a sort key of policies: age (oldest first), then name; a policy without a creation time is last."""
    since = policy.metadata.creation_timestamp
    return (not since, since or "", policy.key)


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A policy: its newest object, the compilation result, and the generation in force."""

    policy: Policy
    result: CompilationResult
    active: CompiledPolicy | None
    refused: str = ""
    """Why the last good generation in the annotation is not in force; empty if it is in force or there is none."""
    waiting: CompilationResult | None = None
    """The compilation result of the newest object if it compiles but exceeds a limit, else None."""
    shortage: BudgetLimit | None = None
    """The limit that the generation in `waiting` exceeds."""


class PolicyStore:
    """The policies by key, with their generations in force.

    Args:
        on_failure: Called if the compiler raises an exception; by default the exception is raised again.
    """

    def __init__(self, on_failure: Callable[[Policy, Exception], None] | None = None) -> None:
        self._on_failure = on_failure or _raise
        self._entries: dict[PolicyKey, StoredPolicy] = {}
        self._settled: dict[PolicyKey, CompiledPolicy] = {}
        """The generations in force after the last `settle`."""
        self._last: PolicySet | None = None

    def get(self, key: PolicyKey) -> StoredPolicy | None:
        """Return the entry of a policy; None if the store does not contain the policy."""
        return self._entries.get(key)

    def listed(self) -> frozenset[PolicyKey]:
        """Return the keys of all policies."""
        return frozenset(self._entries)

    def policy_set(self) -> PolicySet:
        """Return the set of the generations in force."""
        active = [entry.active for entry in self._entries.values() if entry.active is not None]
        self._last = PolicySet.of(active, self._last)
        return self._last

    def apply(self, policy: Policy) -> frozenset[PolicyKey]:
        """Store the newest object of a policy; return the policies whose generation in force changed."""
        known = self._entries.get(policy.key)
        self.compile(policy)
        if known is not None and _compiled_alike(known, self._entries[policy.key]):
            return frozenset()  # only the status or annotations changed, such as after our own write
        return self.settle()

    def change(self, policies: Iterable[Policy], gone: Iterable[PolicyKey] = ()) -> frozenset[PolicyKey]:
        """Store and remove several policies; return the policies whose generation in force changed.

        Args:
            policies: The current objects of changed policies.
            gone: The deleted policies.
        """
        for key in gone:
            self._entries.pop(key, None)
        for policy in policies:
            self.compile(policy)
        return self.settle()

    def remove(self, key: PolicyKey) -> frozenset[PolicyKey]:
        """Remove a policy; return the policies whose generation in force changed."""
        return self.change((), (key,))

    def compile(self, policy: Policy) -> None:
        """Store and compile the newest object of a policy; `settle` puts it in force."""
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
        """Put waiting generations in force within the limits; return the policies whose generation in force changed."""
        keys, budget = sorted(self._entries, key=lambda key: age(self._entries[key].policy)), PolicyBudget()
        for key in keys:
            self._keep(key, budget)
        keys.sort(key=lambda key: _grows(self._entries[key]))
        was_admitted = True
        while was_admitted:  # an admitted generation that is cheaper than its predecessor makes room for others
            was_admitted = False
            for key in keys:
                was_admitted |= self._admit(key, budget)
        before, after = self._settled, self._active()
        self._settled = after
        return frozenset(key for key in before.keys() | after.keys() if before.get(key) is not after.get(key))

    def _keep(self, key: PolicyKey, budget: PolicyBudget) -> None:
        """Keep the generation of a policy in force; if it exceeds a limit, take it out of force."""
        entry = self._entries[key]
        if entry.active is not None and budget.take(entry.active) is not None:
            self._entries[key] = replace(entry, active=None, refused=NO_ROOM)

    def _admit(self, key: PolicyKey, budget: PolicyBudget) -> bool:
        """Put the waiting generation of a policy in force; if it exceeds a limit, return False."""
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
        """Take the newest generation of a policy out of force, because its evaluation raised an exception.

        Args:
            key: The policy.
            error: The exception.
            acting: The earlier generation that stays in force; if None, the generation in the annotation.
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
        """Return a policy's compiled spec, or else the compiled last good spec of its annotation.

        The result is an error if the object is unreadable or the compiler raises an exception.

        Args:
            policy: The policy.
            kept: The last good spec to compile in place of the policy's own spec.
            before: An earlier result, whose compiled texts are reused.
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
        """Return the last good generation in the annotation; if it cannot be used, why.

        Args:
            policy: The object.
            newest: The object's own spec if it compiles.
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
    """Return a policy's entry with a new object whose spec is equal, possibly with another generation number."""
    newest, generation = known.waiting or known.result, policy.metadata.generation
    if newest.policy is None or newest.policy.generation == generation:
        return replace(known, policy=policy)
    result = replace(newest, policy=replace(newest.policy, generation=generation))
    return replace(known, policy=policy, result=result, waiting=result)


def _compiled_alike(one: StoredPolicy, other: StoredPolicy) -> bool:
    """Return whether two entries of a policy have equal compilation results and the same generation in force."""
    return one.result is other.result and one.waiting is other.waiting and one.active is other.active


def _grows(entry: StoredPolicy) -> bool:
    """Return whether a policy's waiting generation costs more than its generation in force.

    Cheaper generations are admitted first, because they make room for others.
    """
    newest = entry.waiting.policy if entry.waiting is not None else None
    return newest is not None and newest.units > (0 if entry.active is None else entry.active.units)


def _admitted(entry: StoredPolicy) -> StoredPolicy:
    """Return a copy of a policy's entry with the waiting generation in force."""
    result = entry.waiting or entry.result
    return StoredPolicy(entry.policy, result, result.policy)


def failed(error: Exception) -> CompilationResult:
    """Return the compilation result that reports an exception of the compiler."""
    said = f"internal error while compiling: {type(error).__name__}; see the log of the scheduler"
    return CompilationResult(None, (replace(finding("E0601", said), field="spec"),), Cost())


def _raise(_: Policy, error: Exception) -> None:
    raise error
