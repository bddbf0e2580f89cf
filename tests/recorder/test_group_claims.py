"""Pods of groups share resource claims as in kube-scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.model.release import RELEASES
from tests.oracle.minors import WITH_GROUPS
from tests.recorder import ours
from tests.recorder.group_claim_tables import ALIKE, SHARED
from tests.recorder.judge import disagreement
from tests.recorder.theirs import KubeScheduler

MINORS = pytest.mark.parametrize("minor", ["1.37", "1.38"])
CLAIMS_FREED = "deallocation of PodGroup ResourceClaim completed"


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize("name", ALIKE)
def test_claims_of_groups_are_those_of_kube_scheduler(orderly: KubeScheduler, name: str) -> None:
    assert disagreement(orderly, ALIKE[name], runs=1) == []


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize("name", SHARED)
def test_members_that_share_end_as_in_kube_scheduler(orderly: KubeScheduler, name: str) -> None:
    mine, theirs = ours.play(SHARED[name], RELEASES[orderly.release.minor]), orderly.play(SHARED[name])
    assert ends(mine) == ends(theirs)


def ends(outcome: Any) -> Any:
    """Return where pods end, and claims with their devices and users."""
    pods = {one["pod"]: one["node"] for one in outcome["pods"]}
    return pods, [(one["claim"], one["devices"], set(one["reserved"])) for one in outcome["claims"]]


def condition(outcome: Any) -> list[str]:
    """Return status, reason and message of the condition of the only group."""
    [found] = outcome["groups"]
    told: list[str] = found["condition"]
    return told[:3]


@MINORS
def test_members_share_a_claim_that_is_reserved_for_their_group(minor: str) -> None:
    outcome = ours.play(SHARED["members share"], RELEASES[minor])
    assert ends(outcome) == ({f"p{number}": "n1" for number in range(3)}, [("c", ["n1/gpu-0"], {"g"})])
    assert [one["reason"] for one in outcome["events"]] == ["Scheduled"] * 3


@MINORS
def test_a_claim_for_half_of_the_members_gives_one_condition_and_nothing_is_held(minor: str) -> None:
    outcome = ours.play(ALIKE["half of the members"], RELEASES[minor])
    status, reason, message = condition(outcome)
    assert (status, reason) == ("False", "Unschedulable")
    assert "2 scheduled" in message
    assert message.endswith(CLAIMS_FREED)
    assert sum("group" in one for one in outcome["writes"]) == 1
    assert ends(outcome) == ({f"p{number}": "" for number in range(4)}, [("c", [], set())])


@MINORS
def test_the_claim_of_a_group_without_placed_members_is_released(minor: str) -> None:
    outcome = ours.play(SHARED["large members, reserved claim"], RELEASES[minor])
    told = [one["condition"][2] for one in outcome["writes"] if "group" in one and one["condition"][0] == "False"]
    assert told[0].endswith("ResourceClaim unreserved for PodGroup")
    assert told[1].endswith("deallocation and deletion of ResourceClaims completed")
    assert ends(outcome)[1] == [("c", ["n1/gpu-0"], {"g"})]


@MINORS
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("claim of another entry is not made", "PodGroup default/g: ResourceClaim not created yet"),
        ("claim of another entry is missing", 'could not find ResourceClaim "default/x"'),
    ],
)
def test_a_missing_claim_of_a_rejected_group_is_an_error(minor: str, name: str, message: str) -> None:
    said = f'error in "DynamicResources" PodGroupPostFilter plugins: {message}'
    assert condition(ours.play(ALIKE[name], RELEASES[minor])) == ["False", "SchedulerError", said]


@MINORS
def test_without_the_gate_claims_are_those_of_pods(minor: str) -> None:
    assert ends(ours.play(ALIKE["without the gate, by name"], RELEASES[minor]))[1] == [("c", ["n1/gpu-0"], {"p"})]
    assert ends(ours.play(ALIKE["without the gate"], RELEASES[minor])) == ({"p": ""}, [("c", [], set())])
