"""Laws of stacks: graphs of one shape, evaluated at once, have the values that each has by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from policysched.language import Typed
from policysched.language.evaluation.columns import evaluate_columns, run_program
from policysched.language.evaluation.stacks import alike, stack
from policysched.language.ir.graph import Input, Op, make, steps
from policysched.language.ir.types import Kind
from tests.language.frames import TableFrame
from tests.laws.evaluating import compiled
from tests.laws.examples import examples
from tests.strategies import anything
from tests.worlds import clusters

Vary = Callable[[Typed], Any]
NUMBERS = st.sampled_from((0.0, -0.0, 1.0, 2.5, 30.0, 1e9, -7.0))
TEXTS = st.sampled_from(("", "a", "b", "zone-1", "nobody holds it", "1"))


@examples(200)
@given(anything(), st.lists(anything(), max_size=2), clusters(most=4), st.data())
def test_stacked_graphs_have_the_values_they_have_alone(
    text: str, others: list[str], frame: TableFrame, data: Any
) -> None:
    programs = [compiled(one) for one in (text, *others)]
    roots = [program.root for program in programs]
    roots += [_varied(programs[0].root, lambda leaf: _other(leaf, data)) for _ in range(3)]
    of = {root: replace(program, root=root) for program in programs for root in roots if root.type == program.type}
    for places in alike(roots):
        group = [roots[place] for place in places]
        found = evaluate_columns(stack(group), frame)
        for place, root in enumerate(group):
            _assert_same(root, _part(found, place, len(group), frame), run_program(of[root], frame))


def _varied(root: Typed, other: Vary) -> Typed:
    """Make a graph with other leaves; separators stay texts that are not empty, as the checker asks."""
    made: dict[Typed, Typed] = {}
    separators = {node.args[1] for node in steps(root) if node.op == Op.SPLIT}
    for node in steps(root):
        args = [made[arg] for arg in node.args]
        data = node.data if args else other(node)
        made[node] = make(node.op, args, node.type, data or node.data if node in separators else data, node.inner)
    return made[root]


def _other(leaf: Typed, data: Any) -> Any:
    """Draw another constant, or another label of a node."""
    if leaf.op == Op.CONSTANT and isinstance(leaf.data, float):
        return data.draw(NUMBERS)
    if leaf.op == Op.CONSTANT and isinstance(leaf.data, str) and leaf.type.kind is Kind.STRING:
        return data.draw(TEXTS)
    if leaf.op == Op.CONSTANT and isinstance(leaf.data, tuple) and all(isinstance(one, str) for one in leaf.data):
        return tuple(data.draw(TEXTS) for _ in leaf.data)
    if isinstance(leaf.data, Input) and leaf.data.root == "node" and leaf.data.path == ("labels",):
        return Input("node", ("labels",), data.draw(st.sampled_from(("zone", "gpu", "never"))))
    return leaf.data


def _part(value: Any, place: int, count: int, frame: TableFrame) -> Any:
    """Return the values of one graph of a stack."""
    if isinstance(value, tuple):
        return tuple(_part(one, place, count, frame) for one in value)
    if isinstance(value, str) or value is None:
        value = -1 if value is None else frame.strings.code(value)
    return np.broadcast_to(value, (count, frame.rows))[place]


def _assert_same(root: Typed, found: Any, alone: Any) -> None:
    if root.type.kind is Kind.LIST or isinstance(alone, str) or alone is None:
        return
    if root.type.kind is Kind.BOOL:
        true, unknown = found
        assert np.array_equal(true, np.broadcast_to(alone[0], true.shape))
        assert np.array_equal(unknown, np.broadcast_to(alone[1], unknown.shape))
    else:
        assert np.array_equal(found, np.broadcast_to(alone, found.shape), equal_nan=root.type.kind is Kind.QUANTITY)
