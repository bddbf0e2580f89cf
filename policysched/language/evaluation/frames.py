"""What a program runs on: the protocols that the owner of the columns implements.

Nothing here knows where columns come from. Strings travel as codes of an interner, so that comparing a label with a
constant is one comparison of integers. What is asked of other rows than those at hand (an aggregate over all nodes, a
count of a node's pods) is one value of the frame like a column is: its owner knows when it changed and keeps it till
then. To compute it he makes a frame of those other rows and gives it to `reductions.aggregate_over` or
`reductions.tally_over`; programs never go there by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from policysched.language.ir.graph import Input, Typed

if TYPE_CHECKING:
    from policysched.language.evaluation.frame_strings import FrameStrings

Codes: TypeAlias = npt.NDArray[np.int32]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]


class Strings(Protocol):
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

    def tally(self, node: Typed) -> Floats:
        """Return a count or sum over the placed pods of each row: `tally_over(node, frame, rows, size)` of its rows.

        `node.pods.any(c)` is not asked for: the graph has it as `node.pods.count(c) > 0`.

        Shapes: (R,).
        Missing: nothing is; a row without pods has 0.
        """
