"""The threat model names a limit and its tests for each way into the scheduler."""

from __future__ import annotations

import re

import pytest

from tools.documents.markdown import ROOT, codes, table

PAGE = ROOT / "docs" / "inside" / "threat-model.md"
ROWS = table(PAGE, "Actors and limits")
WAYS_IN = {
    "pods", "pod groups", "claims", "nodes", "policies", "ConfigMap", "metric sources", "extenders", "plugins",
    "secure port", "webhook", "files of commands", "second scheduler",
}  # fmt: skip


def test_each_way_in_is_there_once() -> None:
    names = [re.sub(r" `.*`", "", row[0]) for row in ROWS]
    assert set(names) >= WAYS_IN
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_row_is_whole_and_its_tests_are_tests(row: list[str]) -> None:
    assert len(row) == 5
    assert all(row)
    paths = codes(row[4])
    assert paths
    for path in paths:
        assert re.search(r"^(async )?def test_", (ROOT / path).read_text("utf-8"), re.MULTILINE), path
