"""A run of many files: which tests are chosen, what came of them, and what it all comes to.

A file that cannot be read or a policy that does not compile does not keep other files from being run. An interruption
ends a run at once, with what is known by then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from policysched.app.policy_tests.reading import PolicyTestSource, read_tests
from policysched.app.policy_tests.running import LoadedTest, PolicyTestOptions, PolicyTestResult, load_tests, run_test
from policysched.errors import UsageError

INTERRUPTED: Final = 130
Choose: TypeAlias = Callable[[str], bool]
_WORD: Final = re.compile(r"\s*(?:(?P<sign>[()])|(?P<word>[^\s()]+))")


@dataclass(slots=True)
class PolicyTestRun:
    """What came of files of tests."""

    results: list[PolicyTestResult] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is wrong with files, one line each."""
    files: int = 0
    left_out: int = 0
    """How many tests were not chosen, or not run after a failure."""
    interrupted: bool = False

    @property
    def failed(self) -> list[PolicyTestResult]:
        """The tests that did not come as expected, or could not be run."""
        return [one for one in self.results if not one.passed]

    @property
    def passed(self) -> bool:
        """Whether all is well."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 where all tests passed, 1 where some failed, 2 where a file is broken, 130 after an interruption."""
        if self.interrupted:
            return INTERRUPTED
        if self.problems or any(one.problem for one in self.results):
            return 2
        return int(bool(self.failed))

    def summary(self) -> str:
        """Say in one line what it comes to."""
        failed = len(self.failed)
        parts = [f"{len(self.results) - failed} passed"]
        parts += [f"{failed} failed"] if failed else []
        parts += [f"{self.left_out} not run"] if self.left_out else []
        parts += [f"{len(self.problems)} broken"] if self.problems else []
        said = f"{', '.join(parts)} in {self.files} {'file' if self.files == 1 else 'files'}"
        return f"interrupted: {said}" if self.interrupted else said

    def to_dict(self) -> dict[str, Any]:
        """Return it as a plain value."""
        return {
            "passed": len(self.results) - len(self.failed),
            "failed": len(self.failed),
            "notRun": self.left_out,
            "problems": self.problems,
            "interrupted": self.interrupted,
            "tests": [one.to_dict() for one in self.results],
        }


@dataclass(frozen=True, slots=True)
class RunChoices:
    """Which tests are run, and who hears of them."""

    chosen: Choose = lambda _: True
    fail_fast: bool = False
    on_test: Callable[[str], object] = id
    """Takes the name of each test before it is run."""


def run_files(files: Iterable[Path], options: PolicyTestOptions, choices: RunChoices) -> PolicyTestRun:
    """Run files of tests.

    Args:
        files: The files.
        options: What tests are run with.
        choices: Which are run.
    """
    run = PolicyTestRun()
    try:
        for source in _sources(files, run):
            run_source(source, run, options, choices)
    except KeyboardInterrupt:
        run.interrupted = True
    return run


def _sources(files: Iterable[Path], run: PolicyTestRun) -> Iterator[PolicyTestSource]:
    for file in files:
        run.files += 1
        try:
            yield read_tests(file)
        except UsageError as error:
            run.problems.append(str(error))


def run_source(source: PolicyTestSource, run: PolicyTestRun, options: PolicyTestOptions, choices: RunChoices) -> None:
    """Run the tests of one file and add what came of them to a run."""
    try:
        tests = load_tests(source)
    except UsageError as error:
        run.problems.append(str(error))
        return
    for test in tests:
        if not choices.chosen(test.name) or (choices.fail_fast and run.failed):
            run.left_out += 1
            continue
        choices.on_test(test.name)
        run.results.append(run_test(test, options))


def chosen_tests(files: Iterable[Path], choices: RunChoices, run: PolicyTestRun) -> list[list[LoadedTest]]:
    """Return the chosen tests of files, file by file; what is wrong with a file goes to the run."""
    found = []
    for source in _sources(files, run):
        try:
            found.append([one for one in load_tests(source) if choices.chosen(one.name)])
        except UsageError as error:
            run.problems.append(str(error))
    return found


def keyword(expression: str) -> Choose:
    """Return what chooses names by an expression: parts of names with `and`, `or`, `not` and brackets.

    Raises:
        UsageError: it is no such expression.
    """
    found = [match["sign"] or match["word"] for match in _WORD.finditer(expression)]
    parser = _Keywords(found)
    choose = parser.alternatives() if found else None
    if choose is None or parser.rest:
        raise UsageError(f'-k: expected parts of names with and, or, not and brackets, got "{expression}"')
    return choose


class _Keywords:
    """Parses an expression over parts of names."""

    def __init__(self, words: list[str]) -> None:
        self.rest = words

    def alternatives(self) -> Choose | None:
        """Return what an `or` chooses, None where something else stands there."""
        return self._joined("or", lambda: self._joined("and", self._one, all), any)

    def _joined(
        self, word: str, part: Callable[[], Choose | None], join: Callable[[Iterable[bool]], bool]
    ) -> Choose | None:
        parts = [part()]
        while self.rest[:1] == [word]:
            self.rest = self.rest[1:]
            parts.append(part())
        known = [one for one in parts if one is not None]
        return None if len(known) < len(parts) else lambda name: join(one(name) for one in known)

    def _one(self) -> Choose | None:
        word, self.rest = (self.rest or [""])[0], self.rest[1:]
        if word == "not":
            inverted = self._one()
            return None if inverted is None else lambda name: not inverted(name)
        if word == "(":
            inner = self.alternatives()
            closed, self.rest = self.rest[:1] == [")"], self.rest[1:]
            return inner if closed else None
        if word in {"", ")", "and", "or"}:
            return None
        part = word.lower()
        return lambda name: part in name.lower()
