"""Computes when the value of a program can next change only because time passes.

This is a pure function of the graph; callers set a timer for that time and call it again. It is exact for comparisons
of an age with a constant, and for `clock`, `hour` and `weekday` in any combination. Other uses of an age are checked
again after half a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from policysched.language.evaluation.scalar import ScalarFrame, constant_value, evaluate
from policysched.language.functions.times import DAY, MINUTE, in_span, local_time, minutes
from policysched.language.ir.graph import TIME, Input, Op, Typed, steps

AGE_STEP: Final = 10.0
"""Step to whose multiples ages are rounded down. Units: seconds."""
AGAIN: Final = 30.0
"""Time after which a value that cannot be predicted is computed again. Units: seconds."""
HOUR: Final = 3600.0
_AGES: Final = frozenset(Input(root, ("age",)) for root in ("node", "pod", "peer"))
# A week of hours, and some.
_MOST_STEPS: Final = 200
_MIRRORED: Final[Mapping[str, Op]] = {
    Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE, Op.EQ: Op.EQ, Op.NE: Op.NE,
}  # fmt: skip
Ages: TypeAlias = Callable[[Input], npt.ArrayLike]


class _Moment:
    """The inputs of expressions that read only the time, as a frame without rows."""

    def __init__(self, now: float) -> None:
        self.now = now


def next_transition(root: Typed, ages: Ages, now: float) -> float | None:
    """Return the first time after `now` at which elapsed time alone can change the value of an expression.

    Args:
        root: The graph of a condition or a number.
        ages: Returns the ages at `now` for `node.age`, `pod.age` or `peer.age`, of all nodes, of the pod or of all
            placed pods, not rounded. Negative ages belong to objects with a future creation time; infinite ages and NaN
            never change.
        now: Seconds since 1970, UTC.

    Returns:
        Seconds since 1970; None if time changes nothing any more.
    """
    return min(_moments(root, ages, now), default=None)


def _moments(root: Typed, ages: Ages, now: float) -> Iterator[float]:
    waiting, seen = [root], {root}
    while waiting:
        node = waiting.pop()
        if not any(item == TIME or item in _AGES for item in node.inputs):
            continue
        if node.inputs == (TIME,) and node.local and not node.over_pods:
            yield _next_change(node, now)
        elif node.data in _AGES:
            yield now + AGAIN
        elif (limits := _age_limits(node)) is not None:
            item, ends = limits
            yield from _crossings(np.asarray(ages(item), np.float64), ends, now)
        else:
            fresh = [part for part in (*node.args, *node.inner) if part not in seen]
            seen.update(fresh)
            waiting.extend(fresh)


def _age_limits(node: Typed) -> tuple[Input, tuple[float, ...]] | None:
    """Return the age input of a comparison with a constant, with the ages at which the result changes; else None."""
    if node.op not in _MIRRORED:
        return None
    (left, right), op = node.args, node.op
    if not isinstance(left.data, Input):
        left, right, op = right, left, _MIRRORED[op]
    limit = constant_value(right)
    if not isinstance(left.data, Input) or left.data not in _AGES or not isinstance(limit, float):
        return None
    reached, passed = math.ceil(limit / AGE_STEP) * AGE_STEP, (math.floor(limit / AGE_STEP) + 1) * AGE_STEP
    if op in {Op.EQ, Op.NE}:
        return left.data, (reached, passed) if reached == limit else ()
    return left.data, (reached if op in {Op.GE, Op.LT} else passed,)


def _crossings(ages: npt.NDArray[np.float64], ends: tuple[float, ...], now: float) -> Iterator[float]:
    """Yield for each limit in `ends` the time at which the next of the ages reaches it."""
    known = ages[np.isfinite(ages)]
    for end in ends:
        oldest = known[known < end].max(initial=-math.inf)
        # Ages are never negative, so a limit of 0 has always been reached.
        if end > 0 and oldest > -math.inf:
            yield now + (end - float(oldest))


def _next_change(node: Typed, now: float) -> float:
    """Return when the value of an expression that reads only the time next changes; else the end of the search."""
    leaves = [one for one in steps(node) if one.op in _READINGS]
    before = _at(node, now)
    moment = now
    for _ in range(_MOST_STEPS):
        moment = min(_next_reading(leaf, moment) for leaf in leaves)
        if _at(node, moment) != before:
            break
    return moment


def _at(node: Typed, moment: float) -> Any:
    return evaluate(node, cast("ScalarFrame", _Moment(moment)))


def _clock_reading(local: datetime, data: tuple[str, ...]) -> tuple[object, float]:
    start, end = minutes(data[0]), minutes(data[1])
    return in_span(local, start, end), min((time * MINUTE - _into_day(local)) % DAY or DAY for time in (start, end))


def _into_day(local: datetime) -> float:
    return local.hour * HOUR + local.minute * MINUTE + local.second + local.microsecond / 1e6


# Readings of a clock, and for how many seconds they stay the same.
_READINGS: Final[Mapping[str, Callable[[datetime, tuple[str, ...]], tuple[object, float]]]] = {
    Op.CLOCK: _clock_reading,
    Op.HOUR: lambda local, _: (local.hour, HOUR - _into_day(local) % HOUR),
    Op.WEEKDAY: lambda local, _: (local.weekday(), DAY - _into_day(local)),
}


def _next_reading(node: Typed, now: float) -> float:
    """Return when `hour`, `weekday` or `clock` next changes: at a full minute, or with summer time."""
    data, read = cast("tuple[str, ...]", node.data), _READINGS[node.op]
    local = local_time(now, data[-1])
    shown, wait = read(local, data)
    moment = float(round(now + wait))
    if local_time(moment, data[-1]).utcoffset() == local.utcoffset():
        return moment
    minute = (now // MINUTE + 1) * MINUTE
    while minute < moment + 2 * HOUR:
        if read(local_time(minute, data[-1]), data)[0] != shown:
            return minute
        minute += MINUTE
    return moment
