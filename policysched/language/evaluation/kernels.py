"""NumPy implementations (kernels) of operations: inputs, logic, comparisons, lists, time, aggregates, arithmetic.

The form of a value depends on its kind: a pair of masks (true, unknown) for a condition, float64 with NaN for a
quantity, int32 codes with -1 for a string or version, a tuple or None for a list. A value that is the same for every
row is a plain Python value, not an array (None for a missing string). Masks that are False everywhere are the constant
False, so conditions that are never unknown take no extra time. Results of arithmetic are never infinite: where the
checker could not exclude it, values are clipped at 2^1000, so a value that cannot be missing never becomes NaN.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from policysched.language.evaluation.frames import (
    TESTS,
    Codes,
    Floats,
    Frame,
    FrameStrings,
    Lookup,
    Mask,
    Members,
    PairLookup,
    Tables,
    tables_of,
)
from policysched.language.functions.strings import compare
from policysched.language.functions.times import DAYS, in_span, local_time, minutes
from policysched.language.ir.graph import (
    AGGREGATES,
    INPUT_BITS,
    LIMIT_BITS,
    POD_AGGREGATES,
    Input,
    Op,
    Typed,
    per_graph,
)
from policysched.language.ir.types import RESOURCE_NAMES, Kind, Shape

Bools: TypeAlias = Mask | bool
Condition: TypeAlias = tuple[Bools, Bools]
Number: TypeAlias = Floats | float
Text: TypeAlias = Codes | str | None
LIMIT: Final = math.ldexp(1.0, LIMIT_BITS)
_LARGEST_METRIC: Final = math.ldexp(1.0, INPUT_BITS)
FEW_ITEMS: Final = 8
"""Maximum length of a list whose items are compared with a column one by one; else a lookup table is used."""
# Neither a code nor the mark of a missing string.
_UNKNOWN_TEXT: Final = -2


@dataclass(slots=True)
class Run:
    """The context of one evaluation: the frame with its inputs, the values cached in it, and its strings."""

    frame: Frame
    memo: dict[Any, Any]
    strings: FrameStrings

    @property
    def tables(self) -> Tables:
        """The lookup tables of string functions, for the codes of the frame's string table."""
        return tables_of(self.strings.base)

    def known(self, text: str) -> int:
        """Return the code of a text; for a text that is in no column, a code that no column contains either."""
        code = self.strings.find(text)
        return _UNKNOWN_TEXT if code < 0 else code

    def args(self, node: Typed) -> list[Any]:
        """Return the computed values of an operation's arguments."""
        return [self.memo[arg] for arg in node.args]

    def codes(self, text: Text) -> Codes | int:
        """Return a string value as its code; a column of strings, which has codes already, is returned unchanged."""
        if isinstance(text, str):
            return self.strings.code(text)
        return -1 if text is None else text

    def test(self, name: Hashable, compare: Callable[[str, str], float], left: Text, right: Text) -> Any:
        """Return the results of a function of two strings from a lookup table; at least one argument is a column.

        Shapes: (R,) int8; `TESTS.missing` where a string is missing.
        """
        tables, strings = self.tables, self.strings
        if isinstance(right, str):
            table = tables.keep((name, "right", right), lambda: Lookup(TESTS, lambda text: compare(text, right)))
            return table.take(left, strings)
        if isinstance(left, str):
            table = tables.keep((name, "left", left), lambda: Lookup(TESTS, lambda text: compare(left, text)))
            return table.take(right, strings)
        return tables.keep(name, lambda: PairLookup(TESTS, compare)).take(np.asarray(left), np.asarray(right), strings)


Kernel: TypeAlias = Callable[[Run, Typed], Any]


def missing(kind: Kind) -> Any:
    """Return the value that stands for a missing value of a kind, such as NaN for a quantity."""
    if kind is Kind.BOOL:
        return False, True
    return math.nan if kind is Kind.QUANTITY else None


def _constant(_: Run, node: Typed) -> Any:
    if node.data is None:
        return missing(node.type.kind)
    return (node.data, False) if node.type.kind is Kind.BOOL else node.data


def _read(run: Run, node: Typed, item: Input) -> Any:
    if node.type.shape is not Shape.SCALAR:
        column = run.frame.column(item)
        if item.root == "metrics":
            # Metrics come from outside and can be of any size, or infinite.
            return np.where(np.abs(column) < _LARGEST_METRIC, column, math.nan)
        if node.type.kind is Kind.BOOL:
            return column, False
        return run.strings.read(column) if node.type.kind is Kind.STRING else column
    value = run.frame.scalar(item)
    if value is None:
        return missing(node.type.kind)
    if node.type.kind is Kind.BOOL:
        return bool(value), False
    return value if isinstance(value, str | tuple | np.ndarray) else float(value)


