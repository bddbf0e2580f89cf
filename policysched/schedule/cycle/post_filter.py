"""Running PostFilter plugins on a decision without a feasible node: until one succeeds, fails, or ends it.

It changes nothing and starts nothing. What a plugin wants done outside is part of its result, and whoever decides for
good does it.

Source: pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins), schedule_one.go (schedulingAlgorithm),
pkg/scheduler/framework/interface.go (NodesForStatusCode).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import (
    NO_ROWS,
    ChangedRows,
    Code,
    PodsBounding,
    PostFilterPlugin,
    PostFilterResult,
    RowNumbers,
    RowVerdicts,
    Status,
    VictimGuard,
    unschedulable,
)
from policysched.framework.extender import Extender
from policysched.model.objects import Pod
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.results.plugin_results import PRE_FILTER_RESULT, FilterResults
from policysched.schedule.cycle.what_if import Trial, verdicts_on
from policysched.schedule.timing import POST_FILTER, Timing, awaited

log = logging.getLogger(__name__)
T = TypeVar("T")


class FailedCycle:
    """A decision as PostFilter plugins see it (`FailedDecision`).

    Args:
        decision: A decision without a feasible node, of a cluster with nodes, in which no plugin failed.
        rng: Draws among equal candidates.
        extenders: The extenders that are interested in the pod.
        victim_guards: The guards that protect pods from preemption.
    """

    def __init__(
        self,
        decision: Decision,
        rng: random.Random,
        extenders: Sequence[Extender] = (),
        victim_guards: Sequence[VictimGuard] = (),
    ) -> None:
        self.decision, self.rng, self.victim_guards = decision, rng, victim_guards
        self.extenders = [one for one in extenders if one.preempts]
        self.pod, self.cluster, self.state = decision.pod, decision.cluster, decision.state
        self._filters: list[FilterResults] | None = None

    def rows_with(self, code: Code) -> RowNumbers:
        """Return the rows of the nodes that were rejected with a code; PreFilter's rejection is one of all nodes."""
        rejection = self.decision.rejection
        if rejection is not None:
            nodes = self.cluster.nodes
            return nodes.present.data[: nodes.size].nonzero()[0] if rejection.code is code else NO_ROWS
        return self.decision.rows_with(code)

    def status_of(self, node: str) -> Status | None:
        """Return the status that keeps a node out, None for a name that no node has; narrowing is no plugin's."""
        row = self.cluster.nodes.row_of.get(node, -1)
        if row < 0 or not self.cluster.nodes.present.data[row]:
            return None
        status = self.decision.rejection or self.decision.status(row)
        return status.by("") if status.plugin == PRE_FILTER_RESULT else status

    def pre_filtered(self, plugin: str) -> bool:
        """Return whether a plugin was asked at PreFilter: what preemption cannot help ends it at once."""
        evaluation = self.decision.evaluation
        names, last = evaluation.pre_filter_names, evaluation.ended_at
        return plugin in (names if last is None else names[: last + 1])

    def trial(self, row: int) -> Trial:
        """Return a what-if of a node."""
        evaluation = self.decision.evaluation
        return Trial(self.cluster, self.filters, row, evaluation.nominated.get(row, ()), evaluation.pod_cycle)

    def verdicts(self, changed: ChangedRows) -> RowVerdicts | None:
        """Return the verdicts on many changed rows; None where only a what-if of each row can tell."""
        evaluation = self.decision.evaluation
        return verdicts_on(changed, self.filters, evaluation.nominated, evaluation.pod_cycle)

    def most_pods(self, rows: RowNumbers) -> NDArray[np.int64]:
        """Return how many other pods filters let be on rows at most; they need not let so many be."""
        most = np.full(rows.size, np.iinfo(np.int64).max)
        for one in self.filters:
            if isinstance(one.plugin, PodsBounding):
                np.minimum(most, one.plugin.most_pods(one.state, rows), out=most)
        return most

    @property
    def filters(self) -> list[FilterResults]:
        """What the filters say, of those as well that were not asked because PreFilter rejected the pod."""
        if self._filters is None:
            nodes = self.cluster.nodes
            self._filters = self.decision.evaluation.plugin_filters()
            if self.decision.rejection is not None:
                for one in self._filters:
                    one.recompute(nodes.columns.capacity, nodes.size)
        return self._filters


