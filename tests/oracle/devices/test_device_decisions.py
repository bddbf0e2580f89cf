"""Our decisions about pods with claims against kube-scheduler's own: codes, texts, scores, and what each claim gets.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets how many pods on their own it decides about; an eightieth as many
sequences of 30 pods are played, in which claims are in flight, written and given back, and an eighth as many questions
about queueing hints are asked, of several changes each. What differs is made small and written to files.

Searches that take more steps than they may are not compared: kube-scheduler continues them for up to 10 seconds.
"""

from __future__ import annotations

import os
from itertools import takewhile
from typing import TYPE_CHECKING

import pytest

from policysched.devices.allocator import TIMED_OUT
from tests.oracle.casefiles import write_case
from tests.oracle.judge import places
from tests.oracle.minors import AT_EACH_MINOR, release_of, share
from tests.oracle.seed import seed
from tests.oracle.shrink import shrink

from .cases import singles
from .comparison import differences
from .hinting import questions
from .ours import DeviceLife, hints_of, ours
from .stories import stories

if TYPE_CHECKING:
    from pathlib import Path

    from tests.oracle.oracle import Case, Oracle, Record

pytestmark = pytest.mark.oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_CASES") or 2000)
PARTS = 4  # for several test processes
FEW = 200
REPORTED = 5


def disagreement(oracle: Oracle, case: Case) -> list[str]:
    """Ask both about a pod, or about the pods of a sequence up to the first that differs."""
    try:
        if "sequence" not in case:
            own = ours(case, release_of(oracle))
            return [] if gives_up(own) else differences(own, oracle.decide(case))
        mine = DeviceLife(case, SEED, release_of(oracle)).run(case)
        choices = [record.get("selected", "") for record in mine]
        theirs = oracle.decide_sequence({**case, "choices": choices})
    except Exception as error:  # our own faults are what this looks for
        return [f"raised: {error!r}"]
    alike = takewhile(lambda pair: not gives_up(pair[0]), zip(mine, theirs, strict=True))
    pairs = enumerate(alike)
    return next(([f"pod {number}", *found] for number, (one, other) in pairs if (found := differences(one, other))), [])


def gives_up(record: Record) -> bool:
    """Say whether our search took too many steps."""
    return TIMED_OUT in record.get("error", "")


def check(oracle: Oracle, cases: list[Case], folder: Path) -> None:
    """Compare both sides on each case."""
    failing = [(case, found) for case in cases if (found := disagreement(oracle, case))]
    assert not failing, report(oracle, failing, folder)


def report(oracle: Oracle, failing: list[tuple[Case, list[str]]], folder: Path) -> str:
    """Describe the first differing cases, and write the first one down as small as it gets."""
    lines = [f"POLICYSCHED_SEED={SEED}: {len(failing)} cases differ"]
    for case, found in failing[:REPORTED]:
        lines += [f"case {case['id']} {case['themes']}", *found[:REPORTED]]
    first, found = failing[0]
    fault = places(found)
    small = shrink(first, lambda smaller: bool(fault & places(disagreement(oracle, smaller))))
    command = write_case(small, folder / first["id"])
    return "\n".join([*lines, "shrunk:", *disagreement(oracle, small), command])


@AT_EACH_MINOR
@pytest.mark.parametrize("part", range(PARTS))
def test_decisions_about_pods_with_claims(oracle: Oracle, part: int, tmp_path: Path) -> None:
    check(oracle, [*singles(SEED, share(oracle, range(part, CASES, PARTS)))], tmp_path)


def test_searches_seldom_take_too_many_steps() -> None:
    given_up = sum(gives_up(ours(case)) for case in singles(SEED, range(FEW)))
    assert given_up <= FEW // 50


@AT_EACH_MINOR
@pytest.mark.parametrize("part", range(PARTS))
def test_sequences_in_which_claims_come_and_go(oracle: Oracle, part: int, tmp_path: Path) -> None:
    check(oracle, [*stories(SEED, share(oracle, range(part, CASES // 80, PARTS)))], tmp_path)


@AT_EACH_MINOR
@pytest.mark.parametrize("part", range(PARTS))
def test_hints_about_claims_and_pods(oracle: Oracle, part: int) -> None:
    for case in questions(SEED, share(oracle, range(part, CASES // 8, PARTS))):
        assert hints_of(case, release_of(oracle)) == oracle.hints(case), f"POLICYSCHED_SEED={SEED}: {case['id']}"
