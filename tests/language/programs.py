"""Expressions, cases and lines of `let`, compiled in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policysched.language import (
    CompiledLet,
    Environment,
    Program,
    Want,
    compile_expression,
    each_let,
)


def program(text: str, phase: Any = "score", want: Want = Want.ANY) -> Program:
    compiled = compile_expression(text, Environment(phase), want)
    assert compiled.program is not None, compiled.diagnostics
    return compiled.program


def compile_lets(lets: Sequence[tuple[str, str]], environment: Environment) -> tuple[list[CompiledLet], Environment]:
    """Compile lines of `let`; returned with the environment for the texts below them."""
    compiled = []
    for one, known in each_let(lets, environment):
        compiled.append(one)
        environment = known
    return compiled, environment
