"""What a program asks its frame for: values that were made of other rows. `reductions` says how they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.evaluation.frames import Floats
from policysched.language.evaluation.kernels import Kernel, Number, Run
from policysched.language.ir.graph import AGGREGATES, TALLIES, Op, Typed


def _aggregate(run: Run, node: Typed) -> Number:
    return run.frame.aggregate(node)


def _tally(run: Run, node: Typed) -> Floats:
    return run.frame.tally(node)


OTHER_ROWS: Final[Mapping[Op, Kernel]] = {
    **dict.fromkeys(AGGREGATES, _aggregate),
    **dict.fromkeys(TALLIES, _tally),
}
