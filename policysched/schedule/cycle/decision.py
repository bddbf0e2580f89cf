"""`Decision`: the outcome of a scheduling cycle, with kube-scheduler's message that no node fits (FitError).

A decision refers to its evaluation, so it is valid until the cluster changes.

Source: pkg/scheduler/framework/types.go (FitError.Error), pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Code, RowNumbers, Status
from policysched.framework.cycle_state import CycleState
from policysched.framework.status import filter_error
from policysched.model.objects import Pod
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.results.plugin_results import NARROWED, PRE_FILTER_RESULT, FilterResults
from policysched.schedule.cycle.results.rejections import histogram, rejected_with
from policysched.schedule.timing import FILTER, PRE_FILTER, PRE_SCORE, SCORE
from policysched.state.cluster import Cluster

NO_NODES = "no nodes available to schedule pods"


@dataclass(slots=True)
class Decision:
    """The outcome of one scheduling cycle: the selected node, or why no node fits."""

    evaluation: Evaluation
    rejection: Status | None = None
    """The PreFilter status that rejected the pod on every node, if any."""
    failure: Status | None = None
    """The status of the plugin that failed at Filter, PreScore or Score, if any."""
    row: int = -1
    """The row (number) of the selected node; −1 if no node is feasible."""
    tied: RowNumbers = field(default_factory=lambda: NO_ROWS)
    """The rows of the nodes with the highest total score, if several nodes have it."""
    feasible_count: int = 0
    nominated: bool = False
    """True if the pod fits its nominated node: no other node was then considered."""
    _statuses: Counter[Status] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def cluster(self) -> Cluster:
        """The cluster in which the decision was made."""
        return self.evaluation.cluster

    @property
    def pod(self) -> Pod:
        """The pod that the decision is about."""
        return self.evaluation.pod

    @property
    def node(self) -> str:
        """The name of the selected node; empty if no node is feasible."""
        return self.cluster.nodes.names[self.row] if self.row >= 0 else ""

    @property
    def best(self) -> list[int]:
        """The rows (node numbers) of the nodes with the highest total score."""
        rows: list[int] = self.tied.tolist()
        return rows

    @property
    def failed(self) -> bool:
        """Whether a plugin failed, as opposed to rejecting the pod."""
        return self.failure is not None or (self.rejection is not None and not self.rejection.rejects)

    @property
    def evaluated_count(self) -> int:
        """Number of evaluated nodes: all nodes, or 1 if the pod fits its nominated node."""
        return 1 if self.nominated else self.evaluation.node_count

    def code_at(self, point: str) -> Code:
        """Return the status code with which an extension point of this cycle ended, for metrics."""
        if self.rejection is not None:
            return self.rejection.code if point == PRE_FILTER else Code.SUCCESS
        if self.failure is None:
            return Code.SUCCESS
        if self.failure is self.evaluation.filter_failure:
            failed_at = FILTER
        else:
            failed_at = PRE_SCORE if self.failure is self.evaluation.score_failure else SCORE
        return self.failure.code if point == failed_at else Code.SUCCESS

    def rejectors(self) -> frozenset[str]:
        """Return the names of the plugins that rejected the pod and whose queueing hints retry it."""
        if self.evaluation.node_count == 0:
            return frozenset()
        if self.rejection is not None:
            named = frozenset({self.rejection.plugin} if self.rejection.plugin else ())
            narrowed = not named or self.rejection.code is Code.UNSCHEDULABLE
            return named | frozenset(self.evaluation.narrowing) if narrowed else named
        names = {status.plugin for status, count in self._histogram().items() if count}
        names.discard(PRE_FILTER_RESULT)
        return frozenset(names | set(self.evaluation.narrowing))

    def pending(self) -> frozenset[str]:
        """Return the names of the plugins that rejected the pod with Pending."""
        if self.rejection is not None or not self.evaluation.node_count:
            return frozenset()
        statuses = self._histogram().items()
        return frozenset(status.plugin for status, count in statuses if count and status.code is Code.PENDING)

    @property
    def state(self) -> CycleState:
        """The CycleState that out-of-tree plugins share during the attempt."""
        cycle = self.evaluation.cycle
        return CycleState() if cycle is None else cycle.state

    def status(self, row: int) -> Status:
        """Return the status with which a filter rejects the node of a row."""
        nominated = self.rejected_nomination()
        return nominated[1] if nominated is not None and nominated[0] == row else self.evaluation.status(row)

    def rows_with(self, code: Code) -> RowNumbers:
        """Return the rows of the nodes that are rejected with a given status code."""
        mask = rejected_with(code, *self._rejections())
        nominated = self.rejected_nomination()
        if nominated is not None:
            mask[nominated[0]] = nominated[1].code is code
        return np.flatnonzero(mask)

    def fit_error(self) -> str:
        """Return kube-scheduler's message that no node fits, without the message of PostFilter."""
        total = self.evaluation.node_count
        if total == 0:
            return NO_NODES
        if self.rejection is not None:
            return f"0/{total} nodes are available: {self.rejection.message}."
        counts: Counter[str] = Counter()
        for status, count in self._histogram().items():
            for reason in status.reasons:
                counts[reason] += count
        parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
        return f"0/{total} nodes are available:" + (f" {', '.join(parts)}." if parts else "")

    def error(self) -> str:
        """Return kube-scheduler's message that a plugin failed; empty if no plugin failed."""
        if self.failure is not None and self.failure is self.evaluation.filter_failure:
            return filter_error(self.failure)
        if self.failure is not None and self.failure is not self.evaluation.score_failure:
            return self.failure.message
        if self.failure is not None:
            return f'running PreScore plugin "{self.failure.plugin}": {self.failure.message}'
        if self.rejection is None or self.rejection.rejects:
            return ""
        return f'running PreFilter plugin "{self.rejection.plugin}": {self.rejection.message}'

    def _rejections(self) -> tuple[NDArray[np.int16], Sequence[FilterResults]]:
        """Return, for each node, the place of the first filter that rejects the node; and all filters. Shapes: (N,)."""
        return self.evaluation.first[: self.cluster.nodes.size], self.evaluation.filters

    def _histogram(self) -> Counter[Status]:
        """Return the number of nodes that each status rejects."""
        if self._statuses is None:
            self._statuses = self._count()
        return self._statuses

    def _count(self) -> Counter[Status]:
        counts: Counter[Status] = Counter()
        for status, count in histogram(*self._rejections()):
            counts[status] += count
        nominated = self.rejected_nomination()
        if nominated is not None:
            counts[self.evaluation.status(nominated[0])] -= 1
            counts[nominated[1]] += 1
        return counts

    def rejected_nomination(self) -> tuple[int, Status] | None:
        """Return row and status of the pod's nominated node if PreFilter excluded that node; else None.

        The nominated node was evaluated before all others, so messages name the filter that rejected it.
        """
        nominated = self.evaluation.nominated_node
        if nominated is None or nominated.status is None or not self.evaluation.narrowing:
            return None
        return (nominated.row, nominated.status) if self.evaluation.first[nominated.row] == NARROWED else None


def drawn(decision: Decision, rng: random.Random) -> Decision:
    """Choose a random node among the nodes with the highest total score; with a seed, the choice is reproducible."""
    if len(decision.best) > 1:
        names = decision.cluster.nodes.names
        decision.row = rng.choice(sorted(decision.best, key=lambda row: names[row]))
    return decision
