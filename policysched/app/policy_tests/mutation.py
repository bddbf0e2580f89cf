"""Mutation: which changes of a policy its tests would not notice.

Each mutant of the policies of a file is put in the place of its policy, and the tests of the file are run until one
fails. A change that none notices is either something to test, or changes nothing that matters; the second is explained
in the file (`mutants`), and an explanation of what is noticed after all, or is no change any more, is wrong.
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
    """What the tests of one file noticed of its policies' mutants."""

    file: str
    noticed: int = 0
    unnoticed: list[str] = field(default_factory=list)
    explained: dict[str, str] = field(default_factory=dict)
    """The reason for each change that no test needs to notice."""
    wrong: list[str] = field(default_factory=list)
    """Explanations of what is no unnoticed change."""
    untried: int = 0
    """How many there was no time for."""
    places: dict[str, tuple[str, SourcePosition]] = field(default_factory=dict)
    """Where what was changed stands, by unnoticed change: file, line and column."""
    skipped: str = ""
    """Why no change was tried; empty if changes were tried."""

    @property
    def total(self) -> int:
        """How many mutants there are."""
        return self.noticed + len(self.unnoticed) + len(self.explained) + self.untried

    @property
    def passed(self) -> bool:
        """Whether every change is noticed or explained."""
        return not (self.unnoticed or self.wrong or self.untried)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a plain value."""
        return {
            "file": self.file, "total": self.total, "noticed": self.noticed, "unnoticed": self.unnoticed,
            "explained": self.explained, "wrongExplanations": self.wrong, "untried": self.untried,
            **({"skipped": self.skipped} if self.skipped else {}),
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return it for people."""
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
    """Try the mutants of the policies of a file, in their order, and write down what came of each.

    Args:
        report: Takes what came of them.
        tests: The tests of the file, which pass.
        options: What they are run with.
        before: Takes the change of each mutant before it is tried, and tells whether there is time for it.
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
