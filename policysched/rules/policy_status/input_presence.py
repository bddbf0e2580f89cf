"""Counts the nodes that have each input of a policy, and warns of inputs that no node has.

A label that no node has is most often misspelt, so the warning suggests a similar label of the cluster. The warning
never keeps a policy from compiling: the nodes may be added later. Labels of namespaces are treated alike. Counts change
with every node. The status gets new counts only if a count becomes 0 or positive, if the problem of a metric changes,
or if the policy changes. So the reported counts are cached, and a restart reads them from the status.

Compiled programs contain no positions in texts, so that equal expressions are shared. A warning needs a position, so
the texts are parsed for references. A reference is an input or value that must be present for a rule to have an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice

import numpy as np

from policysched.framework import Cluster, Mask
from policysched.language.evaluation.scalar import STRICT
from policysched.language.ir.graph import ANY_KEY, Input, Op
from policysched.language.ir.tree import (
    Call,
    Case,
    Comparison,
    Expr,
    Keyword,
    Listing,
    Literal,
    LiteralKind,
    Path,
    Span,
    walk,
)
from policysched.language.ir.types import NODE_INFO, WELL_KNOWN_LABELS
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.messages.suggestions import did_you_mean, shown
from policysched.language.syntax.parser import parse
from policysched.model.objects import LabelSelector, Node, Requirement
from policysched.model.policy import FilterRule, PlacementRules, PolicyKey, PolicySpec, ScoreRule
from policysched.model.requests import allocatable
from policysched.rules.amounts import RESOURCE_NAMES
from policysched.rules.compile.policy import CompiledPolicy, MetricInput
from policysched.rules.policy_set.store import StoredPolicy
from policysched.state.tables.columns import distinct
from policysched.state.tables.node_texts import NodeText

MOST_INPUTS = 100
"""Maximum number of a policy's inputs in its status; further inputs are left out."""
MOST_COMPARED = 300
"""Number of names up to which all are compared for a suggestion; beyond it, only those with equal start or end."""
MOST_SUGGESTIONS = 100
"""Maximum number of misspelt names of a policy that get a suggestion; a suggestion takes 0.5 ms."""
MOST_TEXTS = 1024
"""Maximum number of texts with cached references; beyond it, the least recently used are dropped."""
_LOOKS_LIKE = str.maketrans("OolIS", "00115")
"""For each character that looks like another one, as in H1OO for H100, the other character."""
_ALWAYS = frozenset(("cpu", "memory", "pods", "ephemeral-storage"))
NAMESPACE_LABELS = "namespace_labels"
KEYED = frozenset(("labels", "annotations", "conditions", "addresses", "allocatable", "requested", "free"))
EQUAL = frozenset(("==", "in"))
UNEQUAL = frozenset(("!=", "not in"))


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a field of a policy where an input of nodes or a label of namespaces is read.

    Attributes:
        field: The field, as `spec.filters[0].require`.
        text: Its text.
        span: The place in the text.
        item: The input.
        values: The values that the input is compared with, each with its place; empty for the input itself.
        excluded: Whether the input must differ from the values.
        converted: Whether the text converts the input to a number.
    """

    field: str
    text: str
    span: Span
    item: Input
    values: tuple[tuple[str, Span], ...] = ()
    excluded: bool = False
    converted: bool = False


def references(spec: PolicySpec) -> Iterator[Reference]:
    """Yield the places in a policy's spec where inputs of nodes and labels of namespaces are read."""
    yield from _selected(spec.namespace_selector)
    yield from (reference for field, text, start in _texts(spec) for reference in _in_text(field, text, start))
    for item in _topology(spec):
        key = item.key or ""
        yield Reference("spec.placement.topologyKey", key, Span(0, len(key)), item)


def _selected(selector: LabelSelector | None) -> Iterator[Reference]:
    """Yield a reference for each label, and one for the values of each label, of a namespaceSelector."""
    selector, start = selector or LabelSelector(), Span(0, 0)
    stated = [("matchLabels", Requirement(key, "In", (value,))) for key, value in selector.match_labels.items()]
    stated += [(f"matchExpressions[{index}]", one) for index, one in enumerate(selector.match_expressions)]
    for part, one in stated:
        field, item = f"spec.namespaceSelector.{part}", Input("pod", (NAMESPACE_LABELS,), one.key)
        yield Reference(field, "", start, item)
        if one.values:
            values = tuple((value, start) for value in one.values)
            yield Reference(field, "", start, item, values, excluded=one.operator == "NotIn")


