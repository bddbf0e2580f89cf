"""`CompiledPolicy`: the compiled rules of a policy, independent of any cluster.

A compiled policy is immutable: an edit of the object creates a new one, swapped in between two cycles. Equal
expressions of all policies are evaluated once, but `metrics.load` may name different queries in two policies. So each
declared metric becomes an input that contains its query; messages still show the name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from policysched.language.checking.compile import Want, check_name, compile_expression
from policysched.language.checking.estimates import total_of
from policysched.language.functions.signatures import Environment
from policysched.language.ir.graph import Input, Op, Program, Typed, make, steps
from policysched.language.ir.types import BOOL, DURATION, Unit
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.messages.suggestions import did_you_mean
from policysched.model.policy import MetricKey, MetricQuery, PolicyKey, PolicySpec
from policysched.model.selection.selectors import LabelMatcher

RESOLVABLE = frozenset(("requested", "free", "pods"))
"""The fields of `node.` and `cluster.` that change if pods are removed; the fields of `peer.` all change too."""
FILTER_UNITS, SCORE_UNITS, NORMALIZED_UNITS = 1, 3, 12
"""The cost of a filter, score or normalized score besides its expressions; each decision normalizes scores again."""
REQUIREMENTS_PER_UNIT = 8
"""Number of label requirements that cost as much as one unit of cost."""
MILLIS: Final = 1000.0
NO_METRIC: Final = MetricKey("", "")
_UNITS: Final[Mapping[str, Unit]] = {unit.value: unit for unit in Unit}
Report = Callable[[str, Diagnostic], None]
_SPOKEN: Final[Mapping[str, str]] = {"query": "`query`", "nodeLabel": "`nodeLabel`"}


@dataclass(frozen=True, slots=True)
class MetricInput(Input):
    """The input `metrics.<name>` of a rule, with the metric query that the policy declares for the name."""

    metric: MetricKey = NO_METRIC
    max_age: float = 0.0
    """Largest age of a value; an older value is treated as missing. Units: seconds."""
    scale: float = 1.0
    """Factor from the metric server's unit to the unit of rules, for example from cores to millicores."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The metrics that a policy declares, by name (`metrics` of its spec)."""

    units: Mapping[str, Unit]
    inputs: Mapping[str, MetricInput]

    def bind(self, program: Program) -> Program:
        """Return a copy of a program in which `metrics.*` is replaced by the metric inputs that the policy declares."""
        root = self.bound(program.root)
        return program if root is program.root else replace(program, root=root)

    def bound(self, root: Typed) -> Typed:
        """Return a copy of an expression graph in which `metrics.*` is replaced by the metric inputs of the policy."""
        return _bound(root, self.inputs) if any(item.root == "metrics" for item in root.inputs) else root


