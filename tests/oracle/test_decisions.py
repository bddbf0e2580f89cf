"""Our decisions against kube-scheduler's own, on random cases with a fresh seed.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets how many single decisions it makes. What
differs is made small and written to files, together with the command that shows our side of it.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

import pytest

import policysched

from .casefiles import write_case
from .compare import differences
from .generate import biting, sequences, singles, table
from .oracle import InvalidCaseError
from .shrink import shrink

if TYPE_CHECKING:
    from pathlib import Path

    from .oracle import Case, Oracle, Record

pytestmark = pytest.mark.oracle

SEED = int(os.environ.get("POLICYSCHED_SEED") or secrets.randbits(32))
CASES = int(os.environ.get("POLICYSCHED_CASES") or 2000)
SEQUENCES = 60
PARTS = 4  # for several test processes
REPORTED = 5


def ours(case: Case) -> Record:
    record = policysched.dry_run(case["objects"], case["pod"], config=case["config"], seed=0)
    decided: Record = record.to_dict()
    return decided


def disagreement(oracle: Oracle, case: Case) -> list[str]:
    """Ask both; a case that kube-scheduler cannot evaluate is no disagreement."""
    try:
        theirs = oracle.decide(case)
    except InvalidCaseError:
        return []
    return differences(ours(case), theirs)


def places(lines: list[str]) -> set[tuple[str, str]]:
    """Reduce differences to the part of the record and its last key, so that nodes do not matter."""
    paths = [line.split(":")[0].split(".") for line in lines]
    return {(path[0], path[-1]) for path in paths}


def report(oracle: Oracle, failing: list[Case], folder: Path) -> str:
    """Describe the first differing cases and write the first one down as small as it gets."""
    lines = [f"POLICYSCHED_SEED={SEED}: {len(failing)} cases differ"]
    for case in failing[:REPORTED]:
        lines += [f"case {case['id']} {case.get('themes', '')}", *disagreement(oracle, case)[:REPORTED]]
    fault = places(disagreement(oracle, failing[0]))
    small = shrink(failing[0], lambda smaller: bool(fault & places(disagreement(oracle, smaller))))
    command = write_case(small, folder / failing[0]["id"])
    return "\n".join([*lines, "shrunk:", *disagreement(oracle, small), command])


@pytest.mark.parametrize("part", range(PARTS))
def test_single_decisions_equal_those_of_kube_scheduler(oracle: Oracle, part: int, tmp_path: Path) -> None:
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    failing, records = [], []
    for case in singles(SEED, range(part, CASES, PARTS)):
        theirs = oracle.decide(case)
        records.append(theirs)
        if differences(ours(case), theirs):
            failing.append(case)
    print(table(biting(records), len(records)))  # noqa: T201 - shown with a failure, or with -rP
    assert not failing, report(oracle, failing, tmp_path)


def test_sequences_of_decisions_equal_those_of_kube_scheduler(oracle: Oracle, tmp_path: Path) -> None:
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    failing = []
    for case in sequences(SEED, range(SEQUENCES)):
        records = oracle.decide_sequence(case)
        failing += [
            step for step, theirs in zip(steps(case, records), records, strict=True) if differences(ours(step), theirs)
        ]
    assert not failing, report(oracle, failing, tmp_path)


def steps(case: Case, records: list[Record]) -> list[Case]:
    """Take a sequence apart into cases with one pod, those before it placed where they went."""
    objects: list[dict[str, Any]] = list(case["objects"])
    found = []
    for number, (pod, record) in enumerate(zip(case["sequence"], records, strict=True)):
        name = f"{case['id']}-{number}"
        found.append({"id": name, "objects": list(objects), "pod": pod, "config": case["config"]})
        if "best" in record:
            objects.append(pod | {"spec": pod["spec"] | {"nodeName": record["best"][0]}})
    return found