def _keyed(run: Run, node: Typed) -> Any:
    key, item = run.memo[node.args[0]], cast("Input", node.data)
    if key is None:
        return missing(node.type.kind)
    named = RESOURCE_NAMES.get(key) if node.type.kind is Kind.QUANTITY else None
    if named is None:
        return _read(run, node, Input(item.root, item.path, key))
    # A computed key returns plain numbers; cpu is a number in cores.
    value = _read(run, node, Input(item.root, (*item.path, named)))
    return value / 1000.0 if named == "cpu" else value


def _stack(run: Run, node: Typed) -> Any:
    """Return the values of G expressions as one array. Shapes: (G, R), or (G, 1) if no value differs between rows."""
    kind = node.type.kind
    if node.inner and (kind is Kind.QUANTITY or kind is Kind.BOOL):
        return _constants(node)
    values: list[Any] = [one.data for one in node.inner] or run.args(node)
    if kind is Kind.LIST:
        return tuple(_laid([run.known(text) for text in texts], np.int32) for texts in zip(*values, strict=True))
    if kind is Kind.STRING or kind is Kind.VERSION:
        code = run.known if node.type.shape is Shape.SCALAR else run.strings.code
        told = [code(value) if isinstance(value, str) else -1 if value is None else value for value in values]
        return _laid(told, np.int32)
    if kind is Kind.BOOL:
        unknown = [value[1] for value in values]
        known = all(one is False for one in unknown)
        return _laid([value[0] for value in values], np.bool_), False if known else _laid(unknown, np.bool_)
    return _laid(values, np.float64)


@per_graph
def _constants(node: Typed) -> Any:
    """Return the constant quantities or conditions of G expressions as one array. Shapes: (G, 1)."""
    if node.type.kind is Kind.QUANTITY:
        return _laid([math.nan if one.data is None else one.data for one in node.inner], np.float64)
    lacking = [one.data is None for one in node.inner]
    true = [bool(one.data) for one in node.inner]
    return _laid(true, np.bool_), _laid(lacking, np.bool_) if any(lacking) else False


def _laid(values: list[Any], dtype: Any) -> npt.NDArray[Any]:
    """Return arrays or scalars as one array with an array row for each."""
    if any(isinstance(value, np.ndarray) and value.ndim for value in values):
        return np.array(np.broadcast_arrays(*values), dtype)
    return np.array(values, dtype)[:, None]


def _logic(values: list[Condition], combine: Callable[[Any, Any], Any]) -> Condition:
    true = functools.reduce(combine, [value[0] for value in values])
    if all(unknown is False for _, unknown in values):
        return true, False
    # "Not false" is preserved by both operators and includes "true".
    maybe = functools.reduce(combine, [value[0] | value[1] for value in values])
    return true, maybe ^ true


def _not(run: Run, node: Typed) -> Condition:
    true, unknown = run.memo[node.args[0]]
    return (true | unknown) ^ True, unknown


def _equal(run: Run, node: Typed) -> Condition:
    left, right = run.memo[node.args[0]], run.memo[node.args[1]]
    if isinstance(right, str) and isinstance(left, np.ndarray):
        # The most frequent comparison, a column with a text, skips the checks below.
        return left == run.known(right), False
    if node.args[0].type.kind is Kind.QUANTITY:
        return left == right, False
    return _equal_strings(run, node, left, right), False


def _equal_strings(run: Run, node: Typed, left: Text, right: Text) -> Bools:
    if left is None or right is None:
        return False
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    same: Bools = _compared(run, left) == _compared(run, right)
    if all(arg.type.optional for arg in node.args) and not isinstance(right, str):
        return same if isinstance(left, str) else same & (left >= 0)
    return same


def _unequal(run: Run, node: Typed) -> Condition:
    left, right = run.memo[node.args[0]], run.memo[node.args[1]]
    if node.args[0].type.kind is Kind.QUANTITY:
        return left != right, False
    if left is None or right is None:
        return True, False
    if isinstance(left, np.ndarray) == isinstance(right, np.ndarray):
        return _equal_strings(run, node, left, right) ^ True, False
    return _compared(run, left) != _compared(run, right), False