def declare(queries: Sequence[MetricQuery], report: Report) -> Declared:
    """Check the metric queries of a policy, and return the inputs that they declare.

    Args:
        queries: The declared metrics.
        report: Called with a field of `spec` and a diagnostic.
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
    """Return an error about a whole field of a policy.

    Args:
        code: The code of the error.
        message: Its message.
        width: The length of the field's text.
        help_text: Its help.
    """
    return Diagnostic("error", code, message, 1, 1, 1 + width, help_text)


def _problems(query: MetricQuery, before: set[str]) -> Iterator[tuple[str, Diagnostic]]:
    problem = check_name(query.name)
    if problem is not None:
        yield "name", problem
    elif query.name in before:
        yield "name", finding("E0208", f'two metrics have the name "{query.name}"', len(query.name))
    for field, text in (("query", query.query), ("nodeLabel", query.node_label)):
        if not text.strip():
            yield field, finding("E0312", f"{_SPOKEN[field]} is empty", len(text))
    if query.unit not in _UNITS:
        meant = did_you_mean(query.unit, _UNITS) or f"write one of {', '.join(_UNITS)}"
        yield "unit", finding("E0102", f"unknown unit `{query.unit}`", len(query.unit), meant)


def _duration(text: str) -> tuple[float, tuple[Diagnostic, ...]]:
    """Return a duration in the field `maxAge` as a number. Units: seconds."""
    compiled = compile_expression(text, Environment(), Want.ANY)
    program = compiled.program
    if program is None:
        return 0.0, compiled.errors
    value, hint = program.constant, "write a duration, as in 30s, 2min or 1h"
    if not program.type.like(DURATION) or not isinstance(value, float):
        return 0.0, (finding("E0301", f"expected a duration, found {program.type}", len(text), hint),)
    if value <= 0:
        return 0.0, (finding("E0312", "the duration must be greater than 0", len(text), hint),)
    return value, ()


def _bound(root: Typed, inputs: Mapping[str, MetricInput]) -> Typed:
    """Return a copy of an expression graph in which `metrics.*` is replaced by the metric inputs of the policy."""
    made: dict[Typed, Typed] = {}
    for node in steps(root):
        data = node.data
        if isinstance(data, Input) and data.root == "metrics":
            data = inputs[data.path[0]]
        inner = tuple(_bound(one, inputs) for one in node.inner)
        made[node] = make(node.op, tuple(made[arg] for arg in node.args), node.type, data, inner)
    return made[root]


@dataclass(frozen=True, slots=True)
class CompiledFilter:
    """A filter rule: it rejects the nodes on which `require` is not true."""

    name: str
    when: Program | None
    require: Program
    message: str | None
    stated: Program | None = None
    """The condition as written, if compiling removed a `?? false` from it; else None."""

    @property
    def written(self) -> Program:
        """The condition as written in the policy."""
        return self.require if self.stated is None else self.stated

    @property
    def resolvable(self) -> bool:
        """Whether removing pods from a node can change the filter's result on that node."""
        return any(
            item.root == "peer" or (item.root in {"node", "cluster"} and item.path[0] in RESOLVABLE)
            for item in self.require.inputs
        )


@dataclass(frozen=True, slots=True)
class CompiledScore:
    """A score rule: an expression that gives each node a number, normalized or not."""

    name: str
    weight: int
    when: Program | None
    value: Program
    takes_maximum: bool
    """Whether values are scaled by their maximum over the feasible nodes."""
    missing: float
    """The score of a node for which the rule has no value, used after normalising."""
    has_missing_arm: bool

    @property
    def normalizes(self) -> bool:
        """Whether the score of a node depends on which nodes are feasible."""
        return self.takes_maximum or self.value.root.normalizes


@dataclass(frozen=True, slots=True)
class CompiledPlacement:
    """The compiled placement rules of a policy (`spec.placement`)."""

    topology_key: str
    filters: tuple[CompiledFilter, ...]
    scores: tuple[CompiledScore, ...]

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs of the placement rules, with the conditions under which the rules apply."""
        whens = (*(rule.when for rule in self.filters), *(rule.when for rule in self.scores))
        values = (*(rule.written for rule in self.filters), *(rule.value for rule in self.scores))
        return tuple(one for one in (*whens, *values) if one is not None)


@dataclass(frozen=True)
class CompiledPolicy:
    """One compiled generation of a policy."""

    key: PolicyKey
    generation: int
    spec: PolicySpec
    pods: LabelMatcher | None
    namespaces: LabelMatcher | None
    applies_to: Program | None
    filters: tuple[CompiledFilter, ...]
    scores: tuple[CompiledScore, ...]
    units: int = 0
    """The cost of the policy in a decision with preemption; 0 if the policy is not enforced."""
    preemption: CompiledFilter | None = None
    """The condition that victims of preemption must meet; None without such a condition."""
    placement: CompiledPlacement | None = None
    """The placement rules; None without placement rules."""

    @property
    def conditions(self) -> tuple[Program, ...]:
        """The programs (compiled expressions) that decide whether rules apply to a pod."""
        texts = (self.applies_to, *(rule.when for rule in self.filters), *(rule.when for rule in self.scores))
        return tuple(program for program in texts if program is not None)

    @property
    def filter_programs(self) -> tuple[Program, ...]:
        """The programs of the filters and of the conditions under which the filters apply."""
        texts = (self.applies_to, *(rule.when for rule in self.filters), *(rule.require for rule in self.filters))
        return tuple(program for program in texts if program is not None)

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The programs that a decision runs: conditions, filters and scores."""
        return (
            *self.conditions,
            *(rule.written for rule in self.filters),
            *(rule.value for rule in self.scores),
        )

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """All inputs that the policy's expressions read, in the order of its fields."""
        programs = (*self.programs, *self.guard_programs, *self.placement_programs)
        return tuple(dict.fromkeys(item for program in programs for item in program.inputs))

    @property
    def rules_count(self) -> int:
        """Number of rules: filters, scores, the condition on victims, and placement rules."""
        placement = () if self.placement is None else (*self.placement.filters, *self.placement.scores)
        return len(self.filters) + len(self.scores) + len(self.guard_programs) + len(placement)

    @property
    def placement_programs(self) -> tuple[Program, ...]:
        """The programs that the cycle of a pod group runs for each placement."""
        return () if self.placement is None else self.placement.programs

    @property
    def guard_programs(self) -> tuple[Program, ...]:
        """The program of the condition on victims, which preemption runs on placed pods; empty without condition."""
        return () if self.preemption is None else (self.preemption.written,)


