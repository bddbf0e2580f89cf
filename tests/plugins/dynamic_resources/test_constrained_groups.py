"""DynamicResources at PodGroupPostFilter, for groups with a topology constraint."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from policysched.framework import unschedulable
from policysched.model.objects import PodGroup
from policysched.model.release import Release
from policysched.plugins.dynamic_resources.plugin import GROUP_DONE, DynamicResources
from policysched.plugins.registry import plugin_named
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from policysched.state.cluster import Cluster
from tests.build import node
from tests.groups import GATED_38, TOPOLOGY, TOPOLOGY_38, group, member
from tests.plugins.dynamic_resources.objects import allocated, claim, claiming, resource_slice
from tests.schedule.parts import profile


@pytest.mark.parametrize(
    ("release", "of", "frees"),
    [
        (TOPOLOGY_38, group(key="zone"), False),
        (TOPOLOGY_38, group(), True),
        (GATED_38, group(key="zone"), True),
        (TOPOLOGY, group(key="zone"), False),
        (TOPOLOGY, group(), True),
    ],
)
def test_claims_of_constrained_groups_stay(release: Release, of: PodGroup, frees: bool) -> None:
    plugin: Any = plugin_named("DynamicResources", release=release)
    result = plugin.pod_group_post_filter(SimpleNamespace(group=of))
    assert result.status == (GROUP_DONE.status if frees else unschedulable())
    assert cleans(plugin, of, release) is frees


def cleans(plugin: DynamicResources, of: PodGroup, release: Release) -> bool:
    """Whether a claim that is allocated on a deleted node is deallocated for a member."""
    around = Cluster(release=release)
    for one in (of, node("n1"), resource_slice("n1", "d1"), allocated(claim("c"), "gone", "d1")):
        around.take(one)
    pod = claiming("c")
    pod = structs.replace(pod, spec=structs.replace(pod.spec, scheduling_group=member().spec.scheduling_group))
    assert around.pod_groups is not None
    around.pod_groups.await_pod(pod)
    decision = Engine(around, profile((plugin,)), random.Random(0)).decide(pod)
    return bool(plugin.cleanups(pod, FailedCycle(decision, random.Random(0))))
