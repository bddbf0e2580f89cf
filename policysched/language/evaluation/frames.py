"""`Frame`, the protocol of what programs are evaluated on (columns, scalars), and lookup tables over string codes.

Nothing here knows where columns come from. Strings travel as codes of an interner, so that comparing a label with a
constant is one comparison of integers; a table holds a function's result for every code that a column has shown so far,
so that each distinct string is worked out once. Tables live as long as a generation of the interner they belong to.
Strings that a frame alone knows are worked out where they occur and never enter a table, nor do results that are
strings.

What is asked of other rows than those at hand (an aggregate over all nodes, a count of a node's pods) is one value of
the frame like a column is: its owner knows when it changed and keeps it till then. To compute it he makes a frame of
those other rows and gives it to `columns.aggregate_over` or `columns.pod_aggregate_over`; programs never go there by
themselves.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from policysched.language.ir.graph import Input, Typed

Codes: TypeAlias = npt.NDArray[np.int32]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]


FIRST_OWN: Final = 1 << 30
"""The first code of strings that only one frame knows: above those of any interner."""
_LASTING: Final = 1 << 40


class StringInterner(Protocol):
    """An interner, only read here: hashed by identity, weakly referred to; its codes stay for a generation."""

    @property
    def generation(self) -> int:
        """Return what moves when codes may mean other texts than before; never while a program runs."""

    def find(self, text: str) -> int:
        """Return the code of a text, -1 if it has none: then no column holds it."""

    def text(self, code: int) -> str:
        """Return the text of a code."""

    def __len__(self) -> int:
        """Return a number that all codes are below."""


class FrameStrings:
    """The strings of one frame: those that the cluster has codes for, and those that only this frame knows.

    What rules make of strings (`concat`), and what they read of pods, is different for every pod. It gets codes that go
    with the frame, so that the interner of the process grows with its nodes alone. A code means the same string as long
    as the frame lives and nothing to any other frame.
    """

    __slots__ = ("_codes", "_texts", "base")

    def __init__(self, base: StringInterner) -> None:
        self.base = base
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []

    def code(self, text: str) -> int:
        """Return the code of a text, one of this frame's own if the interner has none."""
        code = self._codes.get(text)
        if code is None:
            code = self.base.find(text)
            if code < 0:
                code = self._codes[text] = FIRST_OWN + len(self._texts)
                self._texts.append(text)
        return code

    def find(self, text: str) -> int:
        """Return the code of a text, -1 if it has none: then no column of this frame holds it."""
        code = self._codes.get(text)
        return self.base.find(text) if code is None else code

    def text(self, code: int) -> str:
        """Return the text of a code."""
        return self._texts[code - FIRST_OWN] if code >= FIRST_OWN else self.base.text(code)

    def own(self, codes: Codes) -> Mask | None:
        """Return where a column holds strings of this frame's own, None where it holds none. Shapes: (R,) -> (R,)."""
        if not self._texts:
            return None
        found: Mask = codes >= FIRST_OWN
        return found if found.any() else None

    def read(self, codes: Codes) -> Codes:
        """Return a column of the interner's codes with one code for one string.

        A string that the interner learned after this frame made it keeps the frame's code. Shapes: (R,) -> (R,).
        """
        if not self._texts:
            return codes
        known = sorted((code, own) for text, own in self._codes.items() if (code := self.base.find(text)) >= 0)
        if not known:
            return codes
        late, own = np.array(known, np.int32).T
        places = np.minimum(np.searchsorted(late, codes), len(late) - 1)
        return np.where(late[places] == codes, own[places], codes)

    def lasting(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Return numbers that differ where strings do, coincidences apart, on this frame and others. Shapes: (R,)."""
        numbers = codes.astype(np.int64)
        own = self.own(codes)
        if own is not None:
            hashes = np.array([hash(text) | _LASTING for text in self._texts], np.int64)
            numbers[own] = hashes[codes[own] - FIRST_OWN]
        return numbers


class Frame(Protocol):
    """The rows that programs are evaluated for: nodes, or placed pods.

    Units: cpu in millicores, memory and other sizes in bytes, durations in seconds, the rest as it is counted.
    """

    @property
    def strings(self) -> FrameStrings:
        """The interner of the string columns, with what only this frame knows; one for the life of `memo`."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    @property
    def feasible(self) -> Mask | None:
        """Which rows `normalize` takes its maximum from, None for all; shape (R,)."""

    @property
    def memo(self) -> dict[Any, Any]:
        """What programs remember on this frame; empty at first, shared by all of them."""

    def column(self, item: Input) -> npt.NDArray[Any]:
        """Return an input that differs between rows: of a node, a metric, or on a frame of placed pods of a peer.

        On a frame of placed pods the inputs of nodes are those of each pod's node. Ages are whole steps of 10 s and
        never negative.

        Shapes: (R,): int32 codes, float64 or bool.
        Missing: code -1, NaN.
        """

    def scalar(self, item: Input) -> str | float | bool | tuple[str, ...] | Floats | None:
        """Return an input of the pod or of the cluster; None where it is missing.

        Shapes: one value, or (R,) for a number in a frame of what-ifs in which each row is another case.
        """

    @property
    def now(self) -> float:
        """The time of this cycle in seconds since 1970, UTC."""

    def aggregate(self, node: Typed) -> Floats | float:
        """Return the value of an aggregate: what `aggregate_over(node, frame)` gives for a frame of all nodes.

        It is the same for every pod that agrees in the pod inputs among `node.inputs`, until one of these inputs
        changes on any node. A frame of placed pods takes each pod's value from its node's row.

        Shapes: a number, or (R,) where the aggregate has a domain (`by`): the value of each row's domain.
        Missing: NaN.
        """

    def pod_aggregate(self, node: Typed) -> Floats:
        """Return a count or sum over the placed pods of each row: what `pod_aggregate_over` gives for its rows.

        `node.pods.any(c)` is not asked for: the graph has it as `node.pods.count(c) > 0`.

        Shapes: (R,).
        Missing: nothing is; a row without pods has 0.
        """


Array: TypeAlias = npt.NDArray[Any]
_MOST_TABLES: Final = 256
_MOST_PAIRS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """What a table holds: its dtype, the value of a missing string, and the mark of a cell not filled yet.

    The mark is the largest value of the dtype, so that one maximum tells whether any is left.
    """

    dtype: Any
    missing: float
    unfilled: float


NUMBERS: Final = Content(np.float64, np.nan, np.inf)
CODES: Final = Content(np.int32, -1, 2**31 - 1)
TESTS: Final = Content(np.int8, 2, 127)


class Lookup:
    """The results of a function of one string."""

    def __init__(self, content: Content, function: Callable[[str], float]) -> None:
        self._content = content
        self._function = function
        self._values = self._empty(16)

    def _empty(self, size: int) -> Array:
        values = np.full(size, self._content.unfilled, self._content.dtype)
        # A missing string has code -1, which reads the last cell.
        values[-1] = self._content.missing
        return values

    def take(self, codes: Codes, strings: FrameStrings) -> Array:
        """Return the results for a column. Shapes: (R,) -> (R,)."""
        own = strings.own(codes)
        if own is None:
            return self._known(codes, strings.base)
        found = self._known(np.where(own, -1, codes), strings.base)
        found[own] = each_text(self._function, codes[own], strings, self._content)
        return found

    def _known(self, codes: Codes, strings: StringInterner) -> Array:
        if len(self._values) <= len(strings):
            grown = self._empty(2 * len(strings) + 1)
            grown[: len(self._values) - 1] = self._values[:-1]
            self._values = grown
        found: Array = self._values[codes]
        if not found.size or np.fmax.reduce(found) != self._content.unfilled:
            return found
        for code in np.unique(codes[found == self._content.unfilled]).tolist():
            self._values[code] = self._function(strings.text(code))
        return np.take(self._values, codes)


def each_text(function: Callable[[str], float], codes: Codes, strings: FrameStrings, content: Content) -> Array:
    """Return what a function makes of a column, each distinct string looked at once. Shapes: (R,) -> (R,)."""
    distinct, places = np.unique(codes, return_inverse=True)
    results = [content.missing if code < 0 else function(strings.text(code)) for code in distinct.tolist()]
    return np.array(results, content.dtype)[places]


class PairLookup:
    """The results of a function of two strings, sorted by the pair."""

    def __init__(self, content: Content, function: Callable[[str, str], float], most: int = _MOST_PAIRS) -> None:
        self._content = content
        self._function = function
        self._most = most
        self._forget()

    def _forget(self) -> None:
        self._keys = np.array([-1], np.int64)
        self._values = np.array([self._content.missing], self._content.dtype)

    def take(self, left: Codes, right: Codes, strings: FrameStrings) -> Array:
        """Return the results for two columns. Shapes: (R,), (R,) -> (R,)."""
        if strings.own(left) is None and strings.own(right) is None:
            return self._known(left, right, strings)
        return PairLookup(self._content, self._function)._known(left, right, strings)

    def _known(self, left: Codes, right: Codes, strings: FrameStrings) -> Array:
        # A missing right side makes the key -1, a missing left one makes it smaller still.
        keys = np.maximum((left.astype(np.int64) << 32) | right, -1)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        unknown = self._keys[places] != keys
        if unknown.any():
            if len(self._keys) > self._most:
                self._forget()
                unknown = keys >= 0
            self._learn(np.unique(keys[unknown]), strings)
            places = np.searchsorted(self._keys, keys)
        found: Array = self._values[places]
        return found

    def _learn(self, keys: npt.NDArray[np.int64], strings: FrameStrings) -> None:
        results = [self._function(strings.text(key >> 32), strings.text(key & 0xFFFFFFFF)) for key in keys.tolist()]
        merged = np.concatenate((self._keys, keys))
        order = np.argsort(merged, kind="stable")
        self._keys = merged[order]
        self._values = np.concatenate((self._values, np.array(results, self._content.dtype)))[order]


class Tables:
    """Everything that is remembered for one interner."""

    __slots__ = ("__weakref__", "_kept", "generation")

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        """That of the interner: codes of another one mean something else."""
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def keep(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the table of a function and its constants; those unused for longest are dropped."""
        table = self._kept.get(key)
        if table is None:
            table = self._kept[key] = make()
            if len(self._kept) > _MOST_TABLES:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return table


class Members:
    """Which codes belong to a list of constants."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._codes: list[int] = []
        self._mask = np.zeros(0, np.bool_)

    def take(self, codes: Codes, strings: FrameStrings) -> Mask:
        """Return where a column is in the list. Shapes: (R,) -> (R,)."""
        if strings.own(codes) is not None:
            return np.isin(codes, [code for text in self._texts if (code := strings.find(text)) >= 0])
        base = strings.base
        known = [code for text in self._texts if (code := base.find(text)) >= 0]
        if self._codes != known or self._mask.size <= len(base):
            # A missing string has code -1, which reads the last cell: one that no code has.
            self._mask = np.zeros(2 * len(base) + 1, np.bool_)
            self._mask[known] = True
            self._codes = known
        found: Mask = self._mask[codes]
        return found


_TABLES: weakref.WeakKeyDictionary[StringInterner, Tables] = weakref.WeakKeyDictionary()


def tables_of(strings: StringInterner) -> Tables:
    """Return the tables of an interner."""
    tables = _TABLES.get(strings)
    if tables is None or tables.generation != strings.generation:
        tables = _TABLES[strings] = Tables(strings.generation)
    return tables