def _compared(run: Run, text: Codes | str) -> Codes | int:
    """Return one side of a comparison as codes of strings; all texts that are in no column get the same code."""
    return run.known(text) if isinstance(text, str) else text


def _in(run: Run, node: Typed) -> Condition:
    value, items = run.args(node)
    if items is None or value is None:
        return False, False
    if node.args[1].op == Op.STACK:
        return _among(_compared(run, value), items), False
    if not isinstance(value, np.ndarray):
        return value in items, False
    if node.args[0].type.kind is Kind.STRING:
        return _among_strings(run, node.args[1], value, items), False
    return _among(value, items), False


def _among(value: Any, items: tuple[float, ...]) -> Bools:
    if len(items) > FEW_ITEMS:
        return np.isin(value, items)
    found: Bools = functools.reduce(operator.or_, [value == item for item in items])
    return found


def _among_strings(run: Run, items: Typed, value: Codes, texts: tuple[str, ...]) -> Bools:
    if not texts:
        return False
    if len(texts) > FEW_ITEMS and items.op == Op.CONSTANT:
        members = run.tables.keep(items, lambda: Members(texts))
        return cast("Mask", members.take(value, run.strings))
    return _among(value, tuple(run.known(text) for text in texts))


def _default(run: Run, node: Typed) -> Any:
    value, fallback = run.args(node)
    if not node.args[0].type.optional:
        return value
    kind = node.type.kind
    if kind is Kind.BOOL:
        return value[0] | (value[1] & fallback[0]), value[1] & fallback[1]
    if not isinstance(value, np.ndarray):
        absent = value is None if kind is not Kind.QUANTITY else value != value  # noqa: PLR0124
        return fallback if absent else value
    return _chosen(run, kind, np.isnan(value) if kind is Kind.QUANTITY else value < 0, fallback, value)


def _chosen(run: Run, kind: Kind, first: Mask, left: Any, right: Any) -> Any:
    """Return `left` where a mask is true and `right` elsewhere, for quantities or strings. Shapes: (R,) -> (R,)."""
    if kind is Kind.QUANTITY:
        return np.where(first, left, right)
    return np.where(first, run.codes(left), run.codes(right)).astype(np.int32, copy=False)


def _has(run: Run, node: Typed) -> Condition:
    value, kind = run.memo[node.args[0]], node.args[0].type.kind
    if kind is Kind.BOOL:
        return value[1] ^ True, False
    if kind is Kind.QUANTITY:
        return value == value, False  # noqa: PLR0124 only NaN differs from itself
    return (value >= 0 if isinstance(value, np.ndarray) else value is not None), False


def _if(run: Run, node: Typed) -> Any:
    condition, left, right = run.args(node)
    true, unknown = condition
    kind = node.type.kind
    if not isinstance(true, np.ndarray) and not isinstance(unknown, np.ndarray):
        return missing(kind) if unknown else (left if true else right)
    if kind is Kind.BOOL:
        false = (true | unknown) ^ True
        return (true & left[0]) | (false & right[0]), unknown | (true & left[1]) | (false & right[1])
    chosen = _chosen(run, kind, np.asarray(true), left, right)
    return chosen if unknown is False else _chosen(run, kind, np.asarray(unknown), missing(kind), chosen)


def _only(run: Run, node: Typed) -> Any:
    condition, value = run.args(node)
    true = condition[0]
    kind = node.type.kind
    if kind is Kind.BOOL:
        return true & value[0], (true ^ True) | value[1]
    if not isinstance(true, np.ndarray):
        return value if true else missing(kind)
    return _chosen(run, kind, true, value, missing(kind))


