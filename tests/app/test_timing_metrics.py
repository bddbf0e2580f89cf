"""Times of extension points, plugins, hints and changes: how they are counted, and what a scheduler measures."""

from __future__ import annotations

import random
import re
from typing import Any

from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.scheduler_metrics import SchedulerMetrics
from policysched.app.running.metrics.state_metrics import StateMetrics
from policysched.app.running.metrics.timing_metrics import TOGETHER, TimingMetrics
from policysched.framework import Code
from policysched.model.objects import SchedulingGate, Taint
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.scheduler import Scheduler
from policysched.schedule.timing import SAMPLE
from policysched.state.cluster import Cluster
from tests.app.test_scheduler_metrics import shown
from tests.build import node, pod
from tests.schedule.out_of_tree import Scripted, profile_with
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock
from tests.schedule.stand import ME
from tests.work import calls


class Ticking(StandingClock):
    """A clock on which every look takes a millisecond."""

    def monotonic(self) -> float:
        self.at += 0.001
        return self.at


def counts(lines: list[str], name: str) -> dict[str, float]:
    """How many values a histogram has, by its labels."""
    found = (re.fullmatch(rf"{name}_count\{{(.*)\}} (\S+)", line) for line in lines)
    return {one[1]: float(one[2]) for one in found if one}


def test_decisions_are_counted_at_once_and_together_alike() -> None:
    metrics = TimingMetrics(StandingClock())
    for number in range(TOGETHER + 7):
        metrics.decided("me", [0.0002, 0.003 if number % 2 else 0.0, 0.0, 0.004])
    lines = shown(metrics)
    found = counts(lines, "scheduler_framework_extension_point_duration_seconds")
    of = 'extension_point="{}",profile="me",status="Success"'
    assert found == {
        of.format("PreFilter"): TOGETHER + 7,
        of.format("Filter"): (TOGETHER + 7) // 2,
        of.format("Score"): TOGETHER + 7,
    }
    bucket = 'scheduler_framework_extension_point_duration_seconds_bucket{{extension_point="PreFilter",le="{}",'
    buckets = {le: [line for line in lines if line.startswith(bucket.format(le))] for le in ("0.0001", "0.0002")}
    assert [line.split()[-1] for line in buckets["0.0001"] + buckets["0.0002"]] == ["0.0", str(float(TOGETHER + 7))]


def test_series_of_deleted_policies_go() -> None:
    metrics = TimingMetrics(StandingClock())
    for name in ("SchedulingPolicy/kept", "SchedulingPolicy/gone", "NodeAffinity"):
        metrics.plugin(name, "Filter", Code.SUCCESS, 0.1)
        metrics.hint(name, "NodeAdd", "Queue", 0.1)
    metrics.keep_policies(frozenset({"kept"}))
    text = "\n".join(shown(metrics))
    assert "SchedulingPolicy/gone" not in text
    assert text.count('plugin="SchedulingPolicy/kept"') == text.count('plugin="NodeAffinity"') > 0


def test_failures_of_volumes_are_counted_by_their_stage() -> None:
    metrics = TimingMetrics(StandingClock())
    metrics.plugin("VolumeBinding", "PreBind", Code.ERROR, 0.1)
    metrics.plugin("VolumeBinding", "PreBind", Code.UNSCHEDULABLE, 0.1)
    metrics.plugin("DefaultBinder", "Bind", Code.ERROR, 0.1)
    lines = [line for line in shown(metrics) if line.startswith("scheduler_volume_")]
    assert lines == ['scheduler_volume_scheduling_stage_error_total{operation="bind"} 1.0']


def test_an_engine_measures_points_always_and_plugins_in_one_of_ten_decisions() -> None:
    metrics, cluster = TimingMetrics(Ticking()), Cluster()
    engine = Engine(cluster, default_profile(ME), random.Random(0), metrics)
    cluster.set_node(node("n1"))
    cluster.set_node(node("n2", taints=[Taint(key="old", effect="PreferNoSchedule")]))
    asked = []
    for number in range(2 * SAMPLE + 1):
        decision = engine.decide(pod(f"p{number}", requests={"cpu": 0.01}))
        assert engine.times is not None
        prepared, filtered, pre_scored, scored = engine.times.seconds
        assert min(prepared, filtered, scored) > 0
        assert (pre_scored > 0) == (number == 0), "a class that is known is not prepared again"
        cluster.assume(decision.pod, decision.row, decision.evaluation.pod_resources)
        found = counts(shown(metrics), "scheduler_plugin_execution_duration_seconds")
        asked.append(found.get('extension_point="Filter",plugin="NodeResourcesFit",status="Success"', 0))
    assert asked == [1] * SAMPLE + [2] * SAMPLE + [3]
    found = counts(shown(metrics), "scheduler_plugin_execution_duration_seconds")
    assert {line.split('"')[1] for line in found} == {
        "PreFilter", "Filter", "PreScore", "Score", "ScoreExtensionNormalize",
    }  # fmt: skip


