"""Splitting of filter rejections into single conditions, each with the nodes that the condition excludes.

The engine's filters decide which nodes are excluded. A filter that reads several parts of a pod, several taints or
several rules is split. Nodes that the parts do not explain keep the filter's own reason, so nothing is lost or
invented.

Shapes: N rows of the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from policysched.app.amounts import counted, quantity
from policysched.app.why.changes import Edit, Object, edited, more, requesting_less, with_room
from policysched.app.why.pod_parts import PodPart, parts
from policysched.app.why.results import RepairKind
from policysched.app.why.rule_parts import RulePart, rule_parts
from policysched.app.why.variants import VariantEvaluator
from policysched.framework import Codes, FilterPlugin, Mask, RowNumbers
from policysched.framework.profile import FIRST_PLACE
from policysched.model.objects import Pod
from policysched.model.pod_requirements import any_conflict, host_ports
from policysched.model.requests import incoming_requests
from policysched.model.selection.node_selectors import REPELLING_EFFECTS, TolerationMatcher
from policysched.plugins.node_resources.fit import by_name
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.results.plugin_results import EXTENDERS, FilterResults, MemberCodes
from policysched.state.nominated.columns import PodsByRow

MOST_PARTS: Final = 64
"""Largest number of taints, and of parts of a pod per filter, that rejections are split into."""
TOO_MANY_PODS: Final = "Too many pods"
INSUFFICIENT: Final = "Insufficient "
NODE_PORTS: Final = "NodePorts"
MOST_ROWS: Final = 64
"""Largest number of nodes of a group on which pods that use a host port are counted."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the pod, a node or the policies that removes a condition which excludes nodes."""

    change: RepairKind
    text: str
    edit: Edit | None = None
    """The edit of the pod or node; None if the fix removes a rule."""
    rule: str = ""
    """The filter rule that the fix removes, as policy/rule."""


Fixes = Callable[[RowNumbers], Sequence[Fix]]


Results = FilterResults | MemberCodes


@dataclass(frozen=True, slots=True)
class ExcludingCondition:
    """A condition of a filter, with the nodes that it excludes and the changes that remove it."""

    plugin: str
    text: str
    rows: Mask
    fixes: Fixes
    """Function that returns the changes that remove the condition on some nodes."""
    detail: Callable[[RowNumbers], str] | None = None
    """Function that returns a text with the values of some nodes, to show in place of `text`."""
    least: Callable[[RowNumbers], Codes] | None = None
    """Function that returns the amounts that nodes lack; None if the condition is not about an amount."""

    def text_for(self, rows: RowNumbers) -> str:
        """Return the condition as text, with amounts and values of some nodes."""
        return self.text if self.detail is None else self.detail(rows)


def no_fixes(_: RowNumbers) -> Sequence[Fix]:
    """Return no fixes, for a condition that no change removes."""
    return ()


def find_conditions(variants: VariantEvaluator, raw: Object, decision: Decision) -> list[ExcludingCondition]:
    """Return all conditions that exclude nodes in a decision.

    Args:
        variants: Evaluates edited pods, nodes and policies.
        raw: The completed pod.
        decision: The decision.
    """
    pod = decision.pod
    if decision.rejection is not None:
        return [_pre_filter_rejection(variants, raw, decision)]
    found: list[ExcludingCondition] = []
    evaluation, size = decision.evaluation, variants.size
    present = variants.present
    explained = np.zeros(size, np.bool_)
    finder = _RejectionSplitter(variants, raw, pod)
    for results in [one for one in evaluation.filter_parts() if one.place >= FIRST_PLACE]:
        codes = np.where(present, results.codes[:size], 0)
        is_own = results.place < EXTENDERS
        conditions = list(finder.split(results, codes)) if is_own else list(_by_reason(results, codes))
        found += conditions
        for one in conditions:
            explained |= one.rows
    for results in [one for one in evaluation.filter_parts() if one.place < FIRST_PLACE]:
        # rows that only PreFilter results or nominated pods exclude
        codes = np.where(present & ~explained, results.codes[:size], 0)
        reserved = np.isin(np.arange(size), list(evaluation.nominated_pods)) & (codes != 0)
        found += [
            *_by_reason(results, np.where(reserved, 0, codes)),
            *_reserved(variants, pod, evaluation.nominated_pods, reserved),
        ]
    return [one for one in found if one.rows.any()]


def _pre_filter_rejection(variants: VariantEvaluator, raw: Object, decision: Decision) -> ExcludingCondition:
    """Return the rejection by PreFilter as one condition that excludes all nodes."""
    status = decision.rejection
    assert status is not None  # noqa: S101 - the caller has checked it
    read = islice((part for part in parts(raw) if status.plugin in part.plugins or not status.plugin), MOST_PARTS)
    fixes = [Fix(RepairKind.POD, f"without {part.text}", part.without) for part in read]
    rows: Mask = variants.cluster.nodes.present.data[: variants.size].copy()
    return ExcludingCondition(status.plugin, status.message, rows, lambda _: fixes)


