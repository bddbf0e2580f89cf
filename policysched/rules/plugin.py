"""A compiled policy as one filter and one score plugin, `SchedulingPolicy/<name>`.

This is the policy by itself: whom it selects, which rules speak for a pod (`when`), what they say, why, and when a pod
that it turned away is worth another attempt. The engine asks the policies of a profile together, see `group`.

Source: docs/language.md#the-object.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

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
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import Program
from policysched.model.objects import Pod
from policysched.model.priority import is_system
from policysched.rules.board import FilterLine
from policysched.rules.compiled import CompiledFilter, CompiledPolicy, CompiledScore
from policysched.rules.frame import RuleFrame
from policysched.rules.namespaces import filters_depend, not_known, unknown_namespace
from policysched.rules.node_inputs import aspects_read
from policysched.rules.reach import Reach
from policysched.rules.scoring import NOTHING_COMMON, Common, ScoreState, combine
from policysched.rules.shared import Shared
from policysched.rules.sources import Source
from policysched.rules.timed import POD_AGE, moments_of
from policysched.rules.verdicts import FilterState, Lack, Placed, reason
from policysched.rules.wakes import NEVER, Watch, Watches, hints, next_time, reads_time
from policysched.state.interner import Interner

Rule = TypeVar("Rule", CompiledFilter, CompiledScore)
Stores = WeakKeyDictionary[Cluster, Shared]


class PolicyPlugin:
    """One policy at the points Filter and Score."""

    def __init__(self, policy: CompiledPolicy, stores: Stores | None = None) -> None:
        self.policy = policy
        self.name = PREFIX + policy.name
        self.filter_reads = aspects_read(item for rule in policy.filters for item in rule.require.inputs)
        self.score_reads = aspects_read(item for rule in policy.scores for item in rule.value.inputs)
        self.normalizes = any(rule.normalizes for rule in policy.scores)
        self._missing: Interner[Lack] = Interner()
        self._stores: Stores = WeakKeyDictionary() if stores is None else stores
        self._reads_namespaces = policy.namespaces is not None or any(
            item.path[0] == "namespace_labels" for item in policy.inputs
        )
        self._filters_need_namespaces = filters_depend(policy)
        roots = [program.root for program in policy.filter_programs]
        self._timed = [root for root in roots if reads_time(root)]
        self._moments = moments_of(roots)
        self._next: WeakKeyDictionary[Cluster, tuple[float, float | None]] = WeakKeyDictionary()
        self._watches: WeakKeyDictionary[Cluster, Watches] = WeakKeyDictionary()
        self._depends_on_images = any(
            item.path[0] == "image_bytes" for program in policy.conditions for item in program.inputs
        )

    def shared(self, cluster: Cluster) -> Shared:
        """Give what the policies of a set share on a cluster."""
        found = self._stores.get(cluster)
        if found is None:
            found = self._stores[cluster] = Shared(cluster)
        return found

    def filters_for(self, pod: Pod, shared: Shared) -> tuple[Placed, ...]:
        """Give the filter rules that speak for a pod, each with its place."""
        if self._spares(pod):
            return ()
        return self._speaking(self.policy.filters, pod, shared, unknown=True)

    def scores_for(self, pod: Pod, shared: Shared) -> tuple[tuple[int, CompiledScore], ...]:
        """Give the score rules that speak for a pod, each with its place."""
        return self._speaking(self.policy.scores, pod, shared, unknown=False)

    def filter_lines(self) -> list[FilterLine]:
        """Give the filter rules as lines of a board."""
        return [FilterLine(place, rule, self._missing) for place, rule in enumerate(self.policy.filters)]

    def awaits(self, pod: Pod, shared: Shared) -> Status | None:
        """Reject a pod while labels that the filters depend on are those of a namespace that is not known."""
        if not self._filters_need_namespaces or self._spares(pod) or not self._may_select(pod, shared.cluster):
            return None
        frame = shared.plain(shared.subject(pod))
        found = unknown_namespace(
            self.policy, pod, shared.cluster, lambda program: _holds(program, frame, unknown=True)
        )
        return None if found is None else not_known(self.policy.name, found)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Keep the filter rules that speak for the pod."""
        shared = self.shared(cluster)
        waiting = self.awaits(pod, shared)
        if waiting is not None:
            return waiting
        rules = self.filters_for(pod, shared)
        if not rules:
            return SKIP
        subject, roots = shared.subject(pod), [rule.require.root for _, rule in rules]
        shared.seed(subject, roots)
        reach = Reach(shared.sources(roots, subject))
        return FilterState(shared, subject, rules, reach, self._missing, shared.hold(roots, subject))

    def filter(self, state: FilterState, rows: Rows) -> Codes:
        """Reject rows where a rule's condition is not true; the first such rule gives the code."""
        return state.codes(rows)

    def reason(self, state: object, code: int) -> Status:  # noqa: ARG002 - codes name rules of the policy
        """Name the policy, the rule and what it says."""
        return reason(self.policy.name, self.policy.filters, self._missing, code)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Keep the score rules that speak for the pod."""
        return self.score_state(pod, self.shared(cluster))

    def score_state(
        self,
        pod: Pod,
        shared: Shared,
        common: Mapping[str, Common] = NOTHING_COMMON,
        sources: Sequence[Source] = (),
    ) -> Any:
        """Keep the score rules that speak for the pod.

        Args:
            pod: The pod.
            shared: What policies share on the cluster.
            common: What has the values of rules that are the same for all pod classes, by rule.
            sources: What those depend on beyond their rows.
        """
        rules = tuple(rule for _, rule in self.scores_for(pod, shared))
        if not rules:
            return SKIP
        subject, roots = shared.subject(pod), [rule.value.root for rule in rules if rule.name not in common]
        shared.seed(subject, roots)
        reach = Reach([*sources, *shared.sources(roots, subject)])
        held = shared.hold(roots, subject)
        return ScoreState(shared, subject, rules, self.normalizes, reach, held, common)

    def score(self, state: ScoreState, rows: Rows) -> Scores:
        """Score rows; where a rule normalises, the final scores come with `normalize` alone."""
        return state.answers(rows)

    def stays_in_range(self, state: ScoreState) -> bool:  # noqa: ARG002 - scores are clipped
        """Give True."""
        return True

    def normalize(self, state: ScoreState, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - see `score`
        """Normalise each rule's values over the feasible rows and combine them."""
        return combine(state.normalized(feasible))

    def filter_reach(self, state: FilterState, rows: Rows) -> Rows:
        """Add the rows that see another aggregate, or another value for all rows."""
        return state.reached(rows)

    def score_reach(self, state: ScoreState, rows: Rows) -> Rows:
        """Add the rows that see another aggregate, or another value for all rows."""
        return state.reached(rows)

    def events(self) -> Sequence[Hint]:
        """Name the changes of what the filters read."""
        found = hints(self.policy.filters, self.policy.inputs, bool(self._timed), self._helps)
        if self._reads_namespaces:
            found.append(Hint(Resource.NAMESPACE, Action.ALL))
        return found

    def turned_away(self, pod: Pod, cluster: Cluster) -> None:
        """Remember where the rules hold now for a pod that is turned away."""
        self._watch(pod, cluster).note()

    def looks_again(self, pod: Pod, cluster: Cluster) -> float | None:
        """Give the time at which time alone can change what the filters say of a pod."""
        if not self._timed:
            return None
        by_pod = any(POD_AGE in root.inputs for root in self._timed)
        known = self._next.get(cluster)
        if by_pod or known is None or known[0] != cluster.moment.seconds:
            known = self._next[cluster] = (cluster.moment.seconds, next_time(self._timed, pod, cluster))
        return known[1]

    @property
    def lasting(self) -> bool:
        """Whether the epoch is always the same."""
        return not (self._reads_namespaces or self._depends_on_images)

    def epoch(self, cluster: Cluster) -> Hashable:
        """Move with what decides whether rules speak: labels of namespaces, sizes of images."""
        return (
            cluster.namespaces_epoch if self._reads_namespaces else 0,
            cluster.images.epoch if self._depends_on_images else 0,
        )

    def selects(self, pod: Pod, cluster: Cluster) -> bool:
        """Tell whether the policy's selectors take the pod; a namespace that is not known has no labels."""
        namespaces = self.policy.namespaces
        labels = cluster.namespaces.get(pod.metadata.namespace, {})
        return self._takes(pod) and (namespaces is None or namespaces.matches(labels))

    def _may_select(self, pod: Pod, cluster: Cluster) -> bool:
        """Tell whether the selectors take the pod, or would once its namespace is known."""
        if pod.metadata.namespace in cluster.namespaces:
            return self.selects(pod, cluster)
        return self._takes(pod)

    def _spares(self, pod: Pod) -> bool:
        """Tell whether filters let a pod of the system be."""
        return is_system(pod) and not self.policy.spec.include_system_pods

    def _takes(self, pod: Pod) -> bool:
        """Tell whether the scheduler name and the labels of a pod are those of the policy."""
        policy = self.policy
        if policy.spec.scheduler_names and pod.spec.scheduler_name not in policy.spec.scheduler_names:
            return False
        return policy.pods is None or policy.pods.matches(pod.metadata.labels)

    def _speaking(
        self, rules: Sequence[Rule], pod: Pod, shared: Shared, *, unknown: bool
    ) -> tuple[tuple[int, Rule], ...]:
        """Give the rules that speak for a pod, each with its place."""
        if not self.selects(pod, shared.cluster):
            return ()
        frame = shared.plain(shared.subject(pod))
        if not _holds(self.policy.applies_to, frame, unknown=unknown):
            return ()
        return tuple((place, rule) for place, rule in enumerate(rules) if _holds(rule.when, frame, unknown=unknown))

    def _helps(self, pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG002 - the journal says more
        return self._watch(pod, cluster).look()

    def _watch(self, pod: Pod, cluster: Cluster) -> Watch:
        shared = self.shared(cluster)
        moments = shared.values(pod, self._moments) if self._moments else ()

        def make() -> tuple[Hashable, Watch]:
            state = self.prepare_filter(pod, cluster)
            if state is SKIP:
                return None, Watch(shared, None, self.filter_reads)
            if isinstance(state, Status):
                return state, Watch(shared, NEVER, self.filter_reads)
            inputs = [item for _, rule in state.rules for item in rule.require.inputs]
            own = state.subject.key(dict.fromkeys(inputs))
            return (tuple(place for place, _ in state.rules), own, version), Watch(shared, state, self.filter_reads)

        version = (self.epoch(cluster), moments)
        return self._watches.setdefault(cluster, Watches()).of(pod, version, make)


def _holds(program: Program | None, frame: RuleFrame, *, unknown: bool) -> bool:
    if program is None:
        return True
    true, lacking = evaluate_columns(program.root, frame)
    return bool(true) or (unknown and bool(lacking))