def _topology(spec: PolicySpec) -> tuple[Input, ...]:
    """Return the label whose values divide the nodes into placements; empty without such a label."""
    key = "" if spec.placement is None else spec.placement.topology_key
    return (Input("node", ("labels",), key),) if key else ()


def _texts(spec: PolicySpec) -> Iterator[tuple[str, str, str]]:
    """Yield each expression of a policy with its field and its grammar rule: `expr` or `case`."""
    yield "spec.appliesTo", spec.applies_to or "", "expr"
    for index, let in enumerate(spec.let):
        yield f"spec.let[{index}].value", str(let.value), "expr"
    if spec.preemption is not None:
        yield "spec.preemption.require", spec.preemption.require, "expr"
    placement = spec.placement or PlacementRules()
    yield from _rule_texts("spec", spec.filters, spec.scores)
    yield from _rule_texts("spec.placement", placement.filters, placement.scores)


def _rule_texts(
    place: str, filters: Sequence[FilterRule], scores: Sequence[ScoreRule]
) -> Iterator[tuple[str, str, str]]:
    for index, rule in enumerate(filters):
        yield f"{place}.filters[{index}].when", rule.when or "", "expr"
        yield f"{place}.filters[{index}].require", rule.require, "expr"
    for index, score in enumerate(scores):
        yield f"{place}.scores[{index}].when", score.when or "", "expr"
        if score.value is not None:
            yield f"{place}.scores[{index}].value", str(score.value), "expr"
        for line, case in enumerate(score.cases):
            yield f"{place}.scores[{index}].cases[{line}]", case, "case"


@lru_cache(maxsize=MOST_TEXTS)
def _in_text(field: str, text: str, start: str) -> tuple[Reference, ...]:
    """Return the places in a text where inputs are read; cached, because parsing takes most of the time."""
    return tuple(_found_in(field, text, start)) if text else ()


def _found_in(field: str, text: str, start: str) -> Iterator[Reference]:
    tree = parse(text, start)
    if isinstance(tree, Diagnostic):
        return
    for expr in (one for root in _roots(tree) for one in walk(root)):
        if isinstance(expr, Path):
            item = _input(expr)
            if item is not None:
                yield Reference(field, text, expr.span, item)
        elif isinstance(expr, Comparison) and expr.operator in EQUAL | UNEQUAL:
            yield from _compared(field, text, expr)
        elif isinstance(expr, Call) and expr.function.dotted == "number":
            item = _input(expr.arguments[0]) if isinstance(expr.arguments[0], Path) else None
            if item is not None:
                yield Reference(field, text, expr.arguments[0].span, item, converted=True)


def _roots(tree: Case | Expr) -> Iterable[Expr]:
    if not isinstance(tree, Case):
        return (tree,)
    return (tree.value,) if isinstance(tree.guard, Keyword) else (tree.guard, tree.value)


def _compared(field: str, text: str, comparison: Comparison) -> Iterator[Reference]:
    for one, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        item = _input(one) if isinstance(one, Path) else None
        values = _strings(other)
        if item is not None and values:
            yield Reference(field, text, other.span, item, values, excluded=comparison.operator in UNEQUAL)


def _strings(expr: Expr) -> tuple[tuple[str, Span], ...]:
    items = expr.items if isinstance(expr, Listing) else (expr,)
    texts = [(one.text, one.span) for one in items if isinstance(one, Literal) and one.kind is LiteralKind.STRING]
    return tuple(texts) if len(texts) == len(items) else ()


def _input(path: Path) -> Input | None:
    """Return the input of nodes or the label of namespaces that a path reads; None for inputs that are always there."""
    root, *names = path.names
    if root in {"pod", "peer"} and names == [NAMESPACE_LABELS] and isinstance(path.key, Literal):
        return Input(root, (NAMESPACE_LABELS,), path.key.text)
    if root == "metrics" and len(names) == 1:
        return Input(root, tuple(names))
    if root != "node" or len(names) != 1:
        return None
    if names[0] in KEYED and isinstance(path.key, Literal):
        return Input(root, (names[0],), path.key.text)
    plain = names[0] in WELL_KNOWN_LABELS or names[0] in NODE_INFO or names[0] == "name"
    return Input(root, (names[0],)) if plain else None


