"""Array kernels of arithmetic.

float64 throughout, NaN is missing, and no result is infinite: where the checker could not exclude it, values are cut
at 2^1000, so that nothing that cannot be missing becomes NaN by arithmetic.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from policysched.language.evaluation.kernels import LIMIT, Kernel, Number, Run
from policysched.language.ir.graph import LIMIT_BITS, Op, Typed


def bounded(node: Typed, value: Number) -> Number:
    """Cut a value at the largest magnitude there is, where it could reach it."""
    if node.high <= LIMIT_BITS:
        return value
    return np.minimum(np.maximum(value, -LIMIT), LIMIT)


def _binary(combine: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(run: Run, node: Typed) -> Number:
        return bounded(node, combine(run.memo[node.args[0]], run.memo[node.args[1]]))

    return kernel


def _divide(run: Run, node: Typed) -> Number:
    left, right = run.memo[node.args[0]], run.memo[node.args[1]]
    if isinstance(right, np.ndarray):
        right = np.where(right == 0, math.nan, right)
    elif right == 0:
        return math.nan
    return bounded(node, left / right)


def _negate(run: Run, node: Typed) -> Number:
    value: Number = -run.memo[node.args[0]]
    return value


def _abs(run: Run, node: Typed) -> Number:
    value: Number = abs(run.memo[node.args[0]])
    return value


def _round(run: Run, node: Typed) -> Number:
    value = run.memo[node.args[0]]
    whole = np.floor(value)
    rounded: Number = whole + (value - whole >= 0.5)
    return rounded


def _clamp(run: Run, node: Typed) -> Number:
    value, low, high = (run.memo[arg] for arg in node.args)
    held: Number = np.minimum(np.maximum(value, low), high)
    return held


def _scale(run: Run, node: Typed) -> Number:
    value, low, high = (run.memo[arg] for arg in node.args)
    width = high - low
    if isinstance(width, np.ndarray):
        width = np.where(width == 0, math.nan, width)
    elif width == 0:
        return math.nan
    share: Number = np.minimum(np.maximum(100.0 * (value - low) / width, 0.0), 100.0)
    return share


def _normalize(run: Run, node: Typed) -> Number:
    value = np.broadcast_to(run.memo[node.args[0]], (run.frame.rows,))
    feasible = run.frame.feasible
    compared = value if feasible is None else value[feasible]
    largest = np.fmax.reduce(compared, initial=-math.inf)
    if largest > 0:
        share: Number = 100.0 * value / largest
        return share
    return np.where(np.isnan(value), math.nan, 0.0)


def _extreme(combine: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(run: Run, node: Typed) -> Number:
        value: Number = functools.reduce(combine, [run.memo[arg] for arg in node.args])
        return value

    return kernel


ARITHMETIC: Final[Mapping[str, Kernel]] = {
    Op.ADD: _binary(operator.add),
    Op.SUBTRACT: _binary(operator.sub),
    Op.MULTIPLY: _binary(operator.mul),
    Op.DIVIDE: _divide,
    Op.NEGATE: _negate,
    Op.ABS: _abs,
    Op.ROUND: _round,
    Op.CLAMP: _clamp,
    Op.SCALE: _scale,
    Op.NORMALIZE: _normalize,
    Op.LEAST: _extreme(np.minimum),
    Op.GREATEST: _extreme(np.maximum),
}
