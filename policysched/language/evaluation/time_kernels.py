"""The meaning of what reads the time: one value for all rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, cast

from policysched.language.evaluation.kernels import Kernel, Run, Truth
from policysched.language.functions.zones import DAYS, in_span, local_time, minutes
from policysched.language.ir.graph import Op, Typed


def _local(run: Run, node: Typed) -> datetime:
    return local_time(run.frame.now, cast("tuple[str, ...]", node.data)[-1])


def _clock(run: Run, node: Typed) -> Truth:
    start, end, _ = cast("tuple[str, str, str]", node.data)
    return in_span(_local(run, node), minutes(start), minutes(end)), False


def _hour(run: Run, node: Typed) -> float:
    return float(_local(run, node).hour)


def _weekday(run: Run, node: Typed) -> str:
    return DAYS[_local(run, node).weekday()]


TIMES: Final[Mapping[Op, Kernel]] = {Op.CLOCK: _clock, Op.HOUR: _hour, Op.WEEKDAY: _weekday}
