"""A pytest plugin that collects policy tests: each test of a file is one pytest item.

It collects `policy-tests.yaml` and files whose names end with `-policy-tests.yaml`. The ini option `policysched_tests`
adds patterns, `policysched_kube_version` chooses the Kubernetes minor whose kube-scheduler decides. The rest of
policysched is imported when the first file is collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from policysched.app.policy_tests.running import LoadedTest

NAMES: Final = ("policy-tests.yaml", "policy-tests.yml", "*-policy-tests.yaml", "*-policy-tests.yml")
"""Patterns of the names of policy test files that pytest always collects."""
_OPTION: Final = "policysched_tests"
_KUBE_VERSION: Final = "policysched_kube_version"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option `policysched_tests`."""
    help_text = "more patterns of names of policy test files, besides policy-tests.yaml"
    parser.addini(_OPTION, help_text, type="args", default=[])
    parser.addini(_KUBE_VERSION, "the Kubernetes minor whose kube-scheduler decides, such as 1.37", default="auto")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PolicyTestModule | None:
    """Return a collector for a file with the name of a policy test file, else None."""
    patterns = (*NAMES, *parent.config.getini(_OPTION))
    if any(fnmatchcase(file_path.name, pattern) for pattern in patterns):
        found: PolicyTestModule = PolicyTestModule.from_parent(parent, path=file_path)
        return found
    return None


class PolicyTestModule(pytest.File):
    """A policy test file."""

    def collect(self) -> Iterator[PolicyTestItem]:
        """Return an item for each test of the file.

        Raises:
            CollectError: the file cannot be read, or a policy does not compile.
        """
        from policysched.app.policy_tests.reading import read_tests  # noqa: PLC0415 - see the module's docstring
        from policysched.app.policy_tests.running import load_tests  # noqa: PLC0415 - as above
        from policysched.errors import UsageError  # noqa: PLC0415 - as above

        try:
            loaded = load_tests(read_tests(self.path))
        except UsageError as error:
            raise self.CollectError(str(error)) from error
        for one in loaded:
            item: PolicyTestItem = PolicyTestItem.from_parent(self, name=one.written.given)
            item.loaded = one
            yield item


class PolicyTestItem(pytest.Item):
    """One policy test."""

    loaded: LoadedTest

    def runtest(self) -> None:
        """Run the test.

        Raises:
            AssertionError: the result differs from the expectation.
        """
        from policysched.app.policy_tests.running import PolicyTestOptions, run_test  # noqa: PLC0415 - as above
        from policysched.visible import visible  # noqa: PLC0415 - as above

        kube_version = str(self.config.getini(_KUBE_VERSION))
        result = run_test(self.loaded, PolicyTestOptions(kube_version=kube_version))
        if not result.passed:
            raise AssertionError("\n".join(visible(line) for line in result.told()))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text of a failure: the wrong results of a policy test, or the traceback of an unexpected error."""
        return str(excinfo.value) if isinstance(excinfo.value, AssertionError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return file, line and name of the test."""
        place = self.loaded.source.place(self.loaded.path)
        return self.path, None if place is None else place.line - 1, self.name
