"""Our preemption against kube-scheduler's own, on random cases in which a pod fits nowhere.

POLICYSCHED_SEED repeats a run, POLICYSCHED_PREEMPTIONS sets how many cases it makes. What differs is made small and
written to files, with the command that shows our side of the decision.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from .casefiles import write_case
from .minors import AT_EACH_MINOR, release_of, share
from .preempted import differences, disagreement, ours
from .preempting import cases, is_steady
from .seed import seed
from .shrink import shrink

if TYPE_CHECKING:
    from pathlib import Path

    from .oracle import Case, Oracle

pytestmark = pytest.mark.oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_PREEMPTIONS") or 400)
PARTS = 2  # for several test processes
REPORTED = 5


def report(oracle: Oracle, failing: list[Case], folder: Path) -> str:
    """Describe the first differing cases and write the first one down as small as it gets."""
    lines = [f"POLICYSCHED_SEED={SEED}: {len(failing)} cases differ"]
    for case in failing[:REPORTED]:
        lines += [f"case {case['id']} {case['themes']}", *disagreement(oracle, case)]
    fault = parts(disagreement(oracle, failing[0]))
    small = shrink(failing[0], lambda less: is_steady(less) and parts(disagreement(oracle, less)) == fault)
    command = write_case(small, folder / failing[0]["id"])
    return "\n".join([*lines, "shrunk:", *disagreement(oracle, small), command])


def parts(lines: list[str]) -> set[str]:
    """Name the parts of the answer that differ."""
    return {line.partition(":")[0] for line in lines}


@AT_EACH_MINOR
@pytest.mark.parametrize("part", range(PARTS))
def test_preemption_equals_that_of_kube_scheduler(oracle: Oracle, part: int, tmp_path: Path) -> None:
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    seen: Counter[str] = Counter()
    failing = []
    numbers = share(oracle, range(part, CASES, PARTS))
    for case in cases(SEED, numbers, Random):
        record = oracle.decide(case)
        theirs = record.get("preemption")
        if record["result"] == "Error":
            seen["fails before"] += 1
            continue
        if differences(ours(case, release=release_of(oracle)), theirs):
            failing.append(case)
        seen.update(kinds(theirs))
    print("\n".join(f"{count:6} {name}" for name, count in seen.most_common()))  # noqa: T201 - shown with -rP
    assert not failing, report(oracle, failing, tmp_path)
    assert seen["nominates a node"] > len(numbers) / 8, seen


def kinds(answer: Case | None) -> list[str]:
    """Name what kind of an answer it is."""
    if answer is None:
        return ["fits, or nobody is asked"]
    candidates = answer.get("candidates", {}).values()
    nominated = {None: "leaves the nomination", "": "clears the nomination"}.get(
        answer["nominated"], "nominates a node"
    )
    found = {
        "has several candidates": len(candidates) > 1,
        "has several equally good ones": len(answer.get("best", ())) > 1,
        "has several victims on a node": any(len(one["victims"]) > 1 for one in candidates),
        "violates budgets": any(one["violations"] for one in candidates),
        "violates budgets on the best": any(
            answer["candidates"][node]["violations"] for node in answer.get("best", ())
        ),
        "chooses victims that go already": answer.get("deleted", [])
        != sorted(answer["candidates"][answer["nominated"]]["victims"] if answer["nominated"] else []),
        "clears other nominations": "cleared" in answer,
    }
    return ["asked", nominated, *(name for name, holds in found.items() if holds)]
