"""Our decisions against kube-scheduler's own, on random cases with a fresh seed.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets how many decisions it makes about pods that look at each
other; those about pods on their own are half as many, those about extreme amounts a quarter. What differs is made small
and written to files, together with the command that shows our side of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .biting import Survey
from .casefiles import write_case
from .compare import differences
from .extremes import extremes
from .generate import singles
from .judge import disagreement, ours, places, with_namespaces
from .minors import AT_EACH_MINOR, share
from .seed import seed
from .shrink import shrink

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .oracle import Case, Oracle

pytestmark = pytest.mark.oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_CASES") or 3000)
PARTS = 4  # for several test processes
REPORTED = 5


def report(oracle: Oracle, failing: list[Case], folder: Path) -> str:
    """Describe the first differing cases and write the first one down as small as it gets."""
    lines = [f"POLICYSCHED_SEED={SEED}: {len(failing)} cases differ"]
    for case in failing[:REPORTED]:
        lines += [f"case {case['id']} {case.get('themes', '')}", *disagreement(oracle, case)[:REPORTED]]
    fault = places(disagreement(oracle, failing[0]))
    small = shrink(failing[0], lambda smaller: bool(fault & places(disagreement(oracle, smaller))))
    command = write_case(small, folder / failing[0]["id"])
    return "\n".join([*lines, "shrunk:", *disagreement(oracle, small), command])


def compare(oracle: Oracle, cases: Iterable[Case], folder: Path) -> None:
    """Compare both sides on each case."""
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    survey, failing = Survey(), []
    for case in map(with_namespaces, cases):
        theirs = oracle.decide(case)
        survey.add(case, theirs)
        if not _stray(case, theirs, oracle.minor) and differences(ours(case, oracle.minor), theirs):
            failing.append(case)
    print(survey.text())  # noqa: T201 - shown with a failure, or with -rP
    assert not failing, report(oracle, failing, folder)


def _stray(case: Case, theirs: Case, minor: str) -> bool:
    """Whether kube-scheduler's scores are invalid for amounts that others put on a node; ours are 0 there.

    All but scores has to be the same still: where one node is feasible, kube-scheduler does without scores.
    """
    if theirs["result"] == "Error":
        return "returns an invalid score" in theirs["error"] and ours(case, minor)["result"] == "Scheduled"
    if "scores" in theirs or theirs["result"] != "Scheduled":
        return False
    made = {key: value for key, value in ours(case, minor).items() if key not in {"scores", "total"}}
    return not differences(made, theirs)


@AT_EACH_MINOR
@pytest.mark.parametrize("part", range(PARTS))
def test_decisions_about_pods_on_their_own(oracle: Oracle, part: int, tmp_path: Path) -> None:
    compare(oracle, singles(SEED, share(oracle, range(part, CASES // 2, PARTS)), related=0.0), tmp_path)


@AT_EACH_MINOR
@pytest.mark.parametrize("part", range(PARTS))
def test_decisions_about_extreme_amounts(oracle: Oracle, part: int, tmp_path: Path) -> None:
    compare(oracle, extremes(SEED, share(oracle, range(part, CASES // 4, PARTS))), tmp_path)


@AT_EACH_MINOR
@pytest.mark.parametrize("part", range(PARTS))
def test_decisions_about_pods_that_look_at_each_other(oracle: Oracle, part: int, tmp_path: Path) -> None:
    compare(oracle, singles(SEED, share(oracle, range(part, CASES, PARTS)), related=1.0), tmp_path)
