"""Typed graphs of expressions (their compiled form) and programs; created by the type checker, read by evaluators.

Equal nodes are one object, so identity is equality, cached values use the node as key, and an expression shared by
several policies is evaluated once. A graph contains no positions and no source text.

The graph also tracks the length of strings. Strings that Kubernetes bounds (names, label values) have its bounds.
Others (annotations, owners) can have any length. They can be compared and searched; but functions that need more than
linear time, or create a string, accept at most `MAX_TEXT` characters. For longer strings the result is missing, as its
type states.
"""

from __future__ import annotations

import enum
import json
import weakref
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from policysched.language.ir.types import FIELDS, Kind, Type

MAX_TEXT: Final = 4096
"""Maximum length of a string that `concat` creates or `glob`, `number` and `version` read; else it is missing.
Units: characters."""
MAX_PARTS: Final = 1024
"""Maximum number of parts that `split` returns; with more parts, its value is missing."""
ANY_LENGTH: Final = 1 << 30
_LABEL: Final = 63
_NAME: Final = 253


class Length(NamedTuple):
    """Limits of the number of characters of a string."""

    least: int = 0
    most: int = 0


_FIELD_LENGTHS: Final[Mapping[str, Length]] = {
    **dict.fromkeys(("labels", "namespace_labels"), Length(0, _LABEL)),
    **dict.fromkeys(("arch", "os", "zone", "region", "instance_type"), Length(0, _LABEL)),
    "namespace": Length(1, _LABEL),
    **dict.fromkeys(("name", "service_account", "priority_class"), Length(1, _NAME)),
    "qos": Length(len("Burstable"), len("BestEffort")),
    **dict.fromkeys(("taints", "tolerations"), Length(0, _LABEL)),
}


class Op(enum.StrEnum):
    """The operations to which code refers by name; other operations have the name of their function."""

    __hash__ = str.__hash__

    CONSTANT = "constant"
    INPUT = "input"
    KEYED = "keyed"
    STACK = "stack"
    AND = "and"
    OR = "or"
    NOT = "not"
    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    NOT_IN = "not in"
    DEFAULT = "??"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    NEGATE = "negate"
    HAS = "has"
    NUMBER = "number"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"
    GLOB = "glob"
    CONCAT = "concat"
    SPLIT = "split"
    IF = "if"
    ONLY = "only"
    ABS = "abs"
    ROUND = "round"
    CLAMP = "clamp"
    SCALE = "scale"
    NORMALIZE = "normalize"
    LEAST = "least"
    GREATEST = "greatest"
    VERSION = "version"
    CLOCK = "clock"
    HOUR = "hour"
    WEEKDAY = "weekday"
    COUNT_ITEMS = "count of items"
    MIN_ITEMS = "min of items"
    MAX_ITEMS = "max of items"
    COUNT_PODS = "node.pods.count"
    SUM_PODS = "node.pods.sum"
    MIN_PODS = "node.pods.min"
    MAX_PODS = "node.pods.max"
    COUNT_NODES = "count"
    SUM_NODES = "sum"
    AVG_NODES = "avg"
    MIN_NODES = "min"
    MAX_NODES = "max"


ITEM_AGGREGATES: Final = frozenset({Op.COUNT_ITEMS, Op.MIN_ITEMS, Op.MAX_ITEMS})
POD_EXTREMES: Final = frozenset({Op.MIN_PODS, Op.MAX_PODS})
POD_AGGREGATES: Final = frozenset({Op.COUNT_PODS, Op.SUM_PODS, *POD_EXTREMES})
AGGREGATES: Final = frozenset({Op.COUNT_NODES, Op.SUM_NODES, Op.AVG_NODES, Op.MIN_NODES, Op.MAX_NODES})


@dataclass(frozen=True, slots=True)
class Input:
    """An input that an expression reads; `Input("node", ("labels",), "gpu")` is `node.labels["gpu"]`.

    A key that is only known at run time is `*` here; the program then reads the input with the actual key.
    """

    root: str
    path: tuple[str, ...]
    key: str | None = None

    @property
    def text(self) -> str:
        """The input in the language's syntax, such as `node.labels["gpu"]`."""
        if self == ITEM:
            return "item"
        dotted = ".".join((self.root, *self.path))
        if self.key is None:
            return dotted
        key = "*" if self.key == ANY_KEY else json.dumps(self.key, ensure_ascii=False)
        field = FIELDS.get((self.root, *self.path))
        return f"{dotted}({key})" if field is not None and field.called else f"{dotted}[{key}]"


ANY_KEY: Final = "*"
# The input of clock, hour and weekday. Frames provide it as `now`, not under this name.
TIME: Final = Input("clock", ("now",))
# The item of a list, inside `any`, `all`, `min` and `max` over lists.
ITEM: Final = Input("item", ("item",))
PLACEMENT: Final = "placement"
"""The `data` of an aggregate over the nodes of a placement; without it, an aggregate is over all nodes."""
# The input of every aggregate over pods: that pods are placed. Frames do not provide it under this name either.
PLACED: Final = Input("node", ("pods",))
Constant: TypeAlias = str | float | bool | tuple[str, ...] | tuple[float, ...] | None


