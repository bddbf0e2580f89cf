"""`Engine`: the scheduling cycle as a function; it finds the feasible nodes of a pod and chooses the best.

The engine is synchronous and changes nothing in the cluster: the caller assumes the pod. The running scheduler, dry-run
and the benchmarks use the same engine. It chooses among the best nodes with the given random source.

Source: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, selectHost).
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from copy import copy

import numpy as np

from policysched.framework import RowNumbers, Status
from policysched.framework.profile import PerPodPlugins, Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.class_cache import ClassCache
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.nominated_pods import with_nominated_pods, with_nominations
from policysched.schedule.cycle.per_pod_results import (
    with_out_of_tree_filters,
    with_out_of_tree_scores,
    with_per_pod_results,
)
from policysched.schedule.timing import FILTERED, SCORED, CycleTimes, Timing
from policysched.state.cluster import Cluster


class Engine:
    """Decides about the pods of one profile in one cluster: evaluates filters and scores, and chooses a node.

    Args:
        cluster: The cluster.
        profile: The plugins and their weights.
        rng: Random generator that chooses among equally good nodes.
        timing: Measures the decisions; None if they are not measured.
    """

    times: CycleTimes | None = None
    """Measures the extension points of the current decision; None if durations are not measured."""

    def __init__(self, cluster: Cluster, profile: Profile, rng: random.Random, timing: Timing | None = None) -> None:
        if timing is not None:
            self.times = CycleTimes(timing)
        self.cluster, self._rng = cluster, rng
        self.classes = ClassCache(cluster, profile)
        if profile.handle is not None:
            profile.handle.connect(cluster)

    @property
    def profile(self) -> Profile:
        """The current profile: the plugins with their weights."""
        return self.classes.profile

    def use(self, profile: Profile) -> None:
        """Switch to another profile; reuse cached results that are still valid."""
        self.classes.use(profile)

    def beside(self, rng: random.Random) -> Engine:
        """Return another engine for the same profile and cluster, with its own cache and random source.

        Its decisions do not affect this engine.
        """
        made = copy(self)
        made._rng, made.times, made.classes = rng, None, ClassCache(self.cluster, self.profile)
        return made

    def decide(self, pod: Pod, key: Hashable = None, rows: RowNumbers | None = None) -> Decision:
        """Run one scheduling cycle for a pod.

        Args:
            pod: The pod.
            key: The key of its class, if known.
            rows: The rows of the placement on which the pod's group is to be placed; None for all nodes.

        Cost: a few operations over all rows, and the calls of plugins for rows that changed.
        """
        return self.choose(self.find(pod, key, rows))

    def find(self, pod: Pod, key: Hashable = None, rows: RowNumbers | None = None) -> Evaluation:
        """Evaluate the filters for a pod on all nodes, or on the nodes `rows`; return results and feasible nodes."""
        if self.times is not None:
            self.times.begin()
        found = Evaluation.of(pod, self.classes.results(pod, key, self.times))
        if rows is not None:
            found = found.within(rows)
        plugins = self.profile.per_pod_plugins(pod, self.cluster)
        if plugins is None and not self.cluster.nominations and not pod.status.nominated_node_name:
            return found
        found = self._for_pod(found, plugins)
        if self.times is not None:
            self.times.lap(FILTERED)
        return found

    def _for_pod(self, evaluation: Evaluation, plugins: PerPodPlugins | None) -> Evaluation:
        """Return the results that equal pods share, with results for this pod only, such as those of its claims."""
        if plugins is not None:
            evaluation = with_per_pod_results(evaluation, plugins, self.times)
        if evaluation.rejection is not None:
            return evaluation
        evaluation, cycle = with_nominations(evaluation), evaluation.cycle
        if cycle is None:
            return with_nominated_pods(evaluation)
        if evaluation.nominated_row is not None and not self.profile.extending(evaluation.pod):
            return evaluation  # no other node is considered; extenders could still reject the nominated node
        return with_out_of_tree_filters(with_nominated_pods(evaluation), cycle, self.times)

    def choose(self, evaluation: Evaluation) -> Decision:
        """Return the decision for the best feasible node; the cluster must not have changed since the evaluation."""
        if not self.cluster.nodes.count:
            return Decision(evaluation)
        if evaluation.rejection is not None:
            return Decision(evaluation, rejection=evaluation.rejection)
        row = evaluation.nominated_row
        if row is not None:
            return Decision(evaluation, row=row, tied=np.array([row]), feasible_count=1, nominated=True)
        if evaluation.filter_failure is not None or not evaluation.feasible_count:
            return Decision(evaluation, failure=evaluation.filter_failure)
        best = self._best(evaluation)
        if self.times is not None:
            self.times.lap(SCORED)
        if isinstance(best, Status):
            return Decision(evaluation, failure=best)
        evaluation, tied = best
        chosen = int(tied[0 if tied.size == 1 else int(self._rng.random() * tied.size)])
        return Decision(evaluation, row=chosen, tied=tied, feasible_count=evaluation.feasible_count)

    def _best(self, evaluation: Evaluation) -> tuple[Evaluation, RowNumbers] | Status:
        """Score the feasible nodes; return the results and the best nodes' rows, or the status of a failed plugin.

        A single feasible node needs no scores.
        """
        if evaluation.feasible_count == 1:
            return evaluation, evaluation.best(self.times)
        if evaluation.score_failure is not None:
            return evaluation.score_failure
        scored = with_out_of_tree_scores(evaluation, self.times) if evaluation.pending_scores else evaluation
        if isinstance(scored, Status):
            return scored
        best = scored.best(self.times)
        return scored.score_out_of_range() or (scored, best)
