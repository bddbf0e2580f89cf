"""PodTopologySpread: spread pods of a kind evenly over the values of a label, such as zones or host names.

Hard constraints filter nodes, soft ones score them. Pods that state none are spread by the constraints of the
configuration, together with the pods of their services and their controller. How the parts work stands in the modules
of the same name: `_constraints` compiles, `_rows` knows which nodes count and `_sums` how many pods, `_filter` and
`_score` answer, `_hints` judges changes.

Source: plugins/podtopologyspread/plugin.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from policysched.framework import SKIP, Aspect, Cluster, Code, Codes, Hint, Mask, RowNumbers, Rows, Scores, Status
from policysched.model.objects import Pod
from policysched.plugins import pod_topology_spread_filter
from policysched.plugins.helper.bases import row_count
from policysched.plugins.pod_topology_spread_constraints import (
    DO_NOT_SCHEDULE,
    HOSTNAME,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Constraint,
    ConstraintError,
    Defaults,
)
from policysched.plugins.pod_topology_spread_filter import HardState, Verdicts
from policysched.plugins.pod_topology_spread_hints import spread_hints
from policysched.plugins.pod_topology_spread_rows import Inclusions
from policysched.plugins.pod_topology_spread_score import DomainWish, NodeWish, SoftState, Wish
from policysched.plugins.pod_topology_spread_sums import SharedSums


class PodTopologySpread:
    """The plugin.

    Args:
        defaults: The constraints of pods that state none; absent, the system's.
    """

    name = "PodTopologySpread"
    filter_reads = Aspect.LABELS | Aspect.TAINTS | Aspect.PODS
    score_reads = Aspect.NONE
    normalizes = True

    def __init__(self, defaults: Defaults = SYSTEM_DEFAULTS) -> None:
        self._defaults = defaults
        self._sums = SharedSums()

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Compile the hard constraints; a pod without any is skipped."""
        try:
            constraints = self._defaults.constraints_of(pod, DO_NOT_SCHEDULE, cluster)
        except ConstraintError as error:
            return Status(Code.ERROR, (f"get constraints from pod: {error}",))
        if not constraints:
            return SKIP
        labels = frozenset(one.topology_key for one in constraints)
        included = Inclusions(pod, labels)
        namespace, own = pod.metadata.namespace, pod.metadata.labels

        def judge(one: Constraint) -> Verdicts:
            sums = self._sums.of(included.of(one), one.tally(namespace, cluster), cluster)
            return Verdicts(one, sums, counts_itself=one.counts(own))

        return HardState(cluster.nodes, constraints, judge)

    def filter(self, state: HardState, rows: Rows) -> Codes:
        """Reject rows without a label, and rows whose domain would become too full."""
        return state.codes(rows)

    def filter_reach(self, state: HardState, rows: RowNumbers) -> Rows:
        """Name the rows of the domains whose verdict became another, too."""
        return state.reach(rows)

    def reason(self, state: HardState, code: int) -> Status:  # noqa: ARG002 - the code says it all
        """Translate a code."""
        return pod_topology_spread_filter.reason(code)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Compile the soft constraints; a pod without any is skipped."""
        try:
            constraints = self._defaults.constraints_of(pod, SCHEDULE_ANYWAY, cluster)
        except ConstraintError as error:
            return Status(Code.ERROR, (f"calculating preScoreState: {error}",))
        if not constraints:
            return SKIP
        labels = frozenset(one.topology_key for one in constraints) if self._requires_labels(pod) else frozenset()
        # where no label is demanded, a row without a constraint's label counts as if that were empty
        included = Inclusions(pod, labels, missing_is_empty=not labels)
        namespace = pod.metadata.namespace

        def wish(one: Constraint) -> Wish:
            tally = one.tally(namespace, cluster)
            if one.topology_key == HOSTNAME:
                return NodeWish(one, tally, cluster)
            return DomainWish(one, self._sums.of(included.of(one), tally, cluster))

        return SoftState(constraints, wish, labels, cluster)

    def score(self, state: SoftState, rows: Rows) -> Scores:
        """Say of each row that it has a score; which one, only `normalize` can tell."""
        return np.ones(row_count(state.nodes, rows), np.int64)

    def normalize(self, state: SoftState, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - not looked at
        """Score the rows, knowing which are feasible."""
        return state.finals(feasible)

    def stays_in_range(self, state: SoftState) -> bool:
        """Tell whether every maxSkew is at least 1."""
        return state.in_range

    def events(self) -> Sequence[Hint]:
        """Nodes and placed pods that count differently can help, and so can updates of the pod itself."""
        return spread_hints(self._defaults)

    def epoch(self, cluster: Cluster) -> Hashable:
        """Give what moves when a selector that constraints were derived from is another."""
        return cluster.workloads.epoch if self._defaults.constraints else 0

    def _requires_labels(self, pod: Pod) -> bool:
        """Tell whether scoring passes over nodes that lack one of the constraints' labels."""
        return bool(pod.spec.topology_spread_constraints) or not self._defaults.are_the_systems
