"""Policies for commands that try changes: the policies in force in a cluster, and changes of these policies.

A policy to try is applied as `kubectl apply` would: as an edit of the object of its name, if its cost fits next to the
policies in force. Otherwise the policy in force stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from policysched.app.checking.findings import policy_key
from policysched.errors import UsageError
from policysched.language.checking.estimates import Cost
from policysched.language.messages.diagnostics import Diagnostic
from policysched.model.decode import ObjectError
from policysched.model.policy import KIND, LAST_GOOD, LastGood, Policy, PolicyKey, decode_last_good, decode_policy
from policysched.reading.documents import metadata_of
from policysched.rules.compile.compiler import CompilationResult, compile_policy
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.budget import PolicyBudget, crowded_out
from policysched.rules.policy_set.not_applied import not_compiled
from policysched.rules.policy_set.store import PolicyStore, StoredPolicy

Object = Mapping[str, Any]
_STAYS: Final = "; the previous generation stays in force"


@dataclass(frozen=True, slots=True)
class CompiledPolicies:
    """The result of compiling policies: policies in force, and policies with errors."""

    compiled: list[CompiledPolicy]
    """Policies in force."""
    diagnostics: tuple[Diagnostic, ...]
    failed: dict[PolicyKey, str]
    """Policies that have no effect because of errors, with reasons."""
    edits: dict[PolicyKey, str]
    """Policies whose newest generation has errors, with reasons; the last good generation stays in force."""

    @property
    def edit_notes(self) -> list[str]:
        """Notes about tried edits with errors: the edit is not used, and the policy's last good generation decides."""
        generations = {one.key: one.generation for one in self.compiled}
        return [edit_note(key, why, generations[key]) for key, why in self.edits.items()]


def standing_policies(objects: Iterable[Object]) -> PolicyStore:
    """Compile the policies of a cluster, as a scheduler does at its start.

    Raises:
        ObjectError: a policy is malformed.
        UsageError: two policies have the same name.
    """
    return started(_named(map(in_force, objects)).values())


def started(policies: Iterable[Policy]) -> PolicyStore:
    """Return a store in which the given policies are in force, as after the start of a scheduler."""
    store = PolicyStore()
    store.change(policies)
    return store


def try_policies(store: PolicyStore, tried: Iterable[Object], without: Collection[str] = ()) -> set[PolicyKey]:
    """Apply the policies to try to a store and delete the policies `without`; return the names of the applied policies.

    Raises:
        ObjectError: a policy is malformed.
        UsageError: two policies have the same name.
    """
    named = _named(tried)
    edits = [_as_edit(policy, store.get(key)) for key, policy in named.items()]
    store.change(edits, map(PolicyKey, without))
    return set(named)


def compiled_policies(store: PolicyStore, tried: Collection[PolicyKey] = ()) -> CompiledPolicies:
    """Return the policies of a store in force, and the policies with errors; `tried` names the edited policies."""
    entries = {key: entry for key in sorted(store.listed()) if (entry := store.get(key)) is not None}
    compiled = [entry.active for entry in entries.values() if entry.active is not None]
    failed, edits = {}, {}
    for key, entry in entries.items():
        if entry.active is None:
            failed[key] = not_compiled(entry.result.diagnostics)
        elif key in tried and entry.result.policy is None:
            edits[key] = not_compiled(entry.result.diagnostics)
    found = tuple(one for entry in entries.values() for one in entry.result.diagnostics)
    return CompiledPolicies(compiled, found, failed, edits)


def edit_note(key: PolicyKey, why: str, generation: int | None) -> str:
    """Return a note that an edit of a policy has errors and is not used, so that the generation in force decides.

    Args:
        key: The policy.
        why: Why the edit is not used.
        generation: The generation in force; 0 or None if the object has no number.
    """
    decides = f"generation {generation}" if generation else "the policy of the cluster"
    return f"policy {key}: the edit is not used because {why}; {decides} decides"


def compile_alone(tried: Iterable[Object]) -> list[CompiledPolicy]:
    """Compile policies as if no other policies existed.

    Raises:
        ObjectError: a policy is malformed.
        UsageError: a policy does not compile, or two have the same name.
    """
    store = PolicyStore()
    try_policies(store, tried)
    return usable(compiled_policies(store))


