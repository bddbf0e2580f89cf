"""Interprets a program for one node in plain Python, the reference for the evaluation with NumPy.

It shares no code with the array kernels, with which tests compare it: numbers are parsed by Decimal, patterns matched
by sets of positions, versions compared by parts. Missing values and unknown conditions are None. It also evaluates
constants, changes of a single row, and weights of single placed pods.
"""

from __future__ import annotations

import enum
import math
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Protocol, TypeAlias, cast
from zoneinfo import ZoneInfo

from policysched.language.ir.graph import (
    AGGREGATES,
    ITEM,
    ITEM_AGGREGATES,
    MAX_PARTS,
    MAX_TEXT,
    PLACEMENT,
    POD_AGGREGATES,
    Constant,
    Input,
    Op,
    Program,
    Typed,
    steps,
)
from policysched.language.ir.types import RESOURCE_NAMES, Kind

Scalar: TypeAlias = str | float | bool | tuple[Any, ...] | None


class ScalarFrame(Protocol):
    """The inputs of the interpreter: one node and one pod, or a placed pod with its node."""

    @property
    def feasible(self) -> Sequence[ScalarFrame]:
        """The inputs (frames) of the feasible nodes, among them this frame's node if it is feasible."""

    @property
    def now(self) -> float:
        """The time at which the node is evaluated. Units: seconds since 1970, UTC."""

    @property
    def nodes(self) -> Sequence[ScalarFrame]:
        """The inputs (frames) of all nodes, among them this frame's node."""

    @property
    def placement(self) -> Sequence[ScalarFrame]:
        """The inputs (frames) of the nodes of the placement for which a placement rule is evaluated."""

    @property
    def pods(self) -> Sequence[ScalarFrame]:
        """The inputs (frames) of the pods on this node: the `peer.` inputs of each pod, and the inputs of the node."""

    def value(self, item: Input) -> str | float | bool | tuple[str, ...] | None:
        """Return the value of an input on this node and pod; None if the value is missing."""


# Graphs without inputs never use the frame.
_NO_FRAME: Final = cast("ScalarFrame", None)
# Values of graphs without inputs.
_CONSTANTS: Final[weakref.WeakKeyDictionary[Typed, Scalar]] = weakref.WeakKeyDictionary()
# Steps of a graph without its root, which the cache must not keep alive.
_PLANS: Final[weakref.WeakKeyDictionary[Typed, tuple[Typed, ...]]] = weakref.WeakKeyDictionary()
# Values computed from other rows, by operation and domain.
_Kept: TypeAlias = dict[tuple[Typed, Hashable], Scalar]


class Unknown(enum.Enum):
    """Marker for a condition that is neither true nor false."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


def interpret(program: Program, frame: ScalarFrame) -> Scalar | Unknown:
    """Return a program's value for one node: None if missing, UNKNOWN for an unknown condition."""
    value = evaluate(program.root, frame)
    return UNKNOWN if value is None and program.type.kind is Kind.BOOL else value


def weigh(node: Typed, peer: ScalarFrame) -> float:
    """Return a placed pod's contribution to an aggregate over pods; 0 for a pod without a value.

    Args:
        node: A node of a program's graph whose operation is one of `POD_AGGREGATES`.
        peer: The placed pod; of its node, only inputs of the aggregate are read.
    """
    value = evaluate(node.inner[0], peer)
    return float(value) if isinstance(value, bool | float) else 0.0


def constant_value(node: Typed) -> Constant:
    """Return the value of a compiled expression without inputs, cached; None if it has inputs."""
    if node.inputs or not node.local:
        return None
    for one in steps(node, known=_CONSTANTS):
        _CONSTANTS[one] = _operate(one, [_CONSTANTS[part] for part in one.args], _NO_FRAME, {})
    return cast("Constant", _CONSTANTS[node])


def evaluate(root: Typed, frame: ScalarFrame) -> Scalar:
    """Return the value of a compiled expression; None if missing or unknown."""
    return _evaluate(root, frame, {})