def _ordering(holds: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(run: Run, node: Typed) -> Condition:
        first, second = node.args
        left, right = run.memo[first], run.memo[second]
        if first.type.kind is Kind.VERSION:
            return _versions(run, holds, left, right)
        unknown: Bools = left != left if first.type.optional else False  # noqa: PLR0124 only NaN differs from itself
        if second.type.optional:
            unknown = unknown | (right != right)  # noqa: PLR0124
        return holds(left, right), unknown

    return kernel


def _versions(run: Run, holds: Callable[[Any, Any], Any], left: Text, right: Text) -> Condition:
    if left is None or right is None:
        return False, True
    if isinstance(left, str) and isinstance(right, str):
        return holds(compare(left, right), 0), False
    order = run.test(Op.LT, compare, left, right)
    unknown = order == TESTS.missing
    return holds(order, 0) & ~unknown, unknown


def _local(run: Run, node: Typed) -> datetime:
    return local_time(run.frame.now, cast("tuple[str, ...]", node.data)[-1])


def _clock(run: Run, node: Typed) -> Condition:
    start, end, _ = cast("tuple[str, str, str]", node.data)
    return in_span(_local(run, node), minutes(start), minutes(end)), False


VALUES: Final[Mapping[str, Kernel]] = {
    Op.CONSTANT: _constant,
    Op.INPUT: lambda run, node: _read(run, node, cast("Input", node.data)),
    Op.KEYED: _keyed,
    Op.STACK: _stack,
    Op.AND: lambda run, node: _logic(run.args(node), operator.and_),
    Op.OR: lambda run, node: _logic(run.args(node), operator.or_),
    Op.NOT: _not,
    Op.EQ: _equal,
    Op.NE: _unequal,
    Op.IN: _in,
    Op.NOT_IN: lambda run, node: (_in(run, node)[0] ^ True, False),
    Op.DEFAULT: _default,
    Op.HAS: _has,
    Op.IF: _if,
    Op.ONLY: _only,
    Op.LT: _ordering(operator.lt),
    Op.LE: _ordering(operator.le),
    Op.GT: _ordering(operator.gt),
    Op.GE: _ordering(operator.ge),
    Op.CLOCK: _clock,
    Op.HOUR: lambda run, node: float(_local(run, node).hour),
    Op.WEEKDAY: lambda run, node: DAYS[_local(run, node).weekday()],
    **dict.fromkeys(AGGREGATES, lambda run, node: run.frame.aggregate(node)),
    **dict.fromkeys(POD_AGGREGATES, lambda run, node: run.frame.pod_aggregate(node)),
}


def bounded(node: Typed, value: Number) -> Number:
    """Return a value limited to the largest allowed magnitude, if static bounds allow larger values."""
    if node.high <= LIMIT_BITS:
        return value
    return np.minimum(np.maximum(value, -LIMIT), LIMIT)


def _binary(combine: Callable[[Any, Any], Any]) -> Kernel:
    return lambda run, node: bounded(node, combine(run.memo[node.args[0]], run.memo[node.args[1]]))


def _combined(combine: Callable[[Any, Any], Any]) -> Kernel:
    return lambda run, node: functools.reduce(combine, run.args(node))


def _divide(run: Run, node: Typed) -> Number:
    left, right = run.memo[node.args[0]], run.memo[node.args[1]]
    if isinstance(right, np.ndarray):
        right = np.where(right == 0, math.nan, right)
    elif right == 0:
        return math.nan
    return bounded(node, left / right)


def _round(run: Run, node: Typed) -> Any:
    value = run.memo[node.args[0]]
    whole = np.floor(value)
    return whole + (value - whole >= 0.5)


def _clamp(run: Run, node: Typed) -> Any:
    value, low, high = run.args(node)
    return np.minimum(np.maximum(value, low), high)


def _scale(run: Run, node: Typed) -> Any:
    value, low, high = run.args(node)
    width = high - low
    if isinstance(width, np.ndarray):
        width = np.where(width == 0, math.nan, width)
    elif width == 0:
        return math.nan
    return np.minimum(np.maximum(100.0 * (value - low) / width, 0.0), 100.0)


def _normalize(run: Run, node: Typed) -> Any:
    value = np.broadcast_to(run.memo[node.args[0]], (run.frame.rows,))
    feasible = run.frame.feasible
    compared = value if feasible is None else value[feasible]
    largest = np.fmax.reduce(compared, initial=-math.inf)
    if largest > 0:
        return 100.0 * value / largest
    return np.where(np.isnan(value), math.nan, 0.0)


ARITHMETIC: Final[Mapping[str, Kernel]] = {
    Op.ADD: _binary(operator.add),
    Op.SUBTRACT: _binary(operator.sub),
    Op.MULTIPLY: _binary(operator.mul),
    Op.DIVIDE: _divide,
    Op.NEGATE: lambda run, node: -run.memo[node.args[0]],
    Op.ABS: lambda run, node: abs(run.memo[node.args[0]]),
    Op.ROUND: _round,
    Op.CLAMP: _clamp,
    Op.SCALE: _scale,
    Op.NORMALIZE: _normalize,
    Op.LEAST: _combined(np.minimum),
    Op.GREATEST: _combined(np.maximum),
}