def units_of(policy: CompiledPolicy) -> int:
    """Return the cost of a policy in a decision with preemption; 0 if the policy is not enforced.

    Units: operations over all nodes.
    """
    if policy.spec.mode != "Enforce":
        return 0
    scores = (NORMALIZED_UNITS if rule.normalizes else SCORE_UNITS for rule in policy.scores)
    programs = (*policy.programs, *policy.placement_programs)
    rules = FILTER_UNITS * (len(policy.filters) + len(policy.guard_programs)) + sum(scores)
    guards = (program.root for program in policy.guard_programs)
    return (
        total_of((program.root for program in programs), guards)
        + rules
        + requirement_count(policy.spec) // REQUIREMENTS_PER_UNIT
    )


def requirement_count(spec: PolicySpec) -> int:
    """Return the number of label requirements in a policy's selectors."""
    selectors = (one for one in (spec.pod_selector, spec.namespace_selector) if one is not None)
    return sum(len(one.match_labels) + len(one.match_expressions) for one in selectors)


def compiled_filter(name: str, when: Program | None, require: Program, message: str | None) -> CompiledFilter:
    """Return a filter rule without each `?? false` that has no effect, so that reasons name missing inputs.

    A filter accepts the nodes on which its condition is true. So `x ?? false` is equivalent to `x` inside of `and` and
    `or`, and `if(x ?? false, a, b)` is equivalent to `x and a or not (x ?? false) and b`.
    """
    root = _without_defaults(require.root)
    if root is require.root:
        return CompiledFilter(name, when, require, message)
    return CompiledFilter(name, when, replace(require, root=root), message, require)


def _without_defaults(root: Typed) -> Typed:
    """Return a condition without each `?? false` that has no effect.

    Each part is rewritten once, even if the condition contains it several times. A stack replaces recursion, so that
    the depth of a condition is not limited.
    """
    known: dict[Typed, Typed] = {}
    found: Any = None
    under_way = [(root, _without_own_defaults(root))]
    while under_way:
        node, work = under_way[-1]
        try:
            part = work.send(found)
        except StopIteration as done:
            found = known[node] = done.value
            under_way.pop()
            continue
        found = known.get(part)
        if found is None:
            under_way.append((part, _without_own_defaults(part)))
    return known[root]


def _without_own_defaults(node: Typed) -> Generator[Typed, Typed, Typed]:
    """Replace `x ?? false` by x in a part of a condition: yield its parts, and receive each of them rewritten."""
    if _is_defaulted(node):
        return (yield node.args[0])
    if node.op is Op.IF and _is_defaulted(node.args[0]):
        test, first, second = node.args
        taken = make(Op.AND, ((yield test), first), BOOL.over(test.args[0].type, first.type))
        other = make(Op.NOT, (test,), test.type)
        left = make(Op.AND, (other, second), BOOL.over(other.type, second.type))
        return (yield make(Op.OR, (taken, left), BOOL.over(taken.type, left.type)))
    if node.op not in {Op.AND, Op.OR}:
        return node
    args = []
    for arg in node.args:
        args.append((yield arg))  # noqa: PERF401 - a comprehension cannot yield
    return node if tuple(args) == node.args else make(node.op, args, BOOL.over(*(arg.type for arg in args)))


def _is_defaulted(node: Typed) -> bool:
    return node.op is Op.DEFAULT and node.args[1].op is Op.CONSTANT and node.args[1].data is False
