"""`Timing`: interface for recording durations of extension points, plugins, queueing hints and changes.

The `Timing` has the clock; without one, no time is read. The points of a decision are measured by laps, because each
begins where the previous point ended. Plugins are measured in one of `SAMPLE` decisions.

Source: pkg/scheduler/framework/runtime/framework.go (pluginMetricsSamplePercent), pkg/scheduler/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

from policysched.framework import SKIP, Code, PostFilterResult, Status, Wait
from policysched.framework.pod_groups import PodGroupPostFilterResult

T = TypeVar("T")
SAMPLE: Final = 10
"""One in this many scheduling cycles measures single plugins, as in kube-scheduler."""
PRE_ENQUEUE: Final = "PreEnqueue"
PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
CYCLE_POINTS: Final = (PRE_FILTER, FILTER, PRE_SCORE, SCORE)
"""The extension points of a scheduling cycle, in the order of the durations in `CycleTimes.seconds`."""
PREPARED, FILTERED, PRE_SCORED, SCORED = range(4)
"""The indexes of PreFilter, Filter, PreScore and Score in `CYCLE_POINTS`."""
NORMALIZE: Final = "ScoreExtensionNormalize"
PLACEMENT_GENERATE: Final = "PlacementGenerate"
PLACEMENT_FEASIBLE: Final = "PlacementFeasible"
PLACEMENT_SCORE: Final = "PlacementScore"
POD_GROUP_POST_FILTER: Final = "PodGroupPostFilter"
RESERVE: Final = "Reserve"
UNRESERVE: Final = "Unreserve"
PERMIT: Final = "Permit"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
POST_BIND: Final = "PostBind"
POD: Final = "pod"
POD_GROUP: Final = "podgroup"
"""Name, in metrics, of a preemptor that is a pod group; `POD` is the name of a preemptor that is a pod."""


class Timing(Protocol):
    """Records durations in seconds; the methods are called often and must be fast.

    Units: seconds.
    """

    now: Callable[[], float]
    """A monotonic clock. Units: seconds."""

    def decided(self, profile: str, seconds: list[float]) -> None:
        """Record how long each extension point of a successful decision took; 0 for points that did not run."""

    def point(self, point: str, status: Code, profile: str, seconds: float) -> None:
        """Record the duration of an extension point."""

    def plugin(self, plugin: str, point: str, status: Code, seconds: float) -> None:
        """Record the duration of a plugin at an extension point."""

    def hint(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        """Record the duration of a queueing hint; the outcome is Queue, QueueSkip or Error."""

    def change(self, event: str, seconds: float) -> None:
        """Record how long applying a change to the cluster took."""

    def searched(self, preemptor: str, status: Code, seconds: float) -> None:
        """Record how long the search for preemption victims took; the preemptor is `POD` or `POD_GROUP`."""

    def preempted(self, preemptor: str, seconds: float, *, succeeded: bool) -> None:
        """Record how long the eviction of chosen victims took; the preemptor is `POD` or `POD_GROUP`."""


class CycleTimes:
    """Measures how long the extension points of a decision take, one decision at a time.

    Args:
        timing: Records the durations.
    """

    __slots__ = ("_count", "_last", "_now", "by_plugin", "seconds", "timing")

    def __init__(self, timing: Timing) -> None:
        self.timing, self._now = timing, timing.now
        self._count = 0
        self._last = 0.0
        self.by_plugin = False
        """Whether the durations of single plugins are measured in the current decision."""
        self.seconds = [0.0] * len(CYCLE_POINTS)
        """Durations of `CYCLE_POINTS` in the current decision; 0 for points that were not reached."""

    def begin(self) -> None:
        """Start measuring the extension points of a decision."""
        self.by_plugin = self._count % SAMPLE == 0
        self._count += 1
        self.seconds = [0.0, 0.0, 0.0, 0.0]
        self._last = self._now()

    def resume(self) -> None:
        """Continue to measure after a period that belongs to no extension point, such as calls of extenders."""
        self._last = self._now()

    def lap(self, place: int) -> None:
        """Add the time since the previous call to an extension point, given by its index in `CYCLE_POINTS`."""
        now = self._now()
        self.seconds[place] += now - self._last
        self._last = now

    def measured(self, plugin: str | tuple[str, ...], point: str, ask: Callable[..., T], *arguments: Any) -> T:
        """Call a plugin and record its duration; for policies evaluated as one plugin, an equal share for each."""
        names = (plugin,) if isinstance(plugin, str) else plugin
        began = self._now()
        answer = ask(*arguments)
        seconds, code = (self._now() - began) / max(1, len(names)), code_of(answer)
        for name in names:
            self.timing.plugin(name, point, code, seconds)
        return answer


def timed(
    times: CycleTimes | None, plugin: str | tuple[str, ...], point: str, ask: Callable[..., T], *arguments: Any
) -> T:
    """Call a plugin and return its result; record the duration if the current decision is measured."""
    if times is None or not times.by_plugin:
        return ask(*arguments)
    return times.measured(plugin, point, ask, *arguments)


def measured(timing: Timing, plugin: str, point: str, ask: Callable[..., T], *arguments: Any) -> T:
    """Call a plugin and return its result; record the duration unless the plugin raises an exception."""
    began = timing.now()
    answer = ask(*arguments)
    timing.plugin(plugin, point, code_of(answer), timing.now() - began)
    return answer


async def awaited(timing: Timing | None, plugin: str, point: str, answer: Awaitable[T]) -> T:
    """Await a plugin's result and return it; record the duration if `timing` is not None."""
    if timing is None:
        return await answer
    began = timing.now()
    given = await answer
    timing.plugin(plugin, point, code_of(given), timing.now() - began)
    return given


async def at_point(timing: Timing | None, point: str, profile: str, answers: Awaitable[T]) -> T:
    """Await the result of an extension point and return it; record the duration if `timing` is not None."""
    if timing is None:
        return await answers
    began = timing.now()
    given = await answers
    timing.point(point, code_of(given), profile, timing.now() - began)
    return given


def code_of(answer: Any) -> Code:
    """Return the status code of a plugin's result; Success if the result is not a status."""
    if answer is None:
        return Code.SUCCESS
    if isinstance(answer, PostFilterResult | PodGroupPostFilterResult):
        answer = answer.status
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, Wait):
        return Code.WAIT
    return Code.SKIP if answer is SKIP else Code.SUCCESS