@dataclass(frozen=True, slots=True)
class InputCoverage:
    """The number of nodes that have an input of a policy."""

    name: str
    present: int
    total: int
    problem: str = ""
    """The problem that the metric source reports for the input; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """For a policy, the number of nodes that have each input, with warnings about missing inputs."""

    inputs: tuple[InputCoverage, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def reported(self) -> object:
        """The parts of the counts whose change requires a new status: absent inputs, metric problems and warnings."""
        return {(one.name, one.present == 0, one.problem) for one in self.inputs}, self.warnings


def count_inputs(policy: CompiledPolicy, cluster: Cluster) -> Coverage:
    """Count the nodes that have each input of a policy, and warn of inputs that no node has.

    Cost: O(nodes) for each input and for each place in a text that names one.
    """
    items = dict.fromkeys((*filter(_may_be_absent, policy.inputs), *_topology(policy.spec)))
    inputs = islice(items, MOST_INPUTS)
    counted = [_count(item, cluster) for item in inputs]
    return Coverage(tuple(counted), absent(policy, cluster))


def absent(policy: CompiledPolicy, cluster: Cluster) -> tuple[Diagnostic, ...]:
    """Warn of inputs and values that no node or namespace has (W0705), and of placement rules without effect.

    Without nodes, inputs of nodes are not reported; without namespaces, their labels are not reported.
    """
    found: dict[Diagnostic, None] = {}
    if policy.placement is not None and not cluster.release.topology_aware:
        found[replace(diagnose("W0715", "", Span(0, 0)), field="spec.placement")] = None
    bound = {item.path: item for item in policy.inputs if isinstance(item, MetricInput)}
    names = ClusterNames(cluster)
    for reference in references(policy.spec):
        item = bound.get(reference.item.path, reference.item)
        if cluster.namespaces if _is_of_namespaces(item) else cluster.nodes.count:
            found.update(dict.fromkeys(_warnings(reference, item, cluster, names)))
    return tuple(found)


def _warnings(reference: Reference, item: Input, cluster: Cluster, names: ClusterNames) -> Iterator[Diagnostic]:
    present = _is_present(item, cluster)
    if present and reference.values:
        yield from _unknown_values(reference, item, names)
    elif present and reference.converted and not _is_of_namespaces(item):
        yield from _no_numbers(reference, item, cluster, names)
    elif not present and not reference.values and not reference.converted:
        yield replace(_no_value(reference, item, cluster, names), field=reference.field)


def _no_value(reference: Reference, item: Input, cluster: Cluster, names: ClusterNames) -> Diagnostic:
    if item.root == "metrics":
        problem = _problem(item, cluster)
        return diagnose("W0705", reference.text, reference.span, "metric", input=item.text, help=problem)
    hint = names.suggest(item.key, names.keys(item.path[0])) if item.key is not None else ""
    variant = "namespace" if _is_of_namespaces(item) else ""
    return diagnose("W0705", reference.text, reference.span, variant, input=item.text, key=item.key, help=hint)


def _unknown_values(reference: Reference, item: Input, names: ClusterNames) -> Iterator[Diagnostic]:
    """Warn of values that no node or namespace has: once if no value in the place exists, else per misspelt value.

    A list may contain values of nodes that are added later, and `!=` may exclude a value of other clusters, so such an
    absent value without a suggestion gets no warning.
    """
    known = names.values(item)
    if known is None:
        return
    unknown = [(value, span) for value, span in reference.values if value not in known]
    if len(unknown) == len(reference.values) and not reference.excluded:
        hint = next(filter(None, (names.suggest(value, known) for value, _ in unknown)), "")
        unknown = [(hint, reference.span)]
    else:
        listed = {value for value, _ in reference.values}
        # suggest known values that the list does not contain, or that look the same as the value
        unknown = [
            (names.suggest(value, {one for one in known if one not in listed or _folded(one) == _folded(value)}), span)
            for value, span in unknown
        ]
        unknown = [(hint, span) for hint, span in unknown if hint]
    variant = "namespace_value" if _is_of_namespaces(item) else "value"
    for hint, span in unknown:
        found = diagnose("W0705", reference.text, span, variant, input=item.text, key=item.key, help=hint)
        yield replace(found, field=reference.field)


def _no_numbers(reference: Reference, item: Input, cluster: Cluster, names: ClusterNames) -> Iterator[Diagnostic]:
    """Warn of node values that cannot be converted to a number, with the first node that has such a value."""
    known = names.values(item) or set()
    wrong = {value for value in known if STRICT[Op.NUMBER](value) is None}
    if not wrong:
        return
    texts = _TEXTS[item.path[0] if item.path[0] in _TEXTS else "labels"]
    key = item.key if item.key is not None else WELL_KNOWN_LABELS.get(item.path[0], "")
    having = [node for node in _nodes(cluster) if texts(node).get(key) in wrong]
    node = min(having, key=lambda one: one.metadata.name, default=None)
    if node is not None:
        value = shown(texts(node)[key])
        found = diagnose(
            "W0705", reference.text, reference.span, "number", input=item.text, value=value, node=node.metadata.name
        )
        yield replace(found, field=reference.field)


def _count(item: Input, cluster: Cluster) -> InputCoverage:
    present = int(np.count_nonzero(_present(item, cluster)))
    return InputCoverage(item.text, present, cluster.nodes.count, _problem(item, cluster))


def _problem(item: Input, cluster: Cluster) -> str:
    """Return the problem that the metric source reports for an input; empty if there is none."""
    return cluster.metrics.problems.get(item.metric, "") if isinstance(item, MetricInput) else ""


def _is_of_namespaces(item: Input) -> bool:
    return item.path[0] == NAMESPACE_LABELS


def _may_be_absent(item: Input) -> bool:
    if item.root == "metrics":
        return True
    if item.root != "node" or item.key == ANY_KEY:
        return False
    plain = item.path[0] in WELL_KNOWN_LABELS or item.path[0] in NODE_INFO
    return plain or (item.path[0] in KEYED and item.key is not None)


def _is_present(item: Input, cluster: Cluster) -> bool:
    """Return whether some node, or some namespace, has an input."""
    if _is_of_namespaces(item):
        return any(item.key in labels for labels in cluster.namespaces.values())
    return bool(_present(item, cluster).any())


def _present(item: Input, cluster: Cluster) -> Mask:
    """Return a mask of the nodes that have an input. Shapes: (N,)."""
    rows = slice(0, cluster.nodes.size)
    has: Mask = _CHECKS[item.path[0] if item.root == "node" else item.root](item, cluster)[rows]
    found: Mask = has & cluster.nodes.present.data[rows]
    return found


def _everywhere(_: Input, cluster: Cluster) -> Mask:
    present: Mask = cluster.nodes.present.data
    return present


def _has_label(item: Input, cluster: Cluster) -> Mask:
    key = item.key if item.key is not None else WELL_KNOWN_LABELS[item.path[0]]
    found: Mask = cluster.nodes.labels(key) >= 0
    return found


def _has_text(item: Input, cluster: Cluster) -> Mask:
    found: Mask = cluster.nodes.text(NodeText(item.path[0], item.key or "")) >= 0
    return found


def _has_resource(item: Input, cluster: Cluster) -> Mask:
    name = RESOURCE_NAMES.get(item.key or "", item.key or "")
    if name in _ALWAYS:
        return _everywhere(item, cluster)
    found: Mask = cluster.nodes.allocatable(name) > 0
    return found


def _has_value(item: Input, cluster: Cluster) -> Mask:
    if not isinstance(item, MetricInput):
        return _everywhere(item, cluster)
    values = cluster.metrics.column(item.metric, item.max_age).data
    has: Mask = ~np.isnan(values)
    return has


_CHECKS: Mapping[str, Callable[[Input, Cluster], Mask]] = {
    "name": _everywhere,
    "labels": _has_label,
    "annotations": lambda item, cluster: cluster.nodes.annotations(item.key or "") >= 0,
    "metrics": _has_value,
    **dict.fromkeys(("conditions", "addresses", *NODE_INFO), _has_text),
    **dict.fromkeys(("allocatable", "requested", "free"), _has_resource),
    **dict.fromkeys(WELL_KNOWN_LABELS, _has_label),
}


_TEXTS: Mapping[str, Callable[[Node], Mapping[str, str]]] = {
    "labels": lambda node: node.metadata.labels,
    "annotations": lambda node: node.metadata.annotations,
    "conditions": lambda node: {one.type: one.status for one in node.status.conditions},
    "addresses": lambda node: {one.type: one.address for one in node.status.addresses},
}


NO_COVERAGE = Coverage()


class ClusterNames:
    """The names and values of all nodes and namespaces, collected once for the warnings of a policy."""

    def __init__(self, cluster: Cluster) -> None:
        self.keys: Callable[[str], frozenset[str]] = lru_cache(maxsize=None)(partial(_keys, cluster))
        """Function that returns the keys of labels or annotations, or the resources, of all nodes or namespaces."""
        self.values: Callable[[Input], set[str] | None] = lru_cache(maxsize=None)(partial(_values, cluster))
        """Function that returns the values of an input on all nodes or namespaces; None if they are not texts."""
        self._suggestions = 0

    def suggest(self, name: str, known: AbstractSet[str]) -> str:
        """Return a suggestion to use a similar known name; empty if no known name is similar."""
        self._suggestions += 1
        return _nearest(name, known) if self._suggestions <= MOST_SUGGESTIONS else ""


def _keys(cluster: Cluster, kind: str) -> frozenset[str]:
    if kind == NAMESPACE_LABELS:
        return frozenset(key for labels in cluster.namespaces.values() for key in labels)
    keys: Callable[[Node], Iterable[str]] = _TEXTS.get(kind, _resources)
    return frozenset(key for node in _nodes(cluster) for key in keys(node))


def _resources(node: Node) -> Iterable[str]:
    return (name for name, _ in allocatable(node).scalars)


def _values(cluster: Cluster, item: Input) -> set[str] | None:
    """Return the values of an input on all nodes or namespaces; None if the values are not texts."""
    name, nodes = item.path[0], cluster.nodes
    if _is_of_namespaces(item):
        key = item.key or ""
        return {labels[key] for labels in cluster.namespaces.values() if key in labels}
    if name == "name":
        codes = nodes.name.data
    elif name == "annotations":
        codes = nodes.annotations(item.key or "")
    elif name in NODE_INFO:
        codes = nodes.text(NodeText(name))
    elif name == "labels" or name in WELL_KNOWN_LABELS:
        codes = nodes.labels(item.key if item.key is not None else WELL_KNOWN_LABELS[name])
    else:
        return None
    shown = distinct(codes[nodes.present.data & (codes >= 0)])
    return {cluster.strings.value(code) for code in shown.tolist()}


def _nearest(name: str, known: AbstractSet[str]) -> str:
    """Return a known name that looks the same, has the name after a `/`, or is similar; empty if there is none.

    Among more than MOST_COMPARED names, only names with the same first or last two characters are compared.
    """
    if len(known) > MOST_COMPARED:
        alike = (one for one in known if one[:2] == name[:2] or one[-2:] == name[-2:])
        known = set(sorted(alike)[:MOST_COMPARED])
    same = sorted(one for one in known if _folded(one) == _folded(name))
    same = same or sorted(one for one in known if one.endswith(f"/{name}"))
    return f"did you mean `{same[0]}`?" if same else did_you_mean(name, known)


def _folded(name: str) -> str:
    return name.translate(_LOOKS_LIKE).casefold()


def _nodes(cluster: Cluster) -> Iterable[Node]:
    return (node for node in cluster.nodes.nodes if node is not None)


class CoverageReports:
    """Keeps the input coverage of each policy's status, and determines which statuses need new counts."""

    def __init__(self, cluster: Cluster, instance: str) -> None:
        self._cluster = cluster
        self._instance = instance
        self._reported: dict[PolicyKey, Coverage] = {}

    def of(self, key: PolicyKey) -> Coverage:
        """Return the input coverage of a policy's status."""
        return self._reported.get(key, NO_COVERAGE)

    def refresh(self, entry: StoredPolicy) -> bool:
        """Count the nodes that have a policy's inputs; return whether the policy's status has to change."""
        key = entry.policy.key
        if entry.active is None:
            return self._reported.pop(key, None) is not None
        found = count_inputs(entry.active, self._cluster)
        before = self._reported.get(key)
        if before is None:
            own = (one.inputs for one in entry.policy.status.instances if one.name == self._instance)
            written = (InputCoverage(one.name, one.present, one.total, one.problem) for one in next(own, []))
            before = Coverage(tuple(written), found.warnings)
        same_inputs = [one.name for one in before.inputs] == [one.name for one in found.inputs]
        if same_inputs and before.reported == found.reported:
            self._reported[key] = before
            return False
        self._reported[key] = found
        return True

    def forget(self, key: PolicyKey) -> None:
        """Remove the coverage of a deleted policy."""
        self._reported.pop(key, None)