def usable(taken: CompiledPolicies, tried: Collection[PolicyKey] | None = None) -> list[CompiledPolicy]:
    """Return the compiled policies; raise an error if a tried policy does not compile.

    Args:
        taken: The result of compiling.
        tried: Policies that must be in force; None: all.

    Raises:
        UsageError: one of them is not in force.
    """
    stays = {key: why + _STAYS for key, why in taken.edits.items()}
    for key, why in sorted((taken.failed | stays).items()):
        if tried is None or key in tried:
            raise UsageError(f"policy {key} cannot be used: {why}")
    return taken.compiled


def in_place(
    standing: Iterable[CompiledPolicy], tried: Iterable[CompiledPolicy], without: Collection[str]
) -> list[CompiledPolicy]:
    """Return the policies in force after policies are added, replaced or removed.

    Raises:
        UsageError: the total cost is too high for one of them.
    """
    before = {one.key: one for one in standing if one.key not in without}
    coming = {one.key: one for one in tried if one.key not in without}
    budget = PolicyBudget()
    for one in before.values():
        budget.take(one)
    for one in sorted(coming.values(), key=lambda one: one.units - (before[one.key].units if one.key in before else 0)):
        shortage = budget.take(one, before.get(one.key))
        if shortage is not None:
            said = not_compiled(crowded_out(CompilationResult(one, (), Cost()), shortage).diagnostics)
            raise UsageError(f"policy {one.key} cannot be used: {said}")
    return [*(before | coming).values()]


def in_force(policy: Object) -> dict[str, Any]:
    """Return a policy with the spec of the last good generation if the newest does not compile."""
    kept = None if compiles(policy) else _last_good(policy)
    if kept is None:
        return dict(policy)
    metadata = {**policy["metadata"], "generation": kept.generation}
    return {**policy, "metadata": metadata, "spec": msgspec.to_builtins(kept.spec)}


def last_good_notes(objects: Iterable[Object], tried: Iterable[Object] = ()) -> list[str]:
    """Return a note about each policy of a cluster whose last good generation decides, because its newest has errors.

    Args:
        objects: The objects of the cluster.
        tried: Policies that replace policies of the cluster.
    """
    changed = {policy_key(one) for one in tried}
    notes = []
    for one in objects:
        if one["kind"] != KIND or policy_key(one) in changed:
            continue
        kept, newest = _last_good(one), metadata_of(one).get("generation")
        if kept is not None and kept.generation != newest and not compiles(one):
            notes.append(
                f"policy {policy_key(one)}: generation {newest} has errors; generation {kept.generation} decides"
            )
    return notes


def compiles(policy: Object) -> bool:
    """Return whether a policy is well-formed and all its expressions compile."""
    try:
        return compile_policy(decode_policy(policy)).policy is not None
    except ObjectError:
        return False


def _as_edit(policy: Policy, known: StoredPolicy | None) -> Policy:
    """Return a policy to try as an edit of the stored policy of the same name: with its UID and creation time."""
    if known is None:
        kept = {key: text for key, text in policy.metadata.annotations.items() if key != LAST_GOOD}
        return replace(policy, metadata=replace(policy.metadata, annotations=kept))
    before = known.policy.metadata
    since = before.creation_timestamp
    return replace(policy, metadata=replace(policy.metadata, uid=before.uid, creation_timestamp=since))


def _named(objects: Iterable[Object]) -> dict[PolicyKey, Policy]:
    """Decode policies; return the policies by name.

    Raises:
        ObjectError: a policy is malformed.
        UsageError: two policies have the same name.
    """
    named: dict[PolicyKey, Policy] = {}
    for policy in map(decode_policy, objects):
        if policy.key in named:
            raise UsageError(f'policy "{policy.key}" is given twice')
        named[policy.key] = policy
    return named


def _last_good(policy: Object) -> LastGood | None:
    try:
        return decode_last_good(decode_policy({"metadata": policy.get("metadata")}))
    except ObjectError:
        return None
