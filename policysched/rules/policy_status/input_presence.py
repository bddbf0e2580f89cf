"""On how many nodes each input of a policy is present, with warnings for inputs on none.

A label that no node has is most often a misspelt one, so the warning names the nearest that some node has. It never
keeps a policy from compiling: the nodes may come later. Counts change with every node; they are told anew only where
one leaves or reaches 0, where the trouble with a metric changes, or where the policy does. So what was told is kept,
and a restart takes it over from the status.

Compiled programs know no positions, so that equal expressions are one; a warning about the cluster needs them, and
finds them in the texts. Only what must be there for a rule to say anything is a reference: a value after `!=` or `not
in` may well be absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from policysched.model.objects import Node
from policysched.model.policy import PolicyKey, PolicySpec
from policysched.model.requests import allocatable
from policysched.rules.compile.policy import CompiledPolicy, MetricInput
from policysched.rules.inputs import RESOURCE_NAMES
from policysched.rules.policy_set.store import StoredPolicy
from policysched.state.tables.columns import distinct
from policysched.state.tables.node_texts import NodeText

MOST_INPUTS = 100
"""How many inputs of a policy a status tells."""
MOST_COMPARED = 300
MOST_SUGGESTIONS = 100
"""For how many names of a policy a similar name is looked for; others are reported without one. 0.5 ms each."""
MOST_TEXTS = 1024
"""Of how many texts the references are remembered."""
_LOOKS_LIKE = str.maketrans("OolIS", "00115")
"""Characters that are read as others: H1OO for H100."""
_ALWAYS = frozenset(("cpu", "memory", "pods", "ephemeral-storage"))
KEYED = frozenset(("labels", "annotations", "conditions", "addresses", "allocatable", "requested", "free"))
EQUAL = frozenset(("==", "in"))


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a field's text.

    Attributes:
        field: The field, as `spec.filters[0].require`.
        text: Its text.
        span: The place in it.
        item: What is read of nodes.
        values: What it is compared with, each with its place; empty where the input itself is the point.
        converted: Whether its values are to be numbers.
    """

    field: str
    text: str
    span: Span
    item: Input
    values: tuple[tuple[str, Span], ...] = ()
    converted: bool = False


def references(spec: PolicySpec) -> Iterator[Reference]:
    """Find the references of a spec that compiles."""
    return (reference for field, text, start in _texts(spec) for reference in _in_text(field, text, start))


def _texts(spec: PolicySpec) -> Iterator[tuple[str, str, str]]:
    """Return each text that may read nodes with its field and what it is: `expr` or `case`."""
    for index, let in enumerate(spec.let):
        yield f"spec.let[{index}].value", str(let.value), "expr"
    for index, rule in enumerate(spec.filters):
        yield f"spec.filters[{index}].require", rule.require, "expr"
    if spec.preemption is not None:
        yield "spec.preemption.require", spec.preemption.require, "expr"
    for index, score in enumerate(spec.scores):
        if score.value is not None:
            yield f"spec.scores[{index}].value", str(score.value), "expr"
        for line, case in enumerate(score.cases):
            yield f"spec.scores[{index}].cases[{line}]", case, "case"


@lru_cache(maxsize=MOST_TEXTS)
def _in_text(field: str, text: str, start: str) -> tuple[Reference, ...]:
    """Find the references of a text; statuses are looked at again and again, and parsing takes longest."""
    return tuple(_found_in(field, text, start))


def _found_in(field: str, text: str, start: str) -> Iterator[Reference]:
    tree = parse(text, start)
    if isinstance(tree, Diagnostic):
        return
    for expr in (one for root in _roots(tree) for one in walk(root)):
        if isinstance(expr, Path):
            item = _input(expr)
            if item is not None:
                yield Reference(field, text, expr.span, item)
        elif isinstance(expr, Comparison) and expr.operator in EQUAL:
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
            yield Reference(field, text, other.span, item, values)


def _strings(expr: Expr) -> tuple[tuple[str, Span], ...]:
    items = expr.items if isinstance(expr, Listing) else (expr,)
    texts = [(one.text, one.span) for one in items if isinstance(one, Literal) and one.kind is LiteralKind.STRING]
    return tuple(texts) if len(texts) == len(items) else ()


