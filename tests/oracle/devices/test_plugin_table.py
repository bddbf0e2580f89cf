"""Kubernetes' own cases for the plugin, played with ours: what each point says, and what is stored and in flight after.

Left out are the cases whose features are not those of a kube-scheduler by default; they are counted and named here.
"""

from __future__ import annotations

import pytest

from policysched.model.release import RELEASES
from tests.controlplane.releases import RELEASES as BUILT
from tests.controlplane.releases import compared

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
"""Cases of worlds that are no kube-scheduler with its defaults, and what these are."""
UNPLAYED = {
    "allocated-skip-node-operations-missing-feature": "a claim from a cluster with DRAOptionalNodeOperations",
    "allocated-skip-node-operations-with-feature": "a claim from a cluster with DRAOptionalNodeOperations",
    "bind-failure-concurrent-deallocation": "a claim in flight after a failed PreBind, which ends it here",
    "bind-failure-preserves-inflight-until-unreserve": "a claim in flight after a failed PreBind, which ends it here",
    "extended-resource-name-claim-creation-failure": "a claim in flight after a failed PreBind, which ends it here",
    "postfilter-skip-deallocate-reserved-podgroup-feature-disabled": "a text of a point for pod groups",
}
"""Cases of 1.37 that are not played, and what they are about."""
PLAYED = {"1.36": 66, "1.37": 63}
"""How many are played, by minor."""


def is_usual(case: TableCase) -> bool:
    """Whether a case is one of the features that kube-scheduler has by default."""
    return case.name not in OTHER_WORLDS and not any(case.begin["features"][name] for name in ALPHA)


@pytest.mark.parametrize("minor", compared())
async def test_every_usual_case_is_played_as_by_kubernetes(minor: str) -> None:
    unplayed = UNPLAYED if minor != "1.36" else {}
    cases = [case for case in table(BUILT[minor]) if is_usual(case) and case.name not in unplayed]
    assert len(cases) == PLAYED[minor]
    differing = {case.name: found for case in cases if (found := await play(case, RELEASES[minor]))}
    assert not differing


@pytest.mark.parametrize("minor", compared())
async def test_table_notices_another_answer(minor: str) -> None:
    [case] = [one for one in table(BUILT[minor]) if one.name == "with-resources"]
    release = RELEASES[minor]
    steps = [step | ({"inFlight": None} if step["point"] == "reserve" else {}) for step in case.steps]
    [found] = await play(TableCase(case.name, case.begin, steps), release)
    assert found.startswith("reserve: ours left")
    steps = [step | ({"code": "Error"} if step["point"] == "prebind" else {}) for step in case.steps]
    [found] = await play(TableCase(case.name, case.begin, steps), release)
    assert found.startswith("prebind: ours ('Success', '')")
