"""Mutation testing: finds changes of a policy that its tests do not notice.

Each mutant replaces its policy, and the tests of the file run until one fails. An unnoticed change shows a missing
test, or is irrelevant; irrelevant ones are explained in the file (`mutants`). An explanation of a noticed or
nonexistent change is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from policysched.app.policy_tests.mutants import Mutant, mutants
from policysched.app.policy_tests.running import LoadedTest, PolicyTestOptions, run_test
from policysched.reading.documents import Document
from policysched.reading.positions import SourcePosition


@dataclass(slots=True)
class MutationReport:
    """Results of the mutants of one test file."""

    file: str
    noticed: int = 0
    unnoticed: list[str] = field(default_factory=list)
    explained: dict[str, str] = field(default_factory=dict)
    """Reasons why tests need not notice a change, by change."""
    wrong: list[str] = field(default_factory=list)
    """Explanations that do not match an unnoticed change."""
    untried: int = 0
    """Number of mutants not tried for lack of time."""
    places: dict[str, tuple[str, SourcePosition]] = field(default_factory=dict)
    """File, line and column of the changed part, by unnoticed change."""
    skipped: str = ""
    """Reason why no mutant was tried; empty otherwise."""

    @property
    def total(self) -> int:
        """Number of mutants."""
        return self.noticed + len(self.unnoticed) + len(self.explained) + self.untried

    @property
    def passed(self) -> bool:
        """Whether every mutant is noticed or explained."""
        return not (self.unnoticed or self.wrong or self.untried)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "file": self.file, "total": self.total, "noticed": self.noticed, "unnoticed": self.unnoticed,
            "explained": self.explained, "wrongExplanations": self.wrong, "untried": self.untried,
            **({"skipped": self.skipped} if self.skipped else {}),
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return the report as lines for people."""
        if self.skipped:
            return [f"{self.file}: mutation skipped: {self.skipped}"]
        parts = [f"{self.noticed} of {self.total} changes noticed"]
        parts += [f"{len(self.explained)} explained"] if self.explained else []
        parts += [f"{self.untried} not tried"] if self.untried else []
        said = [f"{self.file}: {', '.join(parts)}"]
        said += [f"  not noticed: {change}" for change in self.unnoticed]
        return said + [
            f"  `mutants` names a change that does not exist or is noticed: {change}" for change in self.wrong
        ]


def mutate(
    report: MutationReport,
    tests: Sequence[LoadedTest],
    options: PolicyTestOptions,
    before: Callable[[str], bool],
) -> None:
    """Try the mutants of a file's policies in order and record the results.

    Args:
        report: Receives the results.
        tests: The tests of the file, which pass.
        options: Options of the tests.
        before: Called with the change before each mutant is tried; returns whether there is time for it.
    """
    source = tests[0].source
    reasons = {one.change: one.reason for one in source.written.mutants}
    documents = {id(one): one for test in tests for one in test.policies}
    tried = [(document, mutant) for document in documents.values() for mutant in mutants(document.object)]
    report.untried = len(tried)
    for document, mutant in tried:
        if not before(mutant.change):
            return
        noticed = _is_noticed(document, mutant, tests, options)
        report.untried -= 1
        if noticed:
            report.noticed += 1
        elif mutant.change in reasons:
            report.explained[mutant.change] = reasons[mutant.change]
        else:
            report.unnoticed.append(mutant.change)
            report.places[mutant.change] = document.file, document.place(mutant.field)
    report.wrong = [change for change in reasons if change not in report.explained]


def _is_noticed(document: Document, mutant: Mutant, tests: Sequence[LoadedTest], options: PolicyTestOptions) -> bool:
    for test in tests:
        if document in test.policies:
            policies = [mutant.changed if one is document else one.object for one in test.policies]
            if not run_test(test, options, policies).passed:
                return True
    return False