def _evaluate(root: Typed, frame: ScalarFrame, kept: _Kept) -> Scalar:
    plan = _PLANS.get(root)
    if plan is None:
        plan = _PLANS[root] = steps(root)[:-1]
    values: dict[Typed, Scalar] = {}
    for node in plan:
        values[node] = _operate(node, [values[arg] for arg in node.args], frame, kept)
    return _operate(root, [values[arg] for arg in root.args], frame, kept)


def _operate(node: Typed, args: list[Scalar], frame: ScalarFrame, kept: _Kept) -> Scalar:
    if node.op == Op.CONSTANT:
        return cast("Scalar", node.data)
    if node.op in {Op.INPUT, Op.KEYED}:
        return _read(node, args, frame)
    if node.op in _OVER_ROWS:
        return _over_rows(node, args, frame, kept)
    if node.op in TIMED:
        return TIMED[node.op](frame.now, *cast("tuple[str, ...]", node.data))
    if node.op in TOTAL:
        return TOTAL[node.op](*args)
    return None if None in args else _strictly(node, args)


def _strictly(node: Typed, args: list[Any]) -> Scalar:
    """Return the value of an operation on present arguments; None if a string is too long."""
    if node.op in TAKEN and node.type.optional and not TAKEN[node.op](*args):
        return None
    if node.op in _ORDERINGS and node.args[0].type.kind is Kind.VERSION:
        args = [newer(*args), 0]
    return _bounded(STRICT[node.op](*args))


_OVER_ROWS: Final = AGGREGATES | POD_AGGREGATES | ITEM_AGGREGATES | {Op.NORMALIZE}
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
    amount = float(cast("float", value))
    if math.isnan(amount) or (item.root == "metrics" and abs(amount) >= _LARGEST_METRIC):
        return None
    return amount / divisor


class _ItemFrame:
    """The inputs of the interpreter for one list item, with the pod and the time of the outer expression."""

    def __init__(self, item: Any, around: ScalarFrame) -> None:
        self._item = item
        self._around = around

    @property
    def now(self) -> float:
        return self._around.now

    def value(self, item: Input) -> Any:
        return self._item if item == ITEM else self._around.value(item)


def _over_items(node: Typed, items: Scalar, frame: ScalarFrame, kept: _Kept) -> Scalar:
    if items is None:
        return None
    plan = steps(node.inner[0])
    common: dict[Typed, Scalar] = {}
    for one in plan:  # parts without the item are evaluated once, so nested lists do not multiply the time
        if ITEM not in one.inputs:
            common[one] = _operate(one, [common[arg] for arg in one.args], frame, kept)
    return _of_values(
        node, [_of_item(plan, common, _ItemFrame(item, frame), kept) for item in cast("list[Any]", items)]
    )


def _of_item(plan: Sequence[Typed], common: Mapping[Typed, Scalar], frame: Any, kept: _Kept) -> Scalar:
    values = dict(common)
    for one in plan:
        if one not in common:
            values[one] = _operate(one, [values[arg] for arg in one.args], frame, kept)
    return values[plan[-1]]


def _over_rows(node: Typed, args: list[Scalar], frame: ScalarFrame, kept: _Kept) -> Scalar:
    if node.op == Op.NORMALIZE:
        return _normalize(node, args[0], frame, kept)
    if node.op in POD_AGGREGATES:
        return _reduced(node, frame.pods, kept)
    if node.op in ITEM_AGGREGATES:
        return _over_items(node, args[0], frame, kept)
    if None in args:
        return None
    place = (node, args[0] if args else None)
    if place not in kept:
        around = frame.placement if node.data == PLACEMENT else frame.nodes
        rows = [one for one in around if [_evaluate(key, one, kept) for key in node.args] == args]
        kept[place] = _reduced(node, rows, kept)
    return kept[place]


def _reduced(node: Typed, rows: Iterable[ScalarFrame], kept: _Kept) -> Scalar:
    return _of_values(node, [_evaluate(node.inner[0], one, kept) for one in rows])


def _of_values(node: Typed, values: Iterable[Scalar]) -> Scalar:
    return _bounded(REDUCED[node.op]([float(value) for value in values if isinstance(value, float) or value is True]))


