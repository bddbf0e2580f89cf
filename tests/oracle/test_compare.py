"""Comparing records, shrinking cases and writing them to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .casefiles import read_case, write_case
from .compare import differences
from .generate import singles, stories
from .judge import step
from .objects import node, requesting
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


def test_shrink_keeps_the_pods_and_changes_of_a_sequence_that_the_failure_needs() -> None:
    case = next(stories(3, [5], related=0.0))
    culprit = case["sequence"][7]["metadata"]["name"]
    change = next(number for number, found in enumerate(case["between"]) if number > 7 and found)

    def still_fails(smaller: dict[str, Any]) -> bool:
        before = [pod["metadata"]["name"] for pod in smaller["sequence"]]
        return culprit in before and any(case["between"][change][0] in found for found in smaller["between"])

    small = shrink(case, still_fails)
    assert [pod["metadata"]["name"] for pod in small["sequence"]] == [
        culprit,
        case["sequence"][change]["metadata"]["name"],
    ]
    assert small["between"] == [[], [case["between"][change][0]]]
    assert small["objects"] == []


def test_sequence_files_read_as_they_were_written(tmp_path: Path) -> None:
    case = next(stories(1, [0], related=1.0))
    command = write_case(case, tmp_path / case["id"])
    assert read_case(tmp_path / case["id"]) == case
    assert command == f"python -m tests.oracle.judge {tmp_path / case['id']}"


def test_step_of_a_sequence_has_what_happened_before_it() -> None:
    first, second, third = (requesting(name, cpu="1") for name in ("first", "second", "third"))
    case = {
        "id": "s",
        "objects": [node("a"), node("b")],
        "sequence": [first, second, third],
        "between": [[], [{"set": first}, {"remove": node("b")}], [{"remove": first}, {"set": third}]],
        "config": None,
    }
    theirs = [{"best": ["a", "b"]}, {"best": ["a"]}, {}]
    alone = step(case, 1, theirs, ["b", "", ""])
    assert alone["pod"] == second
    assert [(one["metadata"]["name"], one["spec"].get("nodeName")) for one in alone["objects"]] == [
        ("a", None),
        ("first", "b"),
    ]
    alone = step(case, 2, theirs, ["b", "", ""])
    assert [one["metadata"]["name"] for one in alone["objects"]] == ["a", "second"]
