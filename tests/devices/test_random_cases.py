"""Our allocator against Kubernetes' on random devices and claims, node by node and all nodes at once.

POLICYSCHED_SEED repeats a run, POLICYSCHED_DEVICES sets how many cases it compares. Where a search takes more steps
than it may, or Kubernetes' takes more than the 10 seconds of its filter, answers are counted and not compared.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from policysched.devices import AllocationAnswer, Allocator
from policysched.devices.inventory.pool_views import PoolView
from policysched.devices.partial_solution import FailedSearchError, PartialSolution
from policysched.devices.requests.plans import DeviceAsk
from policysched.devices.search import DeviceSearch
from policysched.model.release import Release
from tests.devices.generate import Cases
from tests.devices.judge import Judge
from tests.devices.playing import Case, claims_of, code_of, judged, said, tables_of
from tests.oracle.minors import JUDGED_AT_EACH_MINOR, release_of, share
from tests.oracle.seed import seed

pytestmark = pytest.mark.oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_DEVICES") or 400)
STEPS = 300_000
REPORTED = 3


Ours = tuple[dict[str, Any], set[int]]
"""What the allocator says of a node alone, and the codes that it has when all are asked about at once."""


def _ours(case: Case, release: Release) -> list[Ours]:
    """Our answers for each node; all nodes at once are asked in all of the ways that there are."""
    claims = claims_of(case)
    scalar = Allocator(tables_of(case, release), claims, steps=STEPS)
    codes = [Allocator(tables_of(case, release), claims, steps=STEPS).answers().codes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("policysched.devices.answers.prepared._MANY", -1)
        patch.setattr("policysched.devices.answers.row_outcomes._FEW_ROWS", -1)
        codes.append(Allocator(tables_of(case, release), claims, steps=STEPS).answers().codes)
    return [(said(scalar, row), {int(one[row]) for one in codes}) for row in range(len(case["nodes"]))]


@JUDGED_AT_EACH_MINOR
def test_allocator_answers_what_kubernetes_does(kubernetes: Judge) -> None:
    cases, release = Cases(Random(SEED)), release_of(kubernetes)
    counted: Counter[AllocationAnswer] = Counter()
    differing: list[str] = []
    drawn = [cases.case() for _ in range(CASES)]
    chosen = share(kubernetes, range(CASES))
    for case in map(drawn.__getitem__, chosen):
        for row, (theirs, (ours, codes)) in enumerate(zip(kubernetes.ask(case), _ours(case, release), strict=True)):
            if theirs.get("timeout") or AllocationAnswer.TIMEOUT in {code_of(ours), *codes}:
                counted[AllocationAnswer.TIMEOUT] += 1
                continue
            counted[code_of(ours)] += 1
            if ours != judged(theirs) or codes != {code_of(ours)}:
                differing.append(
                    f"node {row}: {json.dumps(case)}\n  Kubernetes: {judged(theirs)}\n  ours: {ours}, {codes}"
                )
    assert not differing, f"POLICYSCHED_SEED={SEED}: {len(differing)} differ\n" + "\n".join(differing[:REPORTED])
    assert (
        min(
            counted[one]
            for one in (
                AllocationAnswer.YES,
                AllocationAnswer.NO,
                AllocationAnswer.INVALID_POOLS,
                AllocationAnswer.ERROR,
            )
        )
        > len(chosen) // 20
    )
    assert counted[AllocationAnswer.TIMEOUT] <= len(chosen) // 20


def _eager(self: DeviceSearch, ask: DeviceAsk, done: int, start: int) -> Any:
    """Search as ever, but let every error of a selector count."""
    failing = self._space.failing[ask.requirement]
    if failing:
        raise FailedSearchError(self._failure(ask, failing.bit_length() - 1))
    return _SOME(self, ask, done, start)


def _boundless(self: PartialSolution, device: int) -> bool:
    """Take counters as ever, but find that they suffice."""
    self._counted.setdefault(self._space.pool_of(device), defaultdict(int))
    return True


def _turned(self: PoolView, *arguments: Any, **others: Any) -> None:
    """Make a view as ever, but have pools with binding conditions come first."""
    _MADE(self, *arguments, **others)
    self.order = (not self.order[0], self.order[1])


_SOME = DeviceSearch._some
_MADE = PoolView.__init__
BROKEN: dict[str, tuple[str, Callable[..., Any]]] = {
    "allocated devices": ("policysched.devices.inventory.pools.Pool._take_over", lambda *_: None),
    "backtracking": ("policysched.devices.partial_solution.PartialSolution.equal", lambda *_: -1),
    "counters": ("policysched.devices.partial_solution.PartialSolution._count", _boundless),
    "distinct values": ("policysched.devices.requests.constraints._repeats", lambda *_: False),
    "laziness": ("policysched.devices.search.DeviceSearch._some", _eager),
    "order": ("policysched.devices.inventory.pool_views.PoolView.__init__", _turned),
    "rounding": ("policysched.devices.requests.capacities._rounded", lambda requested, *_: requested),
    "taints": ("policysched.devices.requests.requirements.tolerates", lambda *_: True),
}


@JUDGED_AT_EACH_MINOR
@pytest.mark.parametrize("part", BROKEN)
def test_comparison_notices_a_broken_part(kubernetes: Judge, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(*BROKEN[part])
    cases = Cases(Random(7))
    for _ in range(600):
        case = cases.case()
        theirs = [judged(one) for one in kubernetes.ask(case)]
        ours = [one for one, _ in _ours(case, release_of(kubernetes))]
        if ours != theirs and not any(code_of(one) is AllocationAnswer.TIMEOUT for one in ours):
            return
    pytest.fail(f"nobody notices what is wrong with {part}")