def _normalize(node: Typed, value: Scalar, frame: ScalarFrame, kept: _Kept) -> Scalar:
    place = (node, None)
    if place not in kept:
        others = [_evaluate(node.args[0], other, kept) for other in frame.feasible]
        kept[place] = max((other for other in others if isinstance(other, float)), default=0.0)
    largest = kept[place]
    if not isinstance(value, float) or not isinstance(largest, float):
        return None
    return 100.0 * value / largest if largest > 0 else 0.0


# The operations on plain values.
_ALPHANUMERIC: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")


def _and(*values: Scalar) -> Scalar:
    return False if any(value is False for value in values) else None if None in values else True


def _or(*values: Scalar) -> Scalar:
    return True if any(value is True for value in values) else None if None in values else False


def _equal(left: Scalar, right: Scalar) -> Scalar:
    return left is not None and right is not None and left == right


def _in(value: Scalar, items: Scalar) -> Scalar:
    if value is None or items is None:
        return False
    return any(value == item for item in cast("Sequence[Scalar]", items))


TOTAL: Final[Mapping[str, Callable[..., Scalar]]] = {
    Op.AND: _and,
    Op.OR: _or,
    Op.EQ: _equal,
    Op.NE: lambda left, right: not _equal(left, right),
    Op.IN: _in,
    Op.NOT_IN: lambda value, items: not _in(value, items),
    Op.DEFAULT: lambda value, fallback: fallback if value is None else value,
    Op.HAS: lambda value: value is not None,
    Op.IF: lambda condition, left, right: None if condition is None else left if condition else right,
    Op.ONLY: lambda condition, value: value if condition is True else None,
}


def _number(text: str) -> Scalar:
    sign, digits = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    parts = digits.split(".")
    if len(parts) > 2 or not all(part and set(part) <= set("0123456789") for part in parts):
        return None
    value = float(Decimal(digits))
    return sign * value if value < 2**64 else None


def _is_number(text: str) -> bool:
    return bool(text) and set(text) <= set("0123456789")


def _version(text: str) -> Scalar:
    """Return a version in canonical form (no `v`, leading zeros or trailing `.0`); None if it is no version."""
    version, _, build = text.removeprefix("v").partition("+")
    release, dash, pre = version.partition("-")
    if not set(build) <= _ALPHANUMERIC | {"."}:
        return None
    numbers, words = release.split("."), pre.split(".") if dash else []
    if not all(map(_is_number, numbers)) or not all(word and set(word) <= _ALPHANUMERIC for word in words):
        return None
    while numbers[1:] and set(numbers[-1]) == {"0"}:
        del numbers[-1]
    written = [".".join(map(_without_zeros, part)) for part in (numbers, words) if part]
    return "-".join(written)


def _without_zeros(part: str) -> str:
    return part.lstrip("0") or "0" if _is_number(part) else part


def newer(left: str, right: str) -> int:
    """Return which of two canonical versions is newer: 1 for the left, -1 for the right, 0 if they are equal."""
    left_release, left_dash, left_pre = left.partition("-")
    right_release, right_dash, right_pre = right.partition("-")
    found = _newer_part(left_release.split("."), right_release.split("."))
    if found or not (left_dash or right_dash):
        return found
    if not (left_dash and right_dash):
        return -1 if left_dash else 1
    return _newer_part(left_pre.split("."), right_pre.split("."))


def _newer_part(left: Sequence[str], right: Sequence[str]) -> int:
    for one, other in zip(left, right, strict=False):
        if one == other:
            continue
        if _is_number(one) and _is_number(other):
            return 1 if Decimal(one) > Decimal(other) else -1
        if _is_number(one) or _is_number(other):
            return -1 if _is_number(one) else 1
        return 1 if one > other else -1
    return (len(left) > len(right)) - (len(left) < len(right))


