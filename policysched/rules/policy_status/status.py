"""Make the `status` of a policy's object: which generation is in force, and what is wrong with the newest one.

Each installation writes only its own entry under `instances`; all else follows from the object, so that several
installations of one version write the same. Times move only where a condition's status does.
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
"""How long the entries of other installations may be that are written back. Units: bytes of JSON."""
DEEPEST = 16
"""How deep a status of ours is nested at most, its spec included."""
_REASONS = {
    "E00": "ShapeError",
    "E01": "SyntaxError",
    "E02": "NameError",
    "E03": "TypeError",
    "E04": "ScopeError",
    "E05": "RuleError",
}
Outcome = tuple[bool, str, str]
"""A condition's status, reason and message."""
_TIME = "%Y-%m-%dT%H:%M:%SZ"

ABOUT_NODES = "W0705"
"""The code of what is said of the cluster and not of the policy."""

Status = dict[str, Any]


def make_status(
    entry: StoredPolicy, instance: str, now: datetime, found: Coverage = NO_COVERAGE, unkept: str = ""
) -> Status:
    """Make the whole status of a policy.

    Args:
        entry: The policy and what is in force.
        instance: The installation that says so.
        now: The time for conditions that change.
        found: What the cluster has of what the policy reads.
        unkept: Why the generation in force is not stored for restarts.
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
    """Return whether a status says anything that the object's does not say already.

    Args:
        policy: The object.
        status: The status that it should have.
        about_nodes: Whether warnings about nodes count too. Not as a rule: installations see the same nodes at
            different times, and would write them back and forth.
    """
    written = msgspec.to_builtins(policy.status)
    return _comparable(written, about_nodes) != _comparable(status, about_nodes)


def _comparable(status: Status, about_nodes: bool) -> Status:
    told: Status = _without_empty(status)
    for condition in told.get("conditions", ()):
        condition.pop("lastTransitionTime", None)
        condition.pop("observedGeneration", None)
        if not about_nodes and condition.get("type") == "Compiled":
            # warnings about nodes are counted there
            condition["message"] = condition.get("message", "").partition(",")[0]
    said = [one for one in told.pop("diagnostics", ()) if about_nodes or one.get("code") != ABOUT_NODES]
    return told | {"diagnostics": said}


def _without_empty(value: Any, depth: int = DEEPEST) -> Any:
    """Leave out what a struct leaves out, as deep as statuses go, so that absent and empty are the same."""
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
    """Add to the message of the condition Active that a restart may lose the generation in force."""
    holds, reason, message = outcome
    return holds, reason, f"{message}; a restart may lose it: {unkept}" if unkept else message


def _ready(entry: StoredPolicy) -> Outcome:
    """Return the condition Ready: whether the scheduler uses the newest generation, also in mode Disabled."""
    stalled = _stalled(entry)
    if stalled is not None:
        return False, *stalled[1:]
    _, reason, message = _active(entry)
    return True, reason, message


def _stalled(entry: StoredPolicy) -> Outcome | None:
    """Return the condition Stalled, None unless the newest generation cannot take force; the message is the error."""
    first = _first_error(entry)
    if first is None:
        return None
    more = f" (and {_count(entry.result.errors - 1, 'more error')})" if entry.result.errors > 1 else ""
    return True, _compiled(entry, 0)[1], f"{first.code} {first.field}: {first.message}{more}"


def _active_generation(active: CompiledPolicy) -> str:
    """Return what the generation in force is called; of one that a file holds the number is not known."""
    return f"generation {active.generation}" if active.generation else "an earlier generation"


def effect(active: CompiledPolicy, verb: str = "is") -> str:
    """Return which generation is accepted and whether it acts, for conditions, events and the log.

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
