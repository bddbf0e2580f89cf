"""Compiles the texts of a SchedulingPolicy to programs, one field at a time.

The compiler checks the size of a policy before it compiles any text. The result is a policy if every field compiles,
else diagnostics that name the fields.

Source: docs/reference/language.md#the-object.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from policysched.language.checking.compile import (
    Compiled,
    Want,
    check_cost,
    compile_cases,
    compile_expression,
    each_let,
    policy_cost,
)
from policysched.language.checking.doubts import required
from policysched.language.checking.estimates import Cost
from policysched.language.checking.impossible import is_template
from policysched.language.functions.signatures import Environment, Phase
from policysched.language.ir.graph import Program
from policysched.language.ir.tree import Span
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.model.objects import LabelSelector
from policysched.model.policy import FilterRule, PlacementRules, Policy, PolicySpec, ScoreRule
from policysched.model.selection.name_validation import is_label_name, is_qualified_name
from policysched.model.selection.selectors import LabelMatcher, SelectorError, compile_selector, contradicted
from policysched.rules.compile.policy import (
    CompiledFilter,
    CompiledPlacement,
    CompiledPolicy,
    CompiledScore,
    compiled_filter,
    declare,
    finding,
    requirement_count,
    units_of,
)

MAX_RULES = 64
MAX_LETS = 256
MAX_METRICS = 64
MAX_CHARACTERS = 65536
"""Maximum number of characters of all expressions of a policy; a longer policy is rejected."""
MAX_REQUIREMENTS = 256
"""Maximum number of label requirements in a policy's selectors; a policy with more is rejected."""
MAX_VALUES = 8192
"""Maximum number of values in the requirements of a policy's selectors; a policy with more is rejected."""
_VALUES = "write at least one value, as in `values: [a]`, or use the operator `Exists` or `DoesNotExist`"
_SCHEDULERS = "write the `schedulerName` of the pods, or remove `schedulerNames` to match all"
_KEYS = "write the key of a node label, as in `topology.kubernetes.io/zone`"
_OPERATORS = "write `In`, `NotIn`, `Exists` or `DoesNotExist`"


class CompiledText(NamedTuple):
    """The result of compiling an expression, with the `let` names that the expression uses."""

    compiled: Compiled
    used: AbstractSet[str]


@dataclass(frozen=True, slots=True)
class CompiledTexts:
    """The compiled expressions of a policy, which the compilation of a later generation reuses for equal texts."""

    declarations: Hashable = None
    """The `let` lines and metrics that the expressions may name; compiled texts are reused only if these are equal."""
    by_text: Mapping[Hashable, CompiledText] = field(default_factory=dict)
    """The compiled expressions, by text, kind of text and environment."""


@dataclass(frozen=True, slots=True)
class CompilationResult:
    """The result of compiling a policy: the compiled policy or errors, and warnings."""

    policy: CompiledPolicy | None
    diagnostics: tuple[Diagnostic, ...]
    cost: Cost
    texts: CompiledTexts = field(default_factory=CompiledTexts, compare=False, repr=False)
    """The compiled expressions, which the compilation of the next generation reuses."""

    @property
    def errors(self) -> int:
        """The number of errors."""
        return sum(diagnostic.severity == "error" for diagnostic in self.diagnostics)


def compile_policy(
    policy: Policy,
    spec: PolicySpec | None = None,
    generation: int | None = None,
    before: CompilationResult | None = None,
) -> CompilationResult:
    """Compile one generation of a policy; return the compiled policy or its errors.

    Args:
        policy: The object.
        spec: The spec to compile in place of the object's own, such as the last good spec.
        generation: The generation of `spec`.
        before: The result for another generation; texts that both generations contain are not compiled again.
    """
    return _Compilation(policy, spec, generation, before).run()


