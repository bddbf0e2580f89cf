"""Execution of the tests of many files, with selection and summary.

An unreadable file or a policy that does not compile does not prevent other files from running. An interruption ends the
run with the results so far.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from policysched.app.policy_tests.coverage import CoverageObserver, PolicyCoverage, percent
from policysched.app.policy_tests.mutation import MutationReport, mutate
from policysched.app.policy_tests.reading import PolicyTestSource, read_tests
from policysched.app.policy_tests.running import (
    BrokenPolicyError,
    LoadedTest,
    PolicyTestOptions,
    PolicyTestResult,
    load_tests,
    run_test,
)
from policysched.errors import UsageError
from policysched.model.policy import decode_policy

INTERRUPTED: Final = 130
Choose: TypeAlias = Callable[[str], bool]
_WORD: Final = re.compile(r"[()]|[^\s()]+")


@dataclass(slots=True)
class PolicyTestRun:
    """The results of test files."""

    results: list[PolicyTestResult] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Problems of test files and policies that cannot be used, one line each."""
    broken: list[BrokenPolicyError] = field(default_factory=list)
    """Policies that do not compile; `problems` has a line for each."""
    files: int = 0
    left_out: int = 0
    """Number of tests that were not selected, or not run after a failure."""
    interrupted: bool = False
    coverage: list[PolicyCoverage] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Wrong entries of `unreached`: parts that tests reach, or that do not exist."""
    least: float = 0.0
    """Minimum coverage. Units: percent."""
    mutation: list[MutationReport] = field(default_factory=list)

    @property
    def failed(self) -> list[PolicyTestResult]:
        """The tests that failed or could not run."""
        return [one for one in self.results if not one.passed]

    @property
    def errors(self) -> list[PolicyTestResult]:
        """The tests that could not run, for example because they name an unknown node."""
        return [one for one in self.results if one.problem]

    @property
    def passed(self) -> bool:
        """Whether all tests passed and all limits are met."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 if everything passed, 1 after a failure, 2 if a test or a file is wrong, 130 after an interruption."""
        if self.interrupted:
            return INTERRUPTED
        if self.problems or self.errors:
            return 2
        noticed = all(one.passed for one in self.mutation)
        return int(bool(self.failed or self.wrong) or not noticed or self.covered < self.least)

    @property
    def covered(self) -> float:
        """Coverage of all policies. Units: percent."""
        return percent(sum(one.covered for one in self.coverage), sum(one.total for one in self.coverage))

    def summary(self) -> str:
        """Return the totals in one line."""
        errors = len(self.errors)
        failed = len(self.failed) - errors
        parts = [f"{len(self.results) - failed - errors} passed"]
        parts += [f"{failed} failed"] if failed else []
        parts += [f"{errors} {'error' if errors == 1 else 'errors'}"] if errors else []
        parts += [f"{self.left_out} not run"] if self.left_out else []
        parts += (
            [f"{len(self.problems)} {'problem' if len(self.problems) == 1 else 'problems'}"] if self.problems else []
        )
        said = f"{', '.join(parts)} in {self.files} {'file' if self.files == 1 else 'files'}"
        return f"interrupted: {said}" if self.interrupted else said

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values."""
        said: dict[str, Any] = {
            "passed": len(self.results) - len(self.failed),
            "failed": len(self.failed) - len(self.errors),
            "errors": len(self.errors),
            "notRun": self.left_out,
            "problems": self.problems,
            "interrupted": self.interrupted,
            "tests": [one.to_dict() for one in self.results],
        }
        if self.coverage:
            said |= {"coverage": self.covered, "policies": [one.to_dict() for one in self.coverage]}
            said |= {"wrongExplanations": self.wrong} if self.wrong else {}
        return said | ({"mutation": [one.to_dict() for one in self.mutation]} if self.mutation else {})


@dataclass(frozen=True, slots=True)
class RunChoices:
    """Options of a test run: selection of tests, limits and callbacks."""

    chosen: Choose = lambda _: True
    fail_fast: bool = False
    on_test: Callable[[str], object] = id
    """Callback that receives the name of each test, and the change of each mutant, before the test runs."""
    coverage: bool = False
    least_coverage: float = 0.0
    """Minimum coverage. Units: percent."""
    mutate: bool = False
    in_time: Callable[[], bool] = lambda: True
    """Function that returns whether the time limit of mutation testing permits another mutant."""


def run_files(files: Iterable[Path], options: PolicyTestOptions, choices: RunChoices) -> PolicyTestRun:
    """Run the tests of files.

    Args:
        files: The files.
        options: Options of the tests.
        choices: Selection of the tests.
    """
    run = PolicyTestRun(least=choices.least_coverage)
    return _run(_sources(files, run), run, options, choices)


def run_value(source: PolicyTestSource, options: PolicyTestOptions, choices: RunChoices) -> PolicyTestRun:
    """Run the tests in one test file, or in a Python value with the content of a test file."""
    return _run([source], PolicyTestRun(files=1, least=choices.least_coverage), options, choices)


def _run(
    sources: Iterable[PolicyTestSource], run: PolicyTestRun, options: PolicyTestOptions, choices: RunChoices
) -> PolicyTestRun:
    observer = CoverageObserver() if choices.coverage else None
    if observer is not None:
        options = replace(options, coverage=observer)
    try:
        for source in sources:
            run_source(source, run, options, choices, observer)
    except KeyboardInterrupt:
        run.interrupted = True
    if observer is not None:
        run.wrong, run.coverage = observer.close(), observer.policies
    return run


def _sources(files: Iterable[Path], run: PolicyTestRun) -> Iterator[PolicyTestSource]:
    for file in files:
        run.files += 1
        try:
            yield read_tests(file)
        except UsageError as error:
            run.problems.append(str(error))


def run_source(
    source: PolicyTestSource,
    run: PolicyTestRun,
    options: PolicyTestOptions,
    choices: RunChoices,
    observer: CoverageObserver | None = None,
) -> None:
    """Run the tests of one file and add the results to a run."""
    try:
        tests = load_tests(source)
    except BrokenPolicyError as error:
        run.problems.append(str(error))
        run.broken.append(error)
        return
    except UsageError as error:
        run.problems.append(str(error))
        return
    if observer is not None:
        _register(source, tests, observer)
    passed: list[LoadedTest] = []
    failed = 0
    for test in tests:
        if not choices.chosen(test.name) or (choices.fail_fast and run.failed):
            run.left_out += 1
            continue
        choices.on_test(test.name)
        run.results.append(run_test(test, options))
        passed += [test] if run.results[-1].passed else []
        failed += not run.results[-1].passed
    if choices.mutate and failed:
        run.mutation.append(
            MutationReport(source.name, skipped=f"{failed} {'test' if failed == 1 else 'tests'} failed")
        )
    elif choices.mutate and passed:
        _mutate(source, passed, run, replace(options, coverage=None), choices)


def _register(source: PolicyTestSource, tests: Iterable[LoadedTest], observer: CoverageObserver) -> None:
    observer.explained |= {one.part: one.reason for one in source.written.unreached}
    for test in tests:
        for one in test.policies:
            observer.register(decode_policy(one.object), one.file, one)


def _mutate(
    source: PolicyTestSource,
    tests: list[LoadedTest],
    run: PolicyTestRun,
    options: PolicyTestOptions,
    choices: RunChoices,
) -> None:
    report = MutationReport(source.name)
    run.mutation.append(report)

    def before(change: str) -> bool:
        choices.on_test(change)
        return choices.in_time()

    mutate(report, tests, options, before)


def keyword(expression: str) -> Choose:
    """Return a function that selects names by an expression: substrings with `and`, `or`, `not` and parentheses.

    Raises:
        UsageError: the expression is invalid.
    """
    found = _WORD.findall(expression)
    parser = _Keywords(found)
    choose = parser.alternatives() if found else None
    if choose is None or parser.rest:
        raise UsageError(f'-k "{expression}" is not parts of names with and, or, not and brackets')
    return choose


class _Keywords:
    """Parser of expressions that select tests: substrings of names with `and`, `or`, `not` and parentheses."""

    def __init__(self, words: list[str]) -> None:
        self.rest = words

    def alternatives(self) -> Choose | None:
        """Parse an `or` expression into a function that selects names; None if the expression is invalid."""
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
