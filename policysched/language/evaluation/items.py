"""NumPy implementations (kernels) of `any`, `all`, `min` and `max` over a list, whose items are rows of a frame.

A list and the values of its items are the same for all nodes: conditions and values read the item, the pod and the
time, never a node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from policysched.language.evaluation.frames import Floats, Frame
from policysched.language.evaluation.kernels import Kernel, Run
from policysched.language.ir.graph import Input, Op, Typed

Evaluate = Callable[[Typed, Frame], Any]
_EXTREMES: Final = {Op.MIN_ITEMS: np.min, Op.MAX_ITEMS: np.max}


class ItemsFrame:
    """The inputs (frame) of an expression over a list: its rows are the items; pod and time are of the outer frame."""

    __slots__ = ("_around", "_items", "feasible", "memo", "rows", "strings")

    def __init__(self, items: tuple[str | float, ...], around: Frame) -> None:
        self._items = items
        self._around = around
        self.rows = len(items)
        self.strings = around.strings
        self.feasible = None
        self.memo: dict[Any, Any] = {}

    @property
    def now(self) -> float:
        """The time of the outer frame. Units: seconds since 1970, UTC."""
        return self._around.now

    def column(self, item: Input, /) -> npt.NDArray[Any]:  # noqa: ARG002 - items are the only column
        """Return the items of the list: codes of strings, or quantities."""
        if all(isinstance(one, str) for one in self._items):
            return np.array([self.strings.code(str(one)) for one in self._items], np.int32)
        return np.array(self._items, np.float64)

    def scalar(self, item: Input, /) -> Any:
        """Return an input of the pod or of the cluster."""
        return self._around.scalar(item)

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Raise AssertionError: expressions over list items cannot read all nodes."""
        raise AssertionError(node)

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Raise AssertionError: expressions over list items cannot read placed pods."""
        raise AssertionError(node)


def item_kernels(evaluate: Evaluate) -> Mapping[str, Kernel]:
    """Return the NumPy implementations (kernels) of operations over lists; `evaluate` evaluates an expression."""

    def count(run: Run, node: Typed) -> float:
        items = run.memo[node.args[0]]
        if items is None:
            return math.nan
        true, _ = evaluate(node.inner[0], ItemsFrame(items, run.frame))
        return float(np.count_nonzero(np.broadcast_to(true, (len(items),))))

    def extreme(run: Run, node: Typed) -> float:
        items = run.memo[node.args[0]]
        if items is None:
            return math.nan
        values = np.broadcast_to(evaluate(node.inner[0], ItemsFrame(items, run.frame)), (len(items),))
        values = values[~np.isnan(values)]
        return float(_EXTREMES[Op(node.op)](values)) if values.size else math.nan

    return {Op.COUNT_ITEMS: count, Op.MIN_ITEMS: extreme, Op.MAX_ITEMS: extreme}