async def run_post_filters(
    plugins: Sequence[PostFilterPlugin], pod: Pod, failed: FailedCycle, timing: Timing | None = None
) -> PostFilterResult:
    """Ask PostFilter plugins about a decision; without any, no node is kept for the pod.

    Args:
        plugins: The plugins in their order.
        pod: The pod as it is known now.
        failed: The decision.
        timing: Who measures.

    Returns:
        The result of the plugin that ended it; else all reasons, with the last word about a nominated node.
    """
    if not plugins or not failed.cluster.nodes.count:
        return PostFilterResult(unschedulable(), nominated_node="")
    found = PostFilterResult(unschedulable())
    reasons: list[str] = []
    for plugin in plugins:
        result = await awaited(timing, plugin.name, POST_FILTER, _answer(plugin, pod, failed))
        status = result.status
        if found.cleanups:
            result = replace(result, cleanups=found.cleanups + result.cleanups)
        if status is None or status.code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
            return result
        if not status.rejects:
            return PostFilterResult(Status(Code.ERROR, status.reasons, plugin.name), cleanups=result.cleanups)
        reasons += status.reasons
        found = PostFilterResult(
            unschedulable(*reasons),
            found.nominated_node if result.nominated_node is None else result.nominated_node,
            details=result.details or found.details,
            rejectors=found.rejectors | result.rejectors,
            rejecting_anyway=found.rejecting_anyway | result.rejecting_anyway,
            cleanups=result.cleanups,
        )
    return found


async def _answer(plugin: PostFilterPlugin, pod: Pod, failed: FailedCycle) -> PostFilterResult:
    result = _asked(plugin, pod, failed)
    if result.ask is None:
        return result
    try:
        return await result.ask()
    except Exception as error:
        return _failure(plugin, pod, error)


def _asked(plugin: PostFilterPlugin, pod: Pod, failed: FailedCycle) -> PostFilterResult:
    """Ask a plugin; one that raises, or gives anything but a result, failed."""
    try:
        result: Any = plugin.post_filter(pod, failed)
    except Exception as error:
        return _failure(plugin, pod, error)
    if isinstance(result, PostFilterResult):
        return result
    why = f'running PostFilter plugin "{plugin.name}": expected a PostFilterResult, got {type(result).__name__}'
    return PostFilterResult(Status(Code.ERROR, (why,)))


def _failure(plugin: PostFilterPlugin, pod: Pod, error: Exception) -> PostFilterResult:
    log.error('PostFilter plugin "%s" failed for pod "%s"', plugin.name, pod.key, exc_info=error)
    return PostFilterResult(Status(Code.ERROR, (f'running PostFilter plugin "{plugin.name}": {error!r}',)))


def message_of(fit_error: str, result: PostFilterResult) -> str:
    """Return why no node fits, with what PostFilter found at its end."""
    said = "" if result.status is None else result.status.message
    return f"{fit_error} {said}" if said else fit_error


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run what never waits to its end.

    Raises:
        RuntimeError: it waits.
    """
    try:
        work.send(None)
    except StopIteration as end:
        made: T = end.value
        return made
    work.close()
    raise RuntimeError("the coroutine waits, which it must not do here")


async def post_filtered(
    engine: Engine, decision: Decision, rng: random.Random, extenders: Sequence[Extender] = ()
) -> PostFilterResult | None:
    """Run the PostFilter plugins if no node fits; what their results ask for is not executed."""
    if decision.row >= 0 or decision.failed:
        return None
    failed = FailedCycle(decision, rng, extenders, engine.profile.victim_guards)
    return await run_post_filters(engine.profile.post_filters, decision.pod, failed)
