"""A compiled expression: its typed graph, and what is known of it without evaluating it.

It knows nothing of arrays: `columns` evaluates programs over rows, `interpret` for one node.
"""

from __future__ import annotations

from dataclasses import dataclass

from policysched.language.checking.costs import Cost, cost_of
from policysched.language.ir.graph import Constant, Input, Typed
from policysched.language.ir.types import Type


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression. Equal programs do the same and are written the same.

    Attributes:
        root: The typed graph.
        text: The canonical text, the lines of cases joined.
        constant: The value where nothing is read and it is not missing.
        missing_arm: The number of a score's `missing` arm, for the caller to apply after normalising.
    """

    root: Typed
    text: str
    constant: Constant = None
    missing_arm: float | None = None

    @property
    def type(self) -> Type:
        """The type of the value."""
        return self.root.type

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads, in the order of the text, without repeats."""
        return self.root.inputs

    @property
    def is_local(self) -> bool:
        """Whether a row's value depends on that row alone."""
        return self.root.local

    @property
    def cost(self) -> Cost:
        """What it costs, equal parts counted once."""
        return cost_of([self.root])
