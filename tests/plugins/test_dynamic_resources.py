"""DynamicResources: what it turns away, and that it lets everything else through."""

from __future__ import annotations

import random

import pytest

from policysched.framework import SKIP, Action, Change, Cluster, Code, Resource, Status, unresolvable, unschedulable
from policysched.model.objects import (
    LabelSelector,
    PodResourceClaim,
)
from policysched.plugins.dynamic_resources import DynamicResources
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from tests.build import cluster, device_class, node, pod
from tests.plugins.ask import filtered, hinted, scored
from tests.schedule.parts import FakeFilter, profile

WEB = LabelSelector(match_labels={"app": "web"})
GPU = "example.com/gpu"


def reasons(answer: object) -> tuple[str, ...]:
    """The reasons of a rejection, none for a pod that is skipped."""
    if answer is SKIP:
        return ()
    assert isinstance(answer, Status)
    assert answer == unresolvable(*answer.reasons)
    return answer.reasons


def test_it_has_no_state_to_be_asked_about() -> None:
    plugin = DynamicResources()
    with pytest.raises(RuntimeError, match="DynamicResources prepared no state"):
        plugin.filter(None, slice(0, 1))
    with pytest.raises(RuntimeError, match="DynamicResources gave no reason codes"):
        plugin.reason(None, 1)


def test_dynamic_resources_scores_nothing_and_finds_nothing_to_take_back() -> None:
    plugin = DynamicResources()
    assert filtered(plugin, pod(), cluster(node())) is SKIP
    assert scored(plugin, pod(), cluster(node("a"), node("b"))) == {"a": 0, "b": 0}
    assert after_filters(plugin) == unschedulable("no new claims to deallocate")


def after_filters(plugin: DynamicResources, *others: FakeFilter) -> Status | None:
    """Return what it says at PostFilter, having been asked at PreFilter after others."""
    decision = Engine(cluster(node("a")), profile([*others, plugin]), random.Random(0)).decide(pod())
    return plugin.post_filter(pod(), FailedCycle(decision, random.Random(0))).status


def test_dynamic_resources_fails_where_pre_filter_ended_before_it() -> None:
    plugin = DynamicResources()
    assert after_filters(plugin, FakeFilter("Other", unresolvable("no"))) == Status(Code.ERROR, ("not found",))
    assert after_filters(plugin, FakeFilter("Other", unschedulable("no"))) == unschedulable(
        "no new claims to deallocate"
    )


def test_dynamic_resources_turns_away_pods_with_claims() -> None:
    answer = filtered(DynamicResources(), pod(resource_claims=[PodResourceClaim(name="c")]), cluster(node()))
    assert reasons(answer) == ("policysched does not support resource claims yet",)


@pytest.mark.parametrize(
    ("requests", "named"),
    [
        ({}, None),
        ({"cpu": "1", "other.com/gpu": "1"}, None),
        ({GPU: "0"}, None),
        ({GPU: "1"}, GPU),
        ({"deviceclass.resource.kubernetes.io/gpus": "1"}, "deviceclass.resource.kubernetes.io/gpus"),
        ({"deviceclass.resource.kubernetes.io/none": "1"}, None),
    ],
)
def test_dynamic_resources_turns_away_resources_of_a_device_class(requests: dict[str, str], named: str | None) -> None:
    state = cluster(node(allocatable={GPU: "4"}))
    state.set_device_class(device_class("gpus", GPU))
    text = f"policysched does not support extended resources of a device class yet: {named} is one of device class gpus"
    assert reasons(filtered(DynamicResources(), pod(requests=requests), state)) == ((text,) if named else ())


def test_dynamic_resources_waits_for_the_device_class_to_go() -> None:
    state = Cluster()
    plugin, incoming = DynamicResources(), pod(requests={GPU: "1"})
    change = Change(Resource.DEVICE_CLASS, Action.DELETE)
    state.set_device_class(device_class("gpus", GPU))
    before = plugin.generation(state)
    assert not hinted(plugin, incoming, change, state)
    state.remove_device_class("gpus")
    assert hinted(plugin, incoming, change, state)
    assert not hinted(plugin, pod(resource_claims=[PodResourceClaim(name="c")]), change, state)
    assert plugin.generation(state) != before
