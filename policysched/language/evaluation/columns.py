"""Evaluates programs over columns of nodes, and aggregates over nodes and over placed pods, with arrays.

A program is its typed graph in an order in which arguments come first. Evaluation is one loop over that list with a
table of kernels. Results are cached in the frame by graph node, so programs share the evaluation of common expressions.
Evaluation never raises for a value and never warns. Modules that only check texts do not import this module or NumPy.

Programs read aggregates from their frame. The frame's owner computes them here, on a frame of those other rows, and
caches them until their inputs change. Sums are exact and rounded once, so the order of rows never affects results, and
sums maintained incrementally equal recomputed ones.
"""

from __future__ import annotations

import enum
import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from policysched.language.evaluation.frames import Codes, Floats, Frame, Mask
from policysched.language.evaluation.items import item_kernels
from policysched.language.evaluation.kernels import ARITHMETIC, VALUES, Kernel, Run, bounded
from policysched.language.evaluation.string_kernels import TEXTUAL
from policysched.language.ir.graph import (
    AGGREGATES,
    POD_AGGREGATES,
    POD_EXTREMES,
    Input,
    Op,
    Program,
    Typed,
    per_graph,
    steps,
)
from policysched.language.ir.types import GROUP_CONSTANTS, Kind, Shape, Type

KERNELS: Final[dict[str, Kernel]] = {**VALUES, **ARITHMETIC, **TEXTUAL}
_ABSENT: Final = object()
_EXTREMES: Final = frozenset({Op.MIN_NODES, Op.MAX_NODES, *POD_EXTREMES})
_SPREAD: Final = 1_000_003
"""Odd multiplier that spreads the inputs of a hash over all 64-bit numbers."""
Steps: TypeAlias = tuple[tuple[Typed, Kernel], ...]
Fill: TypeAlias = Callable[[Frame, Steps], Any]


def evaluate_columns(root: Typed, frame: Frame) -> Any:
    """Return the value of a compiled expression on all rows of a frame (such as all nodes); cached in the frame."""
    value = frame.memo.get(root, _ABSENT)
    if value is not _ABSENT:
        return value
    fill, before = _plan(root)
    return fill(frame, (*before, (root, KERNELS[root.op])))


KERNELS.update(item_kernels(evaluate_columns))


@per_graph
def _plan(root: Typed) -> tuple[Fill, Steps]:
    """Return function and steps that evaluate an expression graph, without the graph, so that caches do not hold it."""
    plan = _steps(root)
    return _fill_of(plan), plan[:-1]


