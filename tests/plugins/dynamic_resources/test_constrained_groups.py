"""DynamicResources at PodGroupPostFilter, for groups with a topology constraint."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from policysched.framework import unschedulable
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import PodGroupPostFilterResult, RejectedGroup
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
    result = rejected(plugin, of, release)
    assert result.status == (GROUP_DONE if frees else unschedulable())
    assert bool(result.cleanups) is frees


def rejected(plugin: DynamicResources, of: PodGroup, release: Release) -> PodGroupPostFilterResult:
    """Return the result for a group with a member whose claim is allocated on a deleted node."""
    around = Cluster(release=release)
    for one in (of, node("n1"), resource_slice("n1", "d1"), allocated(claim("c"), "gone", "d1")):
        around.take(one)
    pod = claiming("c")
    pod = structs.replace(pod, spec=structs.replace(pod.spec, scheduling_group=member().spec.scheduling_group))
    assert around.pod_groups is not None
    around.pod_groups.await_pod(pod)
    decision = Engine(around, profile((plugin,)), random.Random(0)).decide(pod)
    state = CycleState()
    plugin.note_member(pod, FailedCycle(decision, random.Random(0)), state)
    return plugin.pod_group_post_filter(cast("RejectedGroup", SimpleNamespace(group=of, cluster=around, state=state)))