def _input(path: Path) -> Input | None:
    """Return what a path reads of nodes, None where every node has it or it is none of theirs."""
    root, *names = path.names
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
    """On how many of all nodes an input is present."""

    name: str
    present: int
    total: int
    problem: str = ""
    """What the source of a metric says is wrong."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a cluster has of what a policy reads."""

    inputs: tuple[InputCoverage, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def gist(self) -> object:
        """What is worth telling anew: which inputs are on no node, and the trouble with metrics."""
        return {(one.name, one.present == 0, one.problem) for one in self.inputs}, self.warnings


def count_inputs(policy: CompiledPolicy, cluster: Cluster) -> Coverage:
    """Count the nodes that have each input of a policy, and warn of inputs that no node has.

    Cost: O(nodes) for each input and for each place in a text that names one.
    """
    inputs = islice(filter(_may_be_absent, policy.inputs), MOST_INPUTS)
    counted = [_count(item, cluster) for item in inputs]
    return Coverage(tuple(counted), absent(policy, cluster))


def absent(policy: CompiledPolicy, cluster: Cluster) -> tuple[Diagnostic, ...]:
    """Warn of inputs and values that no node has (W0705); a cluster without nodes says nothing of them."""
    if not cluster.nodes.count:
        return ()
    bound = {item.path: item for item in policy.inputs if isinstance(item, MetricInput)}
    found: dict[Diagnostic, None] = {}
    names = NodeNames(cluster)
    for reference in references(policy.spec):
        item = bound.get(reference.item.path, reference.item)
        found.update(dict.fromkeys(_warnings(reference, item, cluster, names)))
    return tuple(found)


def _warnings(reference: Reference, item: Input, cluster: Cluster, names: NodeNames) -> Iterator[Diagnostic]:
    present = _present(item, cluster).any()
    if present and reference.values:
        yield from _unknown_values(reference, item, names)
    elif present and reference.converted:
        yield from _no_numbers(reference, item, cluster, names)
    elif not present and not reference.values and not reference.converted:
        yield replace(_no_value(reference, item, cluster, names), field=reference.field)


def _no_value(reference: Reference, item: Input, cluster: Cluster, names: NodeNames) -> Diagnostic:
    if item.root == "metrics":
        problem = _problem(item, cluster)
        return diagnose("W0705", reference.text, reference.span, "metric", input=item.text, help=problem)
    hint = names.suggest(item.key, names.keys(item.path[0])) if item.key is not None else ""
    return diagnose("W0705", reference.text, reference.span, input=item.text, help=hint)


def _unknown_values(reference: Reference, item: Input, names: NodeNames) -> Iterator[Diagnostic]:
    """Warn of values that no node has: once where that is all of them, else of each that looks misspelt.

    Of some values of a list the nodes may come later; one that looks like what the list has beside it was meant so.
    """
    known = names.values(item)
    if known is None:
        return
    unknown = [(value, span) for value, span in reference.values if value not in known]
    if len(unknown) == len(reference.values):
        hint = next(filter(None, (names.suggest(value, known) for value, _ in unknown)), "")
        unknown = [(hint, reference.span)]
    else:
        listed = {value for value, _ in reference.values}
        # what is meant may be a value that the list does not have, or one that reads the same
        unknown = [
            (names.suggest(value, {one for one in known if one not in listed or _folded(one) == _folded(value)}), span)
            for value, span in unknown
        ]
        unknown = [(hint, span) for hint, span in unknown if hint]
    for hint, span in unknown:
        found = diagnose("W0705", reference.text, span, "value", input=item.text, help=hint)
        yield replace(found, field=reference.field)


def _no_numbers(reference: Reference, item: Input, cluster: Cluster, names: NodeNames) -> Iterator[Diagnostic]:
    """Warn of a value that is to be a number and is none; of several the first by node name."""
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
    """Return the problem of a metric; empty if there is none."""
    return cluster.metrics.problems.get(item.metric, "") if isinstance(item, MetricInput) else ""


def _may_be_absent(item: Input) -> bool:
    if item.root == "metrics":
        return True
    if item.root != "node" or item.key == ANY_KEY:
        return False
    plain = item.path[0] in WELL_KNOWN_LABELS or item.path[0] in NODE_INFO
    return plain or (item.path[0] in KEYED and item.key is not None)


def _present(item: Input, cluster: Cluster) -> Mask:
    """Return on which rows an input is there. Shapes: (N,)."""
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


class NodeNames:
    """Names and values that nodes have: collected once for all warnings of a policy."""

    def __init__(self, cluster: Cluster) -> None:
        self.keys: Callable[[str], frozenset[str]] = lru_cache(maxsize=None)(partial(_keys, cluster))
        """The keys that some node has of labels, annotations or resources."""
        self.values: Callable[[Input], set[str] | None] = lru_cache(maxsize=None)(partial(_values, cluster))
        """The values that nodes have of an input, None where it is not about texts."""
        self._suggestions = 0

    def suggest(self, name: str, known: AbstractSet[str]) -> str:
        """Suggest a known name that is similar."""
        self._suggestions += 1
        return _nearest(name, known) if self._suggestions <= MOST_SUGGESTIONS else ""


def _keys(cluster: Cluster, kind: str) -> frozenset[str]:
    keys: Callable[[Node], Iterable[str]] = _TEXTS.get(kind, _resources)
    return frozenset(key for node in _nodes(cluster) for key in keys(node))


def _resources(node: Node) -> Iterable[str]:
    return (name for name, _ in allocatable(node).scalars)


def _values(cluster: Cluster, item: Input) -> set[str] | None:
    """Return the values that nodes have of an input, None where it is not about texts."""
    name, nodes = item.path[0], cluster.nodes
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
    """Suggest what is near, or ends so behind a `/`; among very many only what begins or ends alike, which is fast."""
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
    """The coverage of each policy as its status says it, and whether that has to say something else now."""

    def __init__(self, cluster: Cluster, instance: str) -> None:
        self._cluster = cluster
        self._instance = instance
        self._told: dict[PolicyKey, Coverage] = {}

    def of(self, key: PolicyKey) -> Coverage:
        """Return what is told of a policy."""
        return self._told.get(key, NO_COVERAGE)

    def refresh(self, entry: StoredPolicy) -> bool:
        """Count a policy's inputs again; return whether its status has to change."""
        key = entry.policy.key
        if entry.active is None:
            return self._told.pop(key, None) is not None
        found = count_inputs(entry.active, self._cluster)
        before = self._told.get(key)
        if before is None:
            own = (one.inputs for one in entry.policy.status.instances if one.name == self._instance)
            written = (InputCoverage(one.name, one.present, one.total, one.problem) for one in next(own, []))
            before = Coverage(tuple(written), found.warnings)
        if [one.name for one in before.inputs] == [one.name for one in found.inputs] and before.gist == found.gist:
            self._told[key] = before
            return False
        self._told[key] = found
        return True

    def forget(self, key: PolicyKey) -> None:
        """Forget a policy that is gone."""
        self._told.pop(key, None)
