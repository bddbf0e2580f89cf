"""`run`: runs policy tests from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policysched.app.policy_tests.reading import find_files, take_tests
from policysched.app.policy_tests.running import PolicyTestOptions
from policysched.app.policy_tests.suite import PolicyTestRun, RunChoices, run_files, run_value
from policysched.errors import UsageError
from policysched.model.release_choice import AUTO, release_named


def run(
    tests: str | Path | Mapping[str, Any] | list[Any],
    *,
    coverage: bool = False,
    mutate: bool = False,
    kube_version: str = AUTO,
) -> PolicyTestRun:
    """Run policy tests, as `policysched test` does.

    Args:
        tests: A file or a folder, or the content of a test file. File names in the content are relative to the current
            folder.
        coverage: Whether to measure which parts of policies the tests reach.
        mutate: Whether to change policies and report the changes that no test notices.
        kube_version: The Kubernetes minor whose kube-scheduler decides, as `policysched.dry_run` takes it.

    Returns:
        The results. `problems` lists files that cannot be used.

    Raises:
        UsageError: the file does not exist, the content is not that of a test file, or the minor is unknown.
    """
    options = PolicyTestOptions(kube_version=release_named(kube_version).minor)
    choices = RunChoices(coverage=coverage, mutate=mutate)
    if isinstance(tests, str | Path):
        if not Path(tests).exists():
            raise UsageError(f"{tests}: no such file")
        return run_files(find_files([str(tests)]), options, choices)
    return run_value(take_tests(tests), options, choices)
