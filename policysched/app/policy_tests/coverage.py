"""Coverage of policies by tests: the values that parts of expressions had on the nodes and pods of tests.

After each decision the parts of a policy's expressions are evaluated again in the policy's own context, by the same
kernels. Required are: conditions that were true and false, optional inputs that were present and missing, arms of cases
that were chosen, and values that were computed. A part counts only if the rule applies to the pod, an arm only if no
earlier guard held, a score only on feasible nodes. Runs without coverage have no extra cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from policysched.app.policy_tests.instrumented import ObservedPart, ObservedText, Side, instrumented
from policysched.framework import RowNumbers
from policysched.language.evaluation.columns import evaluate_columns, missing_rows
from policysched.language.evaluation.frames import Frame
from policysched.language.ir.graph import Typed, per_graph, steps
from policysched.language.ir.tree import Keyword
from policysched.language.ir.types import Kind
from policysched.model.policy import Policy, PolicyKey, PolicySpec
from policysched.reading.documents import Document
from policysched.reading.positions import SourcePosition
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.guard import guard_of, possible_victims
from policysched.rules.shared_values.context import RuleFrame
from policysched.rules.shared_values.pod_aggregates import PeerFrame, VictimFrame
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.record import feasible_nodes

MARKS: Final[Mapping[Side, str]] = {
    Side.TRUE: "never true",
    Side.FALSE: "never false",
    Side.PRESENT: "never present",
    Side.MISSING: "never missing",
    Side.TAKEN: "never taken",
    Side.EVALUATED: "never evaluated",
}


@dataclass(slots=True)
class PolicyCoverage:
    """Coverage of one policy: the outcomes of its expressions that tests caused, and the outcomes that tests missed."""

    file: str
    policy: PolicyKey
    spec: PolicySpec
    texts: tuple[ObservedText, ...]
    seen: set[tuple[str, ObservedPart]] = field(default_factory=set)
    """Outcomes that occurred in tests, each with the field of its expression."""
    explained: set[str] = field(default_factory=set)
    """Descriptions of missed outcomes that the test file declares as unreachable."""
    document: Document | None = None
    """YAML document of the policy, for the positions of its expressions; None without a file."""

    @property
    def total(self) -> int:
        """Number of outcomes, without missed outcomes that are declared as unreachable."""
        return self.covered + sum(len(self.missed(text)) for text in self.texts)

    @property
    def covered(self) -> int:
        """Number of outcomes that occurred in tests."""
        return len(self.seen)

    def missed(self, text: ObservedText) -> list[ObservedPart]:
        """Return the outcomes of an expression that did not occur in tests and are not declared as unreachable."""
        return [part for part in self._unseen(text) if self.statement(text, part) not in self.explained]

    def missed_places(self) -> list[tuple[str, SourcePosition | None]]:
        """Return a statement about each missed outcome, with the position of its expression in the file."""
        missed = [(text, part) for text in self.texts for part in self.missed(text)]
        return [(self.statement(text, part), self._place(text, part)) for text, part in missed]

    def _place(self, text: ObservedText, part: ObservedPart) -> SourcePosition | None:
        if self.document is None:
            return None
        *above, line = text.text[: part.span.start].split("\n")
        return self.document.place(text.field, len(above) + 1, len(line) + 1)

    def unseen(self) -> set[str]:
        """Return statements about all outcomes that did not occur, also about unreachable outcomes."""
        return {self.statement(text, part) for text in self.texts for part in self._unseen(text)}

    def statement(self, text: ObservedText, part: ObservedPart) -> str:
        """Return a one-line statement that an outcome did not occur, such as `… never true`."""
        words = " ".join(text.text[part.span.start : part.span.end].split())
        return f"{self.policy}: {text.field}: {words} {MARKS[part.side]}"

    def _unseen(self, text: ObservedText) -> list[ObservedPart]:
        return [part for part in text.parts if (text.field, part) not in self.seen]

    def to_dict(self) -> dict[str, Any]:
        """Return the coverage as plain values; columns count from 1, ends are exclusive."""
        return {
            "file": self.file,
            "policy": self.policy,
            "covered": self.covered,
            "total": self.total,
            "percent": percent(self.covered, self.total),
            "texts": [self._text(text) for text in self.texts],
        }

    def _text(self, text: ObservedText) -> dict[str, Any]:
        parts = [
            {
                "begin": part.span.start, "end": part.span.end, "text": text.text[part.span.start : part.span.end],
                "side": part.side.value, "covered": (text.field, part) in self.seen,
            }
            for part in text.parts
        ]  # fmt: skip
        return {"field": text.field, "text": text.text, "parts": parts}

    def lines(self) -> list[str]:
        """Return the number of covered outcomes, and expressions with missed outcomes marked, as lines for people."""
        said = [f"{self.policy} ({self.file}): {self.covered} of {self.total} outcomes covered"]
        for text in self.texts:
            missed = self.missed(text)
            if missed:
                said += [f"  {text.field}", *(f"    {line}" for line in _marked(text.text, missed))]
        return said


def percent(covered: int, total: int) -> float:
    """Return a percentage with one decimal; 100 only if `covered` reaches `total`."""
    return 100.0 if covered >= total else min(99.9, round(100 * covered / total, 1))


def _marked(text: str, missed: Sequence[ObservedPart]) -> Iterator[str]:
    """Yield the lines of an expression with marks under the part of each missed outcome."""
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        here = [part for part in missed if start <= part.span.start <= end]
        yield line
        spans: dict[tuple[int, int], list[str]] = {}
        for part in here:
            width = max(1, min(part.span.end, end) - part.span.start)
            spans.setdefault((part.span.start - start, width), []).append(MARKS[part.side])
        for (column, width), marks in sorted(spans.items()):
            yield f"{' ' * column}{'^' * width} {', '.join(dict.fromkeys(marks))}"
        start = end + 1


class CoverageObserver:
    """Observes the decisions of tests for registered policies."""

    def __init__(self) -> None:
        self.policies: list[PolicyCoverage] = []
        self.explained: dict[str, str] = {}
        """Reasons why tests cannot reach parts of policies, by statement about the part."""

    def register(self, policy: Policy, file: str, document: Document | None = None) -> None:
        """Register a policy of a file for observation."""
        if self._find(policy.key, policy.spec, file) is None:
            texts = instrumented(policy.spec)
            self.policies.append(PolicyCoverage(file, policy.key, policy.spec, texts, document=document))

    def observe(self, decision: Decision, acting: Sequence[ActivePolicy]) -> None:
        """Record the outcomes that a decision causes in the expressions of the registered policies."""
        if decision.failed:
            return
        for one in acting:
            for found in self.policies:
                if found.policy == one.policy.key and found.spec == one.policy.spec:
                    _Observation(found, one, decision).note()

    def close(self) -> list[str]:
        """Apply the declarations of unreachable outcomes; return declarations that match no missed outcome."""
        for one in self.policies:
            one.explained = self.explained.keys() & one.unseen()
        return [one for one in self.explained if not any(one in policy.explained for policy in self.policies)]

    def _find(self, key: PolicyKey, spec: PolicySpec, file: str) -> PolicyCoverage | None:
        known = (one for one in self.policies if one.policy == key and one.file == file and one.spec == spec)
        return next(known, None)


class _Observation:
    """Evaluates the parts of one policy's expressions for one decision."""

    def __init__(self, found: PolicyCoverage, active: ActivePolicy, decision: Decision) -> None:
        self._found, self._active, self._decision = found, active, decision
        self._context = active.context(decision.cluster)
        self._inputs = self._context.inputs(decision.pod)
        self._feasible = feasible_nodes(decision)
        self._texts = {text.field: text for text in found.texts}

    def note(self) -> None:
        """Record the outcomes that the decision causes in the policy's expressions."""
        active, pod, context = self._active, self._decision.pod, self._context
        selection = active.selection
        if selection.unselected(pod, context.cluster):
            return
        alone = context.plain(self._inputs)
        self._text("spec.appliesTo", alone)
        if not _may_hold(active, alone):
            return
        filters = active.filters_for(pod, context)
        everything = np.flatnonzero(self._decision.cluster.nodes.present.data[: self._decision.cluster.nodes.size])
        rows = self._frame(everything)
        for index, one in enumerate(active.filter_rows):
            self._text(f"spec.filters[{index}].when", alone)
            if one in filters:
                self._text(f"spec.filters[{index}].require", rows, one.rule.written.root)
        self._scores()
        self._victims()

    def _scores(self) -> None:
        speaking = self._active.scores_for(self._decision.pod, self._context)
        alone = self._context.plain(self._inputs)
        rows = np.flatnonzero(self._feasible)
        for index, one in enumerate(self._active.score_rows):
            self._text(f"spec.scores[{index}].when", alone)
            if one in speaking and rows.size:
                frame = self._frame(rows)
                self._text(f"spec.scores[{index}].value", frame, one.root)
                self._cases(f"spec.scores[{index}].cases", rows, one.root)

    def _cases(self, field: str, rows: RowNumbers, root: Typed) -> None:
        """Record the cases of a score: a guard where no earlier guard is true, a value where its guard is true."""
        left = rows
        cases = [text for text in self._found.texts if text.field.startswith(f"{field}[")]
        if cases:
            self._lets(root, self._frame(rows))
        for text in cases:
            guard = text.guard
            if guard is Keyword.MISSING:
                value = np.broadcast_to(evaluate_columns(root, self._frame(rows)), rows.shape)
                self._taken(text, rows[np.isnan(value)])
            elif guard is Keyword.ELSE:
                self._taken(text, left)
            elif left.size and guard is not None:
                frame = self._frame(left)
                true, unknown = (np.broadcast_to(one, left.shape) for one in evaluate_columns(guard, frame))
                self._parts(text, frame, guards=True)
                self._taken(text, left[true])
                left = left[~true & ~unknown]

    def _taken(self, text: ObservedText, rows: RowNumbers) -> None:
        if rows.size:
            self._parts(text, self._frame(rows), guards=False)

    def _victims(self) -> None:
        guard, pod = guard_of(self._active), self._decision.pod
        if guard is None or self._feasible.any() or not guard.applies_to(pod, self._context):
            return
        victims = possible_victims(pod, self._context.cluster)
        if victims.size:
            frame = VictimFrame(victims, self._inputs, self._context)
            self._text("spec.preemption.require", frame, guard.root)

    def _frame(self, rows: RowNumbers) -> RuleFrame:
        return RuleFrame(self._context, self._inputs, rows)

    def _text(self, field: str, frame: Frame, root: Typed | None = None) -> None:
        """Record the covered parts of a text, and of the `let` texts that the text uses, on the rows of a frame."""
        text = self._texts.get(field)
        if text is not None:
            self._parts(text, frame)
            self._lets(text.root if root is None else root, frame)

    def _lets(self, root: Typed | None, frame: Frame) -> None:
        graphs: frozenset[Typed] = frozenset() if root is None else _all_nodes(root)
        for text in self._found.texts:
            if text.field.startswith("spec.let[") and text.root in graphs:
                self._parts(text, frame)

    def _parts(self, text: ObservedText, frame: Frame, *, guards: bool | None = None) -> None:
        for part in text.parts:
            if (text.field, part) in self._found.seen or (guards is not None and part.in_guard is not guards):
                continue
            if _comes_about(part, self._frame_for(part, frame)):
                self._found.seen.add((text.field, part))

    def _frame_for(self, part: ObservedPart, frame: Frame) -> Frame:
        """Return the rows on which a part is evaluated: the current rows, all nodes, or all placed pods."""
        cluster = self._decision.cluster
        if part.over == "nodes":
            return self._frame(np.flatnonzero(cluster.nodes.present.data[: cluster.nodes.size]))
        if part.over == "pods":
            return PeerFrame(np.flatnonzero(cluster.pods.rows >= 0), self._inputs, self._context)
        return frame


def _may_hold(active: ActivePolicy, alone: RuleFrame) -> bool:
    """Return whether a policy's selection of pods is true or unknown for a pod; unknown rejects all nodes."""
    program = active.policy.applies_to
    return program is None or any(map(bool, evaluate_columns(program.root, alone)))


@per_graph
def _all_nodes(root: Typed) -> frozenset[Typed]:
    return frozenset(steps(root, inner=True))


def _comes_about(part: ObservedPart, frame: Frame) -> bool:
    """Return whether an outcome occurs: a part of an expression has the required value on at least one row."""
    if part.graph is None or part.side is Side.EVALUATED:
        return part.graph is None or frame.rows > 0
    if part.over != "rows" and not frame.rows:
        return False
    value = evaluate_columns(part.graph, frame)
    if part.graph.type.kind is Kind.BOOL:
        true, unknown = np.asarray(value[0]), np.asarray(value[1])
        return bool((true if part.side is Side.TRUE else ~(true | unknown)).any())
    missing = np.asarray(missing_rows(part.graph, frame))
    return bool((missing if part.side is Side.MISSING else ~missing).any())
