"""Our decisions about pods with volumes against kube-scheduler's own, on random cases with a fresh seed.

POLICYSCHED_SEED repeats a run, POLICYSCHED_VOLUMES sets how many decisions it makes.
"""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from .biting import biting, table
from .compare import differences
from .judge import ours
from .minors import AT_EACH_MINOR, share
from .storage import storage
from .storage_focus import PLUGINS
from .test_decisions import SEED, report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from .oracle import Case, Oracle

pytestmark = pytest.mark.oracle

CASES = int(os.environ.get("POLICYSCHED_VOLUMES") or 1200)
PARTS = 2  # for several test processes
BITING = 0.2
"""The share of the cases with a plugin in which it is to reject something."""


def cases(indices: Iterable[int]) -> Iterator[Case]:
    """Generate cases, each from a random source of its own."""
    for index in indices:
        yield storage(Random(f"{SEED}/volumes/{index}"), f"{SEED}-v{index}")


@AT_EACH_MINOR
@pytest.mark.parametrize("part", range(PARTS))
def test_decisions_about_volumes_equal_those_of_kube_scheduler(oracle: Oracle, part: int, tmp_path: Path) -> None:
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    failing, answered = [], []
    for case in cases(share(oracle, range(part, CASES, PARTS))):
        theirs = oracle.decide(case)
        answered.append((case, theirs))
        if differences(ours(case, oracle.minor), theirs):
            failing.append(case)
    bites = biting(record for _, record in answered)
    print(table(bites, len(answered)))  # noqa: T201 - shown with a failure, or with -rP
    assert not failing, report(oracle, failing, tmp_path)
    for plugin in PLUGINS:
        own = biting(record for case, record in answered if plugin in case["themes"])
        rejected = sum(own.get(name, {}).get("rejected", 0) for name in (plugin, f"{plugin} (PreFilter)"))
        cases_of = sum(plugin in case["themes"] for case, _ in answered)
        print(f"{plugin}: rejected something in {rejected} of {cases_of} cases about it")  # noqa: T201 - as above
        assert rejected >= BITING * cases_of
