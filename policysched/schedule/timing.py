"""Interface for recording durations of extension points, plugins, queueing hints and events.

Nothing here reads a clock: who measures brings one, and where nobody measures no time is read. A decision's points are
measured by laps, because plugins answer for all nodes at once and each begins where the one before ended. What single
plugins take is measured in one of `SAMPLE` decisions, chosen by counting.

Source: pkg/scheduler/framework/runtime/framework.go (pluginMetricsSamplePercent), pkg/scheduler/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

from policysched.framework import SKIP, Code, PostFilterResult, Status, Wait

T = TypeVar("T")
SAMPLE: Final = 10
"""One of so many decisions has its plugins measured, as in kube-scheduler."""
PRE_ENQUEUE: Final = "PreEnqueue"
PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
CYCLE_POINTS: Final = (PRE_FILTER, FILTER, PRE_SCORE, SCORE)
"""The points of a decision, in the order of `CycleTimes.seconds`."""
PREPARED, FILTERED, PRE_SCORED, SCORED = range(4)
"""Their places in it."""
NORMALIZE: Final = "ScoreExtensionNormalize"
RESERVE: Final = "Reserve"
UNRESERVE: Final = "Unreserve"
PERMIT: Final = "Permit"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
POST_BIND: Final = "PostBind"


class Timing(Protocol):
    """Takes times; each method is called often, so it only counts.

    Units: seconds.
    """

    now: Callable[[], float]
    """A clock that never goes back."""

    def decided(self, profile: str, seconds: list[float]) -> None:
        """Take what the `CYCLE_POINTS` of a decision took in which no plugin failed; 0 where it did not come to one."""

    def point(self, point: str, status: Code, profile: str, seconds: float) -> None:
        """Take what all plugins of an extension point took."""

    def plugin(self, plugin: str, point: str, status: Code, seconds: float) -> None:
        """Take what one plugin took at a point."""

    def hint(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        """Take what a queueing hint took, with its outcome: Queue, QueueSkip or Error."""

    def change(self, event: str, seconds: float) -> None:
        """Take what a change of the cluster took."""

    def preempted(self, seconds: float, *, succeeded: bool) -> None:
        """Take how long making room for a pod took, once its victims were chosen."""


class CycleTimes:
    """What the extension points of one decision after another take.

    Args:
        timing: Who measures.
    """

    __slots__ = ("_count", "_last", "_now", "by_plugin", "seconds", "timing")

    def __init__(self, timing: Timing) -> None:
        self.timing, self._now = timing, timing.now
        self._count = 0
        self._last = 0.0
        self.by_plugin = False
        """Whether the plugins of the decision at hand are measured."""
        self.seconds = [0.0] * len(CYCLE_POINTS)
        """What the points of `CYCLE_POINTS` took, 0 for those that the decision at hand did not come to."""

    def begin(self) -> None:
        """Begin a decision."""
        self.by_plugin = self._count % SAMPLE == 0
        self._count += 1
        self.seconds = [0.0, 0.0, 0.0, 0.0]
        self._last = self._now()

    def resume(self) -> None:
        """Go on after what belongs to no point: waiting for extenders."""
        self._last = self._now()

    def lap(self, place: int) -> None:
        """Count the time since the last word for a point, by its place among `CYCLE_POINTS`."""
        now = self._now()
        self.seconds[place] += now - self._last
        self._last = now

    def measured(self, plugin: str, point: str, ask: Callable[..., T], *arguments: Any) -> T:
        """Ask a plugin, and say how long that took."""
        return measured(self.timing, plugin, point, ask, *arguments)


def asked(times: CycleTimes | None, plugin: str, point: str, ask: Callable[..., T], *arguments: Any) -> T:
    """Ask a plugin, measured where plugins of this decision are."""
    if times is None or not times.by_plugin:
        return ask(*arguments)
    return times.measured(plugin, point, ask, *arguments)


def measured(timing: Timing, plugin: str, point: str, ask: Callable[..., T], *arguments: Any) -> T:
    """Ask a plugin, and say how long that took; what raises is said nothing of."""
    began = timing.now()
    answer = ask(*arguments)
    timing.plugin(plugin, point, code_of(answer), timing.now() - began)
    return answer


async def awaited(timing: Timing | None, plugin: str, point: str, answer: Awaitable[T]) -> T:
    """Wait for a plugin's answer, and say how long that took where somebody measures."""
    if timing is None:
        return await answer
    began = timing.now()
    given = await answer
    timing.plugin(plugin, point, code_of(given), timing.now() - began)
    return given


async def at_point(timing: Timing | None, point: str, profile: str, answers: Awaitable[T]) -> T:
    """Wait for what a point comes to, and say how long that took where somebody measures."""
    if timing is None:
        return await answers
    began = timing.now()
    given = await answers
    timing.point(point, code_of(given), profile, timing.now() - began)
    return given


def code_of(answer: Any) -> Code:
    """Return the code of a plugin's answer: one that is no status is a success."""
    if answer is None:
        return Code.SUCCESS
    if isinstance(answer, PostFilterResult):
        answer = answer.status
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, Wait):
        return Code.WAIT
    return Code.SKIP if answer is SKIP else Code.SUCCESS