class Batch:
    """Compiled expressions that are evaluated together, so that common parts are evaluated once."""

    __slots__ = ("_fill", "_steps")

    def __init__(self, roots: Iterable[Typed]) -> None:
        self._steps: Steps = tuple(dict.fromkeys(step for root in roots for step in _steps(root)))
        self._fill = _fill_of(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    def evaluate(self, frame: Frame) -> None:
        """Evaluate the expressions and cache their values in the frame, where `evaluate_columns` finds them."""
        if self._steps:
            self._fill(frame, self._steps)


def _steps(root: Typed) -> Steps:
    return tuple((node, KERNELS[node.op]) for node in steps(root))


def _fill_of(plan: Steps) -> Fill:
    return _fill_quietly if any(node.op in ARITHMETIC for node, _ in plan) else _fill


def _fill(frame: Frame, plan: Steps) -> Any:
    memo = frame.memo
    run = Run(frame, memo, frame.strings)
    for node, kernel in plan:
        if node not in memo:
            memo[node] = kernel(run, node)
    return memo[plan[-1][0]]


@np.errstate(all="ignore")
def _fill_quietly(frame: Frame, plan: Steps) -> Any:
    """Evaluate the steps of an expression without floating-point warnings of NumPy."""
    return _fill(frame, plan)


class Truth(NamedTuple):
    """The value of a condition on rows (nodes or placed pods): true, false or unknown, never true and unknown at once.

    Shapes: (R,) each for a condition over nodes, else plain bools.
    """

    true: Mask | bool
    unknown: Mask | bool


Value: TypeAlias = Truth | Floats | float | Codes | str | tuple[Any, ...] | None


def run_program(program: Program, frame: Frame) -> Value:
    """Return the value of a program (compiled expression) on the rows of a frame: nodes or placed pods.

    Arrays of the result can be shared with the frame or other programs and must not be changed.

    Shapes: (R,) if the type's shape is not SCALAR, otherwise a plain value.
    Missing: NaN, code -1, None; for a condition, `unknown` is True.
    """
    return _result(program.type, evaluate_columns(program.root, frame), frame.rows, frame)


def missing_inputs(program: Program, frame: Frame, among: Mask) -> Iterator[tuple[Input, Mask]]:
    """Return the inputs because of which a program's value is missing or unknown on some rows (such as nodes).

    Returns:
        Inputs with their rows. A row belongs to the first such input in the text; to none if the value is present, or
        if it is missing for another reason (a string that is not a number, a division by zero).
    """
    evaluate_columns(program.root, frame)
    memo = frame.memo
    undecided = among.copy()
    waiting: list[tuple[Typed, Mask]] = [(program.root, among)]
    seen: dict[Typed, Mask] = {}
    while waiting:
        node, rows = waiting.pop()
        rows = rows & undecided & _missing_rows(node, memo) & ~seen.get(node, np.False_)
        if not rows.any():
            continue
        seen[node] = seen.get(node, np.False_) | rows
        causes = _causes(node, frame, rows)
        if isinstance(item := node.data, Input):
            caused = [_missing_rows(cause, memo) for cause, _ in causes]
            own = rows & ~functools.reduce(operator.or_, caused, np.False_)
            if own.any():
                undecided &= ~own
                yield Input(item.root, item.path, memo[node.args[0]]) if node.op == Op.KEYED else item, own
        waiting.extend(reversed(causes))


def why_missing(root: Typed, frame: Frame) -> Any:
    """Return a number for each row (such as a node): 0 if a value is present, else a hash of why it is missing.

    Returns:
        Numbers by row, or one for all: 0 if the value is present, otherwise a hash of the reason.
    """
    evaluate_columns(root, frame)
    memo = frame.memo
    lacking = _missing_rows(root, memo)
    if not np.count_nonzero(lacking):
        return 0
    why = np.ones(1, np.int64)
    for node in steps(root):
        why = why * _SPREAD + _missing_rows(node, memo)
        if node.op == Op.KEYED:
            why = why + hash(memo[node.args[0]])
        elif node.type.kind is Kind.BOOL:
            why = why * _SPREAD + memo[node][0]
    return np.where(lacking, why, 0)


def _causes(node: Typed, frame: Frame, rows: Mask) -> list[tuple[Typed, Mask]]:
    """Return the arguments that can make a value missing, each with the rows (such as nodes) that evaluate it."""
    if node.op in AGGREGATES:
        return _causes_of_aggregate(node, frame, rows)
    if node.op != Op.IF:
        return [(arg, rows) for arg in node.args]
    guard, left, right = node.args
    unknown = _missing_rows(guard, frame.memo)
    true = np.asarray(frame.memo[guard][0])
    return [(guard, rows & unknown), (left, rows & ~unknown & true), (right, rows & ~unknown & ~true)]


def _causes_of_aggregate(node: Typed, frame: Frame, rows: Mask) -> list[tuple[Typed, Mask]]:
    """Return why an aggregate over nodes is missing: a missing key, or missing values in the whole domain."""
    evaluate_columns(node.inner[0], frame)
    homeless = [(key, rows & _missing_rows(key, frame.memo)) for key in node.args]
    settled = functools.reduce(operator.and_, [~found for _, found in homeless], rows)
    return [(node.inner[0], settled), *homeless]


def missing_rows(node: Typed, frame: Frame) -> Any:
    """Return a mask of the rows (such as nodes) on which an expression has no value; one bool if all rows are equal."""
    evaluate_columns(node, frame)
    return _missing_rows(node, frame.memo)


def _missing_rows(node: Typed, memo: dict[Any, Any]) -> Any:
    """Return a mask of the rows (such as nodes) on which a cached value is missing; one bool if all rows are equal."""
    kind, value = node.type.kind, memo[node]
    if kind is Kind.BOOL:
        return np.asarray(value[1])
    if kind is Kind.QUANTITY:
        return np.isnan(value)
    return value < 0 if isinstance(value, np.ndarray) else np.bool_(value is None)


def _result(result: Type, value: Any, rows: int, frame: Frame) -> Value:
    nodes = result.shape is not Shape.SCALAR
    if result.kind is Kind.BOOL:
        true, unknown = value
        if not nodes:
            return Truth(bool(true), bool(unknown))
        return Truth(_mask(true, rows), _mask(unknown, rows))
    if result.kind is Kind.QUANTITY:
        if not nodes:
            return float(value)
        return value if isinstance(value, np.ndarray) else np.full(rows, value, np.float64)
    if nodes and not isinstance(value, np.ndarray):
        code = frame.strings.code(value) if isinstance(value, str) else -1
        return np.full(rows, code, np.int32)
    return cast("Value", value)


def _mask(value: Mask | bool, rows: int) -> Mask:
    return value if isinstance(value, np.ndarray) else _constant_mask(rows, value=bool(value))


@functools.lru_cache(maxsize=64)
def _constant_mask(rows: int, *, value: bool) -> Mask:
    """Return a mask with the same value for all rows; it is shared and read-only."""
    mask = np.full(rows, value, np.bool_)
    mask.flags.writeable = False
    return mask


_EXACT_BITS: Final = 53
_EXACT: Final = math.ldexp(1.0, _EXACT_BITS)
# Up to this ratio of largest code to rows, counting in one array is cheaper than renumbering.
_SPARSE: Final = 4
_FEW_CODES: Final = 1024
Ids = npt.NDArray[np.int64]


class Depends(enum.IntEnum):
    """The inputs on which a placed pod's contribution to an aggregate depends, and thus how long it can be reused."""

    PEER = 0
    """The contribution reads only the placed pod: one counter serves all pending pods."""
    POD = 1
    """The contribution also reads the pending pod: one counter serves pending pods with equal values."""
    ROW = 2
    """The contribution also reads the node, the cluster or the time: it is recomputed at each use."""


def depends(node: Typed) -> Depends:
    """Return on which inputs the argument of an aggregate over pods (`node.pods.*`) depends."""
    [inner] = node.inner
    if node.op in POD_EXTREMES or not inner.local or not all(map(_is_of_pods, inner.inputs)):
        return Depends.ROW
    return Depends.POD if any(item.root != "peer" for item in inner.inputs) else Depends.PEER


def _is_of_pods(item: Input) -> bool:
    """Return whether a placed pod or the scheduled pod alone determines an input, at any time."""
    if item.root == "group":
        return item.path[0] in GROUP_CONSTANTS
    return item.root in {"peer", "pod"} and item.path[0] != "age"


def aggregate_over(node: Typed, frame: Frame) -> Floats | float:
    """Return the value of an aggregate over nodes.

    Args:
        node: A node of a program's graph whose operation is one of `AGGREGATES`.
        frame: All existing nodes, in any order.

    Shapes: a number, or (N,) where the aggregate has a domain: each row gets its domain's value.
    Missing: NaN; rows without a value are ignored, rows without a domain get NaN.
    Cost: O(N); a sum of fractions is slower than one of integers.
    """
    if node.op not in AGGREGATES:
        raise ValueError(f"{node!r} is no aggregate")
    values, present = _inner(node, frame)
    if not node.args:
        return float(_reduced(node, np.zeros(frame.rows, np.int64), 1, values, present)[0])
    ids, size = _domains(node.args[0], frame)
    by_domain = _reduced(node, ids, size, values, present)
    by_domain[0] = math.nan
    return np.asarray(by_domain[ids], np.float64)


def sums_with_one_changed(
    node: Typed, ids: Ids, size: int, before: Floats, places: npt.NDArray[np.integer], now: Floats
) -> Floats | None:
    """Return for each given node the sum or mean of its domain, as if only the value of this node had changed.

    Args:
        node: A sum or a mean over nodes.
        ids: The domain of each row, less than `size`.
        size: Number of domains.
        before: Current contribution of each row.
        places: Positions of the rows that would change.
        now: New contributions of these rows.

    Shapes: ids and before (N,), places and now (R,) -> (R,).
    Missing: NaN is ignored; None if magnitudes differ too much for integer multiples of two units.
    Cost: O(N + R). The result equals `aggregate_over`: both round the exact sum once.
    """
    rows, values = before.size, np.concatenate((before, now))
    if not now.size:
        return now
    present = ~np.isnan(values)
    split = _split(np.where(present, values, 0.0))
    if split is None:
        return None
    (high, coarse), (low, fine) = split

    def total(each: Floats) -> Floats:
        changed: Floats = np.bincount(ids, each[:rows], size)[ids[places]] - each[places] + each[rows:]
        return changed

    sums = total(high) * coarse + total(low) * fine
    if node.op == Op.AVG_NODES:
        with np.errstate(all="ignore"):
            sums = sums / total(present.astype(np.float64))
    return np.asarray(bounded(node, sums), np.float64)


def pod_aggregate_over(node: Typed, frame: Frame, rows: npt.NDArray[np.integer], size: int) -> Floats:
    """Return a count or sum over the placed pods of each node.

    Args:
        node: A node of a program's graph whose operation is one of `POD_AGGREGATES`.
        frame: The placed pods; it returns inputs of peers, and inputs of nodes by each pod's row.
        rows: The row of each pod, less than `size`; a negative one means no pod.
        size: Number of rows.

    Shapes: rows (P,) -> (size,).
    Missing: never; pods without a value are ignored.
    Cost: O(P).
    """
    if node.op not in POD_AGGREGATES:
        raise ValueError(f"{node!r} is no aggregate over pods")
    values, present = _inner(node, frame)
    # Entries without a pod are counted before the first row.
    ids = np.maximum(rows, -1).astype(np.int64) + 1
    return _reduced(node, ids, size + 1, values, present)[1:]


def pod_weights_over(node: Typed, frame: Frame) -> Floats:
    """Return the contribution of each placed pod to an aggregate over pods; 0 for a pod without a value.

    Args:
        node: A node of a program's graph whose operation is one of `POD_AGGREGATES`.
        frame: The placed pods.

    Shapes: (P,).
    """
    values, present = _inner(node, frame)
    return np.where(present, 1.0 if values is None else values, 0.0)


def _inner(node: Typed, frame: Frame) -> tuple[Floats | None, Mask]:
    """Return the values that an aggregate combines (None for a count), and a mask of the included nodes or pods."""
    value: Any = evaluate_columns(node.inner[0], frame)
    if node.op in {Op.COUNT_NODES, Op.COUNT_PODS}:
        return None, np.broadcast_to(value[0], (frame.rows,))
    values = np.broadcast_to(value, (frame.rows,))
    return values, ~np.isnan(values)


def _domains(key: Typed, frame: Frame) -> tuple[Ids, int]:
    """Return the domain (group of nodes) of each node, from 1 on (0 without domain), and the number of domains.

    Shapes: (N,).
    """
    value: Any = evaluate_columns(key, frame)
    if not isinstance(value, np.ndarray):
        value = np.full(frame.rows, -1 if value is None else frame.strings.code(value))
    ids = value.astype(np.int64) + 1
    size = int(ids.max(initial=0)) + 1
    if size > _SPARSE * frame.rows + _FEW_CODES:
        known, dense = np.unique(ids, return_inverse=True)
        ids = dense + (known[0] > 0)
        size = len(known) + 1
    return ids, size


def _reduced(node: Typed, ids: Ids, size: int, values: Floats | None, present: Mask) -> Floats:
    """Return for each domain the combination of its values. Shapes: ids, values and present (R,) -> (size,)."""
    if not present.all():
        ids, values = ids[present], None if values is None else values[present]
    if values is None:
        return np.bincount(ids, minlength=size).astype(np.float64)
    if node.op in _EXTREMES:
        return _extremes(node.op, ids, size, values)
    sums = _sums(ids, size, values)
    if node.op == Op.AVG_NODES:
        with np.errstate(all="ignore"):
            sums = sums / np.bincount(ids, minlength=size)
    return np.asarray(bounded(node, sums), np.float64)


def _extremes(op: str, ids: Ids, size: int, values: Floats) -> Floats:
    combine, start = (np.minimum, math.inf) if op in {Op.MIN_NODES, Op.MIN_PODS} else (np.maximum, -math.inf)
    found = np.full(size, start)
    combine.at(found, ids, values)
    found[found == start] = math.nan
    return found


def _sums(ids: Ids, size: int, values: Floats) -> Floats:
    """Return the exact sum of each domain, rounded once, so that the order of nodes does not matter.

    Integers are exact in any order while all partial sums are. Other values are split into integer multiples of two
    units if possible, because `fsum` is slow.
    """
    if np.abs(values).sum() < _EXACT and (values == np.rint(values)).all():
        return np.bincount(ids, values, size).astype(np.float64, copy=False)
    split = _split(values)
    if split is None:
        return _slow_sums(ids, size, values)
    (high, coarse), (low, fine) = split
    # Both products are exact, so this rounds once.
    return np.asarray(np.bincount(ids, high, size) * coarse + np.bincount(ids, low, size) * fine, np.float64)


def _split(values: Floats) -> tuple[tuple[Floats, float], tuple[Floats, float]] | None:
    """Return values as multiples of a coarse and a fine unit, which can be summed without rounding errors.

    Returns:
        The integer multiples of each unit, and the unit; None if magnitudes differ too much.
    """
    bits = _EXACT_BITS - 1 - len(values).bit_length()
    _, exponent = math.frexp(float(np.abs(values).max()))
    coarse, fine = math.ldexp(1.0, exponent - bits), math.ldexp(1.0, exponent - 2 * bits)
    with np.errstate(all="ignore"):
        high = np.rint(values / coarse)
        rest = values - high * coarse
        low = rest / fine
        # The second condition fails if a value underflowed.
        exact = (low == np.rint(low)) & (low * fine == rest)
    return ((high, coarse), (low, fine)) if exact.all() else None


def _slow_sums(ids: Ids, size: int, values: Floats) -> Floats:
    order = np.argsort(ids, kind="stable")
    sorted_ids, sorted_values = ids[order], values[order].tolist()
    starts = np.flatnonzero(np.diff(sorted_ids, prepend=-1))
    ends = [*starts[1:].tolist(), len(sorted_values)]
    sums = np.zeros(size)
    for start, end in zip(starts.tolist(), ends, strict=True):
        sums[sorted_ids[start]] = math.fsum(sorted_values[start:end])
    return sums
