"""What a program runs on: the protocols that the owner of the columns implements.

Nothing here knows where columns come from. Strings travel as codes of an interner, so that comparing a label with a
constant is one comparison of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from policysched.language.typed import Input

Codes: TypeAlias = npt.NDArray[np.int32]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]


class Strings(Protocol):
    """An interner. It is hashed by identity and can be referred to weakly; codes count up from 0 and stay."""

    def code(self, text: str) -> int:
        """Return the code of a text, a new one if need be."""

    def text(self, code: int) -> str:
        """Return the text of a code."""

    def __len__(self) -> int:
        """Return how many codes there are."""


class Frame(Protocol):
    """The rows that programs are evaluated for.

    Units: cpu in millicores, memory and other sizes in bytes, durations in seconds, the rest as it is counted.
    """

    @property
    def strings(self) -> Strings:
        """The interner of the string columns."""

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
        """Return an input that differs between nodes.

        Shapes: (R,): int32 codes, float64 or bool.
        Missing: code -1, NaN.
        """

    def scalar(self, item: Input) -> str | float | bool | None:
        """Return an input of the pod or of the cluster; None where it is missing."""


class ScalarFrame(Protocol):
    """One node and one pod, for the interpreter."""

    @property
    def feasible(self) -> Sequence[ScalarFrame]:
        """The feasible nodes, this one included if it is one."""

    def value(self, item: Input) -> str | float | bool | None:
        """Return an input; None where it is missing."""