def _by_reason(results: Results, codes: Codes) -> Iterator[ExcludingCondition]:
    """Yield a condition for each reason for which a filter rejects nodes."""
    rows: dict[str, Mask] = {}
    for code in np.unique(codes[codes != 0]).tolist():
        for reason in results.reason(code).reasons:
            rows[reason] = rows.get(reason, np.zeros(codes.size, np.bool_)) | (codes == code)
    for reason, mask in rows.items():
        yield ExcludingCondition(
            results.reason(int(codes[mask][0])).plugin or results.plugin.name, reason, mask, no_fixes
        )


def _reserved(variants: VariantEvaluator, pod: Pod, nominated: PodsByRow, rows: Mask) -> Iterator[ExcludingCondition]:
    """Yield a condition for each set of nominated pods for which resources of nodes are reserved."""
    found: dict[tuple[str, ...], Mask] = {}
    for row in np.flatnonzero(rows).tolist():
        names = tuple(sorted(one.key for one in nominated[row]))
        found.setdefault(names, np.zeros(rows.size, np.bool_))[row] = True
    for names, mask in found.items():
        text = f"room beside {', '.join(names)}, for which the node is nominated"
        yield ExcludingCondition(
            "NodeResourcesFit", text, mask, no_fixes, partial(_lacking_beside, variants, pod, nominated, text)
        )


def _lacking_beside(variants: VariantEvaluator, pod: Pod, nominated: PodsByRow, text: str, rows: RowNumbers) -> str:
    """Return the resources that a node lacks for a pod if the node's nominated pods are placed on it."""
    row, nodes = int(rows[0]), variants.cluster.nodes
    wanted = Counter(by_name(incoming_requests(pod)))
    held: Counter[str] = Counter()
    for one in nominated[row]:
        held.update(by_name(incoming_requests(one)))
    short = {
        name: amount + held[name] - int(nodes.allocatable(name)[row] - nodes.requested(name)[row])
        for name, amount in sorted(wanted.items())
    }
    lacks = [f"{quantity(name, amount)} {name}" for name, amount in short.items() if amount > 0]
    return f"{' and '.join(lacks)} beside {text.removeprefix('room beside ')}" if lacks else text


