"""Kubernetes' own cases for the plugin, played with ours: what each point says, and what is stored and in flight after.

Left out are the cases whose features are not those of a kube-scheduler by default; they are counted and named here.
"""

from __future__ import annotations

import pytest

from .playing import play
from .tables import TableCase, table

pytestmark = pytest.mark.oracle

ALPHA = ("EnableDRANodeAllocatableResources", "EnableDRAWorkloadResourceClaims")
"""Features that are off by default."""
OTHER_WORLDS = {
    "DRA-disabled": "without the plugin",
    "canceled": "a caller that gives up in the middle of Filter, which is one step here",
    "claim-with-prioritized-list-feature-disabled": "without DRAPrioritizedList",
    "request-admin-access-without-DRAAdminAccess-featuregate": "without DRAAdminAccess",
    "tainted-device-disabled": "without DRADeviceTaints",
    "timeout": "a deadline of a nanosecond: the search is bounded by its steps here",
}
"""Cases of worlds that are no kube-scheduler v1.36 with its defaults, and what these are."""
PLAYED = 66
"""How many are played."""


def is_usual(case: TableCase) -> bool:
    """Whether a case is one of the features that kube-scheduler has by default."""
    return case.name not in OTHER_WORLDS and not any(case.begin["features"][name] for name in ALPHA)


@pytest.fixture(scope="module")
def cases() -> list[TableCase]:
    return [case for case in table() if is_usual(case)]


async def test_every_usual_case_is_played_as_by_kubernetes(cases: list[TableCase]) -> None:
    assert len(cases) == PLAYED
    differing = {case.name: found for case in cases if (found := await play(case))}
    assert not differing


async def test_table_notices_another_answer(cases: list[TableCase]) -> None:
    [case] = [one for one in cases if one.name == "with-resources"]
    steps = [step | ({"inFlight": None} if step["point"] == "reserve" else {}) for step in case.steps]
    [found] = await play(TableCase(case.name, case.begin, steps))
    assert found.startswith("reserve: ours left")
    steps = [step | ({"code": "Error"} if step["point"] == "prebind" else {}) for step in case.steps]
    [found] = await play(TableCase(case.name, case.begin, steps))
    assert found.startswith("prebind: ours ('Success', '')")