class OnlyScores:
    """An out-of-tree plugin that has Score and nothing else."""

    name = "S"

    def score(self, *_: object) -> int:
        return 1


def test_out_of_tree_plugins_are_measured_at_each_point_that_they_have() -> None:
    metrics, cluster = TimingMetrics(Ticking()), Cluster()
    for name in ("n1", "n2"):
        cluster.set_node(node(name))
    engine = Engine(cluster, profile_with(Scripted(), OnlyScores()), random.Random(0), metrics)
    for number in range(SAMPLE + 1):
        engine.decide(pod(f"p{number}"))
    found = counts(shown(metrics), "scheduler_plugin_execution_duration_seconds")
    of = 'extension_point="{}",plugin="{}",status="Success"'
    wanted = [(point, "X") for point in ("PreFilter", "Filter", "PreScore", "Score", "ScoreExtensionNormalize")]
    assert {key: found.get(key) for key in (of.format(*one) for one in [*wanted, ("Score", "S")])} == {
        of.format(*one): 2.0 for one in [*wanted, ("Score", "S")]
    }
    assert of.format("PreScore", "S") not in found and of.format("ScoreExtensionNormalize", "S") not in found


def test_gates_are_measured_for_one_of_ten_pods() -> None:
    metrics = TimingMetrics(Ticking())
    scheduler = Scheduler({ME: default_profile(ME)}, FakeClient(), Ticking(), random.Random(0), [], metrics)
    for number in range(SAMPLE + 1):
        gated: dict[str, Any] = {"scheduling_gates": [SchedulingGate("later")]} if number == SAMPLE else {}
        scheduler.take(pod(f"p{number}", **gated))
    found = counts(shown(metrics), "scheduler_plugin_execution_duration_seconds")
    gate = 'extension_point="PreEnqueue",plugin="SchedulingGates",status="{}"'
    assert {key: count for key, count in found.items() if "PreEnqueue" in key and "SchedulingGates" in key} == {
        gate.format("Success"): 1.0,
        gate.format("UnschedulableAndUnresolvable"): 1.0,
    }


def test_an_engine_that_nobody_measures_reads_no_clock() -> None:
    def decisions(engine: Engine) -> int:
        engine.decide(pod("a", requests={"cpu": 0.01}))
        return calls(lambda: engine.decide(pod("b", requests={"cpu": 0.01})), "call")

    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.set_node(node(name))
    off = Engine(cluster, default_profile(ME), random.Random(0))
    on = Engine(cluster, default_profile(ME), random.Random(0), TimingMetrics(StandingClock()))
    assert off.times is None
    without = decisions(off)
    assert without < decisions(on) <= without + 6


async def test_a_scheduler_measures_its_work() -> None:
    clock = Ticking()
    timing, metrics = TimingMetrics(clock), SchedulerMetrics(clock)
    scheduler = Scheduler({ME: default_profile(ME)}, FakeClient(), clock, random.Random(0), [metrics], timing)
    scheduler.take(node("n1"))
    scheduler.take(pod("small", requests={"cpu": 0.1}))
    scheduler.take(pod("huge", requests={"cpu": 10000}))
    while (queued := scheduler.queue.pop()) is not None:
        await scheduler.attempts.make(queued)
    scheduler.take(node("n1", labels={"a": "b"}))
    scheduler.take(node("n2"))
    lines = shown(timing, metrics, StateMetrics(scheduler))
    changes = counts(lines, "scheduler_event_handling_duration_seconds")
    assert changes['event="NodeAdd"'] == 2
    assert changes['event="UnscheduledPodAdd"'] == 2
    points = counts(lines, "scheduler_framework_extension_point_duration_seconds")
    assert {line.split('"')[1] for line in points} >= {"PreEnqueue", "PreFilter", "Filter", "Score", "PostFilter"}
    hints = counts(lines, "scheduler_queueing_hint_execution_duration_seconds")
    assert hints == {'event="NodeAdd",hint="QueueSkip",plugin="NodeResourcesFit"': 1}
    assert 'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1.0' in lines
    assert "scheduler_preemption_attempts_total 1.0" in lines
    assert 'scheduler_cache_size{type="assumed_pods"} 1.0' in lines
    evaluated = [line for line in lines if line.startswith("scheduler_plugin_evaluation_total{")]
    of = f'{{extension_point="Filter",plugin="NodeResourcesFit",profile="{ME}"}}'
    assert f"scheduler_plugin_evaluation_total{of} 2.0" in evaluated
    assert 'scheduler_inflight_events{event="PodPopped"} 0.0' in lines
    await scheduler.attempts.finish(1)
