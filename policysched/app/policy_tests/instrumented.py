"""The parts of a policy's expressions that coverage observes, with their positions and compiled forms (graphs).

A checker that records the graph of each part of a syntax tree checks the texts again, because graphs have no positions.
Equal parts are one graph, so a part is evaluated exactly as in the compiled rule.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from policysched.language.checking.checker import ExpressionChecker
from policysched.language.checking.compile import each_let
from policysched.language.functions.lists import is_over_list
from policysched.language.functions.signatures import Environment, Phase
from policysched.language.ir.graph import AGGREGATES, Typed
from policysched.language.ir.tree import Call, Case, Expr, Inversion, Keyword, Literal, Path, Span, children
from policysched.language.ir.types import Gap, Kind, Unit
from policysched.language.syntax.parser import parse
from policysched.model.policy import FilterRule, PolicySpec, ScoreRule
from policysched.rules.compile.policy import Declared, declare


class Side(enum.StrEnum):
    """The value or event that coverage requires of a part of an expression."""

    TRUE = "true"
    FALSE = "false"
    PRESENT = "present"
    MISSING = "missing"
    TAKEN = "taken"
    EVALUATED = "evaluated"


@dataclass(frozen=True, slots=True)
class ObservedPart:
    """An outcome that coverage requires: a part of an expression, and the value or event that tests must cause."""

    span: Span
    side: Side
    graph: Typed | None
    """Compiled form of the part; None if coverage only observes whether a case of a score is selected."""
    over: str = "rows"
    """Where the part is evaluated: for the current nodes (`rows`), all nodes (`nodes`) or all placed pods (`pods`)."""
    in_guard: bool = False
    """Whether the part is in the guard of a case."""


@dataclass(frozen=True, slots=True)
class ObservedText:
    """The text of an expression or case of a policy, with the outcomes that coverage requires."""

    field: str
    text: str
    root: Typed | None
    """Compiled form of the whole text; for a case `guard → number`, the compiled form of the number."""
    parts: tuple[ObservedPart, ...]
    guard: Typed | Keyword | None = None
    """Compiled guard of a case `guard → number`, or the keyword in its place; None for the text of an expression."""


class _Recorder(ExpressionChecker):
    """A type checker that records the compiled form (graph) of each part of an expression."""

    def __init__(self, text: str, environment: Environment) -> None:
        super().__init__(text, environment)
        self.found: dict[tuple[Span, type], Typed] = {}

    def check(self, expr: Expr, unit: Unit | None = None) -> Typed | None:
        """Check a part of an expression and record its compiled form."""
        node = super().check(expr, unit)
        if node is not None:
            self.found[expr.span, type(expr)] = node
        return node


def instrumented(spec: PolicySpec) -> tuple[ObservedText, ...]:
    """Return the expressions and cases of a policy without errors, each with the outcomes that coverage requires."""
    return tuple(_Texts(spec).all())


class _Texts:
    def __init__(self, spec: PolicySpec) -> None:
        self._spec = spec
        self._declared: Declared = declare(spec.metrics, lambda *_: None)
        self._environment = Environment(metrics=self._declared.units)

    def all(self) -> Iterator[ObservedText]:
        """Yield the texts of expressions in the order of the policy's fields."""
        spec = self._spec
        for index, (let, environment) in enumerate(
            each_let([(one.name, str(one.value)) for one in spec.let], self._environment)
        ):
            around = replace(environment, phase="let", lets={**environment.lets})
            around.lets.pop(let.name, None) if isinstance(around.lets, dict) else None
            yield self._expression(f"spec.let[{index}].value", str(spec.let[index].value), around)
            self._environment = environment
        yield from self._condition("spec.appliesTo", spec.applies_to)
        yield from self._rules("spec", spec.filters, spec.scores)
        if spec.preemption is not None:
            around = replace(self._environment, phase="preemption")
            yield self._expression("spec.preemption.require", spec.preemption.require, around)
        if spec.placement is not None:
            yield from self._rules(
                "spec.placement", spec.placement.filters, spec.placement.scores, "group", "placement"
            )

    def _rules(
        self,
        path: str,
        filters: Sequence[FilterRule],
        scores: Sequence[ScoreRule],
        once: Phase = "pod",
        each: Phase | None = None,
    ) -> Iterator[ObservedText]:
        """Yield the texts of filters and scores.

        Args:
            path: The field that contains the rules.
            filters: The filters.
            scores: The scores.
            once: The phase of conditions that apply a rule.
            each: The phase of the rules; default: `filter` and `score`.
        """
        for index, rule in enumerate(filters):
            yield from self._condition(f"{path}.filters[{index}].when", rule.when, once)
            around = replace(self._environment, phase=each or "filter")
            yield self._expression(f"{path}.filters[{index}].require", rule.require, around)
        for index, score in enumerate(scores):
            yield from self._condition(f"{path}.scores[{index}].when", score.when, once)
            around = replace(self._environment, phase=each or "score", normalized=score.normalize == "Max")
            if score.value is not None:
                yield self._expression(f"{path}.scores[{index}].value", str(score.value), around, Unit.NUMBER)
            for number, case in enumerate(score.cases):
                yield self._case(f"{path}.scores[{index}].cases[{number}]", case, around)

    def _condition(self, field: str, text: str | None, phase: Phase = "pod") -> Iterator[ObservedText]:
        if text is not None:
            yield self._expression(field, text, replace(self._environment, phase=phase))

    def _expression(self, field: str, text: str, around: Environment, unit: Unit | None = None) -> ObservedText:
        recorder, tree = _Recorder(text, around), cast("Expr", parse(text))
        root = recorder.check(tree, unit)
        parts = [*self._parts(tree, recorder, "rows")]
        if unit is not None and not any(part.over == "rows" for part in parts):
            parts.append(ObservedPart(tree.span, Side.EVALUATED, self._bound(root)))
        return ObservedText(field, text, self._bound(root), tuple(dict.fromkeys([*self._whole(tree, root), *parts])))

    def _whole(self, tree: Expr, root: Typed | None) -> Iterator[ObservedPart]:
        """Yield the outcomes true and false of an expression that is a condition."""
        if root is not None and root.type.kind is Kind.BOOL and not _is_constant(root):
            yield from self._sides(tree, root, (Side.TRUE, Side.FALSE), "rows")

    def _case(self, field: str, text: str, around: Environment) -> ObservedText:
        tree = cast("Case", parse(text, "case"))
        recorder = _Recorder(text, around)
        value = recorder.check(tree.value, Unit.NUMBER)
        parts = [ObservedPart(tree.guard_span, Side.TAKEN, None)]
        parts += self._parts(tree.value, recorder, "rows")
        guard: Typed | Keyword | None
        if isinstance(tree.guard, Keyword):
            guard = tree.guard
        else:
            guard = self._bound(recorder.condition(tree.guard))
            found = [*self._whole(tree.guard, guard), *self._parts(tree.guard, recorder, "rows")]
            parts += [replace(part, in_guard=True) for part in dict.fromkeys(found)]
        return ObservedText(field, text, self._bound(value), tuple(parts), guard)

    def _parts(self, expr: Expr, recorder: _Recorder, over: str) -> Iterator[ObservedPart]:
        """Yield the outcomes that coverage requires of the parts of an expression."""
        graph = recorder.found.get((expr.span, type(expr)))
        if graph is not None and not _is_constant(graph) and not isinstance(expr, Literal):
            is_name = isinstance(expr, Path) and expr.names[0] in self._environment.lets
            if graph.type.kind is Kind.BOOL and not isinstance(expr, Inversion) and not is_name:
                yield from self._sides(expr, graph, (Side.TRUE, Side.FALSE), over)
            elif isinstance(expr, Path) and graph.type.gap is Gap.INPUT and not is_name:
                yield from self._sides(expr, graph, (Side.PRESENT, Side.MISSING), over)
        if isinstance(expr, Call):
            yield from self._of_call(expr, recorder, over)
            return
        for child in children(expr):
            yield from self._parts(child, recorder, over)

    def _of_call(self, call: Call, recorder: _Recorder, over: str) -> Iterator[ObservedPart]:
        name = call.function.dotted
        if is_over_list(name, len(call.arguments)):
            # the second argument is evaluated for items, not for nodes or placed pods
            yield from self._parts(call.arguments[0], recorder, over)
            return
        inside = "pods" if name.startswith("node.pods.") else "nodes" if name in AGGREGATES and over != "pods" else over
        for argument in call.arguments:
            yield from self._parts(argument, recorder, inside)
        if call.by is not None:
            yield from self._parts(call.by, recorder, over)

    def _sides(self, expr: Expr, graph: Typed, sides: Sequence[Side], over: str) -> Iterator[ObservedPart]:
        bound = self._bound(graph)
        yield from (ObservedPart(expr.span, side, bound, over) for side in sides)

    def _bound(self, graph: Typed | None) -> Typed | None:
        return None if graph is None else self._declared.bound(graph)


def _is_constant(graph: Typed) -> bool:
    return not graph.inputs and graph.local
