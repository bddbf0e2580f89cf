"""`Decision`, the outcome of a scheduling cycle, with kube-scheduler's texts (FitError).

A decision refers to its class's evaluation instead of copying it: read it before the cluster changes.

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
from policysched.schedule.cycle.evaluation import NARROWED, Evaluation
from policysched.schedule.cycle.results.plugin_results import PRE_FILTER_RESULT, FilterResults
from policysched.schedule.cycle.results.rejections import histogram, rejected_with
from policysched.schedule.timing import FILTER, PRE_FILTER, PRE_SCORE, SCORE
from policysched.state.cluster import Cluster

NO_NODES = "no nodes available to schedule pods"


@dataclass(slots=True)
class Decision:
    """The outcome of one cycle."""

    cluster: Cluster
    pod: Pod
    evaluation: Evaluation
    rejection: Status | None = None
    """The PreFilter status that turned the pod away on every node."""
    failure: Status | None = None
    """The Filter, PreScore or Score status of a plugin that failed."""
    row: int = -1
    """The selected node's row, −1 where no node was feasible."""
    tied: RowNumbers = field(default_factory=lambda: NO_ROWS)
    """The rows that are equally good, and better than all others, often many: they are listed only on request."""
    feasible_count: int = 0
    nominated: bool = False
    """True where the pod's nominated node fits, which is then the only one looked at."""
    _statuses: Counter[Status] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def node(self) -> str:
        """The selected node's name, empty where there is none."""
        return self.cluster.nodes.names[self.row] if self.row >= 0 else ""

    @property
    def best(self) -> list[int]:
        """The rows that are equally good, and better than all others."""
        rows: list[int] = self.tied.tolist()
        return rows

    @property
    def failed(self) -> bool:
        """True where a plugin failed, as opposed to rejecting."""
        return self.failure is not None or (self.rejection is not None and not self.rejection.rejects)

    @property
    def evaluated_count(self) -> int:
        """How many nodes were looked at: all of them, unless the nominated one was enough."""
        return 1 if self.nominated else self.cluster.nodes.count

    def code_at(self, point: str) -> Code:
        """Return how an extension point ended: a failure is that of the point where it came up."""
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
        """Return the names of the plugins that turned the pod away; changes they wait for bring it back."""
        if self.cluster.nodes.count == 0:
            return frozenset()
        if self.rejection is not None:
            named = frozenset({self.rejection.plugin} if self.rejection.plugin else ())
            narrowed = not named or self.rejection.code is Code.UNSCHEDULABLE
            return named | frozenset(self.evaluation.narrowing) if narrowed else named
        names = {status.plugin for status, count in self._histogram().items() if count}
        names.discard(PRE_FILTER_RESULT)
        return frozenset(names | set(self.evaluation.narrowing))

    def pending(self) -> frozenset[str]:
        """Return the names of those among them that answered Pending."""
        if self.rejection is not None or not self.cluster.nodes.count:
            return frozenset()
        statuses = self._histogram().items()
        return frozenset(status.plugin for status, count in statuses if count and status.code is Code.PENDING)

    @property
    def state(self) -> CycleState:
        """What plugins keep for the attempt."""
        part = self.evaluation.out_of_tree
        return CycleState() if part is None else part.cycle.state

    def status(self, row: int) -> Status:
        """Return why a row is not feasible."""
        nominated = self.rejected_nomination()
        return nominated[1] if nominated is not None and nominated[0] == row else self.evaluation.status(row)

    def rows_with(self, code: Code) -> RowNumbers:
        """Return the rows whose status has a code."""
        mask = rejected_with(code, *self._rejections())
        nominated = self.rejected_nomination()
        if nominated is not None:
            mask[nominated[0]] = nominated[1].code is code
        return np.flatnonzero(mask)

    def fit_error(self) -> str:
        """Return why no node fits, in kube-scheduler's words, without what PostFilter adds."""
        total = self.cluster.nodes.count
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
        """Return which plugin failed, and how."""
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
        """Return each row's first rejecting filter, and the filters. Shapes: (N,)."""
        return self.evaluation.first[: self.cluster.nodes.size], self.evaluation.filters

    def _histogram(self) -> Counter[Status]:
        """Count the rows by the status that keeps them out."""
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
        """Return the row of the pod's nominated node and why it did not fit, if PreFilter narrowed the node away.

        It was tried before all others, so the filter that rejected it is the one to name.
        """
        evaluation, name = self.evaluation, self.pod.status.nominated_node_name
        row = self.cluster.nodes.row_of.get(name, -1) if name and evaluation.narrowing else -1
        if row < 0 or evaluation.first[row] != NARROWED:
            return None
        part = evaluation.out_of_tree
        status = evaluation.trial(row).verdict() if part is None else part.nominated_status
        return None if status is None else (row, status)


def drawn(decision: Decision, rng: random.Random) -> Decision:
    """Draw among the best nodes by name: the same seed gives the same node however objects are ordered."""
    if len(decision.best) > 1:
        names = decision.cluster.nodes.names
        decision.row = rng.choice(sorted(decision.best, key=lambda row: names[row]))
    return decision