class _Compilation:
    """The running compilation of one policy, with the diagnostics so far."""

    def __init__(
        self, policy: Policy, spec: PolicySpec | None, generation: int | None, before: CompilationResult | None
    ) -> None:
        self._policy = policy
        self._spec = spec if spec is not None else policy.spec
        self._generation = policy.metadata.generation if generation is None else generation
        self._declarations = tuple(self._spec.let), tuple(self._spec.metrics)
        texts = CompiledTexts() if before is None else before.texts
        self._reusable = texts.by_text if texts.declarations == self._declarations else {}
        self._texts: dict[Hashable, CompiledText] = {}
        self._found: list[Diagnostic] = []
        self._metrics = declare((), self._report)
        self._lets = Environment()

    def run(self) -> CompilationResult:
        spec = self._spec
        if self._is_too_large():
            return CompilationResult(None, tuple(self._found), Cost())
        self._metrics = declare(spec.metrics, lambda field, problem: self._report(f"spec.{field}", problem))
        self._lets = Environment(metrics=self._metrics.units)
        pods = self._selector("podSelector", spec.pod_selector)
        namespaces = self._selector("namespaceSelector", spec.namespace_selector)
        self._names()
        self._define_lets()
        self._require_labels("pod.labels", spec.pod_selector if pods is not None else None)
        self._require_labels("pod.namespace_labels", spec.namespace_selector if namespaces is not None else None)
        applies_to = self._condition(spec.applies_to, "appliesTo", "pod")
        self._lets = _where(applies_to, self._lets)
        filters, scores = self._filters(spec.filters), self._scores(spec.scores)
        guard, placement = self._preemption(), self._placement()
        return self._finish(
            CompiledPolicy(
                self._policy.key,
                self._generation,
                spec,
                pods,
                namespaces,
                applies_to,
                filters,
                scores,
                preemption=guard,
                placement=placement,
            )
        )

    def _finish(self, compiled: CompiledPolicy) -> CompilationResult:
        self._warn_of_parts_without_effect(compiled)
        cost = policy_cost((*compiled.programs, *compiled.placement_programs), compiled.guard_programs)
        over = check_cost(cost)
        if over is not None:
            self._report("spec", over)
        broken = any(one.severity == "error" for one in self._found)
        policy = None if broken else replace(compiled, units=units_of(compiled))
        # the number of rejected policies is unlimited, so their texts are not cached
        texts = CompiledTexts() if policy is None else CompiledTexts(self._declarations, self._texts)
        return CompilationResult(policy, tuple(self._found), cost, texts)

    def _warn_of_parts_without_effect(self, compiled: CompiledPolicy) -> None:
        """Warn of unused names, of a policy without rules, of selectors that match nothing, and of weights of 0."""
        if any(one.severity == "error" for one in self._found):
            return
        spec = self._spec
        for index, let in enumerate(spec.let):
            if let.name not in self._lets.used:
                found = diagnose("W0709", let.name, Span(0, len(let.name)), name=let.name)
                self._report(f"spec.let[{index}].name", found)
        self._warn_of_metrics(compiled)
        if not spec.filters and not spec.scores and spec.preemption is None and spec.placement is None:
            self._report("spec", diagnose("W0710", "", Span(0, 0)))
        for name, selector in (("podSelector", spec.pod_selector), ("namespaceSelector", spec.namespace_selector)):
            key = None if selector is None else contradicted(selector)
            if key is not None:
                found = diagnose("W0713", "", Span(0, 0), name="pod" if name == "podSelector" else "namespace", key=key)
                self._report(f"spec.{name}", found)
        self._warn_of_weights()

    def _warn_of_metrics(self, compiled: CompiledPolicy) -> None:
        """Warn of metrics that no rule and no `let` line reads; unused `let` lines have a warning of their own."""
        lets = (root for root in self._lets.lets.values() if root is not None)
        read = chain(compiled.inputs, *(root.inputs for root in lets))
        used = {item.path[0] for item in read if item.root == "metrics"}
        for index, metric in enumerate(self._spec.metrics):
            if metric.name not in used:
                found = diagnose("W0709", metric.name, Span(0, len(metric.name)), name=metric.name)
                self._report(f"spec.metrics[{index}].name", found)

    def _warn_of_weights(self) -> None:
        """Warn of scores with weight 0, and of a tier without scores."""
        spec = self._spec
        if spec.tier and not spec.scores:
            self._report("spec.tier", diagnose("W0712", "", Span(0, 0)))
        if spec.scores and not spec.weight:
            self._report("spec.weight", diagnose("W0711", "0", Span(0, 1), "policy"))
        for index, score in enumerate(spec.scores):
            if spec.weight and not score.weight:
                self._report(f"spec.scores[{index}].weight", diagnose("W0711", "0", Span(0, 1)))

    def _is_too_large(self) -> bool:
        """Report which limits of size the policy exceeds; return whether it exceeds any limit."""
        spec = self._spec
        selectors = [one for one in (spec.pod_selector, spec.namespace_selector) if one is not None]
        counts = (
            ("requirements in its selectors", requirement_count(spec), MAX_REQUIREMENTS),
            ("values in its selectors", _values(selectors), MAX_VALUES),
            ("rules", len(spec.filters) + len(spec.scores) + len(_placement_rules(spec)), MAX_RULES),
            ("`let` names", len(spec.let), MAX_LETS),
            ("metrics", len(spec.metrics), MAX_METRICS),
            ("characters in its expressions", sum(map(len, _texts(spec))), MAX_CHARACTERS),
        )
        over = [one for one in counts if one[1] > one[2]]
        for kind, number, limit in over:
            self._report("spec", diagnose("E0601", "", Span(0, 0), "size", number=number, kind=kind, limit=limit))
        return bool(over)

    def _define_lets(self) -> None:
        texts = [(let.name, str(let.value)) for let in self._spec.let]
        for index, (let, known) in enumerate(each_let(texts, self._lets)):
            self._report(f"spec.let[{index}].name", *let.name_diagnostics)
            self._report(f"spec.let[{index}].value", *let.value.diagnostics)
            self._lets = known

    def _names(self) -> None:
        spec = self._spec
        name = self._policy.metadata.name
        if name and not is_label_name(name):
            self._report("metadata.name", _misnamed("policies", name))
        for index, own in enumerate(spec.scheduler_names):
            if not own.strip():
                found = finding("E0312", "the scheduler name is empty", len(own), _SCHEDULERS)
                self._report(f"spec.schedulerNames[{index}]", found)
        for place, text in _plain_texts(spec):
            if is_template(text):
                self._report(f"spec.{place}", diagnose("W0714", text, Span(0, len(text)), "template"))
        self._unique("filters", [rule.name for rule in spec.filters])
        self._unique("scores", [rule.name for rule in spec.scores])
        if spec.placement is not None:
            self._unique("placement.filters", [rule.name for rule in spec.placement.filters])
            self._unique("placement.scores", [rule.name for rule in spec.placement.scores])
        if spec.preemption is not None and not is_label_name(spec.preemption.name):
            self._report("spec.preemption.name", _misnamed("rules", spec.preemption.name))

    def _unique(self, kind: str, names: Sequence[str]) -> None:
        for index, name in enumerate(names):
            place = f"spec.{kind}[{index}].name"
            if not is_label_name(name):
                self._report(place, _misnamed("rules", name))
            elif name in names[:index]:
                self._report(place, finding("E0208", f'two {kind} have the name "{name}"', len(name)))

    def _filters(self, rules: Sequence[FilterRule], within: str = "") -> tuple[CompiledFilter, ...]:
        """Compile the filters of `spec`, or those of `spec.placement` if `within` is `placement.`."""
        made = []
        phases = ("group", "placement") if within else ("pod", "filter")
        for index, rule in enumerate(rules):
            field = f"{within}filters[{index}]"
            when = self._condition(rule.when, f"{field}.when", phases[0])
            require = self._condition(rule.require, f"{field}.require", phases[1], when)
            if require is not None:
                made.append(compiled_filter(rule.name, when, require, rule.message))
        return tuple(made)

    def _scores(self, rules: Sequence[ScoreRule], within: str = "") -> tuple[CompiledScore, ...]:
        """Compile the scores of `spec`, or those of `spec.placement` if `within` is `placement.`."""
        made = (self._score(f"{within}scores[{index}]", rule) for index, rule in enumerate(rules))
        return tuple(rule for rule in made if rule is not None)

    def _placement(self) -> CompiledPlacement | None:
        """Compile `spec.placement`, the rules about candidate placements of pod groups."""
        rules = self._spec.placement
        if rules is None:
            return None
        if rules.topology_key and not is_qualified_name(rules.topology_key):
            text = f'"{rules.topology_key}" is not the key of a label'
            self._report("spec.placement.topologyKey", finding("E0312", text, len(rules.topology_key), _KEYS))
        filters, scores = (self._filters(rules.filters, "placement."), self._scores(rules.scores, "placement."))
        return CompiledPlacement(rules.topology_key, filters, scores)

    def _preemption(self) -> CompiledFilter | None:
        """Compile `spec.preemption`, the condition that victims of preemption must meet."""
        rule = self._spec.preemption
        if rule is None:
            return None
        require = self._condition(rule.require, "preemption.require", "preemption")
        return None if require is None else compiled_filter(rule.name, None, require, rule.message)

    def _score(self, field: str, rule: ScoreRule) -> CompiledScore | None:
        of_placement = field.startswith("placement.")
        when = self._condition(rule.when, f"{field}.when", "group" if of_placement else "pod")
        takes_maximum = rule.normalize == "Max"
        phase: Phase = "placement" if of_placement else "score"
        environment = replace(self._lets, phase=phase, normalized=takes_maximum)
        value = self._value(rule, field, _where(when, environment))
        if value is None:
            return None
        missing = 0.0 if value.missing_arm is None else value.missing_arm
        return CompiledScore(rule.name, rule.weight, when, value, takes_maximum, missing, value.missing_arm is not None)

    def _value(self, rule: ScoreRule, field: str, environment: Environment) -> Program | None:
        if bool(rule.cases) == (rule.value is not None):
            text = "a score needs either `cases` or `value`" + (", not both" if rule.cases else "")
            self._report(f"spec.{field}", finding("E0501", text))
            return None
        if rule.value is not None:
            return self._take(f"spec.{field}.value", self._expression(str(rule.value), environment, Want.NUMBER))
        compiled = self._cases(tuple(rule.cases), environment)
        for one in compiled.diagnostics:
            self._report(f"spec.{field}.cases" + (f"[{one.case}]" if one.case is not None else ""), one)
        return self._bind(compiled.program)

    def _condition(self, text: str | None, field: str, phase: Any, when: Program | None = None) -> Program | None:
        if text is None:
            return None
        environment = _where(when, replace(self._lets, phase=phase))
        return self._take(f"spec.{field}", self._expression(text, environment, Want.CONDITION))

    def _expression(self, text: str, environment: Environment, want: Want) -> Compiled:
        key = (text, want, environment.phase, environment.normalized, environment.present)
        compiled = self._reused(key)
        if compiled is None:
            own = replace(environment, used=set())
            compiled = self._stored(key, compile_expression(text, own, want), own.used)
        return compiled

    def _cases(self, lines: tuple[str, ...], environment: Environment) -> Compiled:
        key = (lines, environment.phase, environment.normalized, environment.present)
        compiled = self._reused(key)
        if compiled is None:
            own = replace(environment, used=set())
            compiled = self._stored(key, compile_cases(lines, own), own.used)
        return compiled

    def _reused(self, key: Hashable) -> Compiled | None:
        """Return how an earlier generation compiled a text; None if the text is new."""
        known = self._reusable.get(key)
        return None if known is None else self._stored(key, *known)

    def _stored(self, key: Hashable, compiled: Compiled, used: AbstractSet[str]) -> Compiled:
        self._texts[key] = CompiledText(compiled, used)
        self._lets.used.update(used)
        return compiled

    def _take(self, field: str, compiled: Compiled) -> Program | None:
        self._report(field, *compiled.diagnostics)
        return self._bind(compiled.program)

    def _bind(self, program: Program | None) -> Program | None:
        return None if program is None else self._metrics.bind(program)

    def _selector(self, field: str, selector: LabelSelector | None) -> LabelMatcher | None:
        if selector is None:
            return None
        try:
            return compile_selector(selector)
        except SelectorError:
            for part, message in _selector_faults(selector):
                hint = _VALUES if "values set can't be empty" in message else None
                hint = _OPERATORS if part.endswith("operator") else hint
                self._report(f"spec.{field}.{part}", finding("E0312", message, help_text=hint))
            return None

    def _require_labels(self, labels: str, selector: LabelSelector | None) -> None:
        """Record for expressions that read labels that each selected pod or namespace has the selector's labels."""
        if selector is None:
            return
        stated = (one.key for one in selector.match_expressions if one.operator in {"In", "Exists"})
        read = "\n".join(_texts(self._spec))
        for key in {*selector.match_labels, *stated}:
            if f'"{key}"' in read:
                has = compile_expression(f'has({labels}["{key}"])', Environment(phase="pod"))
                self._lets = _where(has.program, self._lets)

    def _report(self, field: str, *diagnostics: Diagnostic) -> None:
        self._found += [replace(one, field=field) for one in diagnostics]


