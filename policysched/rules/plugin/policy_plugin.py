"""A compiled policy as one filter and one score plugin, `SchedulingPolicy/<name>`.

A policy says whom it selects, which rules speak for a pod (`when`), why it rejects and when a pod that it rejected is
worth another attempt. What rules say of nodes it reads from the matrix of its group: the policies of a profile are
evaluated together, and one by itself is a group of one.

Filters may depend on labels of a namespace that the scheduler has not heard of. A namespace exists before its pods do,
but each kind has a watch of its own: a pod can be heard of first, and a watch that fails can hide namespaces for long.
A pod then waits, because to take the labels as missing could lift a restriction. Scores go on without them: a
preference holds no pod back.

Source: docs/reference/language.md#the-object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from policysched.framework import (
    SKIP,
    Action,
    Change,
    ChangedRow,
    ChangedRows,
    Cluster,
    Codes,
    Hint,
    Incremental,
    Mask,
    Nothing,
    Resource,
    RetryControl,
    RowNumbers,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    WhatIfFilter,
    plugin_name,
    unresolvable,
)
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import Program
from policysched.model.objects import Pod
from policysched.model.pod_requirements import is_system
from policysched.rules.compile.graphs import POD_AGE, reads_time, time_keys
from policysched.rules.compile.policy import CompiledFilter, CompiledPolicy
from policysched.rules.inputs import aspects_read, beyond_class
from policysched.rules.plugin.hints import RejectedPods, Rejections, changes_read, hints, next_time
from policysched.rules.results.matrix import FilterMatrix, PolicySlice, ScoreMatrix
from policysched.rules.results.normalized import NormalizedScores
from policysched.rules.results.pod_independent import PodIndependentResults
from policysched.rules.results.rule_rows import FilterRow, RowT, ScoreRow, filter_rows, reason, score_rows
from policysched.rules.shared_values.aggregates import evaluation_context
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame

Contexts = WeakKeyDictionary[Cluster, EvaluationContext]
Slice = PolicySlice[Any] | NormalizedScores
_LABELS: Final = "namespace_labels"


class Selection:
    """The pods of one policy.

    Args:
        policy: The policy.
        restricting: Those of its rules that must not be lost while a namespace is not known: filters, or the condition
            on victims.
    """

    def __init__(self, policy: CompiledPolicy, restricting: Sequence[CompiledFilter]) -> None:
        self._policy = policy
        self._restricting = restricting
        self._by_labels = policy.namespaces is not None and bool(policy.namespaces.requirements)
        conditions = (one for rule in restricting for one in (rule.when, rule.require))
        programs = (policy.applies_to, *conditions)
        self._needs_namespaces = bool(restricting) and (
            self._by_labels or any(_reads_labels(program, "pod", "peer") for program in programs)
        )

    def spares(self, pod: Pod) -> bool:
        """Return whether filters let a pod of the system be."""
        return is_system(pod) and not self._policy.spec.include_system_pods

    def unselected(self, pod: Pod, cluster: Cluster) -> str:
        """Say which selector does not take the pod, nothing where all do; an unknown namespace has no labels."""
        namespaces, name = self._policy.namespaces, pod.metadata.namespace
        labels = cluster.namespaces.get(name, {})
        if namespaces is None or namespaces.matches(labels):
            return self._untaken(pod)
        unknown = "" if labels else ", of which none are known: its Namespace object is missing"
        return self._untaken(pod) or f'namespaceSelector does not match the labels of namespace "{name}"{unknown}'

    def speaking(
        self, rows: Sequence[RowT], pod: Pod, context: EvaluationContext, *, unknown: bool
    ) -> tuple[RowT, ...]:
        """Return the rules that speak for a pod.

        Args:
            rows: The rules that may.
            pod: The pod.
            context: What they are evaluated in.
            unknown: Whether a condition holds that is unknown.
        """
        if self.unselected(pod, context.cluster):
            return ()
        if self._policy.applies_to is None and all(row.rule.when is None for row in rows):
            return tuple(rows)
        frame = context.plain(context.inputs(pod))
        if not _holds(self._policy.applies_to, frame, unknown=unknown):
            return ()
        return tuple(row for row in rows if _holds(row.rule.when, frame, unknown=unknown))

    def awaits(self, pod: Pod, context: EvaluationContext) -> Status | None:
        """Reject a pod while labels that the rules depend on are those of a namespace that is not known."""
        if not self._needs_namespaces or self.spares(pod):
            return None
        cluster = context.cluster
        is_known = pod.metadata.namespace in cluster.namespaces
        if self.unselected(pod, cluster) if is_known else self._untaken(pod):
            return None
        found = self._unknown_namespace(pod, context, is_known=is_known)
        if found is None:
            return None
        return unresolvable(f'policy {self._policy.key}: namespace "{found}" is not known yet')

    def _unknown_namespace(self, pod: Pod, context: EvaluationContext, *, is_known: bool) -> str | None:
        """Name the unknown namespace that the rules for a pod depend on.

        Missing: None where they depend on none.
        """
        policy, frame = self._policy, context.plain(context.inputs(pod))

        def may_hold(program: Program | None) -> bool:
            return (not is_known and _reads_labels(program, "pod")) or _holds(program, frame, unknown=True)

        if not may_hold(policy.applies_to):
            return None
        speaking = [rule for rule in self._restricting if may_hold(rule.when)]
        if not is_known and speaking:
            programs = (policy.applies_to, *(one for rule in speaking for one in (rule.when, rule.require)))
            if self._by_labels or any(_reads_labels(program, "pod") for program in programs):
                return pod.metadata.namespace
        if any(_reads_labels(rule.require, "peer") for rule in speaking):
            return min(context.cluster.unknown_namespaces, default=None)
        return None

    def _untaken(self, pod: Pod) -> str:
        """Say why the scheduler name or the labels of a pod are not those of the policy."""
        names, pods = self._policy.spec.scheduler_names, self._policy.pods
        if names and pod.spec.scheduler_name not in names:
            return f'schedulerNames ({", ".join(names)}) do not contain "{pod.spec.scheduler_name}"'
        if pods is not None and not pods.matches(pod.metadata.labels):
            return "podSelector does not match the pod's labels"
        return ""


def _reads_labels(program: Program | None, *roots: str) -> bool:
    """Return whether a program reads labels of the pod's own namespace (`pod`) or of placed pods' (`peer`)."""
    return program is not None and any(item.root in roots and item.path[0] == _LABELS for item in program.inputs)


def _holds(program: Program | None, frame: RuleFrame, *, unknown: bool) -> bool:
    if program is None:
        return True
    true, lacking = evaluate_columns(program.root, frame)
    return bool(true) or (unknown and bool(lacking))


class PolicyPlugin(
    WhatIfFilter[PolicySlice[FilterRow]],
    ScorePlugin[Slice],
    Incremental[PolicySlice[FilterRow] | Slice],
    RetryControl,
):
    """One policy at the points Filter and Score.

    Args:
        policy: The policy.
        contexts: What policies of a set share, by cluster.
        before: The plugin of an earlier generation: rules that are the same stay the same objects, with their results.
    """

    def __init__(
        self, policy: CompiledPolicy, contexts: Contexts | None = None, before: PolicyPlugin | None = None
    ) -> None:
        self.policy = policy
        self.selection = Selection(policy, policy.filters)
        self.name = plugin_name(policy.key)
        self.tier = policy.spec.tier
        """Before the scores of which lower tiers its score decides."""
        self.units = policy.units
        """What it takes of a decision. Units: operations over all nodes."""
        self.filter_reads = aspects_read(item for rule in policy.filters for item in rule.require.inputs)
        self.score_reads = aspects_read(item for rule in policy.scores for item in rule.value.inputs)
        self.normalizes = any(rule.normalizes for rule in policy.scores)
        filters, scores = ((), ()) if before is None else (before.filter_rows, before.score_rows)
        self.filter_rows: tuple[FilterRow, ...] = filter_rows(policy.filters, filters)
        self.score_rows: tuple[ScoreRow, ...] = score_rows(policy.scores, scores)
        self._contexts: Contexts = WeakKeyDictionary() if contexts is None else contexts
        reading = [item.root for item in policy.inputs if item.path[0] == _LABELS]
        self.reads_own_namespace = policy.namespaces is not None or "pod" in reading
        """Whether labels of the pod's own namespace decide about what is prepared for it."""
        self._reads_other_namespaces = "peer" in reading
        roots = [program.root for program in policy.filter_programs]
        self._timed = [root for root in roots if reads_time(root)]
        self._reads_details = any(
            item.root in {"peer", "victim"} and item.path[0] in {"annotations", "phase"} for item in policy.inputs
        )
        """Whether it reads annotations or phases of placed pods, whose changes are noted only then."""
        self._reads_classes = any(item.path[0] == "storage_classes" for item in policy.inputs)
        self._time_keys = time_keys(roots)
        self.beyond_class = beyond_class(item for program in policy.programs for item in program.inputs)
        """The fields of a pod that it reads and the pod's class does not hold."""
        self.time_keys = time_keys([program.root for program in policy.programs])
        """What it makes of the time, and not of nodes."""
        self._changes = changes_read(policy.filters, policy.inputs, bool(self._timed))
        self._next: WeakKeyDictionary[Cluster, tuple[tuple[float, int], float | None]] = WeakKeyDictionary()
        self._rejections: WeakKeyDictionary[Cluster, Rejections] = WeakKeyDictionary()
        self._depends_on_images = any(
            item.path[0] == "image_bytes" for program in policy.conditions for item in program.inputs
        )
        # Not itself: who holds itself is only freed when garbage is looked for.
        alone = copy(self)
        self.group = PolicyGroup((alone,), (alone,))
        """The policies that are evaluated together with this one."""

    def joined(self, group: PolicyGroup) -> PolicyPlugin:
        """Return this policy as one of a group; what it remembers is the same."""
        made = copy(self)
        made.group = group
        return made

    def acts_as(self, other: PolicyPlugin) -> bool:
        """Return whether another generation's plugin says the same of all pods and nodes; weights are the profile's.

        It does so with rules that are the same objects, so that their results are.
        """
        rows = self.filter_rows == other.filter_rows and self.score_rows == other.score_rows
        return rows and _speaks_for(self.policy) == _speaks_for(other.policy)

    def context(self, cluster: Cluster) -> EvaluationContext:
        """Return what the policies of a set share on a cluster."""
        found = self._contexts.get(cluster)
        if found is None:
            found = self._contexts[cluster] = evaluation_context(cluster)
        if self._reads_details:
            cluster.follow_details()
        return found

    def filters_for(self, pod: Pod, context: EvaluationContext) -> tuple[FilterRow, ...]:
        """Return the filter rules that speak for a pod."""
        if self.selection.spares(pod):
            return ()
        return self.selection.speaking(self.filter_rows, pod, context, unknown=True)

    def scores_for(self, pod: Pod, context: EvaluationContext) -> tuple[ScoreRow, ...]:
        """Return the score rules that speak for a pod."""
        return self.selection.speaking(self.score_rows, pod, context, unknown=False)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PolicySlice[FilterRow] | Nothing | Status:
        """Keep the filter rules that speak for the pod; reject it while a namespace that they need is not known."""
        context = self.context(cluster)
        waiting = self.selection.awaits(pod, context)
        if waiting is not None:
            return waiting
        found = self.group.on(context).filters(pod, self.name)
        return SKIP if found is None else found

    def affected_rows(self, state: PolicySlice[FilterRow] | Slice, rows: RowNumbers) -> Rows:
        """Add the rows that see another aggregate, or another value for all rows."""
        return state.affected_rows(rows)

    def filter(self, state: PolicySlice[FilterRow], rows: Rows) -> Codes:
        """Reject rows where a rule's condition is not true; the first such rule gives the code."""
        return state.answers(rows)

    def filter_changed(self, state: PolicySlice[FilterRow], changed: ChangedRow) -> Status | None:
        """Name the first rule that would not hold on a row whose pods were others."""
        code = state.changed_code(changed)
        return self.reason(state, code) if code else None

    def filter_changed_rows(self, state: PolicySlice[FilterRow], changed: ChangedRows) -> Codes | None:
        """Reject rows where a rule would not hold if their pods were others, None where each has to be asked."""
        return state.changed_codes(changed)

    def reason(self, state: PolicySlice[FilterRow], code: int) -> Status:  # noqa: ARG002 - codes name rules of the policy
        """Name the policy, the rule and what it says."""
        return reason(self.policy.key, self.filter_rows, code)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Slice | Nothing:
        """Keep the score rules that speak for the pod."""
        if self.normalizes:
            found: Slice | None = self.normalized_scores(pod, cluster)
        else:
            found = self.group.on(self.context(cluster)).scores(pod, self.name)
        return SKIP if found is None else found

    def normalized_scores(self, pod: Pod, cluster: Cluster) -> NormalizedScores | None:
        """Return the scores that speak for the pod with each rule's values; None where there are none."""
        context = self.context(cluster)
        rules = self.scores_for(pod, context)
        independent = self.group.on(context).independent
        return NormalizedScores(independent, context.inputs(pod), rules) if rules else None

    def score(self, state: Slice, rows: Rows) -> Scores:
        """Score rows; where a rule normalises, the final scores come with `normalize` alone."""
        return state.answers(rows)

    def stays_in_range(self, state: Slice) -> bool:  # noqa: ARG002 - scores are clipped
        """Return True."""
        return True

    def normalize(self, state: Slice, scores: Scores, feasible: Mask) -> Scores:
        """Normalise each rule's values over the feasible rows and combine them."""
        return state.final(feasible) if isinstance(state, NormalizedScores) else scores

    def generation(self, cluster: Cluster) -> Hashable:
        """Move with what rules read of others for all classes: labels of namespaces of placed pods, sizes of images."""
        return (
            cluster.namespaces_stamp if self._reads_other_namespaces else 0,
            cluster.images.generation if self._depends_on_images else 0,
        )

    def events(self) -> Sequence[Hint]:
        """Name the changes of what the filters read."""
        found = hints(self._changes, self._helps)
        if self.reads_own_namespace or self._reads_other_namespaces:
            found.append(Hint(Resource.NAMESPACE, Action.ALL))
        return found

    def on_rejected(self, pod: Pod, cluster: Cluster) -> None:
        """Remember where the rules hold now for a pod that is rejected."""
        self._rejected(pod, cluster).note()

    def retry_at(self, pod: Pod, cluster: Cluster) -> float | None:
        """Return the time at which time alone can change what the filters say of a pod."""
        if not self._timed:
            return None
        by_pod = any(POD_AGE in root.inputs for root in self._timed)
        known, present = self._next.get(cluster), (cluster.time.seconds, cluster.journal.position)
        if by_pod or known is None or known[0] != present:
            known = self._next[cluster] = (present, next_time(self._timed, pod, cluster))
        return known[1]

    def _helps(self, pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG002 - the journal says more
        return self._rejected(pod, cluster).look()

    def _rejected(self, pod: Pod, cluster: Cluster) -> RejectedPods:
        """Return what is remembered of a pod and those that are alike to the policy."""
        context, known = self.context(cluster), self._rejections.get(cluster)
        if known is None:
            known = self._rejections[cluster] = Rejections(context)
        independent = known.independent
        own = cluster.namespaces_stamp if self.reads_own_namespace else 0
        classes = cluster.storage.claim_classes_generation if self._reads_classes else 0
        times = context.values(pod, self._time_keys) if self._time_keys else ()
        version = (own, classes, self.generation(cluster), times)

        def prepare() -> tuple[Hashable, Callable[[], RejectedPods]]:
            waiting, make = self.selection.awaits(pod, context), partial(RejectedPods, context, self.filter_reads)
            rules = self.filters_for(pod, context) if waiting is None else ()
            if not rules:
                return waiting, partial(make, waiting)
            inputs = context.inputs(pod)
            own = inputs.key(dict.fromkeys(item for row in rules for item in row.rule.require.inputs))
            key = (tuple(row.place for row in rules), own, version)
            return key, lambda: make(FilterMatrix(independent, inputs, {self.name: rules}))

        return known.of(pod, version, prepare)


def _speaks_for(policy: CompiledPolicy) -> tuple[object, ...]:
    """Return what decides about which pods a policy says what its rules say; the condition on victims names hints."""
    spec = policy.spec
    own = (policy.key, policy.pods, policy.namespaces, policy.applies_to, policy.preemption)
    return (*own, spec.scheduler_names, spec.include_system_pods, spec.tier)


class PolicyGroup:
    """The policies that decide together in a profile: those that filter and those that score, in their order."""

    def __init__(self, filters: Sequence[PolicyPlugin], scores: Sequence[PolicyPlugin]) -> None:
        self.filters, self.scores = filters, scores
        self.units = {plugin.name: plugin.units for plugin in (*filters, *scores)}
        """What each of its policies takes of a decision, by the plugin's name."""
        self._results: WeakKeyDictionary[EvaluationContext, GroupResults] = WeakKeyDictionary()

    def seed(self) -> None:
        """Find out again what the rules make of no pod, after contexts have begun anew."""
        for results in self._results.values():
            results.independent.seed()

    def evaluate(self, cluster: Cluster) -> None:
        """Evaluate the rules that do not read the pod."""
        plugins = (*self.filters, *self.scores)
        if plugins:
            self.on(plugins[0].context(cluster)).independent.refresh()

    def on(self, context: EvaluationContext) -> GroupResults:
        """Return the results on a cluster."""
        found = self._results.get(context)
        if found is None:
            found = self._results[context] = GroupResults(self.filters, self.scores, context)
        return found


class GroupResults:
    """The results of a group's policies on one cluster, with the matrices of the pod that was asked about last."""

    def __init__(
        self, filters: Sequence[PolicyPlugin], scores: Sequence[PolicyPlugin], context: EvaluationContext
    ) -> None:
        self._filtering, self._scoring = filters, scores
        self._context = context
        self.independent = PodIndependentResults(
            context,
            (row for plugin in filters for row in plugin.filter_rows),
            (row for plugin in scores for row in plugin.score_rows),
        )
        self._filters: FilterMatrix | None = None
        self._scores: ScoreMatrix | None = None

    def filters(self, pod: Pod, name: str) -> PolicySlice[FilterRow] | None:
        """Return what a policy says of nodes at Filter, None where it has nothing to say about the pod."""
        context, inputs = self._context, self._context.inputs(pod)
        if self._filters is None or self._filters.pod is not inputs:
            speaking = {plugin.name: plugin.filters_for(pod, context) for plugin in self._filtering}
            self._filters = FilterMatrix(self.independent, inputs, speaking)
        return self._filters.slice_of(name)

    def scores(self, pod: Pod, name: str) -> PolicySlice[ScoreRow] | None:
        """Return what a policy that does not normalise says of nodes at Score, None where it has nothing to say."""
        context, inputs = self._context, self._context.inputs(pod)
        if self._scores is None or self._scores.pod is not inputs:
            plugins = (plugin for plugin in self._scoring if not plugin.normalizes)
            speaking = {plugin.name: plugin.scores_for(pod, context) for plugin in plugins}
            self._scores = ScoreMatrix(self.independent, inputs, speaking)
        return self._scores.slice_of(name)
