"""The array meaning of `<`, `<=`, `>` and `>=`.

Quantities are compared as they are. Versions are codes of canonical texts, whose order is looked up: which of two is
newer is found once for a pair of texts (see `versions`) and read from a table for the rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from policysched.language.evaluation.kernels import Bools, Kernel, Run, Text, Truth
from policysched.language.evaluation.tables import TESTS, Lookup, PairLookup
from policysched.language.functions.versions import compare
from policysched.language.ir.graph import Op, Typed
from policysched.language.ir.types import Kind


def _ordering(holds: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(run: Run, node: Typed) -> Truth:
        left, right = (run.memo[arg] for arg in node.args)
        if node.args[0].type.kind is Kind.VERSION:
            return _versions(run, holds, left, right)
        unknown: Bools = False
        for value, arg in zip((left, right), node.args, strict=True):
            if arg.type.optional:
                unknown = unknown | (value != value)  # noqa: PLR0124 only NaN differs from itself
        return holds(left, right), unknown

    return kernel


def _versions(run: Run, holds: Callable[[Any, Any], Any], left: Text, right: Text) -> Truth:
    if left is None or right is None:
        return False, True
    if isinstance(left, str) and isinstance(right, str):
        return holds(compare(left, right), 0), False
    order = _order(run, left, right)
    unknown = order == TESTS.missing
    return holds(order, 0) & ~unknown, unknown


def _order(run: Run, left: Text, right: Text) -> Any:
    """Return -1, 0 or 1 a row, the mark of a missing test where a version is missing. Shapes: (R,) int8."""
    if isinstance(right, str):
        table = run.tables.keep(
            (Op.LT, "right", right), lambda: Lookup(TESTS, lambda text: float(compare(text, right)))
        )
        return table.take(left, run.strings)
    if isinstance(left, str):
        table = run.tables.keep((Op.LT, "left", left), lambda: Lookup(TESTS, lambda text: float(compare(left, text))))
        return table.take(right, run.strings)
    table = run.tables.keep(Op.LT, lambda: PairLookup(TESTS, lambda one, other: float(compare(one, other))))
    return table.take(np.asarray(left), np.asarray(right), run.strings)


ORDERINGS: Final[Mapping[Op, Kernel]] = {
    Op.LT: _ordering(operator.lt),
    Op.LE: _ordering(operator.le),
    Op.GT: _ordering(operator.gt),
    Op.GE: _ordering(operator.ge),
}