class Typed:
    """A node of a compiled expression's graph: an operation with its arguments and its type.

    Attributes:
        op: The operation.
        args: Its arguments. The optional argument of an aggregate is the column of its domains.
        inner: Graphs evaluated on other rows: on all nodes for an aggregate, on placed pods for `node.pods.*`, on the
            items of a list.
        data: The constant or input of a leaf; the arguments of `clock`, `hour` and `weekday`.
        type: Type of the result.
        inputs: All inputs in the order of the text, without repeats, including those of `inner`.
        local: Whether a row's value depends only on that row and its pods.
        over_pods: Whether the graph contains an aggregate over pods, at any depth.
        normalizes: Whether the graph contains `normalize`, which `inner` never does.
        nesting: Depth of nested aggregates.
        length: Possible lengths of a string.
        high: Exponent of a power of two that no magnitude exceeds.
        low: Negative exponent of a power of two below which there is no magnitude except 0.
        answers: Cached results by function, see `per_graph`.
    """

    __slots__ = ("__weakref__", "answers", "args", "data", "high", "inner", "inputs", "length", "local", "low",
                 "nesting", "normalizes", "op", "over_pods", "type")  # fmt: skip

    def __init__(
        self, op: str, args: tuple[Typed, ...], inner: tuple[Typed, ...], data: Constant | Input, result: Type
    ) -> None:
        self.op = op
        self.args = args
        self.inner = inner
        self.data = data
        self.type = result
        over_items = op in ITEM_AGGREGATES
        self.inputs = _inputs(op, (*args, *inner) if over_items else (*inner, *args), data)
        if over_items:
            self.inputs = tuple(item for item in self.inputs if item != ITEM)
        parts = (*args, *inner)
        self.normalizes: bool = op == Op.NORMALIZE or any(part.normalizes for part in parts)
        self.over_pods: bool = op in POD_AGGREGATES or any(part.over_pods for part in parts)
        self.nesting: int = (op in AGGREGATES) + max((part.nesting for part in parts), default=0)
        self.local: bool = not self.normalizes and not self.nesting
        self.high, self.low = _magnitude(op, parts, data)
        self.answers: dict[object, Any] = {}
        self.length: Length = _length(op, args, data) if result.kind is Kind.STRING else _NO_STRING

    def __repr__(self) -> str:
        # Without arguments: a graph can contain the same argument exponentially often.
        data = "" if self.data is None else f" {self.data!r}"
        return f"<{self.op}{data}: {self.type}>"


T = TypeVar("T")
_ABSENT: Final[Any] = object()


def per_graph(look: Callable[[Typed], T]) -> Callable[[Typed], T]:
    """Wrap a function of an expression graph so that the graph caches its result."""

    def found(root: Typed) -> T:
        answer: T = root.answers.get(look, _ABSENT)
        if answer is _ABSENT:
            answer = root.answers[look] = look(root)
        return answer

    return found


_OPERATIONS: Final[Mapping[str, str]] = {op.value: op for op in Op}
_NODES: weakref.WeakValueDictionary[object, Typed] = weakref.WeakValueDictionary()


def make(
    op: str, args: Iterable[Typed], result: Type, data: Constant | Input = None, inner: tuple[Typed, ...] = ()
) -> Typed:
    """Return an operation as node of an expression graph; equal operations return the same object."""
    arguments = tuple(args)
    # 1, 1.0 and True are equal and have equal hashes, so the key contains the class of a constant. -0.0 equals 0.0 and
    # NaN equals nothing, so the key contains the text of a float.
    key = (op, arguments, result, type(data), repr(data) if isinstance(data, float) else data, inner)
    node = _NODES.get(key)
    if node is None:
        node = _NODES.setdefault(key, Typed(_OPERATIONS.get(op, op), arguments, inner, data, result))
    return node


def constant(value: Constant, result: Type) -> Typed:
    """Return a constant as node of an expression graph."""
    return make(Op.CONSTANT, (), result, value)


def steps(root: Typed, *, inner: bool = False, known: Container[Typed] = ()) -> tuple[Typed, ...]:
    """Return the operations of an expression graph without repeats, each after the operations of its arguments.

    Args:
        root: The graph.
        inner: Whether to include graphs evaluated on other rows.
        known: Graphs to omit, with all parts that only they use.
    """
    done: dict[Typed, None] = {}
    waiting = [(root, False)]
    while waiting:
        node, arguments_done = waiting.pop()
        if node in done or node in known:
            continue
        if arguments_done:
            done[node] = None
            continue
        waiting.append((node, True))
        waiting.extend((part, False) for part in reversed((*node.args, *node.inner) if inner else node.args))
    return tuple(done)


_OWN_INPUTS: Final[Mapping[str, tuple[Input, ...]]] = {
    **dict.fromkeys((Op.CLOCK, Op.HOUR, Op.WEEKDAY), (TIME,)),
    **dict.fromkeys(POD_AGGREGATES, (PLACED,)),
}


