"""`translate_pod`: extends a pod's node affinity so that it allows at least the nodes that the policies allow.

Autoscalers know node affinity but no policies. With the affinity, an autoscaler creates no node that a policy rejects
because of its labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from types import MappingProxyType
from typing import Any, Final

import msgspec

from policysched.app.dry_run.dry_run import Simulation
from policysched.model.objects.pods import NodeSelector, NodeSelectorTerm
from policysched.model.policy import PolicyKey
from policysched.rules.translation.conditions import ALWAYS
from policysched.rules.translation.node_sets import NOTHING, NodeSet
from policysched.rules.translation.policy_filters import TranslatedFilter, translated_filters

EXACT, PARTIAL, NOT_TRANSLATED, NOT_APPLYING = "exact", "partly", "not translated", "does not apply"
NO_NODE: Final = "no node can pass all filters"
MOST_TERMS: Final = 64
"""Largest number of terms of the affinity; beyond it the policies are not translated."""


@dataclass(frozen=True, slots=True)
class RuleTranslation:
    """The translation of a filter."""

    policy: str
    rule: str
    result: str
    """`exact`, `partly`, `not translated` or `does not apply`."""
    detail: str
    """The parts of the rule that the affinity ignores, or why the rule is not translated."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The node affinity of a pod, extended by the filters of the policies in force."""

    pod: str
    """Pod whose affinity is translated: `namespace/name`."""
    is_exact: bool
    """Whether the policies allow every node that the affinity allows."""
    affinity: Mapping[str, Any] | None
    """The value of `spec.affinity.nodeAffinity`; None if the policies add nothing."""
    rules: tuple[RuleTranslation, ...]
    not_applied: Mapping[str, str]
    """Policies without effect, with reasons."""
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the translation as values of JSON."""
        rules = [msgspec.to_builtins(rule) for rule in self.rules]
        found = {"pod": self.pod, "exact": self.is_exact, "nodeAffinity": self.affinity, "rules": rules}
        return found | ({"notApplied": dict(self.not_applied)} if self.not_applied else {})


def translate_pod(
    made: Simulation, *, is_named: bool, failed: Mapping[PolicyKey, str] = MappingProxyType({})
) -> Translation:
    """Translate the policies in force for the first pod of a simulation.

    Args:
        made: The pod, the cluster and the policies.
        is_named: Whether the pod has its final name.
        failed: Policies that have no effect because of errors, with reasons.
    """
    enforced = [one for one in made.policies.acting(made.profile) if one.policy.spec.mode == "Enforce"]
    found = [
        one for policy in enforced for one in translated_filters(policy, made.pod, made.cluster, is_named=is_named)
    ]
    combined = reduce(and_, (one.approximation for one in found if one.approximation is not None), ALWAYS)
    terms, note = _terms(made, combined.nodes)
    is_whole = all(one.approximation is not None for one in found if one.applies) and not note
    return Translation(
        made.pod.key,
        combined.is_exact and is_whole,
        None if terms is None else _affinity(made, terms),
        tuple(map(_rule, found)),
        {str(key): why for key, why in sorted((dict(made.not_applied) | dict(failed)).items())},
        (*made.notes, *([NO_NODE] if combined.nodes == NOTHING else []), *([note] if note else [])),
    )


def _terms(made: Simulation, nodes: NodeSet) -> tuple[Sequence[NodeSelectorTerm] | None, str]:
    """Return the node selector terms of policies and pod combined, or None to add none; and why none is translated."""
    if nodes.is_everything:
        return None, ""
    terms, own = nodes.selector_terms(), _own_terms(made)
    if own is not None:
        terms = [_both(mine, other) for mine in own for other in terms]
    if len(terms) > MOST_TERMS:
        return None, f"the affinity would have {len(terms)} terms, {MOST_TERMS} at most; no filter is translated"
    return terms, ""


def _rule(one: TranslatedFilter) -> RuleTranslation:
    found = one.approximation
    if found is None:
        return RuleTranslation(str(one.policy), one.rule, NOT_TRANSLATED if one.applies else NOT_APPLYING, one.note)
    result = EXACT if found.is_exact else NOT_TRANSLATED if found.nodes.is_everything else PARTIAL
    return RuleTranslation(str(one.policy), one.rule, result, ignored_parts(found.unexpressed))


def ignored_parts(parts: Iterable[str]) -> str:
    """Return a text about the parts of a filter that a node affinity ignores; empty without such parts."""
    named = ", ".join(parts)
    return f"node affinity cannot express {named}" if named else ""


def _own_terms(made: Simulation) -> Sequence[NodeSelectorTerm] | None:
    """Return the node selector terms of the pod itself, without empty terms, which match no node."""
    affinity = made.pod.spec.affinity
    own = affinity.node_affinity if affinity is not None else None
    required = own.required if own is not None else None
    if required is None:
        return None
    return [one for one in required.node_selector_terms if one.match_expressions or one.match_fields]


def _both(one: NodeSelectorTerm, other: NodeSelectorTerm) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=(*one.match_expressions, *other.match_expressions),
        match_fields=(*one.match_fields, *other.match_fields),
    )


def _affinity(made: Simulation, terms: Sequence[NodeSelectorTerm]) -> Mapping[str, Any]:
    """Return the node affinity of the pod with its required terms replaced."""
    stated = made.raw["spec"].get("affinity") or {}
    own = stated.get("nodeAffinity") or {}
    selector = NodeSelector(node_selector_terms=list(terms))
    return {**own, "requiredDuringSchedulingIgnoredDuringExecution": written(selector)}


def written(selector: NodeSelector) -> Any:
    """Return a node selector as in a manifest, without empty fields."""
    terms = []
    for term in selector.node_selector_terms:
        parts = {"matchExpressions": term.match_expressions, "matchFields": term.match_fields}
        terms.append({name: [_requirement(one) for one in found] for name, found in parts.items() if found})
    return {"nodeSelectorTerms": terms}


def _requirement(one: Any) -> dict[str, Any]:
    found = {"key": one.key, "operator": str(one.operator)}
    return found | ({"values": list(one.values)} if one.values else {})
