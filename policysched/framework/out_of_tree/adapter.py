"""`OutOfTreePlugin`: makes an out-of-tree plugin usable in a profile, measures its calls and checks its results.

An exception or an invalid result becomes a status with code ERROR. The points up to Score use a `PodCycle`, which all
plugins of a pod share; the points from Reserve on use the `AssumedPod` with the state of the attempt.

Source: pkg/scheduler/framework/runtime/framework.go (the runPlugin functions and their callers).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, total_ordering
from typing import Any, Final

import numpy as np

from policysched.errors import UsageError
from policysched.framework.binding import (
    AssumedPod,
    BindPlugin,
    Handle,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    PreFlight,
    ReservePlugin,
    Wait,
)
from policysched.framework.cycle_state import CycleState
from policysched.framework.optional_interfaces import PerPod
from policysched.framework.out_of_tree.answers import (
    AnsweredError,
    error_of,
    failing,
    narrowed,
    permitted,
    pre_flight,
    whole_scores,
    with_texts,
)
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.out_of_tree.methods import NodeScore, QueuedPodInfo
from policysched.framework.out_of_tree.node_info import NodeArrays, NodeInfo, NodeInfos
from policysched.framework.out_of_tree.signatures import check_methods
from policysched.framework.out_of_tree.worker_threads import WorkerThreads, plain
from policysched.framework.plugin import (
    ANY_CHANGE,
    SKIP,
    Codes,
    Hint,
    Nothing,
    PreEnqueuePlugin,
    QueueSortPlugin,
    Scores,
)
from policysched.framework.post_filter import FailedDecision, PostFilterPlugin, PostFilterResult
from policysched.framework.status import Code, Status
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.tables.columns import RowNumbers
from policysched.state.tables.journal import ABOUT_PODS, Aspect
from policysched.state.what_if import ChangedRow

log = logging.getLogger(__name__)
EXTENSIONS: Final = {"add_pod": "AddPod", "remove_pod": "RemovePod"}


@dataclass(slots=True, eq=False)
class PodCycle:
    """The data that out-of-tree plugins share in the scheduling cycle of one pod."""

    pod: Pod
    cluster: Cluster
    state: CycleState = field(default_factory=CycleState)
    extended: list[OutOfTreePlugin] = field(default_factory=list)
    """The plugins with AddPod or RemovePod, in their order at PreFilter."""
    apart: dict[int, CycleState] = field(default_factory=dict)
    """For each node, by row, that is filtered alone, the CycleState that its Filter calls share; dropped afterwards.

    A plugin that filters many nodes in one call gets the pod's state.
    """

    def clone(self) -> PodCycle:
        """Return a copy that a simulation of added and removed pods can change."""
        return PodCycle(self.pod, self.cluster, self.state.clone(), self.extended)

    def tell(self, method: str, other: Pod, node: NodeInfo) -> Status | None:
        """Run AddPod or RemovePod of all plugins; return the status of the first plugin that fails, or None."""
        for plugin in self.extended:
            if (failure := plugin.extend(method, self, other, node)) is not None:
                return failure
        return None


class StatusByNode:
    """The statuses with which nodes were rejected, by node name: an argument of PostFilter."""

    def __init__(self, failed: FailedDecision) -> None:
        self._failed = failed

    def get(self, node_name: str) -> Status | None:
        """Return the status with which a node was rejected; None if no node has this name."""
        return self._failed.status_of(node_name)

    def nodes(self, code: Code) -> NodeInfos:
        """Return the nodes whose status has a given code."""
        return NodeInfos(self._failed.cluster, self._failed.rows_with(code))


class OutOfTreePlugin(
    PerPod,
    PreEnqueuePlugin,
    QueueSortPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
):
    """An out-of-tree plugin, adapted to the base classes of in-tree plugins at all its extension points.

    Args:
        name: The name in the registry.
        plugin: The object with methods of `policysched.framework.out_of_tree.methods`.
        handle: The handle of its profile.
        without: The points with a method that the profile does not enable.

    Raises:
        UsageError: a method is misspelt or has a wrong signature, or `reads` is not an Aspect.
    """

    filter_reads: Final = ABOUT_PODS
    score_reads: Final = Aspect.NONE
    normalizes: Final = False
    scores_after_pre_filter: Final = False
    scores_after_filter: Final = False
    tier: Final = 0

    def __init__(self, name: str, plugin: Any, handle: PluginHandle, without: frozenset[str] = frozenset()) -> None:
        self.name, self.plugin, self.handle, self.without = name, plugin, handle, without
        self._threads = WorkerThreads(name)
        check_methods(name, plugin)
        self.reads: Aspect | None = getattr(plugin, "reads", None)
        if not isinstance(self.reads, Aspect | None):
            raise UsageError(f"plugin {name}: reads must be an Aspect, got {self.reads!r}")
        """The aspects of a node that Filter and Score read beside the pod's class; None if they may read anything."""

    def without_point(self, point: str) -> OutOfTreePlugin:
        """Return a copy of the plugin for a profile in which an extension point is not enabled."""
        made = OutOfTreePlugin(self.name, self.plugin, self.handle, self.without | {point})
        made._threads = self._threads
        return made

    def has(self, method: str) -> bool:
        """Return whether the plugin has a method, even if its extension point is not enabled."""
        return hasattr(self.plugin, method)

    @staticmethod
    def has_own_results(pod: Pod, cluster: Cluster) -> bool:  # noqa: ARG004 - the base's signature
        """Return True: out-of-tree plugins are called for each pod."""
        return True

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:  # noqa: ARG002 - the base's signature
        """Run PreEnqueue of the out-of-tree plugin."""
        answer = self.call("PreEnqueue", lambda: self.plugin.pre_enqueue(pod))
        return self.status_of("PreEnqueue", answer)

    def key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        """Return a sort key for a pending pod; comparing two keys calls the plugin's `less`."""
        return (_Ordered(self, QueuedPodInfo(pod, queued_at)),)

    def events(self) -> Sequence[Hint]:
        """Return the events that can help pods that the plugin rejected.

        Raises:
            UsageError: the plugin's `events` fails or returns other objects than hints.
        """
        events = self.method("events")
        if events is None:
            return ANY_CHANGE
        try:
            hints = tuple(events())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise UsageError(f"plugin {self.name}: events failed: {error!r}") from error
        if not all(isinstance(hint, Hint) for hint in hints):
            raise UsageError(f"plugin {self.name}: events must return hints, got {hints!r}")
        return hints

    def pre_filter(self, cycle: PodCycle) -> Nothing | Status | frozenset[str] | None:
        """Run PreFilter; return SKIP, a status that rejects or fails, the names of the only possible nodes, or None."""
        ask = self.method("pre_filter", "preFilter")
        if ask is None:
            return None
        nodes = NodeInfos.of_all(cycle.cluster)
        answer = self.call("PreFilter", lambda: narrowed(ask(cycle.state, cycle.pod, nodes)))
        names, answer = (answer, None) if isinstance(answer, frozenset) else (None, answer)
        status = self.status_of("PreFilter", answer)
        if status is not None and status.code is Code.SKIP:
            cycle.state.skip_filter_plugins |= {self.name}
            return SKIP
        if self.method("add_pod") is not None or self.method("remove_pod") is not None:
            cycle.extended.append(self)
        if status is None:
            return names
        return status if status.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE) else failing(status)

    def extend(self, method: str, cycle: PodCycle, other: Pod, node: NodeInfo) -> Status | None:
        """Run the plugin's AddPod or RemovePod; return a failure or None."""
        ask = self.method(method)
        if ask is None:
            return None
        point = EXTENSIONS[method]
        answer = self.call(point, lambda: ask(cycle.state, cycle.pod, other, node))
        status = self.status_of(point, answer)
        if status is None:
            return None
        return Status(Code.ERROR, (f'running {point} on PreFilter plugin "{self.name}": {error_of(status)}',))

    def filter_rows(self, cycle: PodCycle, rows: RowNumbers, code_of: Callable[[Status], int]) -> Codes | Status:
        """Run Filter on nodes, given by row, one by one or in one call; return their reason codes (0 accepts).

        Args:
            cycle: The cycle of the pod.
            rows: The rows that pass all filters before.
            code_of: Returns a positive code for a rejection.

        Shapes: rows (R,) -> (R,), 0 for feasible rows.

        Returns:
            The codes, or the status of a failure.
        """
        ask = self._filter_many if self.method("filter_nodes") is not None else self._filter_each
        answer: Codes | Status = self.call("Filter", lambda: ask(cycle, rows, code_of))
        return answer

    def filter_changed(self, cycle: PodCycle, changed: ChangedRow) -> Status | None:
        """Run Filter on one node as if pods were added to or removed from it."""

        def ask() -> Status | None:
            one = self.method("filter")
            if one is not None:
                return self._rejection(one(cycle.state, cycle.pod, NodeInfo(cycle.cluster, changed.row, changed)))
            nodes = NodeArrays(cycle.cluster, np.array([changed.row]), changed)
            said = self.plugin.filter_nodes(cycle.state, cycle.pod, nodes) or ()
            return next((self._rejection(status) for mask, status in said if np.asarray(mask, np.bool_)[0]), None)

        answer: Status | None = self.call("Filter", ask)
        return None if answer is None else answer.by(self.name)

    def pre_score(self, cycle: PodCycle, rows: RowNumbers) -> Nothing | Status | None:
        """Run PreScore on the feasible nodes; return SKIP, a failure, or None."""
        ask = self.method("pre_score", "preScore")
        if ask is None:
            return None
        answer = self.call("PreScore", lambda: ask(cycle.state, cycle.pod, NodeInfos(cycle.cluster, rows)))
        status = self.status_of("PreScore", answer)
        if status is not None and status.code is Code.SKIP:
            cycle.state.skip_score_plugins |= {self.name}
            return SKIP
        return None if status is None else failing(status)

    def score_rows(self, cycle: PodCycle, rows: RowNumbers) -> Scores | Status:
        """Run Score on nodes, given by row, one by one or in one call.

        Shapes: rows (R,) -> (R,).

        Returns:
            The scores before normalization, or the status of a failure.
        """
        ask = self._score_many if self.method("score_nodes") is not None else self._score_each
        answer: Scores | Status = self.call("Score", lambda: ask(cycle, rows))
        return answer

    def normalize_rows(self, cycle: PodCycle, rows: RowNumbers, scores: Scores) -> Scores | Status:
        """Run NormalizeScore of the out-of-tree plugin on the scores of nodes.

        Shapes: rows (R,), scores (R,) -> (R,).

        Returns:
            The final scores, not checked for 0 to 100, or the status of a failure.
        """
        normalize = self.method("normalize_score")
        if normalize is None:
            return scores
        names = cycle.cluster.nodes.names
        listed = [NodeScore(names[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]

        def ask() -> Scores:
            status = self.status_of("NormalizeScore", normalize(cycle.state, cycle.pod, listed))
            if status is not None:
                raise AnsweredError(status)
            return whole_scores([one.score for one in listed], rows.size)

        answer: Scores | Status = self.call("NormalizeScore", ask)
        return answer

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Run PostFilter of the out-of-tree plugin."""

        def ask() -> Any:
            answer = self.plugin.post_filter(failed.state, pod, StatusByNode(failed))
            return answer if isinstance(answer, PostFilterResult) else self.status_of("PostFilter", answer)

        answer = self.call("PostFilter", ask)
        return answer if isinstance(answer, PostFilterResult) else PostFilterResult(answer)

    def reserve(self, assumed: AssumedPod) -> Status | None:
        """Run Reserve of the out-of-tree plugin."""
        ask = self.method("reserve")
        return None if ask is None else self._call_for("Reserve", ask, assumed)

    def unreserve(self, assumed: AssumedPod) -> None:
        """Run Unreserve of the out-of-tree plugin."""
        ask = self.method("unreserve")
        if ask is not None:
            self._call_for("Unreserve", ask, assumed)

    def permit(self, assumed: AssumedPod, handle: Handle) -> Status | Wait | None:  # noqa: ARG002 - the base's
        """Run Permit of the out-of-tree plugin."""

        def ask(*given: Any) -> Any:
            return permitted(self.plugin.permit(*given))

        answer: Status | Wait | None = self._call_for("Permit", ask, assumed)
        return answer

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> PreFlight | Status:
        """Run PreBindPreFlight of the out-of-tree plugin."""
        point, ask = "PreBindPreFlight", self.method("pre_bind_pre_flight")
        if ask is None:
            return PreFlight()
        answer = self._call_for(point, lambda *given: pre_flight(ask(*given)), assumed)
        parallel, said = answer if isinstance(answer, tuple) else (False, answer)
        status = self.status_of(point, said)
        if status is None or status.code is Code.SKIP:
            return PreFlight(works=status is None, parallel=parallel)
        return status

    @property
    def runs_to_its_end(self) -> bool:
        """Whether PreBind runs in a thread, which cannot be cancelled, so that the binding waits for its end."""
        return not inspect.iscoroutinefunction(self.plugin.pre_bind)

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:  # noqa: ARG002 - the base's
        """Run PreBind of the out-of-tree plugin."""
        answer: Status | None = await self._call_later(self.plugin.pre_bind, assumed)
        return answer

    async def bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:  # noqa: ARG002 - the base's
        """Run Bind of the out-of-tree plugin."""
        answer: Status | None = await self._call_later(self.plugin.bind, assumed)
        return answer

    async def post_bind(self, assumed: AssumedPod, handle: Handle) -> None:  # noqa: ARG002 - the base's
        """Run PostBind of the out-of-tree plugin."""
        await self._call_later(self.plugin.post_bind, assumed)

    def method(self, name: str, point: str = "") -> Callable[..., Any] | None:
        """Return a method of the plugin; None if it does not exist, or its extension point is not enabled."""
        found: Callable[..., Any] | None = None if point in self.without else getattr(self.plugin, name, None)
        return found

    def call(self, point: str, ask: Callable[[], Any]) -> Any:
        """Call a function of the plugin and measure its time; return its result, or an error for an exception."""
        watch = self.handle.watch
        watch.begin(self.name, point)
        try:
            return with_texts(ask())
        except AnsweredError as answered:
            return with_texts(answered.status)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            log.exception('%s plugin "%s" failed', point, self.name)
            return Status(Code.ERROR, (repr(plain(error)),), self.name)
        finally:
            watch.end()

    def status_of(self, point: str, answer: Any) -> Status | None:
        """Convert a plugin's result to a status with the plugin's name; None for success."""
        if answer is None or (isinstance(answer, Status) and answer.code is Code.SUCCESS):
            return None
        if isinstance(answer, Status):
            told: Status = with_texts(answer)
            return told.by(self.name)
        if inspect.iscoroutine(answer):
            answer.close()
        error = TypeError(f"expected a Status, got {type(answer).__name__}")
        log.error('%s plugin "%s" failed: %s', point, self.name, error)
        return Status(Code.ERROR, (repr(error),), self.name)

    def _rejection(self, answer: Any) -> Status | None:
        """Convert a result of Filter to a status that rejects the node; None for success.

        Raises:
            AnsweredError: the status is a failure.
        """
        status = self.status_of("Filter", answer)
        if status is not None and not status.rejects:
            raise AnsweredError(failing(status))
        return status

    def _filter_each(self, cycle: PodCycle, rows: RowNumbers, code_of: Callable[[Status], int]) -> Codes:
        ask, state, pod, apart = self.plugin.filter, cycle.state, cycle.pod, cycle.apart
        infos = self.handle.infos(cycle.cluster)
        codes = np.zeros(rows.size, np.int32)
        for place, row in enumerate(rows.tolist()):
            answer = ask(apart.get(row, state) if apart else state, pod, infos[row])
            if answer is not None and (rejection := self._rejection(answer)) is not None:
                codes[place] = code_of(rejection)
        return codes

    def _filter_many(self, cycle: PodCycle, rows: RowNumbers, code_of: Callable[[Status], int]) -> Codes:
        codes = np.zeros(rows.size, np.int32)
        said = self.plugin.filter_nodes(cycle.state, cycle.pod, NodeArrays(cycle.cluster, rows))
        for given, answer in reversed(tuple(said or ())):
            mask = np.asarray(given)
            if mask.shape != rows.shape or mask.dtype != np.bool_:
                raise TypeError(f"expected a mask of bool {rows.shape}, got {mask.dtype} {mask.shape}")
            if mask.any():
                rejection = self._rejection(answer)
                codes[mask] = 0 if rejection is None else code_of(rejection)
        return codes

    def _score_each(self, cycle: PodCycle, rows: RowNumbers) -> Scores:
        ask, state, pod = self.plugin.score, cycle.state, cycle.pod
        infos = self.handle.infos(cycle.cluster)
        scores = []
        for row in rows.tolist():
            answer = ask(state, pod, infos[row])
            scores.append(answer if type(answer) is int else self._scored(answer))
        return whole_scores(scores, rows.size)

    def _scored(self, answer: Any) -> Any:
        """Return the score from a result of Score: an integer, or a pair of an integer and a status.

        Raises:
            AnsweredError: the status is a failure.
        """
        if not isinstance(answer, tuple):
            return answer
        score, status = answer
        if (failure := self.status_of("Score", status)) is not None:
            raise AnsweredError(failing(failure))
        return score

    def _score_many(self, cycle: PodCycle, rows: RowNumbers) -> Scores:
        given = self.plugin.score_nodes(cycle.state, cycle.pod, NodeArrays(cycle.cluster, rows))
        return whole_scores(given, rows.size)

    def _call_for(self, point: str, ask: Callable[..., Any], assumed: AssumedPod) -> Any:
        """Call a method of the plugin for an assumed pod and measure its time."""
        return self.call(point, lambda: ask(assumed.state, assumed.placed, assumed.node))

    async def _call_later(self, ask: Callable[..., Any], assumed: AssumedPod) -> Any:
        """Call a method for an assumed pod and await its result; without `async def`, the method runs in a thread."""
        call = partial(ask, assumed.state, assumed.placed, assumed.node)
        try:
            answer = call() if inspect.iscoroutinefunction(ask) else await self._threads.run(call)
            return with_texts(await answer if inspect.isawaitable(answer) else answer)
        except KeyboardInterrupt:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise plain(error) from error
        except BaseException as error:
            raise plain(error) from error


@total_ordering
class _Ordered:
    """A pending pod as a sort key; comparing two keys calls the out-of-tree plugin at QueueSort."""

    __slots__ = ("_info", "_plugin")

    def __init__(self, plugin: OutOfTreePlugin, info: QueuedPodInfo) -> None:
        self._plugin, self._info = plugin, info

    def __lt__(self, other: _Ordered) -> bool:
        try:
            return bool(self._plugin.plugin.less(self._info, other._info))
        except KeyboardInterrupt:
            raise
        except BaseException:
            log.exception('QueueSort plugin "%s" failed; the pod that waits longer is first', self._plugin.name)
            return self._info.timestamp < other._info.timestamp

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ordered) and not (self < other or other < self)

    def __hash__(self) -> int:
        return hash(self._info.pod.key)
