"""`admission_policies`: MutatingAdmissionPolicies that add the node affinity of filters to new pods.

An admission policy stands for one filter: its conditions select the pods to which the filter applies for certain, and
its mutation adds the filter's terms to each term of the pod. So each admission policy only narrows the affinity, and
their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

import msgspec

from policysched.app.configuration.profiles import DEFAULT_NAME, configured_profiles
from policysched.app.configuration.reading import load_configuration
from policysched.app.dry_run.policies import compiled_policies, standing_policies, try_policies
from policysched.app.plugins.discovery import find_plugins
from policysched.app.translate.translate import MOST_TERMS, ignored_parts
from policysched.language.ir.graph import Input, Op, Typed
from policysched.language.ir.types import Kind
from policysched.model.objects.meta import LabelSelector, Requirement
from policysched.model.objects.pods import NodeSelectorTerm
from policysched.model.pod_requirements import SYSTEM_PRIORITY
from policysched.model.policy import KIND
from policysched.reading.documents import Document
from policysched.rules.compile.policy import CompiledFilter, CompiledPolicy
from policysched.rules.translation.cel_conditions import (
    FIXED_LABELS,
    NEVER,
    POSSIBLE,
    constant_value,
    may_be,
    pod_string,
    quoted,
)
from policysched.rules.translation.conditions import ALWAYS, Approximation, subject_of, translate

API: Final = "admissionregistration.k8s.io/v1"
LABEL: Final = "policysched.io/translated"
NOT_EXPRESSED: Final = "policysched.io/not-expressed"
"""Annotation that lists the parts of a filter that the filter's admission policy does not express."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_OWN: Final = f"object.spec.?affinity.?nodeAffinity.?{_REQUIRED}.?nodeSelectorTerms"
_PARTS: Final = ("matchExpressions", "matchFields")
_COVERED: Final = "variables.alternatives.exists(a, {})".format(
    " && ".join(f"a.{part}.all(r, r in t.{part})" for part in _PARTS)
)
_COPIED: Final = "{{{}}}".format(
    ", ".join(
        f'"{part}": t.?{part}.orValue([]).map(r, {{"key": dyn(r.key), "operator": dyn(string(r.operator)), '
        '"values": dyn(r.?values.orValue([]).map(v, v))})'
        for part in _PARTS
    )
)
"""A CEL map with the requirements of a term, because a JSON patch cannot contain parts of the object itself."""
_NOT_EMPTY: Final = " || ".join(f"t.{part}.size() > 0" for part in _PARTS)
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FilterAdmission:
    """The MutatingAdmissionPolicy for a filter of a policy, or why there is none."""

    policy: str
    rule: str
    objects: tuple[Object, ...]
    """The MutatingAdmissionPolicy and its binding; empty if the filter is not translated."""
    not_expressed: str
    """The parts of the filter that the admission policy does not express; empty if it expresses all."""

    @property
    def note(self) -> str:
        """Text to print after the filter's name if the filter is not translated completely; otherwise empty."""
        if not self.not_expressed:
            return ""
        return f"is translated {'in part' if self.objects else 'to nothing'}: {self.not_expressed}"


def translated_cluster(
    objects: Iterable[Mapping[str, Any]], policies: Iterable[Mapping[str, Any]], config: Document | None
) -> list[FilterAdmission]:
    """Return the MutatingAdmissionPolicies for the filters of a cluster's policies.

    Args:
        objects: The objects of the cluster.
        policies: Policies to try, each instead of the cluster's policy of the same name.
        config: The configuration with the names of the schedulers; None for the default name and names in policies.

    Raises:
        UsageError: an object is malformed, or a policy has errors.
    """
    store = standing_policies(one for one in objects if one["kind"] == KIND)
    compiled = compiled_policies(store, try_policies(store, policies)).compiled
    if config is not None:
        profiles = configured_profiles(load_configuration(config), find_plugins().registry)
        return [*admission_policies(compiled, [name for name, one in profiles.items() if one.policies_filter])]
    return [
        found for one in compiled for found in admission_policies([one], one.spec.scheduler_names or [DEFAULT_NAME])
    ]