def _glob(text: str, pattern: str) -> bool:
    # Sets of positions in the pattern, one bit each: positions of stars, and positions that each character can match.
    steps = [wanted for wanted, before in zip(pattern, " " + pattern, strict=False) if (before, wanted) != ("*", "*")]
    places: dict[str, int] = {"*": 0, "?": 0}
    for place, wanted in enumerate(steps):
        places[wanted] = places.get(wanted, 0) | 1 << place
    stars, anything = places.pop("*"), places.pop("?")
    # The positions reachable after the text read so far; no two stars are adjacent.
    reached = 1 | (stars & 1) << 1
    for character in text:
        moved = (reached & (places.get(character, 0) | anything)) << 1 | reached & stars
        reached = moved | (moved & stars) << 1
    return bool(reached >> len(steps) & 1)


def _round(value: float) -> float:
    whole = float(math.floor(value))
    return whole + 1.0 if value - whole >= 0.5 else whole


def _scale(value: float, low: float, high: float) -> Scalar:
    return None if low == high else max(0.0, min(100.0, 100.0 * (value - low) / (high - low)))


def _shown(now: float, zone: str) -> datetime:
    return datetime.fromtimestamp(now, ZoneInfo(zone))


def _clock(now: float, start: str, end: str, zone: str) -> bool:
    time = f"{_shown(now, zone):%H:%M}"
    if start < end:
        return start <= time < end
    return not end <= time < start


TIMED: Final[Mapping[str, Callable[..., Scalar]]] = {
    Op.CLOCK: _clock,
    Op.HOUR: lambda now, zone: float(f"{_shown(now, zone):%H}"),
    Op.WEEKDAY: lambda now, zone: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"][_shown(now, zone).isoweekday() - 1],
}


REDUCED: Final[Mapping[str, Callable[[Sequence[float]], Scalar]]] = {
    **dict.fromkeys((Op.COUNT_NODES, Op.COUNT_PODS, Op.COUNT_ITEMS), lambda values: float(len(values))),
    **dict.fromkeys((Op.SUM_NODES, Op.SUM_PODS), math.fsum),
    Op.AVG_NODES: lambda values: math.fsum(values) / len(values) if values else None,
    **dict.fromkeys((Op.MIN_NODES, Op.MIN_PODS, Op.MIN_ITEMS), lambda values: min(values, default=None)),
    **dict.fromkeys((Op.MAX_NODES, Op.MAX_PODS, Op.MAX_ITEMS), lambda values: max(values, default=None)),
}
# Limits on strings; beyond them the result is missing if its type allows that.
TAKEN: Final[Mapping[str, Callable[..., bool]]] = {
    Op.CONCAT: lambda *parts: sum(map(len, parts)) <= MAX_TEXT,
    Op.GLOB: lambda text, pattern: max(len(text), len(pattern)) <= MAX_TEXT,
    Op.NUMBER: lambda text: len(text) <= MAX_TEXT,
    Op.VERSION: lambda text: len(text) <= MAX_TEXT,
    Op.SPLIT: lambda text, separator: text.count(separator) < MAX_PARTS,
}
STRICT: Final[Mapping[str, Callable[..., Scalar]]] = {
    Op.NOT: lambda value: not value,
    Op.LT: lambda left, right: left < right,
    Op.LE: lambda left, right: left <= right,
    Op.GT: lambda left, right: left > right,
    Op.GE: lambda left, right: left >= right,
    Op.ADD: lambda left, right: left + right,
    Op.SUBTRACT: lambda left, right: left - right,
    Op.MULTIPLY: lambda left, right: left * right,
    Op.DIVIDE: lambda left, right: left / right if right else None,
    Op.NEGATE: lambda value: -value,
    Op.NUMBER: _number,
    Op.VERSION: _version,
    Op.STARTS_WITH: lambda text, part: text[: len(part)] == part,
    Op.ENDS_WITH: lambda text, part: len(part) <= len(text) and text[len(text) - len(part) :] == part,
    Op.CONTAINS: lambda text, part: text.find(part) >= 0,
    Op.GLOB: _glob,
    Op.CONCAT: lambda *parts: "".join(parts),
    Op.SPLIT: lambda text, separator: tuple(text.split(separator)) if text else (),
    Op.ABS: abs,
    Op.ROUND: _round,
    Op.CLAMP: lambda value, low, high: min(max(value, low), high),
    Op.SCALE: _scale,
    Op.LEAST: lambda *values: min(values),
    Op.GREATEST: lambda *values: max(values),
}
