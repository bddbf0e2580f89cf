"""Comparing records, shrinking cases and writing them to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .casefiles import read_case, write_case
from .compare import differences
from .generate import singles
from .shrink import shrink

if TYPE_CHECKING:
    from pathlib import Path

THEIRS: dict[str, Any] = {
    "result": "Scheduled",
    "rejected": {"n1": {"plugin": "P", "code": "Unschedulable", "reasons": ["x", "y"]}},
    "scores": {"n2": {"Fit": 57}},
    "total": {"n2": 57},
    "best": ["n2"],
}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, []),
        ({"rules": {}, "selected": "n2"}, []),
        ({"rejected": {"n1": THEIRS["rejected"]["n1"] | {"reasons": ["y", "x"]}}}, []),
        ({"selected": "n3"}, ["selected: ours 'n3', theirs one of ['n2']"]),
        ({"scores": {"n2": {"Fit": 58}}}, ["scores.n2.Fit: ours 58, theirs 57"]),
        ({"total": {"n2": 57.0}}, ["total.n2: ours 57.0, theirs 57"]),
        (
            {"rejected": {}},
            [f"rejected.n1: ours absent, theirs {THEIRS['rejected']['n1']!r}"],
        ),
        ({"preFilter": {"plugin": ""}}, ["preFilter: ours {'plugin': ''}, theirs absent"]),
    ],
    ids=["equal", "ours-alone", "order", "selected", "score", "type", "rejected", "prefilter"],
)
def test_differences_name_the_place(change: dict[str, Any], found: list[str]) -> None:
    assert differences(THEIRS | change, THEIRS) == found


def test_shrink_keeps_what_the_failure_needs() -> None:
    case = next(singles(3, [5]))
    case["objects"][4]["spec"]["culprit"] = True
    needed = case["objects"][4]["metadata"]["name"]

    def still_fails(smaller: dict[str, Any]) -> bool:
        return any(thing.get("spec", {}).get("culprit") for thing in smaller["objects"])

    small = shrink(case, still_fails)
    assert [thing["metadata"] for thing in small["objects"]] == [{"name": needed}]
    assert small["objects"][0]["spec"] == {"culprit": True}
    assert set(small["pod"]["spec"]) == {"containers"}


def test_case_files_read_as_they_were_written(tmp_path: Path) -> None:
    case = next(singles(1, [0]))
    command = write_case(case, tmp_path / case["id"])
    del case["themes"]
    assert read_case(tmp_path / case["id"]) == case
    assert command.startswith("policysched dry-run --cluster ")
