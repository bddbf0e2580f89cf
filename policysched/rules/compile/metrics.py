"""The metrics that a policy declares: checked, and made inputs that tell themselves apart.

Two policies may both read `metrics.load` and mean different queries, while equal expressions of all policies are
evaluated once. So each declared metric becomes an input that carries its query; it is still written as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from policysched.language.checking.compile import Want, check_name, compile_expression
from policysched.language.functions.rules import Environment
from policysched.language.ir.graph import Input, Program, Typed, make, steps
from policysched.language.ir.types import DURATION, Unit
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.messages.hints import did_you_mean
from policysched.model.policy import MetricKey, MetricQuery

MILLIS: Final = 1000.0
NO_METRIC: Final = MetricKey("", "")
_UNITS: Final[Mapping[str, Unit]] = {unit.value: unit for unit in Unit}
Report = Callable[[str, Diagnostic], None]


@dataclass(frozen=True, slots=True)
class MetricInput(Input):
    """`metrics.<name>`, with what the name stands for in its policy."""

    metric: MetricKey = NO_METRIC
    max_age: float = 0.0
    """Units: seconds."""
    scale: float = 1.0
    """What a server's number is multiplied by: it counts cores, rules count millicores."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The metrics of a policy, by name."""

    units: Mapping[str, Unit]
    inputs: Mapping[str, MetricInput]

    def bind(self, program: Program) -> Program:
        """Let a program read what this policy's names stand for."""
        if not any(item.root == "metrics" for item in program.inputs):
            return program
        return replace(program, root=_bound(program.root, self.inputs))


def declare(queries: Sequence[MetricQuery], report: Report) -> Declared:
    """Check a policy's metrics and report what is wrong with them.

    Args:
        queries: What the policy declares.
        report: Takes a field of `spec` and what is wrong with it.
    """
    units: dict[str, Unit] = {}
    inputs: dict[str, MetricInput] = {}
    for index, query in enumerate(queries):
        place = f"metrics[{index}]"
        for field, problem in _problems(query, {one.name for one in queries[:index]}):
            report(f"{place}.{field}", problem)
        unit = _UNITS.get(query.unit, Unit.NUMBER)
        max_age, problems = _duration(query.max_age)
        for problem in problems:
            report(f"{place}.maxAge", problem)
        scale = MILLIS if unit is Unit.CPU else 1.0
        key = MetricKey(query.query, query.node_label)
        units[query.name] = unit
        inputs[query.name] = MetricInput("metrics", (query.name,), None, key, max_age, scale)
    return Declared(units, inputs)


def finding(code: str, message: str, width: int = 0, help_text: str | None = None) -> Diagnostic:
    """Make an error about a whole field, as wide as its text."""
    return Diagnostic("error", code, message, 1, 1, 1 + width, help_text)


def _problems(query: MetricQuery, before: set[str]) -> Iterator[tuple[str, Diagnostic]]:
    problem = check_name(query.name)
    if problem is not None:
        yield "name", problem
    elif query.name in before:
        yield "name", finding("E0208", f'"{query.name}" names two metrics', len(query.name))
    for field, text in (("query", query.query), ("nodeLabel", query.node_label)):
        if not text.strip():
            yield field, finding("E0312", f"the {_SPOKEN[field]} is empty", len(text))
    if query.unit not in _UNITS:
        meant = did_you_mean(query.unit, _UNITS) or f"write one of {', '.join(_UNITS)}"
        yield "unit", finding("E0102", f"unknown unit `{query.unit}`", len(query.unit), meant)


_SPOKEN: Final[Mapping[str, str]] = {"query": "query", "nodeLabel": "label that names the node"}


def _duration(text: str) -> tuple[float, tuple[Diagnostic, ...]]:
    """Read a `maxAge`. Units: seconds."""
    compiled = compile_expression(text, Environment(), Want.ANY)
    program = compiled.program
    if program is None:
        return 0.0, compiled.errors
    value, hint = program.constant, "write it as 30s, 2min or 1h"
    if not program.type.like(DURATION) or not isinstance(value, float):
        return 0.0, (finding("E0301", f"expected a duration, found {program.type}", len(text), hint),)
    if value <= 0:
        return 0.0, (finding("E0312", "no value is as new as that", len(text), hint),)
    return value, ()


def _bound(root: Typed, inputs: Mapping[str, MetricInput]) -> Typed:
    """Make a graph anew with other inputs in the place of `metrics.*`."""
    made: dict[Typed, Typed] = {}
    for node in steps(root):
        data = node.data
        if isinstance(data, Input) and data.root == "metrics":
            data = inputs[data.path[0]]
        inner = tuple(_bound(one, inputs) for one in node.inner)
        made[node] = make(node.op, tuple(made[arg] for arg in node.args), node.type, data, inner)
    return made[root]
