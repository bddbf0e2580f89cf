"""`Frame`: protocol for the inputs of evaluations, with one row per node or placed pod; lookup tables for strings.

This module does not know where columns come from. Strings are codes of an interner, so comparing a label with a
constant is one integer comparison. A lookup table has a function's result for every code seen so far, so each distinct
string is processed once. Tables live until the stamp of their interner changes. Strings known to one frame only are
processed at each use and are not in tables; neither are results that are strings.

A value computed from other rows (an aggregate over all nodes, a count of a node's pods) is a value of the frame, like a
column: the frame's owner caches it until it changes. To compute it, the owner creates a frame of those rows and calls
`columns.aggregate_over` or `columns.pod_aggregate_over`; programs never do that themselves.
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
"""The first code of strings that only one frame knows; codes of the shared string table are smaller."""
_LASTING: Final = 1 << 40


class StringInterner(Protocol):
    """Protocol of a table that gives each string a number, its code; codes are valid until `stamp` changes."""

    @property
    def stamp(self) -> int:
        """Return a number that changes if codes may get other meanings; it never changes while a program runs."""

    def find(self, text: str) -> int:
        """Return the code of a text; -1 for a text without code, which no column contains."""

    def text(self, code: int) -> str:
        """Return the text for which a code stands."""

    def __len__(self) -> int:
        """Return the number of codes, which is larger than every code."""


class FrameStrings:
    """The strings of one frame (inputs of an evaluation): those of the shared string table, and the frame's own.

    Results of `concat` and values of pods differ for every pod. They get codes that are valid in this frame only, so
    the process's interner grows only with nodes. A code means the same string for the life of the frame, and nothing in
    another frame.
    """

    __slots__ = ("_codes", "_texts", "base")

    def __init__(self, base: StringInterner) -> None:
        self.base = base
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []

    def code(self, text: str) -> int:
        """Return the code of a text; assign a code of this frame if the shared string table does not have the text."""
        code = self._codes.get(text)
        if code is None:
            code = self.base.find(text)
            if code < 0:
                code = self._codes[text] = FIRST_OWN + len(self._texts)
                self._texts.append(text)
        return code

    def find(self, text: str) -> int:
        """Return the code of a text; -1 if the text has no code, so that no column of this frame contains it."""
        code = self._codes.get(text)
        return self.base.find(text) if code is None else code

    def text(self, code: int) -> str:
        """Return the text for which a code stands."""
        return self._texts[code - FIRST_OWN] if code >= FIRST_OWN else self.base.text(code)

    def own(self, codes: Codes) -> Mask | None:
        """Return a mask of the strings that only this frame knows; None if there are none. Shapes: (R,) -> (R,)."""
        if not self._texts:
            return None
        found: Mask = codes >= FIRST_OWN
        return found if found.any() else None

    def read(self, codes: Codes) -> Codes:
        """Return codes of the shared string table as codes of this frame, in which equal strings have equal codes.

        A string that this frame created before the interner learned it keeps the frame's code. Shapes: (R,) -> (R,).
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
        """Return numbers for strings that are the same in all frames, except for hash collisions. Shapes: (R,)."""
        numbers = codes.astype(np.int64)
        own = self.own(codes)
        if own is not None:
            hashes = np.array([hash(text) | _LASTING for text in self._texts], np.int64)
            numbers[own] = hashes[codes[own] - FIRST_OWN]
        return numbers


class Frame(Protocol):
    """The inputs of evaluations, with one row per node or placed pod.

    Units: cpu in millicores, memory and other sizes in bytes, durations in seconds, other values as counted.
    """

    @property
    def strings(self) -> FrameStrings:
        """The strings of the columns, also those known only to this frame; valid as long as `memo`."""

    @property
    def rows(self) -> int:
        """Number of rows: nodes or placed pods."""

    @property
    def feasible(self) -> Mask | None:
        """The rows over which `normalize` takes its maximum; None for all rows. Shapes: (R,)."""

    @property
    def memo(self) -> dict[Any, Any]:
        """Cached results of programs on this frame, shared by all programs."""

    def column(self, item: Input) -> npt.NDArray[Any]:
        """Return the values of an input that differs between rows: of a node, a metric or a placed pod (`peer`).

        On a frame of placed pods, inputs of nodes are those of each pod's node. Ages are rounded down to 10 s and never
        negative.

        Shapes: (R,): int32 codes, float64 or bool.
        Missing: code -1, NaN.
        """

    def scalar(self, item: Input) -> str | float | bool | tuple[str, ...] | Floats | None:
        """Return an input of the pod or of the cluster; None if it is missing.

        Shapes: one value, or (R,) for a number in a frame of what-ifs, in which each row is a different case.
        """

    @property
    def now(self) -> float:
        """Time of this cycle in seconds since 1970, UTC."""

    def aggregate(self, node: Typed) -> Floats | float:
        """Return the value of an aggregate over all nodes for each row (node or placed pod) of this frame.

        The value is the same for all pods with equal pod inputs among `node.inputs`, until one of these inputs changes
        on any node. On a frame of placed pods it is the value of each pod's node.

        Shapes: a number, or (R,) where the aggregate has a domain (`by`): the value of each row's domain.
        Missing: NaN.
        """

    def pod_aggregate(self, node: Typed) -> Floats:
        """Return a count or sum over the placed pods of a node, for each row (node or placed pod) of this frame.

        `node.pods.any(c)` does not occur; the graph has `node.pods.count(c) > 0`.

        Shapes: (R,).
        Missing: never; a row without pods has 0.
        """