def admission_policies(policies: Iterable[CompiledPolicy], names: Sequence[str]) -> Iterator[FilterAdmission]:
    """Yield a MutatingAdmissionPolicy for each filter of policies in mode Enforce, or why there is none.

    Args:
        policies: The policies.
        names: The names of the schedulers that use the policies.
    """
    for policy in policies:
        own = policy.spec.scheduler_names
        used = [name for name in names if not own or name in own]
        if policy.spec.mode == "Enforce" and used:
            for rule in policy.filters:
                yield _admission(policy, rule, used)


def _admission(policy: CompiledPolicy, rule: CompiledFilter, names: Sequence[str]) -> FilterAdmission:
    selected = _selection(policy, rule, names)
    root = rule.require.root
    parts = root.args if root.op == Op.AND else (root,)
    with_pods = {part: text for part in parts if (text := _of_pod(part)) is not None}
    translated = [translate(part, constant_value) for part in parts if part not in with_pods]
    found: Approximation = reduce(and_, translated, ALWAYS)
    rest = "; ".join(filter(None, (*selected.not_expressed, ignored_parts(found.unexpressed))))
    if selected.is_empty or (found.nodes.is_everything and not with_pods):
        return FilterAdmission(policy.key, rule.name, (), rest)
    terms = [NodeSelectorTerm()] if found.nodes.is_everything else found.nodes.selector_terms()
    if len(terms) > MOST_TERMS:
        return FilterAdmission(policy.key, rule.name, (), f"the affinity would have more than {MOST_TERMS} terms")
    spec = _spec(policy, selected, [_alternative(term, [*with_pods.values()]) for term in terms])
    return FilterAdmission(policy.key, rule.name, tuple(_objects(policy, rule, spec, rest)), rest)


@dataclass(frozen=True, slots=True)
class _Selection:
    """The pods to which a filter applies for certain."""

    conditions: Sequence[Object]
    applies: str
    """CEL expression for `appliesTo` and `when`; no match condition, as match conditions cannot read namespaces."""
    not_expressed: Sequence[str]
    """The fields of the policy that the conditions express only in part, or not at all."""
    is_empty: bool
    """Whether there is no pod to which the filter applies for certain."""


def _selection(policy: CompiledPolicy, rule: CompiledFilter, names: Sequence[str]) -> _Selection:
    listed = ", ".join(map(quoted, names))
    found = {"scheduler": f"object.spec.schedulerName in [{listed}]"}
    found["no-node"] = 'object.spec.?nodeName.orValue("") == ""'
    if not policy.spec.include_system_pods:
        found["no-system-pod"] = f"object.spec.?priority.orValue(0) < {SYSTEM_PRIORITY}"
    not_expressed, outside = [], NEVER
    for field, program in (("appliesTo", policy.applies_to), ("when", rule.when)):
        false = NEVER if program is None else may_be(program.root, truth=False)
        outside |= false
        if program is not None and not false.is_exact:
            not_expressed.append(f"CEL cannot express all of {field}")
    conditions = [{"name": name, "expression": text} for name, text in found.items()]
    applies = "true" if outside == NEVER else f"!{outside.text}"
    return _Selection(conditions, applies, not_expressed, outside.text == POSSIBLE.text)


def _of_pod(part: Typed) -> str | None:
    """Return a comparison of a node label with a pod label as a CEL list of requirements; None for other conditions."""
    if part.op != Op.EQ or part.args[0].type.kind is not Kind.STRING:
        return None
    for side, other in (part.args, part.args[::-1]):
        label, value, item = subject_of(side, constant_value), pod_string(other), other.data
        fixed = isinstance(item, Input) and item.path[0] in FIXED_LABELS
        if label is not None and label.key and not label.is_name and value is not None and fixed:
            none = [Requirement(key=label.key, operator=one) for one in ("Exists", "DoesNotExist")]
            equal = _requirement(label.key, "In", f"{value}.value()")
            return f"({value}.hasValue() ? [{equal}] : {_requirements(none)})"
    return None