def _where(condition: Program | None, environment: Environment) -> Environment:
    """Return the environment of a text that is evaluated only if a condition is true, so that its inputs exist."""
    if condition is None:
        return environment
    return replace(environment, present=environment.present | required(condition.root))


def _selector_faults(selector: LabelSelector) -> Iterator[tuple[str, str]]:
    """Return field and message of each invalid label and requirement of a selector."""
    parts = [("matchLabels", LabelSelector(match_labels={key: value})) for key, value in selector.match_labels.items()]
    for index, one in enumerate(selector.match_expressions):
        parts.append((f"matchExpressions[{index}]", LabelSelector(match_expressions=(one,))))
    for part, single in parts:
        try:
            compile_selector(single)
        except SelectorError as error:
            yield part + ".operator" * ("selector operator" in str(error)), str(error)


def _values(selectors: Iterable[LabelSelector]) -> int:
    return sum(len(one.values) for selector in selectors for one in selector.match_expressions)


def _texts(spec: PolicySpec) -> Iterator[str]:
    """Return all expressions of a policy."""
    yield spec.applies_to or ""
    yield "" if spec.preemption is None else spec.preemption.require
    for let in spec.let:
        yield str(let.value)
    placement = spec.placement or PlacementRules()
    for rule in (*spec.filters, *placement.filters):
        yield from (rule.when or "", rule.require)
    for score in (*spec.scores, *placement.scores):
        yield from (score.when or "", "" if score.value is None else str(score.value), *score.cases)


def _placement_rules(spec: PolicySpec) -> Sequence[FilterRule | ScoreRule]:
    return () if spec.placement is None else (*spec.placement.filters, *spec.placement.scores)


def _plain_texts(spec: PolicySpec) -> Iterator[tuple[str, str]]:
    """Yield the texts of a policy other than expressions and names of rules, each with its field."""
    for index, own in enumerate(spec.scheduler_names):
        yield f"schedulerNames[{index}]", own
    placement = spec.placement or PlacementRules()
    for place, rules in (("filters", spec.filters), ("placement.filters", placement.filters)):
        for index, rule in enumerate(rules):
            yield f"{place}[{index}].message", rule.message or ""
    yield "preemption.message", "" if spec.preemption is None else spec.preemption.message or ""
    for index, metric in enumerate(spec.metrics):
        yield from ((f"metrics[{index}].query", metric.query), (f"metrics[{index}].nodeLabel", metric.node_label))


def _misnamed(kind: str, name: str) -> Diagnostic:
    rule = (
        f"names of {kind} have at most 63 lower-case letters, digits and `-`, and begin and end with a letter or digit"
    )
    return finding("E0208", f'"{name}" is not a DNS label', len(name), rule)
