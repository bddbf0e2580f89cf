"""`make_status`: the status of a SchedulingPolicy: generation in force, diagnostics of the newest generation.

Each installation writes only its own entry under `instances`. All other fields are computed from the object, so that
installations of the same release write equal values. The time of a condition changes only with the condition's status.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from policysched.language.messages.diagnostics import Diagnostic
from policysched.model.policy import Policy
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.store import StoredPolicy
from policysched.rules.policy_status.input_presence import NO_COVERAGE, Coverage, InputCoverage
from policysched.visible import visible

MAX_DIAGNOSTICS = 50
MOST_OF_OTHERS = 64 * 1024
"""Maximum size of status entries that other schedulers wrote; larger entries are dropped. Units: bytes of JSON."""
DEEPEST = 16
"""Nesting depth of a status, with the spec in it, up to which empty fields are treated as absent."""
_REASONS = {
    "E00": "ShapeError",
    "E01": "SyntaxError",
    "E02": "NameError",
    "E03": "TypeError",
    "E04": "ScopeError",
    "E05": "RuleError",
}
Outcome = tuple[bool, str, str]
"""Status, reason and message of a condition in the status of a policy."""
_TIME = "%Y-%m-%dT%H:%M:%SZ"

ABOUT_NODES = "W0705"
"""The code of warnings about inputs that no node has."""
_OF_INSTALLATIONS = frozenset((ABOUT_NODES, "W0715"))
"""The codes of warnings that depend on the installation: on its nodes and its feature gates."""

Status = dict[str, Any]


def make_status(
    entry: StoredPolicy, instance: str, now: datetime, found: Coverage = NO_COVERAGE, unkept: str = ""
) -> Status:
    """Return the complete status to write to a policy.

    Args:
        entry: The policy and its generation in force.
        instance: The installation that writes the status.
        now: The time of conditions that change.
        found: The presence of the policy's inputs in the cluster.
        unkept: Why the generation in force is not stored for restarts; empty if it is stored.
    """
    policy, active, result = entry.policy, entry.active, entry.result
    generation = policy.metadata.generation
    warnings = found.warnings if active is not None and active is result.policy else ()
    status: Status = {
        "observedGeneration": generation,
        "rules": 0 if active is None else active.rules_count,
        "conditions": [
            _condition(policy, kind, *outcome, now=now)
            for kind, outcome in (
                ("Compiled", _compiled(entry, len(warnings))),
                ("Active", _with_loss(_active(entry), unkept)),
                ("Ready", _ready(entry)),
                ("Stalled", _stalled(entry)),
            )
            if outcome is not None
        ],
        "diagnostics": [_diagnostic(one) for one in (*result.diagnostics, *warnings)[:MAX_DIAGNOSTICS]],
        "cost": {"scalar": result.cost.scalar, "nodes": result.cost.nodes, "pods": result.cost.pods},
        "instances": _instances(policy, instance, active.generation if active else 0, found.inputs),
    }
    if active is not None:
        status["activeGeneration"] = active.generation
        status["activeSpec"] = msgspec.to_builtins(active.spec)
    return status


def differs(policy: Policy, status: Status, *, about_nodes: bool = False) -> bool:
    """Return whether a computed status differs from the policy's status.

    Args:
        policy: The object.
        status: The new status.
        about_nodes: Whether to compare warnings about nodes and feature gates. By default they are ignored:
            installations see a change of nodes at different times, and each would overwrite the other's warnings.
    """
    written = msgspec.to_builtins(policy.status)
    return _comparable(written, about_nodes) != _comparable(status, about_nodes)


def _comparable(status: Status, about_nodes: bool) -> Status:
    told: Status = _without_empty(status)
    for condition in told.get("conditions", ()):
        condition.pop("lastTransitionTime", None)
        condition.pop("observedGeneration", None)
        if not about_nodes and condition.get("type") == "Compiled":
            # the rest of the message contains the number of warnings, also of those about nodes
            condition["message"] = condition.get("message", "").partition(",")[0]
    said = [one for one in told.pop("diagnostics", ()) if about_nodes or one.get("code") not in _OF_INSTALLATIONS]
    return told | {"diagnostics": said}


def _without_empty(value: Any, depth: int = DEEPEST) -> Any:
    """Return a value without its empty fields, which the API server may have omitted."""
    if not depth:
        return value
    if isinstance(value, dict):
        items = {key: _without_empty(item, depth - 1) for key, item in value.items()}
        return {key: item for key, item in items.items() if item not in (None, "", 0, [], {})}
    return [_without_empty(item, depth - 1) for item in value] if isinstance(value, list) else value


def _compiled(entry: StoredPolicy, about_nodes: int) -> Outcome:
    errors = entry.result.errors
    warnings = len(entry.result.diagnostics) - errors + about_nodes
    message = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
    first = _first_error(entry)
    if first is None:
        return True, "Compiled", message
    return False, _REASONS.get(first.code[:3], "CostError"), message


def _first_error(entry: StoredPolicy) -> Diagnostic | None:
    return next((one for one in entry.result.diagnostics if one.severity == "error"), None)


def _active(entry: StoredPolicy) -> Outcome:
    active = entry.active
    if active is None and entry.waiting is not None:
        return False, "TooCostly", "the cost limit for all policies is reached"
    if active is None and entry.refused:
        return False, "NotTrusted", entry.refused
    if active is None:
        return False, "NeverCompiled", "no generation of this policy compiles"
    if active.spec.mode == "Disabled":
        return False, "Disabled", "mode is Disabled"
    if entry.result.policy is None:
        return True, "LastGoodGeneration", effect(active, "stays")
    return True, active.spec.mode, effect(active)


def _with_loss(outcome: Outcome, unkept: str) -> Outcome:
    """Return the condition Active, with a warning if a restart may lose the generation in force."""
    holds, reason, message = outcome
    return holds, reason, f"{message}; a restart may lose it: {unkept}" if unkept else message


def _ready(entry: StoredPolicy) -> Outcome:
    """Return the condition Ready, which states whether the newest generation is used, also in mode Disabled."""
    stalled = _stalled(entry)
    if stalled is not None:
        return False, *stalled[1:]
    _, reason, message = _active(entry)
    return True, reason, message


def _stalled(entry: StoredPolicy) -> Outcome | None:
    """Return the condition Stalled with the error if the newest generation cannot be put in force, else None."""
    first = _first_error(entry)
    if first is None:
        return None
    more = f" (and {_count(entry.result.errors - 1, 'more error')})" if entry.result.errors > 1 else ""
    return True, _compiled(entry, 0)[1], f"{first.code} {first.field}: {first.message}{more}"


def _active_generation(active: CompiledPolicy) -> str:
    """Return a text that names the generation in force; a policy from a file has no generation number."""
    return f"generation {active.generation}" if active.generation else "an earlier generation"


def effect(active: CompiledPolicy, verb: str = "is") -> str:
    """Return a text about which generation is accepted and whether it is enforced, for conditions, Events and logs.

    Args:
        active: The accepted generation.
        verb: `stays` if a newer generation is rejected.
    """
    accepted = f"{_active_generation(active)} {verb} accepted; mode {active.spec.mode}"
    if active.spec.mode == "Disabled":
        return f"{accepted}: it has no effect"
    if active.spec.mode == "Shadow":
        return f"{accepted}: it does not act"
    return f"{_active_generation(active)} {verb} in force"


def _condition(policy: Policy, kind: str, holds: bool, reason: str, message: str, *, now: datetime) -> Status:
    value = "True" if holds else "False"
    before = (one for one in policy.status.conditions if one.type == kind and one.status == value)
    since = next((one.last_transition_time for one in before), None)
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": visible(message),
        "observedGeneration": policy.metadata.generation,
        "lastTransitionTime": since or now.strftime(_TIME),
    }


def _instances(policy: Policy, instance: str, generation: int, inputs: Iterable[InputCoverage]) -> list[Status]:
    written = [one for one in policy.status.instances if one.name != instance]
    others = msgspec.to_builtins(written) if len(msgspec.json.encode(written)) <= MOST_OF_OTHERS else []
    said = [
        {"name": visible(one.name), "present": one.present, "total": one.total}
        | ({"problem": visible(one.problem)} if one.problem else {})
        for one in inputs
    ]
    own: Status = {"name": instance, "activeGeneration": generation, "inputs": said}
    own = {key: value for key, value in own.items() if value != []}
    return sorted([*others, own], key=lambda one: str(one["name"]))


def _diagnostic(one: Diagnostic) -> Status:
    said = {
        "severity": one.severity,
        "code": one.code,
        "field": one.field,
        "line": one.line,
        "column": one.column,
        "endColumn": one.end_column,
        "message": visible(one.message),
        "help": one.help and visible(one.help),
    }
    return {key: value for key, value in said.items() if value is not None}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
