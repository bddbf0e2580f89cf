"""Metrics about attempts of pod groups, with the labels of each release."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.group_metrics import GroupMetrics
from policysched.app.running.metrics.group_preemption_metrics import GroupVictims
from policysched.app.running.metrics.timing_metrics import TimingMetrics
from policysched.model.release import Release
from policysched.schedule.queue.queued_pod_group import QueuedPodGroup
from policysched.schedule.scheduler import Scheduler
from policysched.state.cluster import Cluster
from tests.app.test_scheduler_metrics import shown
from tests.app.test_timing_metrics import Ticking
from tests.build import node, pod
from tests.groups import GATED, GATED_38, TOPOLOGY, TOPOLOGY_38, group, member
from tests.plugins.inter_pod_affinity.build import label
from tests.plugins.preempting import budget
from tests.schedule.groups.parts import members, submit
from tests.schedule.groups.test_group_preemption import WHOLE
from tests.schedule.parts import FakeClient
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


async def test_attempt_of_a_group_that_preempts_has_a_result_of_its_own() -> None:
    metrics = GroupMetrics(GATED_38)
    async with running(node("n1"), release=GATED_38, observers=[metrics]) as stand:
        stand.scheduler.set_pod(pod("low", on="n1", requests={"cpu": 4}))
        await submit(stand, group(least=1, priority=5), member(priority=5, requests={"cpu": 4}))
        lines = shown(metrics)
    labels = f'entity="podgroup",profile="{ME}",result="waiting_on_preemption"'
    assert f"scheduler_podgroup_schedule_attempts_total{{{labels}}} 1.0" in lines


async def preempting(release: Release) -> list[str]:
    """Return the metrics of a scheduler in which a group and a pod preempted others."""
    timing, victims = TimingMetrics(Ticking(), release), GroupVictims(release)
    cluster, profiles = Cluster(release=release), {ME: default_profile(ME, release=release)}
    scheduler = Scheduler(profiles, FakeClient(), Ticking(), random.Random(0), [victims], timing, cluster)
    full: Any = {"requests": {"cpu": 4}}
    for one in (
        *(node(f"n{number}") for number in range(3)),
        node("small", allocatable={"cpu": 3}),
        budget("x", label("app", "x")),
        group("old", 1, disruption_mode=WHOLE),
        *(member(f"old-{number}", "old", on=f"n{number}", labels={"app": "x"}, **full) for number in range(2)),
        pod("single", on="n2", **full),
        pod("protected", on="small", labels={"app": "x"}, requests={"cpu": 3}),
        group(least=3, priority=5),
        *members(3, priority=5, **full),
        group("h", least=1, priority=-9),
        member("none", "h", priority=-9, **full),
    ):
        scheduler.take(one)
    await until_empty(scheduler)
    for number, name in enumerate(("old-0", "old-1", "single")):
        cluster.remove_pod(f"default.{name}")
        cluster.set_pod(pod(f"new-{name}", priority=5, on=f"n{number}", **full))
    scheduler.take(pod("high", priority=1, requests={"cpu": 3}))
    await until_empty(scheduler)
    await scheduler.attempts.finish(1)
    return shown(timing, victims)


async def until_empty(scheduler: Scheduler) -> None:
    """Make the attempts of all active pods and groups."""
    while (queued := scheduler.queue.pop()) is not None:
        if isinstance(queued, QueuedPodGroup):
            assert scheduler.group_attempts is not None
            await scheduler.group_attempts.make(queued)
        else:
            await scheduler.attempts.make(queued)


@pytest.mark.parametrize("release", [GATED, GATED_38], ids=["1.37", "1.38"])
async def test_preemption_by_groups_and_pods_is_counted(release: Release) -> None:
    lines, named = await preempting(release), release is GATED_38
    of_group, group_and = ('{preemptor="podgroup"}', 'preemptor="podgroup",') if named else ("", "")
    found = [one for one in lines if "preemption" in one and not any(end in one for end in ("_bucket", "_sum", "_cre"))]
    assert f'scheduler_workload_preemption_attempts_total{{{group_and}result="Success"}} 1.0' in found
    rejected = "Unschedulable" if named else "UnschedulableAndUnresolvable"
    assert f'scheduler_workload_preemption_attempts_total{{{group_and}result="{rejected}"}} 1.0' in found
    assert f"scheduler_workload_preemption_victims_count{of_group} 1.0" in found
    assert f"scheduler_workload_preemption_victims_sum{of_group} 3.0" in lines
    units = "scheduler_preemption_workload_disruptions_sum"
    if named:
        assert f'{units}{{preemptor="podgroup",victim="podgroup"}} 1.0' in lines
        assert f'{units}{{preemptor="podgroup",victim="pod"}} 1.0' in lines
    else:
        assert f'{units}{{preemptor="podgroup"}} 1.0' in lines
    assert 'scheduler_preemption_pdb_violations_total{preemptor="podgroup"} 2.0' in found
    assert 'scheduler_preemption_pdb_violations_total{preemptor="pod"} 1.0' in found
    for kind in ("pod", "podgroup"):
        success = f'{{preemptor="{kind}",result="Success"}} 1.0'
        assert f"scheduler_preemption_evaluation_duration_seconds_count{success}" in found
        evicted = f'{{preemptor="{kind}",result="success"}} 1.0'
        assert f"scheduler_preemption_execution_duration_seconds_count{evicted}" in found
    without = f'scheduler_preemption_evaluation_duration_seconds_count{{preemptor="podgroup",result="{rejected}"}} 1.0'
    assert (without in found) is not named


async def test_durations_of_the_points_of_groups_are_recorded() -> None:
    timing, cluster = TimingMetrics(Ticking(), GATED_38), Cluster(release=GATED_38)
    profiles = {ME: default_profile(ME, release=GATED_38)}
    scheduler = Scheduler(profiles, FakeClient(), Ticking(), random.Random(0), [], timing, cluster)
    for one in (node("n1"), group(least=5), *members(5)):
        scheduler.take(one)
    queued = scheduler.queue.pop()
    assert isinstance(queued, QueuedPodGroup)
    assert scheduler.group_attempts is not None
    await scheduler.group_attempts.make(queued)
    counts = [
        line for line in shown(timing) if line.startswith("scheduler_framework_extension_point_duration_seconds_c")
    ]
    found = {(line.split('"')[1], line.split('"')[5]): float(line.split()[-1]) for line in counts}
    assert found["PlacementFeasible", "Wait"] == 5
    assert found["PlacementFeasible", "Unschedulable"] == 1
    assert found["PodGroupPostFilter", "Unschedulable"] == 1
    await scheduler.attempts.finish(1)


@pytest.mark.parametrize(
    ("release", "entity"), [(TOPOLOGY, ""), (TOPOLOGY_38, 'entity="podgroup",')], ids=["1.37", "1.38"]
)
async def test_placements_are_counted(release: Release, entity: str) -> None:
    metrics, key = GroupMetrics(release), "example.com/rack"
    nodes = [node(f"n{number}", labels={key: f"r{number}"}, allocatable={"cpu": str(number)}) for number in (1, 2, 3)]
    async with running(*nodes, release=release, observers=[metrics]) as stand:
        await submit(stand, group(least=2, key=key), *members(2))
        lines = shown(metrics)
    assert f'scheduler_generated_placements_total{{{entity}profile="{ME}"}} 3.0' in lines
    for result, count in (("feasible", 2), ("infeasible", 1)):
        labels = f'{{{entity}profile="{ME}",result="{result}"}}'
        assert f"scheduler_placement_evaluations_total{labels} {count}.0" in lines
        assert f"scheduler_placement_evaluation_duration_seconds_count{labels} {count}.0" in lines


def test_without_topologies_placements_have_no_metrics() -> None:
    assert not any("placement" in line for line in shown(GroupMetrics(GATED_38)))
