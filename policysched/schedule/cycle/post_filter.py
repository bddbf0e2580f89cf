"""Runs PostFilter plugins on a decision without a feasible node, until a plugin succeeds, fails or ends PostFilter.

Nothing in the cluster changes: the actions that a plugin wants are part of its result, and the caller executes them.

Source: pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins), schedule_one.go (schedulingAlgorithm),
pkg/scheduler/framework/interface.go (NodesForStatusCode), v1.36 and v1.37.
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
    PostFilterPlugin,
    PostFilterResult,
    RowNumbers,
    RowVerdicts,
    Status,
    VictimGuard,
    WhatIfFilter,
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
    """A decision without a feasible node, as PostFilter plugins get it (implements `FailedDecision`).

    Args:
        decision: A decision without a feasible node, of a cluster with nodes, in which no plugin failed.
        rng: Random generator that chooses among equally good candidates.
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
        """Return the rows of the nodes rejected with a status code; a rejection by PreFilter applies to all nodes."""
        rejection = self.decision.rejection
        if rejection is not None:
            nodes = self.cluster.nodes
            return nodes.present.data[: nodes.size].nonzero()[0] if rejection.code is code else NO_ROWS
        return self.decision.rows_with(code)

    def status_of(self, node: str) -> Status | None:
        """Return the status that rejects a node; None if there is no node of that name."""
        row = self.cluster.nodes.row_of.get(node, -1)
        if row < 0 or not self.cluster.nodes.present.data[row]:
            return None
        status = self.decision.rejection or self.decision.status(row)
        return status.by("") if status.plugin == PRE_FILTER_RESULT else status

    def pre_filtered(self, plugin: str) -> bool:
        """Return whether a plugin's PreFilter was called; PreFilter ends early if a rejection is unresolvable."""
        evaluation = self.decision.evaluation
        names, last = evaluation.profile.pre_filter_names, evaluation.pre_filter.ended_at
        return plugin in (names if last is None else names[: last + 1])

    def trial(self, row: int) -> Trial:
        """Return a simulation of one node, in which pods can be added or removed."""
        evaluation = self.decision.evaluation
        return Trial(self.cluster, self.filters, row, evaluation.nominated_pods.get(row, ()), evaluation.cycle)

    def verdicts(self, changed: ChangedRows) -> RowVerdicts | None:
        """Return the results of all filters on simulated nodes; None if a filter can only be called node by node."""
        evaluation = self.decision.evaluation
        return verdicts_on(changed, self.filters, evaluation.nominated_pods, evaluation.cycle)

    def most_pods(self, rows: RowNumbers) -> NDArray[np.int64]:
        """Return for each node an upper limit of the number of other pods beside which the pod can pass the filters."""
        most = np.full(rows.size, np.iinfo(np.int64).max)
        for one in self.filters:
            limit = one.plugin.most_pods(one.state, rows) if isinstance(one.plugin, WhatIfFilter) else None
            if limit is not None:
                np.minimum(most, limit, out=most)
        return most

    @property
    def filters(self) -> list[FilterResults]:
        """The results of all filters, evaluated even if PreFilter rejected the pod before."""
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
    """Run the PostFilter plugins on a decision without a feasible node; without plugins, clear the pod's nomination.

    Args:
        plugins: The plugins in their order.
        pod: The latest version of the pod.
        failed: The decision.
        timing: Measures the plugins.

    Returns:
        The result of the plugin that ended PostFilter; otherwise all reasons, with the last nominated node.
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
        if status is None or result.succeeded or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
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
    """Call a PostFilter plugin; turn an exception, or an answer that is not a PostFilterResult, into a failure."""
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
    """Return kube-scheduler's message that no node fits, followed by the message of PostFilter."""
    said = "" if result.status is None else result.status.message
    return f"{fit_error} {said}" if said else fit_error


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, without an event loop, and return its result.

    Raises:
        RuntimeError: The coroutine waits.
    """
    try:
        work.send(None)
    except StopIteration as end:
        made: T = end.value
        return made
    work.close()
    raise RuntimeError("the coroutine waits, which is not allowed here")


async def post_filtered(
    engine: Engine, decision: Decision, rng: random.Random, extenders: Sequence[Extender] = ()
) -> PostFilterResult | None:
    """Run the PostFilter plugins of a dry run if no node fits; do not execute the writes that the plugins return."""
    if decision.row >= 0 or decision.failed:
        return None
    failed = FailedCycle(decision, rng, extenders, engine.profile.victim_guards)
    return await run_post_filters(engine.profile.post_filters, decision.pod, failed)
