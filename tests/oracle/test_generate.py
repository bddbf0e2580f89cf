"""Generated cases are repeatable, and they reach every plugin that they are meant to reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .generate import biting, sequences, singles, table

if TYPE_CHECKING:
    from .oracle import Oracle, Record


def test_generated_cases_depend_on_seed_and_index_alone() -> None:
    assert next(singles(9, [4])) == list(singles(9, range(5)))[4]
    assert next(sequences(9, [1])) == list(sequences(9, range(2)))[1]
    assert next(singles(9, [4])) != next(singles(10, [4]))


def test_biting_counts_records_not_nodes() -> None:
    verdict = {"plugin": "NodePorts", "code": "Unschedulable", "reasons": ["taken"]}
    records: list[Record] = [
        {"rejected": {"a": verdict, "b": verdict}, "scores": {"c": {"Fit": 1}, "d": {"Fit": 2}}},
        {"scores": {"a": {"Fit": 3}, "b": {"Fit": 3}}},
        {"preFilter": verdict | {"plugin": ""}},
    ]
    counts = biting(records)
    assert counts == {
        "Fit": {"rejected": 0, "scored": 1},
        "NodePorts": {"rejected": 1, "scored": 0},
        "no plugin (PreFilter)": {"rejected": 1, "scored": 0},
    }
    assert table(counts, 3).splitlines()[2].split() == ["NodePorts", "1", "0"]


@pytest.mark.oracle
def test_generated_cases_bite_every_plugin(oracle: Oracle) -> None:
    counts = biting(oracle.decide_many(singles(7, range(300))))
    rejecting = {name for name, row in counts.items() if row["rejected"] >= 3}
    scoring = {name for name, row in counts.items() if row["scored"] >= 3}
    assert rejecting >= {
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodeName",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "PreFilterResult",
        "TaintToleration",
    }
    assert scoring >= {
        "ImageLocality",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "TaintToleration",
    }
