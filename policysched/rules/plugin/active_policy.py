"""`ActivePolicy`: a compiled policy in force, with the rules that apply to a pod, their inputs and queueing hints.

Policies are no plugins of a profile themselves: `policies` evaluates all policies of a profile together. Statuses,
records and hints name a policy `SchedulingPolicy/<name>`.

Source: docs/reference/language.md#the-object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from weakref import WeakKeyDictionary

from policysched.framework import Action, BlockMember, Change, Cluster, Hint, Resource, Status, plugin_name
from policysched.model.objects import Pod
from policysched.rules.compile.graphs import POD_AGE, reads_group, reads_time, time_keys
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.group_values import group_version
from policysched.rules.inputs import aspects_read, beyond_class
from policysched.rules.plugin.hints import RejectedPods, Rejections, changes_read, hints, next_time
from policysched.rules.plugin.selection import LABELS, Selection
from policysched.rules.results.matrix import FilterMatrix
from policysched.rules.results.pod_independent import PodIndependentResults
from policysched.rules.results.rule_rows import FilterRow, ScoreRow, filter_rows, reason, score_rows
from policysched.rules.shared_values.aggregates import evaluation_context
from policysched.rules.shared_values.context import EvaluationContext

Results = WeakKeyDictionary[Cluster, PodIndependentResults]


class ActivePolicy(BlockMember):
    """A policy in force, with its rules ready for evaluation.

    Args:
        policy: The policy.
        results: The pod-independent results of the policies of a set, by cluster.
        before: The policy of an earlier generation: rules that are the same stay the same objects.
    """

    def __init__(
        self, policy: CompiledPolicy, results: Results | None = None, before: ActivePolicy | None = None
    ) -> None:
        self.policy = policy
        self.selection = Selection(policy, policy.filters)
        self.name = plugin_name(policy.key)
        self.weight, self.tier = policy.spec.weight, policy.spec.tier
        self.filter_reads = aspects_read(item for rule in policy.filters for item in rule.require.inputs)
        self.score_reads = aspects_read(item for rule in policy.scores for item in rule.value.inputs)
        self.normalizes = any(rule.normalizes for rule in policy.scores)
        filters, scores = ((), ()) if before is None else (before.filter_rows, before.score_rows)
        self.filter_rows: tuple[FilterRow, ...] = filter_rows(policy.filters, filters)
        self.score_rows: tuple[ScoreRow, ...] = score_rows(policy.scores, scores)
        self._results: Results = WeakKeyDictionary() if results is None else results
        reading = [item.root for item in policy.inputs if item.path[0] == LABELS]
        self.reads_own_namespace = policy.namespaces is not None or "pod" in reading
        """Whether labels of the pod's own namespace affect the policy."""
        self._reads_other_namespaces = "peer" in reading
        roots = [program.root for program in policy.filter_programs]
        self._timed = [root for root in roots if reads_time(root)]
        self._reads_details = any(
            item.root in {"peer", "victim"} and item.path[0] in {"annotations", "phase"} for item in policy.inputs
        )
        """Whether the policy reads annotations or phases of placed pods; otherwise, their changes are not recorded."""
        self._reads_classes = any(item.path[0] == "storage_classes" for item in policy.inputs)
        self._time_keys = time_keys(roots)
        self.beyond_class = beyond_class(item for program in policy.programs for item in program.inputs)
        """The pod fields that the policy reads although equal pods (one pod class) may differ in them."""
        self.reads_group = any(reads_group(item) for program in policy.programs for item in program.inputs)
        """Whether the policy reads the group to which a pod belongs."""
        self.time_keys = time_keys([program.root for program in policy.programs])
        """The parts of expressions that read the time and have one value for all nodes."""
        self._changes = changes_read(policy.filters, policy.inputs, bool(self._timed))
        self._next: WeakKeyDictionary[Cluster, tuple[tuple[float, int], float | None]] = WeakKeyDictionary()
        self._rejections: WeakKeyDictionary[Cluster, Rejections] = WeakKeyDictionary()
        self._depends_on_images = any(
            item.path[0] == "image_bytes" for program in policy.conditions for item in program.inputs
        )

    def results(self, cluster: Cluster) -> PodIndependentResults:
        """Return the results on a cluster of all policies' rules that do not read the pod."""
        found = self._results.get(cluster)
        if found is None:
            found = self._results[cluster] = PodIndependentResults(evaluation_context(cluster))
        if self._reads_details:
            cluster.follow_details()
        return found

    def context(self, cluster: Cluster) -> EvaluationContext:
        """Return the evaluation context, with caches, that all policies share on a cluster."""
        return self.results(cluster).context

    def filters_for(self, pod: Pod, context: EvaluationContext) -> tuple[FilterRow, ...]:
        """Return the filter rules that apply to a pod."""
        if self.selection.spares(pod):
            return ()
        return self.selection.applying(self.filter_rows, pod, context, unknown=True)

    def scores_for(self, pod: Pod, context: EvaluationContext) -> tuple[ScoreRow, ...]:
        """Return the score rules that apply to a pod."""
        return self.selection.applying(self.score_rows, pod, context, unknown=False)

    def applies(self, pod: Pod, cluster: Cluster) -> bool:
        """Return whether a filter or a score applies to a pod, or will once its namespace is known."""
        context = self.context(cluster)
        waits = self.selection.awaits(pod, context) is not None
        return waits or bool(self.filters_for(pod, context) or self.scores_for(pod, context))

    def filter_matrix(self, pod: Pod, cluster: Cluster) -> FilterMatrix | Status | None:
        """Return the filter rules that apply to a pod, ready to evaluate; a rejection if a namespace is unknown."""
        results = self.results(cluster)
        context = results.context
        waiting = self.selection.awaits(pod, context)
        if waiting is not None:
            return waiting
        rules = self.filters_for(pod, context)
        return FilterMatrix(results, context.inputs(pod), {self.name: rules}) if rules else None

    def reason(self, code: int) -> Status:
        """Return the rejection status that a reason code of the policy stands for, with its rule and message."""
        return reason(self.policy.key, self.filter_rows, code).by(self.name)

    @property
    def has_stamps(self) -> bool:
        """Whether the value of `stamp` can change."""
        return self._reads_other_namespaces or self._depends_on_images

    def stamp(self, cluster: Cluster) -> Hashable:
        """Return a value that changes with labels of placed pods' namespaces and with image sizes that rules read."""
        return (
            cluster.namespaces_stamp if self._reads_other_namespaces else 0,
            cluster.images.stamp if self._depends_on_images else 0,
        )

    def events(self) -> Sequence[Hint]:
        """Return queueing hints for the changes of the filters' inputs."""
        found = hints(self._changes, self._helps)
        if self.reads_own_namespace or self._reads_other_namespaces:
            found.append(Hint(Resource.NAMESPACE, Action.ALL))
        return found

    def on_rejected(self, pod: Pod, cluster: Cluster) -> None:
        """Store which nodes the policy's filters accept for a rejected pod, to compare them after changes."""
        self._rejected(pod, cluster).record()

    def retry_at(self, pod: Pod, cluster: Cluster) -> float | None:
        """Return the time at which elapsed time alone can change a result of the filters; None if it cannot."""
        if not self._timed:
            return None
        by_pod = any(POD_AGE in root.inputs for root in self._timed)
        known, present = self._next.get(cluster), (cluster.time.seconds, cluster.journal.position)
        if by_pod or known is None or known[0] != present:
            known = self._next[cluster] = (present, next_time(self._timed, pod, cluster))
        return known[1]

    def _helps(self, pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG002 - the journal has the changes
        return self._rejected(pod, cluster).may_help()

    def _rejected(self, pod: Pod, cluster: Cluster) -> RejectedPods:
        """Return the nodes that the filters accept for a rejected pod and for all pods with equal results."""
        context, known = self.context(cluster), self._rejections.get(cluster)
        if known is None:
            known = self._rejections[cluster] = Rejections(context)
        independent = known.independent
        own = cluster.namespaces_stamp if self.reads_own_namespace else 0
        classes = cluster.storage.claim_classes_stamp if self._reads_classes else 0
        times = context.values(pod, self._time_keys) if self._time_keys else ()
        group = group_version(pod, cluster) if self.reads_group else None
        stamp = (own, classes, self.stamp(cluster), times, group)

        def prepare() -> tuple[Hashable, Callable[[], RejectedPods]]:
            waiting, make = self.selection.awaits(pod, context), partial(RejectedPods, context, self.filter_reads)
            rules = self.filters_for(pod, context) if waiting is None else ()
            if not rules:
                return waiting, partial(make, waiting)
            inputs = context.inputs(pod)
            own = inputs.key(dict.fromkeys(item for row in rules for item in row.rule.require.inputs))
            key = (tuple(row.place for row in rules), own, stamp)
            return key, lambda: make(FilterMatrix(independent, inputs, {self.name: rules}))

        return known.of(pod, stamp, prepare)
