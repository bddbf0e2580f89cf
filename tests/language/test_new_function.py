"""What a function of the language needs: a rule, a kernel and a scalar operation, one file each, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from policysched.language import Environment, Want, compile_expression, interpret, policy_cost
from policysched.language.evaluation.columns import KERNELS, run_program
from policysched.language.evaluation.kernels import Run, bounded
from policysched.language.evaluation.scalar import STRICT
from policysched.language.functions import FUNCTIONS
from policysched.language.functions.signatures import Function
from policysched.language.functions.values import VALUES
from policysched.language.ir.graph import Typed
from tests.language.frames import TableFrame


def _squared(run: Run, node: Typed) -> object:
    value = run.memo[node.args[0]]
    return bounded(node, value * value)


def test_a_function_is_a_rule_a_kernel_and_a_scalar_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    signature = Function(VALUES["abs"].rule, 1, 1, "x", "the square of a quantity", slice(0, 1))
    monkeypatch.setitem(FUNCTIONS, "squared", signature)
    monkeypatch.setitem(KERNELS, "squared", _squared)
    monkeypatch.setitem(STRICT, "squared", lambda value: value * value)
    compiled = compile_expression("squared(node.free.pods) > squared(3)", Environment("filter"), Want.CONDITION)
    assert compiled.program is not None
    assert compiled.diagnostics == ()
    assert compiled.program.text == "squared(node.free.pods) > squared(3)"
    assert policy_cost([compiled.program]).nodes == 2
    frame = TableFrame([{"node.free.pods": 2.0}, {"node.free.pods": 4.0}], {})
    truth = run_program(compiled.program, frame)
    assert np.array_equal(truth.true, [False, True])  # type: ignore[union-attr]
    assert [interpret(compiled.program, frame.at(row)) for row in (0, 1)] == [False, True]


def test_a_function_that_is_not_there_is_unknown() -> None:
    compiled = compile_expression("squared(node.free.pods) > 9", Environment("filter"), Want.CONDITION)
    assert [item.code for item in compiled.diagnostics] == ["E0205"]