Array: TypeAlias = npt.NDArray[Any]
_MOST_TABLES: Final = 256
_MOST_PAIRS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """The format of a lookup table: type, value for a missing string, and mark of cells that are not computed.

    The mark is the largest value of the dtype, so a maximum shows whether any cell is not computed.
    """

    dtype: Any
    missing: float
    unfilled: float


NUMBERS: Final = Content(np.float64, np.nan, np.inf)
CODES: Final = Content(np.int32, -1, 2**31 - 1)
TESTS: Final = Content(np.int8, 2, 127)


class Lookup:
    """A lookup table of a function of a string: the result for each string, by the string's code."""

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
        """Return the function's results for a column of string codes. Shapes: (R,) -> (R,)."""
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
    """Return a function's results for a column of string codes, called once per string. Shapes: (R,) -> (R,)."""
    distinct, places = np.unique(codes, return_inverse=True)
    results = [content.missing if code < 0 else function(strings.text(code)) for code in distinct.tolist()]
    return np.array(results, content.dtype)[places]


class PairLookup:
    """A lookup table of a function of two strings, sorted by the pair of codes."""

    def __init__(self, content: Content, function: Callable[[str, str], float], most: int = _MOST_PAIRS) -> None:
        self._content = content
        self._function = function
        self._most = most
        self._forget()

    def _forget(self) -> None:
        self._keys = np.array([-1], np.int64)
        self._values = np.array([self._content.missing], self._content.dtype)

    def take(self, left: Codes, right: Codes, strings: FrameStrings) -> Array:
        """Return the function's results for two columns of string codes. Shapes: (R,), (R,) -> (R,)."""
        if strings.own(left) is None and strings.own(right) is None:
            return self._known(left, right, strings)
        return PairLookup(self._content, self._function)._known(left, right, strings)

    def _known(self, left: Codes, right: Codes, strings: FrameStrings) -> Array:
        # A missing right string makes the key -1, a missing left string an even smaller one.
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
    """The lookup tables of string functions for the codes of one string table."""

    __slots__ = ("__weakref__", "_kept", "stamp")

    def __init__(self, stamp: int = 0) -> None:
        self.stamp = stamp
        """The value of the string table's stamp for which these tables are valid."""
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def keep(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the table stored under `key`, created by `make` if absent; the oldest unused tables are dropped."""
        table = self._kept.get(key)
        if table is None:
            table = self._kept[key] = make()
            if len(self._kept) > _MOST_TABLES:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return table


class Members:
    """A list of constant strings, as a mask over the codes of strings."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._codes: list[int] = []
        self._mask = np.zeros(0, np.bool_)

    def take(self, codes: Codes, strings: FrameStrings) -> Mask:
        """Return a mask of the elements of a column whose string is in the list. Shapes: (R,) -> (R,)."""
        if strings.own(codes) is not None:
            return np.isin(codes, [code for text in self._texts if (code := strings.find(text)) >= 0])
        base = strings.base
        known = [code for text in self._texts if (code := base.find(text)) >= 0]
        if self._codes != known or self._mask.size <= len(base):
            # A missing string has code -1, which reads the last cell; no code uses that cell.
            self._mask = np.zeros(2 * len(base) + 1, np.bool_)
            self._mask[known] = True
            self._codes = known
        found: Mask = self._mask[codes]
        return found


_TABLES: weakref.WeakKeyDictionary[StringInterner, Tables] = weakref.WeakKeyDictionary()


def tables_of(strings: StringInterner) -> Tables:
    """Return the lookup tables for the codes of a string table; created at the first call."""
    tables = _TABLES.get(strings)
    if tables is None or tables.stamp != strings.stamp:
        tables = _TABLES[strings] = Tables(strings.stamp)
    return tables