def _inputs(op: str, args: tuple[Typed, ...], data: Constant | Input) -> tuple[Input, ...]:
    own = (data,) if isinstance(data, Input) else _OWN_INPUTS.get(op, ())
    parts: list[tuple[Input, ...]] = []
    for arg in args:
        if arg.inputs and not (parts and arg.inputs == parts[-1]):
            parts.append(arg.inputs)
    if len(parts) <= 1 and not own:
        return parts[0] if parts else ()
    return tuple(dict.fromkeys(chain(*parts, own)))


_NO_STRING: Final = Length()
_DAY: Final = Length(3, 3)
_CHOICES: Final = frozenset({Op.DEFAULT, Op.IF, Op.ONLY})


def _length(op: str, args: tuple[Typed, ...], data: Constant | Input) -> Length:
    if isinstance(data, Input):
        return _FIELD_LENGTHS.get(data.path[0], Length(0, ANY_LENGTH))
    if op == Op.CONSTANT:
        return Length(len(str(data)), len(str(data)))
    if op == Op.WEEKDAY:
        return _DAY
    parts = [arg.length for arg in args if arg.type.kind is Kind.STRING]
    if op == Op.CONCAT:
        # A longer result is missing, so its length is within the limit.
        return Length(sum(part.least for part in parts), min(sum(part.most for part in parts), MAX_TEXT))
    if op in _CHOICES:
        return Length(min(part.least for part in parts), max(part.most for part in parts))
    return Length(0, ANY_LENGTH)


# Inputs and converted strings are within these powers of two; results above LIMIT_BITS are clipped.
INPUT_BITS: Final = 64
LIMIT_BITS: Final = 1000
_TINY_BITS: Final = 1074
_MANTISSA_BITS: Final = 53
# More rows than ever exist.
_COUNT_BITS: Final = 22
_SUMS: Final = frozenset({Op.SUM_NODES, Op.AVG_NODES, Op.SUM_PODS})


def _magnitude(op: str, parts: tuple[Typed, ...], data: Constant | Input) -> tuple[int, int]:
    if not parts or op == Op.NUMBER:
        small = op == Op.NUMBER or (isinstance(data, Input) and data.root == "metrics")
        return INPUT_BITS, _TINY_BITS if small else INPUT_BITS
    high, low = max(part.high for part in parts), max(part.low for part in parts)
    if op == Op.MULTIPLY:
        high, low = sum(part.high for part in parts), sum(part.low for part in parts)
    elif op == Op.DIVIDE:
        high, low = parts[0].high + parts[1].low, parts[0].low + parts[1].high
    elif op in {Op.ADD, Op.SUBTRACT}:
        high, low = high + 1, low + _MANTISSA_BITS
    elif op in _SUMS:
        high, low = high + _COUNT_BITS, low + _MANTISSA_BITS + _COUNT_BITS
    elif op in {Op.SCALE, Op.NORMALIZE}:
        high, low = INPUT_BITS, _TINY_BITS
    elif not isinstance(op, Op):
        high, low = LIMIT_BITS + 1, _TINY_BITS
    return min(high, LIMIT_BITS + 1), min(low, _TINY_BITS)


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression; two programs are equal if their graphs and texts are equal.

    Attributes:
        root: The typed graph.
        text: The canonical text; lines of cases are joined.
        constant: The value if the program has no inputs and is not missing.
        missing_arm: The number of a score's `missing` arm, which the caller applies after normalization.
    """

    root: Typed
    text: str
    constant: Constant = None
    missing_arm: float | None = None

    @property
    def type(self) -> Type:
        """The type of the program's value."""
        return self.root.type

    @property
    def inputs(self) -> tuple[Input, ...]:
        """All inputs that the program reads, in the order of the text, without repeats."""
        return self.root.inputs

    @property
    def is_local(self) -> bool:
        """Whether the value for a node depends on this node only, not on other nodes."""
        return self.root.local

    @property
    def gaps(self) -> str:
        """The reasons for which the value can be missing although all inputs are present."""
        found = dict.fromkeys(_GAPS[node.op](node) for node in steps(self.root) if node.op in _GAPS)
        return " or ".join(why for why in found if why)


def _division(node: Typed) -> str:
    divisor = node.args[1]
    if divisor.op == Op.CONSTANT and divisor.data:
        return ""
    return f"division by {divisor.data.text}, which is 0" if isinstance(divisor.data, Input) else "division by 0"


def _conversion(node: Typed) -> str:
    text = node.args[0].data
    return f"{text.text if isinstance(text, Input) else 'a string'} is not a {node.op}"


_GAPS: Final[Mapping[str, Callable[[Typed], str]]] = {
    Op.DIVIDE: _division,
    **dict.fromkeys((Op.NUMBER, Op.VERSION), _conversion),
    **dict.fromkeys(POD_EXTREMES, lambda _: "min and max of no pods are missing"),
}
