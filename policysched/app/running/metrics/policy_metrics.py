"""`PolicyMetrics`: effects and states of policies, by policy, never by pod.

Values that a decision has anyway are counted always. Whether a policy decided is computed only where it is cheap: for a
pod without a feasible node, from the filters' codes; for a chosen node, in one of `EXAMINE` decisions and for one
policy in turn. docs/reference/metrics.md explains the metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.scheduler_metrics import ALONE
from policysched.app.running.metrics.series import Labels, make_counters
from policysched.framework.plugin import PREFIX
from policysched.model.policy import PolicyKey
from policysched.rules.policy_set.store import PolicyStore, StoredPolicy
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.results.plugin_results import FilterResults, MemberCodes, MemberScores, ScoreResults
from policysched.schedule.observer import Observer
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.timing import FILTER

EXAMINE: Final = 10
"""Interval between decisions for which the deciding policy is determined. Units: decisions."""
MOST_POLICIES: Final = 1000
"""Largest number of policies with metric series: the first policies in alphabetical order."""
STATES: Final = ("Active", "Shadow", "Disabled", "Rejected")
_MODES: Final = {"Enforce": "Active", "Shadow": "Shadow", "Disabled": "Disabled"}


class PolicyMetrics(Observer, Collector):
    """Counts effects of policies, and reports the policies of a store.

    Args:
        evaluations: Returns decisions by plugin, point and profile.
        seconds: Returns the time of plugins by name.
    """

    def __init__(
        self,
        evaluations: Callable[[], Counter[Labels]],
        seconds: Callable[[], dict[str, float]],
    ) -> None:
        self.store = PolicyStore()
        """The policies whose states the metrics report."""
        self._evaluations, self._seconds = evaluations, seconds
        self._rejections: Counter[Labels] = Counter()
        self._decisive: Counter[Labels] = Counter()
        self._examined: Counter[Labels] = Counter()
        self._choices = 0

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Count the policies that decided: by filters if no node is feasible, by scores in a sample of the others."""
        if decision.row >= 0:
            if decision.feasible_count > 1:
                self._choices += 1
                if self._choices % EXAMINE == 0:
                    self._examine(queued.profile, decision)
        elif not decision.failed and decision.rejection is None:
            for name in deciding_filters(decision.evaluation):
                self._decisive[name, queued.profile, "filter"] += 1

    def on_rejected(self, queued: QueuedPod) -> None:
        """Count the policies that rejected nodes for a pod."""
        for name in queued.rejectors:
            if name.startswith(PREFIX):
                self._rejections[name.removeprefix(PREFIX), queued.profile] += 1

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:  # noqa: ARG002 - an observer's
        """Count, at the end of a failed attempt, the policies that rejected nodes for the pod."""
        if queued.rejectors and event == "ScheduleAttemptFailure":
            self.on_rejected(queued)

    def _examine(self, profile: str, decision: Decision) -> None:
        """Count, for one policy of a decision, whether another node would win without the policy's score."""
        scoring = [one for one in decision.evaluation.score_parts() if is_policy(one) and not one.flat]
        if scoring:
            chosen = scoring[self._choices // EXAMINE % len(scoring)]
            name = chosen.plugin.name.removeprefix(PREFIX)
            self._examined[name, profile] += 1
            if decides(chosen, decision):
                self._decisive[name, profile, "score"] += 1

    def keep_policies(self, names: frozenset[str]) -> None:
        """Drop the series of all policies except the named policies."""
        for counter in (self._rejections, self._decisive, self._examined):
            for labels in [labels for labels in counter if labels[0] not in names]:
                del counter[labels]

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        listed = sorted(self.store.listed())[:MOST_POLICIES]
        shown = frozenset(listed)

        def of_shown(counts: Counter[Labels]) -> dict[Labels, int]:
            return {labels: count for labels, count in dict(counts).items() if labels[0] in shown}

        yield make_counters(
            "policysched_policy_decisions",
            "Scheduling decisions to which the policy applied, at Filter or, with several feasible nodes, at Score.",
            ("policy", "profile"),
            of_shown(self._decisions()),
        )
        yield make_counters(
            "policysched_policy_rejections",
            "Failed scheduling attempts in which the policy rejected at least one node.",
            ("policy", "profile"),
            of_shown(self._rejections),
        )
        yield make_counters(
            "policysched_policy_decisive",
            "Decisions that would be different without the policy. by='filter': the pod would have got a node. "
            "by='score': the pod would have got another node (counted in the examined choices).",
            ("policy", "profile", "by"),
            of_shown(self._decisive),
        )
        yield make_counters(
            "policysched_policy_examined_choices",
            "Choices among several nodes that were examined for the effect of the policy's scores (a sample).",
            ("policy", "profile"),
            of_shown(self._examined),
        )
        seconds = {name.removeprefix(PREFIX): spent for name, spent in self._seconds().items()}
        yield make_counters(
            "policysched_policy_evaluation_seconds",
            "Seconds spent evaluating the policy, in the decisions that are timed by plugin (a sample).",
            ("policy",),
            {(name,): seconds[name] for name in listed if name in seconds},
        )
        yield from self._states(listed)

    def _decisions(self) -> Counter[Labels]:
        counts: Counter[Labels] = Counter()
        for (name, point, profile), count in self._evaluations().items():
            if point in (FILTER, ALONE) and name.startswith(PREFIX):
                counts[name.removeprefix(PREFIX), profile] += count
        return counts

    def _states(self, listed: list[PolicyKey]) -> Iterator[MetricFamily]:
        names = ("policy",)
        newest = GaugeMetricFamily(
            "policysched_policy_generation", "The newest generation of the policy.", labels=names
        )
        active = GaugeMetricFamily(
            "policysched_policy_active_generation",
            "The last accepted generation of the policy, in any mode; 0 if none is accepted.",
            labels=names,
        )
        errors = GaugeMetricFamily(
            "policysched_policy_errors", "Number of errors in the newest generation of the policy.", labels=names
        )
        state = GaugeMetricFamily(
            "policysched_policy_state",
            "1 if the policy is in this state, else 0. Active, Shadow, Disabled: the mode of the last accepted "
            "generation. Rejected: the newest generation cannot be used. "
            "Active and Rejected are both 1 while an earlier generation stays in force.",
            labels=("policy", "state"),
        )
        for key in listed:
            entry = self.store.get(key)
            if entry is None:
                continue
            newest.add_metric((key,), entry.policy.metadata.generation)
            active.add_metric((key,), entry.active.generation if entry.active is not None else 0)
            errors.add_metric((key,), entry.result.errors)
            true = _states_of(entry)
            for one in STATES:
                state.add_metric((key, one), one in true)
        yield from (newest, active, errors, state)


def _states_of(entry: StoredPolicy) -> set[str]:
    states = {_MODES[entry.active.spec.mode]} if entry.active is not None else set()
    return states | ({"Rejected"} if entry.result.errors or entry.refused else set())


def is_policy(results: FilterResults | MemberCodes | ScoreResults | MemberScores) -> bool:
    """Return whether filter or score results are the results of a policy."""
    return results.plugin.name.startswith(PREFIX)


def deciding_filters(evaluation: Evaluation) -> list[str]:
    """Return each policy that alone rejects some node, so that the node would be feasible without the policy."""
    parts = evaluation.filter_parts()
    place = next((one.place for one in parts if is_policy(one)), None)
    if place is None:
        return []
    rows = (evaluation.first[: evaluation.cluster.nodes.size] == place).nonzero()[0]
    rejects = [(one, one.codes[rows] != 0) for one in parts if one.place >= place]
    is_only = np.sum([rejected for _, rejected in rejects], axis=0) == 1
    found = [one for one, rejected in rejects if is_policy(one) and (rejected & is_only).any()]
    return [one.plugin.name.removeprefix(PREFIX) for one in found]


def decides(score: ScoreResults | MemberScores, decision: Decision) -> bool:
    """Return whether, without a given score, another node would have a higher total than the chosen node."""
    evaluation = decision.evaluation
    feasible = evaluation.feasible()
    rows = feasible.nonzero()[0]
    for tier in evaluation.tiers:
        sums = evaluation.ranking(tier).astype(np.int64)
        if tier == score.tier:
            sums -= score.final(feasible)
        highest = sums[rows].max()
        if sums[decision.row] < highest:
            return True
        rows = rows[sums[rows] == highest]
    return False
