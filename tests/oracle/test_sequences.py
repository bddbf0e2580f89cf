"""Our decisions about pods one after another against kube-scheduler's own, in clusters that live.

Our side keeps one cluster and one engine over the whole sequence, so this also tests everything that is
kept between decisions. POLICYSCHED_SEED repeats a run. What differs is made small and written to a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .casefiles import write_case
from .generate import marathons, sequences, stories
from .judge import both, disagreement, first_difference, places, step
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
SEQUENCES = range(60)
STORIES = range(CASES // 50)
MARATHONS = range(max(1, CASES // 750))


def check(oracle: Oracle, cases: Iterable[Case], folder: Path) -> None:
    """Compare both sides on each sequence, up to the first one that differs."""
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    pods = placed = 0
    for case in cases:
        decided, theirs = both(oracle, case)
        number, found = first_difference(decided, theirs)
        if found:
            choices = [record.get("selected", "") for record in decided]
            alone = step(case, number, theirs, choices)
            pytest.fail(report(oracle, case, alone, folder))
        pods, placed = pods + len(theirs), placed + sum("best" in record for record in theirs)
    print(f"{pods} pods, {placed} of them placed")  # noqa: T201 - shown with -rP


def report(oracle: Oracle, case: Case, alone: Case, folder: Path) -> str:
    """Describe a difference: as a case with one pod where it shows there too, else as a sequence."""
    shown, told = (alone, "also alone") if disagreement(oracle, alone) else (case, "only in the sequence")
    fault = places(disagreement(oracle, shown))
    small = shrink(shown, lambda smaller: bool(fault & places(disagreement(oracle, smaller))))
    command = write_case(small, folder / small["id"])
    lines = [f"POLICYSCHED_SEED={SEED}: {case['id']} {case['themes']} differs at {alone['id']}, {told}"]
    return "\n".join([*lines, *disagreement(oracle, case), "shrunk:", *disagreement(oracle, small), command])


@AT_EACH_MINOR
def test_short_sequences(oracle: Oracle, tmp_path: Path) -> None:
    check(oracle, sequences(SEED, share(oracle, SEQUENCES)), tmp_path)


@AT_EACH_MINOR
def test_sequences_in_changing_clusters(oracle: Oracle, tmp_path: Path) -> None:
    check(oracle, stories(SEED, share(oracle, STORIES)), tmp_path)


@AT_EACH_MINOR
@pytest.mark.parametrize("related", [1.0, 0.0], ids=["looking at each other", "alone"])
def test_five_hundred_pods_one_after_another(oracle: Oracle, related: float, tmp_path: Path) -> None:
    check(oracle, marathons(SEED, share(oracle, MARATHONS), related=related), tmp_path)
