"""A compiled policy as one filter and one score plugin, `SchedulingPolicy/<name>`.

A prepared state holds the rules whose `when` lets them speak for the pod class, and the scores' values by row, so
that only changed rows are evaluated again. Reason codes carry the rule and, where its condition was unknown, which
input was missing.

Source: docs/language.md#the-object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from policysched.framework import (
    PREFIX,
    SKIP,
    Action,
    Change,
    Cluster,
    Codes,
    Hint,
    Mask,
    Resource,
    Rows,
    Scores,
    Status,
)
from policysched.language.program import Program
from policysched.language.typed import Input
from policysched.model.objects import Pod
from policysched.model.priority import is_system
from policysched.rules.compiled import CompiledFilter, CompiledPolicy, CompiledScore, aspects_read
from policysched.rules.events import beyond_rows, node_actions
from policysched.rules.frame import RuleFrame, condition, count_rows
from policysched.rules.kept import Kept, is_shared, lasts
from policysched.rules.scoring import Answer, ScoreState, Values, combine, rule_values
from policysched.rules.verdicts import Details, FilterState, all_hold, rule_details
from policysched.state.interner import Interner


class PolicyPlugin:
    """One policy at the points Filter and Score."""

    def __init__(self, policy: CompiledPolicy) -> None:
        self.policy = policy
        self.name = PREFIX + policy.name
        self.filter_reads = aspects_read(tuple(item for rule in policy.filters for item in rule.require.inputs))
        self.score_reads = aspects_read(tuple(item for rule in policy.scores for item in rule.value.inputs))
        self.normalizes = not all(rule.is_local for rule in policy.scores)
        self._missing: Interner[Input] = Interner()
        self._shared: WeakKeyDictionary[Cluster, dict[str, Kept]] = WeakKeyDictionary()
        self._read = frozenset((item.root, item.path[0]) for item in policy.inputs)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Keep the filter rules that speak for the pod."""
        spec = self.policy.spec
        if is_system(pod) and not spec.include_system_pods:
            return SKIP
        frame = RuleFrame(cluster, pod)
        if not self.selects(pod, cluster) or not _holds(self.policy.applies_to, frame, unknown=True):
            return SKIP
        rules = tuple(
            (rule, self._details(rule, pod, cluster))
            for rule in self.policy.filters
            if _holds(rule.when, frame, unknown=True)
        )
        return FilterState(self.policy.name, rules, self._missing) if rules else SKIP

    def filter(self, state: FilterState, rows: Rows) -> Codes:
        """Reject rows where a rule's condition is not true; the first such rule gives the code."""
        return state.codes(rows)

    def reason(self, state: FilterState, code: int) -> Status:
        """Name the policy, the rule and what it says."""
        return state.reason(code)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Keep the score rules that speak for the pod."""
        frame = RuleFrame(cluster, pod)
        if not self.selects(pod, cluster) or not _holds(self.policy.applies_to, frame, unknown=False):
            return SKIP
        rules = tuple(
            (rule, self._values(rule, pod, cluster))
            for rule in self.policy.scores
            if _holds(rule.when, frame, unknown=False)
        )
        return ScoreState(cluster, pod, rules) if rules else SKIP

    def score(self, state: ScoreState, rows: Rows) -> Scores:
        """Score rows; where a rule normalises, the final scores come with `normalize` alone."""
        return np.ones(count_rows(state.cluster, rows), np.int64) if self.normalizes else state.scores(rows)

    def normalize(self, state: ScoreState, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - see `score`
        """Normalise each rule's values over the feasible rows and combine them."""
        return combine(state.normalized(feasible))

    def events(self) -> Sequence[Hint]:
        """Name the changes of what the filters read."""
        inputs = tuple(item for rule in self.policy.filters for item in rule.require.inputs)
        hints = [Hint(Resource.NODE, Action.ADD | node_actions(inputs), self._row_passes)]
        if any(_counts_pods(rule) for rule in self.policy.filters):
            actions = Action.ADD | Action.DELETE | Action.UPDATE_POD_SCALE_DOWN | Action.UPDATE_OTHER
            hints.append(Hint(Resource.ASSIGNED_POD, actions, self._row_passes))
        hints.append(Hint(Resource.PENDING_POD, Action.UPDATE, _is_own))
        hints.append(Hint(Resource.NAMESPACE, Action.ALL))
        return hints + beyond_rows(self.policy.inputs)

    def epoch(self, cluster: Cluster) -> Hashable:
        """Move with what is read beyond rows: namespace labels, cluster counts, images of the pod."""
        read = self._read
        return (
            cluster.namespaces_epoch,
            cluster.nodes.count if ("cluster", "nodes") in read else 0,
            len(cluster.pods) if ("cluster", "pods") in read else 0,
            cluster.images.epoch if ("pod", "image_bytes") in read else 0,
        )

    def selects(self, pod: Pod, cluster: Cluster) -> bool:
        """Tell whether the policy's selectors take the pod."""
        policy = self.policy
        if policy.spec.scheduler_names and pod.spec.scheduler_name not in policy.spec.scheduler_names:
            return False
        if policy.pods is not None and not policy.pods.matches(pod.metadata.labels):
            return False
        labels = cluster.namespaces.get(pod.metadata.namespace, {})
        return policy.namespaces is None or policy.namespaces.matches(labels)

    def _row_passes(self, pod: Pod, change: Change, cluster: Cluster) -> bool:
        if change.row < 0:
            return False
        state = self.prepare_filter(pod, cluster)
        if state is SKIP:
            return True
        return all_hold([rule for rule, _ in state.rules], RuleFrame(cluster, pod, np.array([change.row], np.int32)))

    def _details(self, rule: CompiledFilter, pod: Pod, cluster: Cluster) -> Details:
        def answer(rows: Rows) -> Codes:
            return rule_details(rule, self._missing, RuleFrame(cluster, pod, rows))

        inputs = rule.require.inputs
        if is_shared(inputs):
            return self._share(f"filter {rule.name}", cluster, Kept(cluster, inputs, np.int32, answer))
        return Kept(cluster, inputs, np.int32, answer).at if lasts(inputs) else answer

    def _values(self, rule: CompiledScore, pod: Pod, cluster: Cluster) -> Answer | None:
        def answer(rows: Rows) -> Values:
            return rule_values(rule, RuleFrame(cluster, pod, rows))

        inputs = rule.value.inputs
        if not rule.value.is_local:
            return None
        if is_shared(inputs):
            return self._share(f"score {rule.name}", cluster, Kept(cluster, inputs, np.float64, answer))
        return Kept(cluster, inputs, np.float64, answer).at if lasts(inputs) or self.normalizes else answer

    def _share(self, name: str, cluster: Cluster, made: Kept) -> Callable[[Rows], Any]:
        return self._shared.setdefault(cluster, {}).setdefault(name, made).at


def _holds(program: Program | None, frame: RuleFrame, *, unknown: bool) -> bool:
    if program is None:
        return True
    value = condition(program, frame)
    return bool(value.true) or (unknown and bool(value.unknown))


def _counts_pods(rule: CompiledFilter) -> bool:
    return any(item.path[0] in {"requested", "free"} for item in rule.require.inputs)


def _is_own(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - the hint's shape
    return isinstance(change.new, Pod) and change.new.metadata.uid == pod.metadata.uid
