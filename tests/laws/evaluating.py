"""Generated texts as programs, and programs run in both ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import assume

from policysched.language import UNKNOWN, Environment, Input, Program, Typed, Unit, compile_expression, interpret
from policysched.language.evaluation.columns import run_program
from policysched.language.ir.graph import Op
from tests.language.frames import RowFrame, TableFrame, at_row

METRICS = {"load": Unit.NUMBER, "cores": Unit.CPU}
SCORE = Environment("score", metrics=METRICS, normalized=True)


def compiled(text: str) -> Program:
    """Compile a generated text; constants that the generator made impossible together are no example."""
    result = compile_expression(text, SCORE)
    assume({item.code for item in result.errors} != {"E0312"})
    assert result.program is not None, (text, result.errors)
    return result.program


def all_rows(program: Program, frame: TableFrame) -> list[Any]:
    value = run_program(program, frame)
    return [at_row(program, value, frame, row) for row in range(frame.rows)]


def one_row(program: Program, frame: TableFrame, row: int) -> Any:
    value = interpret(program, frame.at(row))
    return "unknown" if value is UNKNOWN else value


def is_missing(item: Input, frame: RowFrame) -> bool:
    """Whether an input is missing at a row: a metric also where its value is no amount."""
    value = frame.value(item)
    return value is None or (item.root == "metrics" and not abs(value) < math.ldexp(1.0, 64))


def tallies_of(root: Typed) -> list[Typed]:
    """All counts and sums over pods in a graph, at any depth."""
    waiting, found = [root], {}
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = node.op in {Op.COUNT_PODS, Op.SUM_PODS}
            waiting += [*node.args, *node.inner]
    return [node for node, is_wanted in found.items() if is_wanted]


def shuffled(frame: TableFrame, order: list[int]) -> TableFrame:
    """Return a frame with its rows in another order, everything else the same."""
    places = {row: place for place, row in enumerate(order)}
    peers = [{**peer, "row": places.get(peer["row"], -1)} for peer in frame.peers]
    turned = TableFrame([frame.table[row] for row in order], frame.scalars, peers=peers, now=frame.now)
    turned.feasible = None if frame.feasible is None else frame.feasible[np.array(order, np.intp)]
    return turned
