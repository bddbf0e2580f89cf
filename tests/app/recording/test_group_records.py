"""Records of schedulers with pod groups: each member is decided again with the earlier members in place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.app.replay.replay import Walk
from policysched.app.replay.replayed_state import ReplayedState
from policysched.app.replay.results import Replayed
from policysched.framework.registry import PluginRegistry
from policysched.model.release import Release
from policysched.schedule.groups.dry_run import GroupDryRun
from policysched.schedule.groups.outcomes import GroupResult
from tests.app.recording.recorded import completed, recording, replayed
from tests.build import node, pod
from tests.groups import GATED, GATED_38, TOPOLOGY, TOPOLOGY_38, group, member
from tests.plugins.dynamic_resources.objects import claim, claiming, gpu_class, resource_slice
from tests.schedule.groups.parts import members, of_group, submit
from tests.schedule.soak import ME


@pytest.mark.parametrize("release", [GATED, GATED_38], ids=["1.37", "1.38"])
async def test_members_are_decided_as_recorded(tmp_path: Path, release: Release) -> None:
    profile = default_profile(ME, release=release)
    configuration = completed({"schedulerName": ME}, release=release)
    async with recording(tmp_path, profile, configuration, release) as stand:
        for one in (node("n1"), gpu_class(), resource_slice("n1", "d1"), claim("c")):
            stand.scheduler.take(one)
        await submit(stand, group(least=2), *(of_group(claiming("c", name=f"d{number}")) for number in range(2)))
        await submit(stand, group("h", least=6), *members(6, "h"))
        assert stand.bound == {"d0": "n1", "d1": "n1"}
        stand.scheduler.take(node("n2"))
        await stand.pass_time(30)
        await stand.settled(member("late", "h", requests={"cpu": 1}))
        assert len(stand.bound) == 9
    found = replayed(tmp_path)
    assert ([one.to_dict() for one in found.differences], found.failures) == ([], [])
    assert found.decisions == 2 + 5 + 6 + 1
    assert found.groups == 4


async def _recorded_preemption(folder: Path) -> None:
    """Record a gang that fits no node, preempts a pod, and is placed."""
    profile = default_profile(ME, release=GATED_38)
    async with recording(folder, profile, completed({"schedulerName": ME}, release=GATED_38), GATED_38) as stand:
        stand.scheduler.take(node("n1"))
        stand.scheduler.set_pod(pod("low", on="n1", requests={"cpu": 3}, priority=-1))
        await submit(stand, group(least=3), *members(3))
        stand.scheduler.remove_pod("default.low")
        await stand.pass_time(30)
        assert len(stand.bound) == 3


async def test_verdict_victims_and_nominations_of_groups_are_decided_again(tmp_path: Path) -> None:
    await _recorded_preemption(tmp_path)
    found = replayed(tmp_path)
    assert ([one.to_dict() for one in found.differences], found.failures) == ([], [])
    assert found.groups == 2
    assert found.to_dict()["podGroups"] == 2


async def test_another_verdict_is_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await _recorded_preemption(tmp_path)
    attempt = GroupDryRun.attempt

    def altered(dry_run: GroupDryRun) -> GroupResult | None:
        found = attempt(dry_run)
        return None if found is None else replace(found, message="another message", victims=())

    monkeypatch.setattr(GroupDryRun, "attempt", altered)
    found = replayed(tmp_path)
    assert {(one.pod, one.what) for one in found.differences} == {
        ("pod group default/g", "message"),
        ("pod group default/g", "victims"),
    }


async def test_waiting_members_and_the_gate_are_in_a_snapshot(tmp_path: Path) -> None:
    await _recorded_preemption(tmp_path)
    state = ReplayedState(PluginRegistry())
    for _ in Walk(state, Replayed()).entries([tmp_path]):
        pass
    groups = state.cluster.pod_groups
    assert groups is not None
    known = groups.get("default/g")
    assert known is not None
    assert (known.scheduled_count, known.count) == (3, 3)


@pytest.mark.parametrize("release", [TOPOLOGY, TOPOLOGY_38], ids=["1.37", "1.38"])
async def test_placements_are_drawn_and_chosen_as_recorded(tmp_path: Path, release: Release) -> None:
    """Six equal racks: the order of the placements and the rack of equal ones are random."""
    profile = default_profile(ME, release=release)
    configuration = completed({"schedulerName": ME}, release=release)
    async with recording(tmp_path, profile, configuration, release) as stand:
        for number in range(12):
            stand.scheduler.take(node(f"n{number}", labels={"rack": f"r{number // 2}"}))
        for name in ("g", "h", "i"):
            pods = [member(f"{name}{number}", name, requests={"cpu": 1}) for number in range(4)]
            await submit(stand, group(name, least=4, key="rack"), *pods)
        await submit(stand, group("large", least=9, key="rack"), *members(9, "large"))
        assert len(stand.bound) == 12
    found = replayed(tmp_path)
    assert ([one.to_dict() for one in found.differences], found.failures) == ([], [])
    assert found.groups == 4
