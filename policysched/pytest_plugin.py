"""Files of tests of policies as tests of pytest: each of them is an item, with the differences that a run shows.

Files that are called `policy-tests.yaml`, or end with `-policy-tests.yaml`, are collected where pytest looks for tests;
others by patterns in the ini option `policysched_tests`. Nothing of ours is imported before a file is collected.
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
"""What files are collected whatever the ini option says."""
_OPTION: Final = "policysched_tests"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option."""
    help_text = "patterns of names of files with tests of scheduling policies, beside policy-tests.yaml"
    parser.addini(_OPTION, help_text, type="args", default=[])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PolicyTestModule | None:
    """Collect a file of tests."""
    patterns = (*NAMES, *parent.config.getini(_OPTION))
    if any(fnmatchcase(file_path.name, pattern) for pattern in patterns):
        found: PolicyTestModule = PolicyTestModule.from_parent(parent, path=file_path)
        return found
    return None


class PolicyTestModule(pytest.File):
    """A file of tests."""

    def collect(self) -> Iterator[PolicyTestItem]:
        """Give the tests of the file.

        Raises:
            CollectError: it cannot be read, or a policy does not compile.
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
    """One test of a policy."""

    loaded: LoadedTest

    def runtest(self) -> None:
        """Run the test.

        Raises:
            AssertionError: something came otherwise than expected.
        """
        from policysched.app.policy_tests.running import PolicyTestOptions, run_test  # noqa: PLC0415 - as above
        from policysched.visible import visible  # noqa: PLC0415 - as above

        result = run_test(self.loaded, PolicyTestOptions())
        if not result.passed:
            raise AssertionError("\n".join(visible(line) for line in result.told()))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the differences, and a trace only where something broke."""
        return str(excinfo.value) if isinstance(excinfo.value, AssertionError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Say where the test stands."""
        place = self.loaded.source.place(self.loaded.path)
        return self.path, None if place is None else place.line - 1, self.name
