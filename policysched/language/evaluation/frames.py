"""Frames: the columns and scalars that programs are evaluated on, as protocols for whoever owns them.

Nothing here knows where columns come from. Strings travel as codes of an interner, so that comparing a label with a
constant is one comparison of integers. What is asked of other rows than those at hand (an aggregate over all nodes, a
count of a node's pods) is one value of the frame like a column is: its owner knows when it changed and keeps it till
then. To compute it he makes a frame of those other rows and gives it to `aggregates.aggregate_over` or
`aggregates.pod_aggregate_over`; programs never go there by themselves.
"""

from __future__ import annotations

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

    def scalar(self, item: Input) -> str | float | bool | None:
        """Return an input of the pod or of the cluster; None where it is missing."""

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
