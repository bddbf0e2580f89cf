"""The reference: what a program means for one node, in plain Python.

It shares nothing with the array kernels, which the laws compare it to; what each operation means is in `meanings`. A
missing value and an unknown condition are both None inside. It also serves where one node is asked about: constants,
changes of a single row, the weight of one kind of placed pods.
"""

from __future__ import annotations

import enum
import math
import weakref
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, cast

from policysched.language.evaluation.scalar_operations import REDUCED, STRICT, TAKEN, TIMED, TOTAL, Scalar, newer
from policysched.language.ir.fields import RESOURCE_NAMES
from policysched.language.ir.graph import AGGREGATES, TALLIES, Constant, Input, Op, Typed, steps
from policysched.language.ir.program import Program
from policysched.language.ir.types import Kind


class ScalarFrame(Protocol):
    """One node and one pod, for the interpreter; on a placed pod, that pod and its node."""

    @property
    def feasible(self) -> Sequence[ScalarFrame]:
        """The feasible nodes, this one included if it is one."""

    @property
    def now(self) -> float:
        """The time in seconds since 1970, UTC."""

    @property
    def nodes(self) -> Sequence[ScalarFrame]:
        """All nodes, this one included."""

    @property
    def pods(self) -> Sequence[ScalarFrame]:
        """The pods placed on this node. They answer `peer.` and, like their node's frame, everything else."""

    def value(self, item: Input) -> str | float | bool | None:
        """Return an input; None where it is missing."""


# What reads nothing asks no frame.
_NO_FRAME: Final = cast("ScalarFrame", None)
# What graphs that read nothing come to.
_CONSTANTS: Final[weakref.WeakKeyDictionary[Typed, Scalar]] = weakref.WeakKeyDictionary()
# What was made of other rows, by the operation and the domain.
Kept: TypeAlias = dict[tuple[Typed, Hashable], Scalar]


class Unknown(enum.Enum):
    """The third value of a condition."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


def interpret(program: Program, frame: ScalarFrame) -> Scalar | Unknown:
    """Return a program's value for one node: None where it is missing, UNKNOWN for a condition that is."""
    value = evaluate(program.root, frame)
    return UNKNOWN if value is None and program.type.kind is Kind.BOOL else value


def weigh(node: Typed, peer: ScalarFrame) -> float:
    """Return what one placed pod adds to a tally (`node.pods.*`); a pod without a value adds 0.

    Args:
        node: A node of a program's graph whose operation is one of `TALLIES`.
        peer: The placed pod; of its node it is asked only what the tally reads.
    """
    value = evaluate(node.inner[0], peer)
    return float(value) if isinstance(value, bool | float) else 0.0


def constant_value(node: Typed) -> Constant:
    """Return the value of a graph that reads nothing; no part of it is evaluated twice, however many texts share it."""
    if node.inputs or not node.local:
        return None
    waiting = [node]
    while waiting:
        one = waiting[-1]
        parts = [part for part in one.args if part not in _CONSTANTS]
        waiting += parts
        if not parts:
            waiting.pop()
            _CONSTANTS[one] = _operate(one, [_CONSTANTS[part] for part in one.args], _NO_FRAME, {})
    return cast("Constant", _CONSTANTS[node])


def evaluate(root: Typed, frame: ScalarFrame) -> Scalar:
    """Return the value of a graph, None where it is missing or unknown."""
    return _evaluate(root, frame, {})


def _evaluate(root: Typed, frame: ScalarFrame, kept: Kept) -> Scalar:
    values: dict[Typed, Scalar] = {}
    for node in steps(root):
        values[node] = _operate(node, [values[arg] for arg in node.args], frame, kept)
    return values[root]


def _operate(node: Typed, args: list[Scalar], frame: ScalarFrame, kept: Kept) -> Scalar:
    if node.op is Op.CONSTANT:
        return cast("Scalar", node.data)
    if node.op in {Op.INPUT, Op.KEYED}:
        return _read(node, args, frame)
    if node.op in _OVER_ROWS:
        return _over_rows(node, args, frame, kept)
    if node.op in TIMED:
        return TIMED[node.op](frame.now, *cast("tuple[str, ...]", node.data))
    if node.op in TOTAL:
        return TOTAL[node.op](*args)
    return None if None in args or _too_long(node, args) else _bounded(_strict(node)(*args))


def _too_long(node: Typed, args: list[Scalar]) -> bool:
    """Whether strings are longer than a function takes; where the type says that it cannot be, it is not asked."""
    return node.op in TAKEN and node.type.optional and not TAKEN[node.op](*args)


def _strict(node: Typed) -> Any:
    meaning = STRICT[node.op]
    if node.op in _ORDERINGS and node.args[0].type.kind is Kind.VERSION:
        return lambda left, right: meaning(newer(left, right), 0)
    return meaning


_OVER_ROWS: Final = AGGREGATES | TALLIES | {Op.NORMALIZE}
_ORDERINGS: Final = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})
_LARGEST: Final = float(2**1000)
_LARGEST_METRIC: Final = float(2**64)


def _bounded(value: Scalar) -> Scalar:
    if not isinstance(value, float) or value != value:  # noqa: PLR0124 only NaN differs from itself
        return None if isinstance(value, float) else value
    return max(-_LARGEST, min(_LARGEST, value))


def _read(node: Typed, args: list[Scalar], frame: ScalarFrame) -> Scalar:
    item = cast("Input", node.data)
    divisor = 1.0
    if args:
        key = args[0]
        if not isinstance(key, str):
            return None
        item = Input(item.root, item.path, key)
        if node.type.kind is Kind.QUANTITY and key in RESOURCE_NAMES:
            item = Input(item.root, (*item.path, RESOURCE_NAMES[key]))
            divisor = 1000.0 if key == "cpu" else 1.0
    value = frame.value(item)
    if node.type.kind is not Kind.QUANTITY or value is None:
        return value
    amount = float(value)
    if math.isnan(amount) or (item.root == "metrics" and abs(amount) >= _LARGEST_METRIC):
        return None
    return amount / divisor


def _over_rows(node: Typed, args: list[Scalar], frame: ScalarFrame, kept: Kept) -> Scalar:
    if node.op is Op.NORMALIZE:
        return _normalize(node, args[0], frame, kept)
    if node.op in TALLIES:
        return _reduced(node, frame.pods, kept)
    if None in args:
        return None
    place = (node, args[0] if args else None)
    if place not in kept:
        rows = [one for one in frame.nodes if [_evaluate(key, one, kept) for key in node.args] == args]
        kept[place] = _reduced(node, rows, kept)
    return kept[place]


def _reduced(node: Typed, rows: Iterable[ScalarFrame], kept: Kept) -> Scalar:
    values = [_evaluate(node.inner[0], one, kept) for one in rows]
    return _bounded(REDUCED[node.op]([float(value) for value in values if isinstance(value, float) or value is True]))


def _normalize(node: Typed, value: Scalar, frame: ScalarFrame, kept: Kept) -> Scalar:
    place = (node, None)
    if place not in kept:
        others = [_evaluate(node.args[0], other, kept) for other in frame.feasible]
        kept[place] = max((other for other in others if isinstance(other, float)), default=0.0)
    largest = kept[place]
    if not isinstance(value, float) or not isinstance(largest, float):
        return None
    return 100.0 * value / largest if largest > 0 else 0.0
