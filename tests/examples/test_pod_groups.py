"""The policies for pod groups: their tests pass and reach every part, and the page shows the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched import check
from policysched.testing import run
from tests.examples.cases import EXAMPLES, ROOT

FOLDER = EXAMPLES / "pod-groups"
POLICIES = sorted(one for one in FOLDER.glob("*.yaml") if not one.name.endswith("-tests.yaml"))
PAGE = ROOT / "docs" / "write" / "pod-groups.md"


def test_tests_pass_and_reach_every_part_of_the_policies() -> None:
    found = run(FOLDER, coverage=True)
    assert found.passed, found
    assert (len(POLICIES), found.covered) == (5, 100)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: str(one.stem))
def test_policies_have_no_warning_and_are_on_the_page(policy: Path) -> None:
    assert check(policy) == []
    text = policy.read_text("utf-8")
    shown = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert f"```yaml\n{shown}```" in PAGE.read_text("utf-8")
    assert f"[{policy.name}]({policy.name})" in (FOLDER / "README.md").read_text("utf-8")
