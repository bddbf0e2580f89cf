"""Policies for tests, written as users write their spec."""

from __future__ import annotations

import json
from typing import Any

from policysched.model.policy import LAST_GOOD, Policy, decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.policies import PolicyFilters, score_plugins
from policysched.rules.policy_set.policy_set import PolicySet

Spec = dict[str, Any]


def policy(
    name: str = "p",
    *,
    generation: int = 1,
    uid: str = "",
    status: Spec | None = None,
    last_good: Spec | None = None,
    stored: dict[str, str] | None = None,
    since: str | None = None,
    **spec: Any,
) -> Policy:
    """The object; `spec` in the API's spelling, `last_good` what its annotation keeps as JSON,
    `stored` its annotations as they are."""
    metadata: Spec = {"name": name, "generation": generation, "uid": uid or f"uid-{name}", "resourceVersion": "1"}
    metadata |= {} if since is None else {"creationTimestamp": since}
    if last_good is not None:
        metadata["annotations"] = {LAST_GOOD: json.dumps({"uid": f"uid-{name}"} | last_good, separators=(",", ":"))}
    if stored is not None:
        metadata["annotations"] = stored
    return decode_policy({"metadata": metadata, "spec": spec, "status": status or {}})


def compiled(name: str = "p", **spec: Any) -> CompiledPolicy:
    """A policy that has to compile."""
    result = compile_policy(policy(name, **spec))
    assert result.policy is not None, result.diagnostics
    return result.policy


FILTER = ("prepare_filter", "filter", "filter_changed", "filter_changed_rows", "reason")
SCORE = ("prepare_score", "score", "normalize")


class _OnePolicy:
    """A policy with the methods of the plugins that evaluate it."""

    def __init__(self, policy: CompiledPolicy) -> None:
        self.active = ActivePolicy(policy)
        self._filters = PolicyFilters([self.active])
        ((self._scores, _),) = score_plugins([self.active])

    def __getattr__(self, name: str) -> Any:
        owner = self._filters if name in FILTER else self._scores if name in SCORE else self.active
        return getattr(owner, name)


def one_policy(policy: CompiledPolicy) -> Any:
    return _OnePolicy(policy)


def plugin(name: str = "p", **spec: Any) -> Any:
    return _OnePolicy(compiled(name, **spec))


def policy_set(**specs: Spec) -> PolicySet:
    """A set of policies by name."""
    return PolicySet.of(compiled(name.replace("_", "-"), **spec) for name, spec in specs.items())


def filtering(require: str, name: str = "r", **rule: Any) -> list[Spec]:
    """The `filters` of one rule."""
    return [{"name": name, "require": require, **rule}]


def scoring(value: Any, name: str = "s", **rule: Any) -> list[Spec]:
    """The `scores` of one rule, of a value or of cases."""
    given = {"cases": value} if isinstance(value, list) else {"value": value}
    return [{"name": name, **given, **rule}]