class _RejectionSplitter:
    """Splits the rejections of filters into single conditions with fixes."""

    def __init__(self, variants: VariantEvaluator, raw: Object, pod: Pod) -> None:
        self._variants, self._raw, self._pod = variants, raw, pod
        self._nodes = variants.cluster.nodes

    def split(self, results: Results, codes: Codes) -> Iterator[ExcludingCondition]:
        name = results.plugin.name
        if name == "NodeResourcesFit":
            yield from self._amounts(results, codes)
            return
        if name == "NodeUnschedulable":
            yield self._cordoned(codes)
            return
        left = codes != 0
        for one in self._conditions(results, codes):
            left &= ~one.rows
            yield one
        if left.any():
            yield from _by_reason(results, np.where(left, codes, 0))

    def _conditions(self, results: Results, codes: Codes) -> Iterator[ExcludingCondition]:
        rejected: Mask = codes != 0
        plugin = results.plugin
        if plugin.name == "TaintToleration":
            yield from self._taints(rejected)
        elif isinstance(plugin, ActivePolicy):
            for rule in rule_parts(self._variants, plugin, self._pod):
                yield _rule(plugin, rule, rejected)
        elif isinstance(plugin, FilterPlugin):
            for part in islice((one for one in parts(self._raw) if plugin.name in one.plugins), MOST_PARTS):
                yield from self._part(plugin, part, rejected)

    def _part(self, plugin: FilterPlugin[Any], part: PodPart, rejected: Mask) -> Iterator[ExcludingCondition]:
        codes, reasons = self._variants.filter_codes(plugin, self._variants.pod(part.alone(self._raw)))
        found = {code: reasons(code) for code in np.unique(codes[codes != 0]).tolist()}
        ours = [code for code, texts in found.items() if part.reasons is None or part.reasons & {*texts}]
        rows: Mask = np.isin(codes, ours) & rejected
        if not rows.any():
            return
        fixes = [Fix(RepairKind.POD, f"without {part.text}", part.without)]
        if part.on_node is not None:
            fixes.insert(0, Fix(RepairKind.NODE, part.on_node_text, part.on_node))
        names = sorted({reason for code in ours for reason in found[code]})
        text = f"{part.text}: {', '.join(names)}" if part.names_reason else part.text
        detail = self._port_users(part) if plugin.name == NODE_PORTS else None
        yield ExcludingCondition(plugin.name, text, rows, lambda _: fixes, detail)

    def _port_users(self, part: PodPart) -> Callable[[RowNumbers], str]:
        """Return a function that returns, for some nodes, a text with the pods that use a host port."""
        wanted = host_ports(self._variants.pod(part.alone(self._raw)))

        def detail(rows: RowNumbers) -> str:
            placed = (one.pod for row in rows[:MOST_ROWS].tolist() for one in self._variants.cluster.pods.on_row(row))
            users = sorted(one.key for one in placed if any(any_conflict(wanted, (port,)) for port in host_ports(one)))
            others = len(users) - 1
            more = " and others" if rows.size > MOST_ROWS else f" and {counted(others, 'other')}" if others > 0 else ""
            return f"{part.text} (used by {users[0]}{more})" if users else part.text

        return detail

    def _cordoned(self, codes: Codes) -> ExcludingCondition:
        tolerated = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
        fixes = (
            Fix(RepairKind.NODE, "uncordoned", edited("spec.unschedulable", lambda _: None)),
            Fix(RepairKind.POD, "a toleration of cordoned nodes", edited("spec.tolerations", more(tolerated))),
        )
        return ExcludingCondition("NodeUnschedulable", "a toleration of cordoned nodes", codes != 0, lambda _: fixes)

    def _taints(self, rejected: Mask) -> Iterator[ExcludingCondition]:
        matcher = TolerationMatcher(self._pod.spec.tolerations)
        sets = self._nodes.taints.data[: rejected.size]
        with_taint: dict[tuple[str, str, str], list[int]] = {}
        counts: Counter[tuple[str, str, str]] = Counter()
        for code, number in zip(*np.unique(sets[rejected], return_counts=True), strict=True):
            for taint in self._nodes.taint_sets.value(int(code)):
                if taint.effect in REPELLING_EFFECTS and not matcher.covers(taint):
                    key = (taint.key, taint.value, taint.effect)
                    with_taint.setdefault(key, []).append(int(code))
                    counts[key] += int(number)
        for key, _ in counts.most_common(MOST_PARTS):
            rows: Mask = np.isin(sets, with_taint[key]) & rejected
            yield ExcludingCondition("TaintToleration", f"a toleration of {_taint(*key)}", rows, _taint_fixes(*key))

    def _amounts(self, results: Results, codes: Codes) -> Iterator[ExcludingCondition]:
        wanted = by_name(incoming_requests(self._pod))
        for one in _by_reason(results, codes):
            resource = one.text.removeprefix(INSUFFICIENT)
            if one.text == TOO_MANY_PODS:
                yield ExcludingCondition(one.plugin, "room for another pod", one.rows, self._places)
            elif resource in wanted:
                short = wanted[resource] - (self._nodes.allocatable(resource) - self._nodes.requested(resource))
                yield self._shortage(one, resource, short, wanted[resource])
            else:
                yield one

    def _shortage(self, one: ExcludingCondition, resource: str, short: Codes, wanted: int) -> ExcludingCondition:
        def fixes(rows: RowNumbers) -> Sequence[Fix]:
            lacking = int(short[rows].max())
            left = quantity(resource, max(0, wanted - lacking))
            text = f"request {left} {resource} instead of {quantity(resource, wanted)}"
            return (
                Fix(RepairKind.NODE, f"{quantity(resource, lacking)} more {resource}", with_room(resource, lacking)),
                Fix(RepairKind.POD, text, requesting_less(resource, lacking)),
            )

        def detail(rows: RowNumbers) -> str:
            least, most = (quantity(resource, int(find(short[rows]))) for find in (np.min, np.max))
            return f"{least if least == most else f'{least} to {most}'} {resource}"

        return ExcludingCondition(one.plugin, resource, one.rows, fixes, detail, lambda rows: short[rows])

    def _places(self, rows: RowNumbers) -> Sequence[Fix]:
        lacking = int((self._nodes.pods_count.data[rows] - self._nodes.pods_allowed.data[rows]).max()) + 1
        return (
            Fix(
                RepairKind.NODE,
                f"room for {lacking} more {'pod' if lacking == 1 else 'pods'}",
                with_room("pods", lacking),
            ),
        )


def _rule(policy: ActivePolicy, part: RulePart, rejected: Mask) -> ExcludingCondition:
    fixes = [Fix(RepairKind.POLICY, f"without rule {part.rule} of policy {policy.policy.key}", rule=part.key)]
    if part.on_node is not None:
        fixes.insert(0, Fix(RepairKind.NODE, part.on_node_text, part.on_node))
    return ExcludingCondition(policy.name, part.text, part.rows & rejected, lambda _: fixes, part.text_for)


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _taint_fixes(key: str, value: str, effect: str) -> Fixes:
    taint = {name: text for name, text in (("key", key), ("value", value), ("effect", effect)) if text}
    matched = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    fixes = (
        Fix(RepairKind.NODE, f"no taint {_taint(key, value, effect)}", edited("spec.taints", _without_taint(taint))),
        Fix(
            RepairKind.POD,
            f"a toleration of {_taint(key, value, effect)}",
            edited("spec.tolerations", more({"key": key, **matched, "effect": effect})),
        ),
    )
    return lambda _: fixes


def _without_taint(taint: Mapping[str, str]) -> Callable[[object], object]:
    def change(found: object) -> object:
        kept = found if isinstance(found, list) else []
        names = ("key", "value", "effect")
        return [one for one in kept if any((one.get(name) or "") != taint.get(name, "") for name in names)] or None

    return change
