"""Records of schedulers with pod groups: each member is decided again with the earlier members in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.model.release import Release
from tests.app.recording.recorded import completed, recording, replayed
from tests.build import node
from tests.groups import GATED, GATED_38, group, member
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
