"""A compiled policy as one filter and one score plugin, `SchedulingPolicy/<name>`.

A prepared state holds the rules whose `when` lets them speak for the pod class, and the scores' values by row, so
that only changed rows are evaluated again. Reason codes carry the rule and, where its condition was unknown, which
input was missing.

Source: docs/language.md#the-object.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

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
from policysched.model.objects import Pod
from policysched.model.priority import is_system
from policysched.rules.compiled import CompiledFilter, CompiledPolicy, aspects_read
from policysched.rules.events import node_actions
from policysched.rules.frame import RuleFrame, condition
from policysched.rules.scoring import ScoreState, combine, raw_scores
from policysched.rules.verdicts import FilterState, rule_codes, rule_reason


class PolicyPlugin:
    """One policy at the points Filter and Score."""

    def __init__(self, policy: CompiledPolicy) -> None:
        self.policy = policy
        self.name = PREFIX + policy.name
        self.filter_reads = aspects_read(tuple(item for rule in policy.filters for item in rule.require.inputs))
        self.score_reads = aspects_read(tuple(item for rule in policy.scores for item in rule.value.inputs))
        self.normalizes = not all(rule.is_local for rule in policy.scores)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Keep the filter rules that speak for the pod."""
        spec = self.policy.spec
        if is_system(pod) and not spec.include_system_pods:
            return SKIP
        frame = RuleFrame(cluster, pod)
        if not self.selects(pod, cluster) or not _holds(self.policy.applies_to, frame, unknown=True):
            return SKIP
        rules = tuple(rule for rule in self.policy.filters if _holds(rule.when, frame, unknown=True))
        return FilterState(cluster, pod, self.policy.name, rules) if rules else SKIP

    def filter(self, state: FilterState, rows: Rows) -> Codes:
        """Reject rows where a rule's condition is not true; the first such rule gives the code."""
        return rule_codes(state, rows)

    def reason(self, state: FilterState, code: int) -> Status:
        """Name the policy, the rule and what it says."""
        return rule_reason(state, code)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Keep the score rules that speak for the pod."""
        frame = RuleFrame(cluster, pod)
        if not self.selects(pod, cluster) or not _holds(self.policy.applies_to, frame, unknown=False):
            return SKIP
        rules = tuple(rule for rule in self.policy.scores if _holds(rule.when, frame, unknown=False))
        return ScoreState(cluster, pod, rules) if rules else SKIP

    def score(self, state: ScoreState, rows: Rows) -> Scores:
        """Evaluate the rules on rows; where one normalises, the values are kept and the final scores come later."""
        values = raw_scores(state, rows)
        if self.normalizes:
            return np.ones(values.shape[1], np.int64)
        return combine(state, values)

    def normalize(self, state: ScoreState, scores: Scores, feasible: Mask) -> Scores:
        """Normalise each rule's values over the feasible rows and combine them."""
        return combine(state, state.normalized(feasible))[: scores.size]

    def events(self) -> Sequence[Hint]:
        """Name the changes of what the filters read."""
        inputs = tuple(item for rule in self.policy.filters for item in rule.require.inputs)
        hints = [Hint(Resource.NODE, Action.ADD | node_actions(inputs), self._row_passes)]
        if any(_counts_pods(rule) for rule in self.policy.filters):
            actions = Action.ADD | Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
            hints.append(Hint(Resource.ASSIGNED_POD, actions, self._row_passes))
        hints.append(Hint(Resource.PENDING_POD, Action.UPDATE, _is_own))
        hints.append(Hint(Resource.NAMESPACE, Action.ALL))
        return hints

    def epoch(self, cluster: Cluster) -> Hashable:
        """Move with what is read beyond rows: namespace labels, cluster counts, images of the pod."""
        read = {(item.root, item.path[0]) for item in self.policy.inputs}
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
        return state is SKIP or not self.filter(state, np.array([change.row], np.int32)).any()


def _holds(program: Program | None, frame: RuleFrame, *, unknown: bool) -> bool:
    if program is None:
        return True
    value = condition(program, frame)
    return bool(value.true) or (unknown and bool(value.unknown))


def _counts_pods(rule: CompiledFilter) -> bool:
    return any(item.path[0] in {"requested", "free"} or item.text == "cluster.pods" for item in rule.require.inputs)


def _is_own(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - the hint's shape
    return isinstance(change.new, Pod) and change.new.metadata.uid == pod.metadata.uid
