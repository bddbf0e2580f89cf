"""Evaluate programs over columns of nodes, with numpy.

A program is its typed graph in an order in which arguments come first; evaluating it is one loop over that list with a
table of kernels. Results are remembered in the frame under the graph's nodes, so programs that share an expression
share its evaluation. It never raises for a value and never warns. Nothing that checks texts imports this or numpy.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from policysched.language.evaluation.frames import Codes, Floats, Frame, Mask
from policysched.language.evaluation.kernels import VALUES, Kernel, Run, Text
from policysched.language.evaluation.number_kernels import ARITHMETIC
from policysched.language.evaluation.string_kernels import TEXTUAL
from policysched.language.ir.graph import AGGREGATES, Input, Op, Program, Typed, per_graph, steps
from policysched.language.ir.types import Kind, Shape, Type

KERNELS: Final[dict[str, Kernel]] = {**VALUES, **ARITHMETIC, **TEXTUAL}
_ABSENT: Final = object()
_SPREAD: Final = 1_000_003
"""An odd number by which what is told apart is spread over all numbers of 64 bits."""
Steps: TypeAlias = tuple[tuple[Typed, Kernel], ...]
Fill: TypeAlias = Callable[[Frame, Steps], Any]


def evaluate_columns(root: Typed, frame: Frame) -> Any:
    """Return the value of a graph as kernels see it, see `kernels`; it is remembered in the frame."""
    value = frame.memo.get(root, _ABSENT)
    if value is not _ABSENT:
        return value
    fill, before = _plan(root)
    return fill(frame, (*before, (root, KERNELS[root.op])))


@per_graph
def _plan(root: Typed) -> tuple[Fill, Steps]:
    """Return how a graph is evaluated, and its steps but for the root: what a graph keeps never holds it."""
    plan = _steps(root)
    return _fill_of(plan), plan[:-1]


class Batch:
    """Graphs that are evaluated together: what they share runs once, and so does what evaluations begin with."""

    __slots__ = ("_fill", "_steps")

    def __init__(self, roots: Iterable[Typed]) -> None:
        self._steps: Steps = tuple(dict.fromkeys(step for root in roots for step in _steps(root)))
        self._fill = _fill_of(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    def evaluate(self, frame: Frame) -> None:
        """Evaluate the graphs and remember their values in the frame; `evaluate_columns` returns each then."""
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


def _fill_quietly(frame: Frame, plan: Steps) -> Any:
    """Evaluate with a division by zero and the like being no news; arithmetic alone has any, and asking costs time."""
    with np.errstate(all="ignore"):
        return _fill(frame, plan)


class Truth(NamedTuple):
    """The value of a condition: never true and unknown at once.

    Shapes: (R,) each for a condition over nodes, else plain bools.
    """

    true: Mask | bool
    unknown: Mask | bool


Value: TypeAlias = Truth | Floats | float | Codes | str | tuple[Any, ...] | None


def run_program(program: Program, frame: Frame) -> Value:
    """Evaluate a program over the rows of a frame.

    The arrays of the result may be the frame's own or shared with other programs: they are not to be changed.

    Shapes: (R,) where the type's shape is NODES, else a plain value.
    Missing: NaN, code -1, None; a condition says so in `unknown`.
    """
    return _result(program.type, evaluate_columns(program.root, frame), frame.rows, frame)


def missing_input(program: Program, frame: Frame, row: int) -> Input | None:
    """Return the input whose absence leaves a program's value missing or unknown at a row.

    It is the first one in the text that does; None where the value is there, or where what is missing is no
    input (a string that is no number, a division by zero).
    """
    among = np.zeros(frame.rows, np.bool_)
    among[row] = True
    return next((item for item, _ in missing_inputs(program, frame, among)), None)


def missing_inputs(program: Program, frame: Frame, among: Mask) -> Iterator[tuple[Input, Mask]]:
    """Find the `missing_input` of many rows at once.

    Returns:
        Inputs with the rows where it is that one; a row without any is in none.
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
        if isinstance(node.data, Input):
            caused = [_missing_rows(cause, memo) for cause, _ in causes]
            own = rows & ~functools.reduce(operator.or_, caused, np.False_)
            if own.any():
                undecided &= ~own
                yield _concrete(node, memo), own
        waiting.extend(reversed(causes))


def why_missing(root: Typed, frame: Frame) -> Any:
    """Return numbers that differ with the reason for which a value is missing, as far as its arguments tell.

    Returns:
        Numbers by row, or one for all: 0 where the value is there, else one that differs with the reason, but for
        coincidences.
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
    """Return the arguments that a missing value can come from, each with the rows where it can."""
    if node.op in AGGREGATES:
        return _causes_of_aggregate(node, frame, rows)
    if node.op != Op.IF:
        return [(arg, rows) for arg in node.args]
    guard, left, right = node.args
    unknown = _missing_rows(guard, frame.memo)
    true = np.asarray(frame.memo[guard][0])
    return [(guard, rows & unknown), (left, rows & ~unknown & true), (right, rows & ~unknown & ~true)]


def _causes_of_aggregate(node: Typed, frame: Frame, rows: Mask) -> list[tuple[Typed, Mask]]:
    """Return the domain where that is missing, else what is missing for the whole domain: for each row in it too."""
    evaluate_columns(node.inner[0], frame)
    homeless = [(key, rows & _missing_rows(key, frame.memo)) for key in node.args]
    settled = functools.reduce(operator.and_, [~found for _, found in homeless], rows)
    return [(node.inner[0], settled), *homeless]


def _missing_rows(node: Typed, memo: dict[Any, Any]) -> Any:
    """Return where a node's value is missing: rows, or one truth for all of them."""
    kind, value = node.type.kind, memo[node]
    if kind is Kind.BOOL:
        return np.asarray(value[1])
    if kind is Kind.QUANTITY:
        return np.isnan(value)
    return value < 0 if isinstance(value, np.ndarray) else np.bool_(value is None)


def _concrete(node: Typed, memo: dict[Any, Any]) -> Input:
    item = cast("Input", node.data)
    return Input(item.root, item.path, memo[node.args[0]]) if node.op == Op.KEYED else item


def _result(result: Type, value: Any, rows: int, frame: Frame) -> Value:
    nodes = result.shape is Shape.NODES
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
        return _spread(value, rows, frame)
    return cast("Value", value)


def _mask(value: Mask | bool, rows: int) -> Mask:
    return value if isinstance(value, np.ndarray) else _constant_mask(rows, value=bool(value))


@functools.lru_cache(maxsize=64)
def _constant_mask(rows: int, *, value: bool) -> Mask:
    """Return a mask that is the same everywhere; it is shared, and so it cannot be written."""
    mask = np.full(rows, value, np.bool_)
    mask.flags.writeable = False
    return mask


def _spread(value: Text, rows: int, frame: Frame) -> Codes:
    code = frame.strings.code(value) if isinstance(value, str) else -1
    return np.full(rows, code, np.int32)
