"""Programs of expressions that have to compile."""

from __future__ import annotations

from typing import Any

from policysched.language import Environment, Program, Want, compile_expression


def program(text: str, phase: Any = "score", want: Want = Want.ANY) -> Program:
    compiled = compile_expression(text, Environment(phase), want)
    assert compiled.program is not None, compiled.diagnostics
    return compiled.program
