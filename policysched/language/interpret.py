"""The reference: what a program means for one node, in plain Python.

It shares nothing with the array kernels, which the laws compare it to. A missing value and an unknown condition are
both None inside. It also serves where one node is asked about: constants, and changes of a single row.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias, cast

from policysched.language.frames import ScalarFrame
from policysched.language.names import RESOURCE_NAMES
from policysched.language.program import Program
from policysched.language.typed import Input, Op, Typed, steps
from policysched.language.types import Kind

Scalar: TypeAlias = str | float | bool | tuple[Any, ...] | None


class Unknown(enum.Enum):
    """The third value of a condition."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


def interpret(program: Program, frame: ScalarFrame) -> Scalar | Unknown:
    """Return a program's value for one node: None where it is missing, UNKNOWN for a condition that is."""
    value = evaluate(program.root, frame)
    return UNKNOWN if value is None and program.type.kind is Kind.BOOL else value


def evaluate(root: Typed, frame: ScalarFrame) -> Scalar:
    """Return the value of a graph, None where it is missing or unknown."""
    values: dict[Typed, Scalar] = {}
    for node in steps(root):
        values[node] = _evaluate(node, [values[arg] for arg in node.args], frame)
    return values[root]


def _evaluate(node: Typed, args: list[Scalar], frame: ScalarFrame) -> Scalar:
    if node.op is Op.CONSTANT:
        return cast("Scalar", node.data)
    if node.op in {Op.INPUT, Op.KEYED}:
        return _read(node, args, frame)
    if node.op is Op.NORMALIZE:
        return _normalize(node.args[0], args[0], frame)
    if node.op in _TOTAL:
        return _TOTAL[node.op](*args)
    return None if None in args else _bounded(_STRICT[node.op](*args))


def _bounded(value: Scalar) -> Scalar:
    if not isinstance(value, float) or value != value:  # noqa: PLR0124 only NaN differs from itself
        return None if isinstance(value, float) else value
    return max(-_LARGEST, min(_LARGEST, value))


_LARGEST: Final = float(2**1000)


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
    return None if math.isnan(float(value)) else float(value) / divisor


def _normalize(node: Typed, value: Scalar, frame: ScalarFrame) -> Scalar:
    others = [evaluate(node, other) for other in frame.feasible]
    largest = max((other for other in others if isinstance(other, float)), default=0.0)
    if not isinstance(value, float):
        return None
    return 100.0 * value / largest if largest > 0 else 0.0


def _and(*values: Scalar) -> Scalar:
    if any(value is False for value in values):
        return False
    return None if None in values else True


def _or(*values: Scalar) -> Scalar:
    if any(value is True for value in values):
        return True
    return None if None in values else False


def _equal(left: Scalar, right: Scalar) -> Scalar:
    return left is not None and right is not None and left == right


def _in(value: Scalar, items: Scalar) -> Scalar:
    if value is None or items is None:
        return False
    return any(value == item for item in cast("Sequence[Scalar]", items))


def _if(condition: Scalar, left: Scalar, right: Scalar) -> Scalar:
    if condition is None:
        return None
    return left if condition else right


_TOTAL: Final[Mapping[Op, Callable[..., Scalar]]] = {
    Op.AND: _and,
    Op.OR: _or,
    Op.EQ: _equal,
    Op.NE: lambda left, right: not _equal(left, right),
    Op.IN: _in,
    Op.NOT_IN: lambda value, items: not _in(value, items),
    Op.DEFAULT: lambda value, fallback: fallback if value is None else value,
    Op.HAS: lambda value: value is not None,
    Op.IF: _if,
    Op.ONLY: lambda condition, value: value if condition is True else None,
}


def _divide(left: float, right: float) -> Scalar:
    return left / right if right else None


def _number(text: str) -> Scalar:
    sign, digits = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    parts = digits.split(".")
    if len(parts) > 2 or not all(part and set(part) <= set("0123456789") for part in parts):
        return None
    value = Decimal(digits)
    return sign * float(value) if value < 2**64 else None


def _glob(text: str, pattern: str) -> bool:
    # The set of places in the pattern that the text read so far can have reached.
    reached = {0}
    for character in text:
        reached = _after_stars(reached, pattern)
        reached = {place + (pattern[place] != "*") for place in reached if _takes(pattern, place, character)}
    return len(pattern) in _after_stars(reached, pattern)


def _after_stars(reached: set[int], pattern: str) -> set[int]:
    found = set(reached)
    for start in reached:
        place = start
        while place < len(pattern) and pattern[place] == "*":
            place += 1
            found.add(place)
    return found


def _takes(pattern: str, place: int, character: str) -> bool:
    return place < len(pattern) and pattern[place] in {"*", "?", character}


def _round(value: float) -> float:
    whole = float(math.floor(value))
    return whole + 1.0 if value - whole >= 0.5 else whole


def _scale(value: float, low: float, high: float) -> Scalar:
    if low == high:
        return None
    return max(0.0, min(100.0, 100.0 * (value - low) / (high - low)))


_STRICT: Final[Mapping[Op, Callable[..., Scalar]]] = {
    Op.NOT: lambda value: not value,
    Op.LT: lambda left, right: left < right,
    Op.LE: lambda left, right: left <= right,
    Op.GT: lambda left, right: left > right,
    Op.GE: lambda left, right: left >= right,
    Op.ADD: lambda left, right: left + right,
    Op.SUBTRACT: lambda left, right: left - right,
    Op.MULTIPLY: lambda left, right: left * right,
    Op.DIVIDE: _divide,
    Op.NEGATE: lambda value: -value,
    Op.NUMBER: _number,
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
