"""docs/write/weights.md says of the default score plugins what the default profile does."""

from __future__ import annotations

import pytest

from policysched.app.configuration.profiles import default_profile
from tools.documents.markdown import ROOT, table

DOCUMENT = ROOT / "docs" / "write" / "weights.md"
PLUGINS = {row[0]: (int(row[1]), row[2]) for row in table(DOCUMENT, "Scores of the default plugins")}
SILENT = {"DynamicResources"}
"""Plugins that give every node the same score without resource claims."""
NEEDED = table(DOCUMENT, "Choose a weight")


def test_every_score_plugin_is_there_with_its_weight_and_points() -> None:
    scores = {plugin.name: weight for plugin, weight in default_profile().scores}
    assert {
        name: (weight, "0" if name in SILENT else f"0–{100 * weight}") for name, weight in scores.items()
    } == PLUGINS


@pytest.mark.parametrize("row", NEEDED, ids=lambda row: row[0][:20])
def test_a_weight_is_the_least_that_outvotes(row: list[str]) -> None:
    differ = int(row[1])
    assert [int(cell) for cell in row[2:]] == [differ // points + 1 for points in (100, 75)]


def test_the_last_row_is_the_sum_of_all() -> None:
    assert int(NEEDED[-1][1]) == sum(100 * weight for name, (weight, _) in PLUGINS.items() if name not in SILENT)
