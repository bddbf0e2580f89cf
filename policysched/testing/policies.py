"""Tests of policies run from Python, with typed results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policysched.app.policy_tests.reading import find_files, take_tests
from policysched.app.policy_tests.running import PolicyTestOptions
from policysched.app.policy_tests.suite import PolicyTestRun, RunChoices, run_files, run_value


def run(
    tests: str | Path | Mapping[str, Any] | list[Any], *, coverage: bool = False, mutate: bool = False
) -> PolicyTestRun:
    """Run tests of policies, as `policysched test` does.

    Args:
        tests: A file or a folder, or what a file holds; its files are looked for where the process is.
        coverage: Whether to find out which parts of policies no test reaches.
        mutate: Whether to find out which changes of policies no test notices.

    Returns:
        The results; what is wrong with files is in `problems`.

    Raises:
        UsageError: there is no such file, or the value is not of the shape of a file.
    """
    choices = RunChoices(coverage=coverage, mutate=mutate)
    if isinstance(tests, str | Path):
        return run_files(find_files([str(tests)]), PolicyTestOptions(), choices)
    return run_value(take_tests(tests), PolicyTestOptions(), choices)
