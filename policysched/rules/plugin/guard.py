"""`PolicyGuard`: protects pods from preemption by a policy's condition on victims (`spec.preemption`).

Preemption evaluates the condition once for all pods of lower priority on nodes where preemption may help, and again for
the victims that an extender returns. The result for a pod does not depend on which other pods are victims: `node.`
inputs include all pods that are on the node now.

Shapes: V possible victims.
Source: docs/reference/language.md#preemption.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from policysched.framework import Action, Change, Cluster, Codes, Hint, Protection, Resource, RowNumbers, VictimGuard
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import ANY_KEY, Op, Typed, steps
from policysched.language.ir.types import Unit
from policysched.language.messages.amounts import written
from policysched.model.objects import Pod, PodGroup
from policysched.model.pod_requirements import pod_priority
from policysched.rules.compile.policy import CompiledFilter
from policysched.rules.inputs import Scalar, peer_value
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.hints import NODE_ACTIONS, is_own
from policysched.rules.plugin.selection import Selection
from policysched.rules.results.rule_rows import FilterRow, plugin_codes, reason, shortened
from policysched.rules.shared_values.context import EvaluationContext
from policysched.rules.shared_values.pod_aggregates import VictimFrame
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import group_key
from policysched.state.tables.interner import Interner
from policysched.visible import visible

VICTIM_ACTIONS: Final = {
    "labels": Action.UPDATE_POD_LABEL,
    "annotations": Action.UPDATE_OTHER,
    "phase": Action.UPDATE_OTHER,
}
MOST_VALUES: Final = 4
"""Maximum number of inputs whose values a reason contains; further inputs are left out."""


class PolicyGuard(VictimGuard):
    """The victim guard that protects pods by the preemption condition of one policy.

    Args:
        policy: The policy.
        rule: Its condition on victims.
    """

    def __init__(self, policy: ActivePolicy, rule: CompiledFilter) -> None:
        self.name = policy.name
        self._policy = policy
        self._selection = Selection(policy.policy, (rule,))
        self._rows = (FilterRow(0, rule, Interner()),)

    @property
    def root(self) -> Typed:
        """The expression graph of the condition as written."""
        return self._rows[0].rule.written.root

    def applies_to(self, pod: Pod, context: EvaluationContext) -> bool:
        """Return whether the policy applies to a preempting pod, so that it protects other pods from this pod."""
        return not self._selection.spares(pod) and bool(
            self._selection.applying(self._rows, pod, context, unknown=True)
        )

    def protected(self, pod: Pod, cluster: Cluster, slots: RowNumbers) -> Protection | None:
        """Return the pods for which the condition is not true; all pods if it depends on an unknown namespace.

        Cost: O(V) for each operation of the condition.
        """
        context = self._policy.context(cluster)
        waiting = self._selection.awaits(pod, context)
        if waiting is not None:
            return Protection(np.ones(slots.size, np.int32), lambda _: waiting.message, lambda _: "")
        if not self.applies_to(pod, context):
            return None
        frame = VictimFrame(slots, context.inputs(pod), context)
        codes: Codes = plugin_codes(self._rows[0].result(frame))
        return Protection(
            codes,
            lambda code: reason(self._policy.policy.key, self._rows, code).message,
            lambda place: self._values(int(slots[place]), pod, context),
        )

    def events(self) -> Sequence[Hint]:
        """Return queueing hints for changes of the pods and nodes that the condition reads; not for time and counts."""
        read = self._rows[0].root.inputs
        actions = Action.NONE
        for item in read:
            if item.root == "node":
                actions |= NODE_ACTIONS.get(item.path[0], Action.NONE)
        found = [Hint(Resource.PENDING_POD, Action.UPDATE, is_own)]
        if actions:
            found.append(Hint(Resource.NODE, actions, self._helps))
        pod_actions = Action.NONE
        for item in read:
            pod_actions |= VICTIM_ACTIONS.get(item.path[0], Action.NONE) if item.root == "victim" else Action.NONE
        if pod_actions:
            found.append(Hint(Resource.ASSIGNED_POD, pod_actions, self._helps))
        if any(item.root == "victim" and item.path[0] == "group" for item in read):
            found.append(Hint(Resource.POD_GROUP, Action.ADD | Action.UPDATE, self._helps))
            found.append(Hint(Resource.ASSIGNED_POD, Action.ADD, self._helps))
        return found

    def _helps(self, pod: Pod, change: Change, cluster: Cluster) -> bool:
        """Return whether the condition, after a change, permits evicting the changed pod or a pod of the node."""
        if isinstance(change.new, Pod | PodGroup):
            members = (pod_id(one) for one in _members(change.new, cluster))
            placed = [cluster.pods.by_id[identity] for identity in members if identity in cluster.pods.by_id]
        else:
            placed = cluster.pods.on_row(change.row)
        lower = [one.slot for one in placed if pod_priority(one.pod) < pod_priority(pod)]
        found = self.protected(pod, cluster, np.array(lower, np.intp)) if lower else None
        return bool(lower) and (found is None or not found.codes.all())

    def _values(self, slot: int, pod: Pod, context: EvaluationContext) -> str:
        """Return a protected pod's values that the untrue parts of the policy's eviction condition read, as text."""
        cluster = context.cluster
        placed = cluster.pods.by_slot[slot]
        if placed is None:
            return ""
        frame = VictimFrame(np.array([slot]), context.inputs(pod), context)
        failing = [part for part in _parts(self._rows[0].root) if not np.all(evaluate_columns(part, frame)[0])]
        units = {node.data: node.type.unit for part in failing for node in steps(part)}
        read = [item for part in failing for item in part.inputs if item.root == "victim" and item.key != ANY_KEY]
        shown = list(dict.fromkeys(read))[:MOST_VALUES]
        return ", ".join(
            f"{item.text} is {shown_value(peer_value(placed, item, cluster), units.get(item))}" for item in shown
        )


def _members(changed: Pod | PodGroup, cluster: Cluster) -> Iterable[Pod]:
    """Return a changed pod with the placed pods of its group, or the placed pods of a changed group."""
    own = [changed] if isinstance(changed, Pod) else []
    groups, key = cluster.pod_groups, changed.key if isinstance(changed, PodGroup) else group_key(changed)
    state = None if groups is None or not key else groups.get(key)
    return own if state is None else [*own, *state.scheduled]


def possible_victims(pod: Pod, cluster: Cluster) -> RowNumbers:
    """Return the pod-table indices of placed pods of lower priority that are not being deleted. Shapes: (V,)."""
    pods = cluster.pods
    held = np.flatnonzero(pods.rows >= 0)
    lower = held[cluster.signatures.priorities()[pods.signatures[held]] < pod_priority(pod)]
    found: RowNumbers = lower[~pods.terminating(lower)]
    return found


def guard_of(policy: ActivePolicy) -> PolicyGuard | None:
    """Return the victim guard of a policy; None if the policy has no condition on victims."""
    rule = policy.policy.preemption
    return None if rule is None else PolicyGuard(policy, rule)


def _parts(root: Typed) -> Iterator[Typed]:
    """Yield the operands of a condition's `and`; without `and`, the condition itself."""
    if root.op != Op.AND:
        yield root
        return
    for part in root.args:
        yield from _parts(part)


def shown_value(value: Scalar, unit: Unit | None) -> str:
    """Return a value as text in a unit of the policy language, as reasons show it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if isinstance(value, str):
        return f'"{visible(shortened(value))}"'
    if isinstance(value, tuple):
        return visible(shortened(", ".join(value)))
    # events contain the text: a rounded age keeps it from changing with every attempt
    return str(value).lower() if isinstance(value, bool) else written(value, unit, time_units=2)
