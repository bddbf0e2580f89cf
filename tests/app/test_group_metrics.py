"""Metrics about attempts of pod groups, with the labels of each release."""

from __future__ import annotations

import pytest

from policysched.app.running.metrics.group_metrics import GroupMetrics
from policysched.model.release import Release
from tests.app.test_scheduler_metrics import shown
from tests.build import node
from tests.groups import GATED, GATED_38, group, member
from tests.schedule.groups.parts import members, submit
from tests.schedule.stand import ME, running


@pytest.mark.parametrize(("release", "entity"), [(GATED, ""), (GATED_38, 'entity="podgroup",')], ids=["1.37", "1.38"])
async def test_attempts_of_groups_are_counted_by_result(release: Release, entity: str) -> None:
    metrics = GroupMetrics(release)
    async with running(node("n1"), release=release, observers=[metrics]) as stand:
        await submit(stand, group(least=2), *members(2))
        await submit(stand, group("h", least=1), member("big", "h", requests={"cpu": 9}))
        await submit(stand, group("i", least=1, priority=7), member("odd", "i"))
        lines = shown(metrics)
    results = [f'{{{entity}profile="{ME}",result="{result}"}}' for result in ("scheduled", "unschedulable", "error")]
    for result in results[:2]:
        assert f"scheduler_podgroup_schedule_attempts_total{result} 1.0" in lines
        assert f"scheduler_podgroup_scheduling_attempt_duration_seconds_count{result} 1.0" in lines
    assert not any(results[2] in line for line in lines)
    algorithm = f'{{{entity}profile="{ME}"}}' if entity else ""
    assert f"scheduler_podgroup_scheduling_algorithm_duration_seconds_count{algorithm} 2.0" in lines
