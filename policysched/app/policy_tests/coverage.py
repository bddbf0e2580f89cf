"""Coverage of policies by tests: the values that parts of expressions had on the nodes and pods of tests.

Required are: conditions that were true and false, optional inputs that were present and missing, arms of cases that
were chosen, and values that were computed. Runs without coverage have no extra cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from policysched.app.policy_tests.instrumented import ObservedPart, ObservedText, Side, instrumented
from policysched.app.policy_tests.observations import DecisionObservation, PlacementObservation
from policysched.framework.pod_groups import PodGroupContext
from policysched.model.policy import Policy, PolicyKey, PolicySpec
from policysched.reading.documents import Document
from policysched.reading.positions import SourcePosition
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.groups.cycle import TriedPlacement

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
    """Coverage of one policy: the outcomes of its expressions, such as true or false, that tests caused and missed."""

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
        """Return an expression's outcomes that did not occur in tests and are not declared as unreachable."""
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
        if not decision.failed:
            for found, one in self._registered(acting):
                DecisionObservation(found.texts, found.seen, one, decision).note()

    def observe_placements(
        self, group: PodGroupContext, tried: Sequence[TriedPlacement], acting: Sequence[ActivePolicy]
    ) -> None:
        """Record the outcomes that the placements of a pod group cause in the rules of the registered policies.

        Args:
            group: The pod group; no pod of the attempt has a node.
            tried: The placements on which the group was tried.
            acting: The policies in force.
        """
        for found, one in self._registered(acting):
            PlacementObservation(found.texts, found.seen, one, group).note(tried)

    def close(self) -> list[str]:
        """Apply the declarations of unreachable outcomes; return declarations that match no missed outcome."""
        for one in self.policies:
            one.explained = self.explained.keys() & one.unseen()
        return [one for one in self.explained if not any(one in policy.explained for policy in self.policies)]

    def _registered(self, acting: Sequence[ActivePolicy]) -> Iterator[tuple[PolicyCoverage, ActivePolicy]]:
        """Yield each registered policy that is in force."""
        for one in acting:
            for found in self.policies:
                if found.policy == one.policy.key and found.spec == one.policy.spec:
                    yield found, one

    def _find(self, key: PolicyKey, spec: PolicySpec, file: str) -> PolicyCoverage | None:
        known = (one for one in self.policies if one.policy == key and one.file == file and one.spec == spec)
        return next(known, None)