def _requirements(requirements: Iterable[Requirement]) -> str:
    """Return requirements as a CEL list."""
    made = (_requirement(one.key, str(one.operator), ", ".join(map(quoted, one.values))) for one in requirements)
    return f"[{', '.join(made)}]"


def _requirement(key: str, operator: str, values: str) -> str:
    return f'{{"key": dyn({quoted(key)}), "operator": dyn({quoted(operator)}), "values": dyn([{values}])}}'


def _alternative(term: NodeSelectorTerm, with_pods: Sequence[str]) -> str:
    """Return a term of the affinity as a CEL map."""
    labels = " + ".join([_requirements(term.match_expressions), *with_pods])
    return f'{{"matchExpressions": {labels}, "matchFields": {_requirements(term.match_fields)}}}'


def _spec(policy: CompiledPolicy, selection: _Selection, alternatives: Sequence[str]) -> Object:
    selectors = {"namespaceSelector": policy.spec.namespace_selector, "objectSelector": policy.spec.pod_selector}
    rules = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            **{name: _selector(one) for name, one in selectors.items() if one is not None},
            "resourceRules": [rules],
        },
        "matchConditions": selection.conditions,
        "variables": [
            {"name": "applies", "expression": selection.applies},
            {"name": "own", "expression": f"{_OWN}.orValue([])"},
            {"name": "terms", "expression": f"variables.own.map(t, {_COPIED}).filter(t, {_NOT_EMPTY})"},
            {"name": "alternatives", "expression": f"[{', '.join(alternatives)}]"},
            {"name": "covered", "expression": f"variables.terms.filter(t, {_COVERED})"},
            {"name": "open", "expression": f"variables.terms.filter(t, !{_COVERED})"},
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _mutation(len(alternatives))}}],
    }


def _mutation(count: int) -> str:
    """Return the expression of the JSON patch that adds alternatives to each term of a pod."""
    combined = " + ".join(
        f"variables.open.map(t, {{{', '.join(_joined(part, number) for part in _PARTS)}}})" for number in range(count)
    )
    add = 'JSONPatch{{op: "add", path: "/spec/affinity{}", value: {}}}'.format
    parents = [
        f"(has(object.spec.affinity) ? [] : [{add('', '{}')}])",
        f"(has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) ? [] : [{add('/nodeAffinity', '{}')}])",
    ]
    terms = f"(variables.own.size() == 0 ? variables.alternatives : variables.covered + {combined})"
    added = add(f"/nodeAffinity/{_REQUIRED}", f'{{"nodeSelectorTerms": {terms}}}')
    unchanged = f"variables.open.size() == 0 || variables.terms.size() * {count} > {MOST_TERMS}"
    return f"!variables.applies || (variables.own.size() > 0 && ({unchanged})) ? [] : {' + '.join(parents)} + [{added}]"


def _joined(part: str, number: int) -> str:
    return f'"{part}": t.{part} + variables.alternatives[{number}].{part}'


def _selector(selector: LabelSelector) -> Object:
    found = {"matchLabels": selector.match_labels, "matchExpressions": selector.match_expressions}
    return {name: msgspec.to_builtins(one) for name, one in found.items() if one}


def _objects(policy: CompiledPolicy, rule: CompiledFilter, spec: Object, rest: str) -> Iterator[Object]:
    name = f"{policy.key}.{rule.name}.policysched.io"
    annotations = {"annotations": {NOT_EXPRESSED: rest}} if rest else {}
    specs = {"MutatingAdmissionPolicy": spec, "MutatingAdmissionPolicyBinding": {"policyName": name}}
    for kind, of in specs.items():
        metadata = {"name": name, "labels": {LABEL: "true"}} | (annotations if of is spec else {})
        yield {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": of}
