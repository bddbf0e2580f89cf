"""What brings a pod back that DynamicResources turned away, and what keeps it out of the queue before."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Cluster, Resource, unresolvable
from policysched.model.objects import Pod, ResourceClaim
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import node, pod
from tests.plugins.ask import hinted
from tests.plugins.dynamic_resources.objects import (
    allocated,
    changed,
    claim,
    claiming,
    gpu_class,
    resource_slice,
    templated,
    two_nodes,
)

MINE, OTHER = claim("mine"), claim("other")


def helps(of: Pod, change: Change, *claims: ResourceClaim) -> bool:
    return hinted(DynamicResources(), of, change, two_nodes(*claims))


def of_claim(old: ResourceClaim | None, new: ResourceClaim | None) -> Change:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE_OTHER
    return Change(Resource.RESOURCE_CLAIM, action, old, new)


CHANGES: dict[str, tuple[Change, bool]] = {
    "its claim comes": (of_claim(None, MINE), True),
    "another comes": (of_claim(None, OTHER), False),
    "its claim is allocated": (of_claim(MINE, allocated(MINE, "n1", "d1")), True),
    "another is allocated": (of_claim(OTHER, allocated(OTHER, "n1", "d1")), False),
    "another gives devices back": (of_claim(allocated(OTHER, "n1", "d1"), OTHER), True),
    "another with devices is gone": (of_claim(allocated(OTHER, "n1", "d1"), None), True),
    "another without devices is gone": (of_claim(OTHER, None), False),
    "nothing of its status changes": (
        of_claim(MINE, replace(MINE, metadata=replace(MINE.metadata, finalizers=("x",)))),
        False,
    ),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_claims_help_that_the_pod_waits_for_or_that_give_devices_back(change: Change, expected: bool) -> None:
    assert helps(claiming("mine"), change, MINE, OTHER) is expected
    assert not helps(claiming("mine", "missing"), change, MINE, OTHER)


def test_a_pods_own_status_helps_once_it_names_claims_that_are_there() -> None:
    before, after = templated(known=False), templated("made")
    change = Change(Resource.PENDING_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, before, after)
    assert helps(before, change, claim("made", owner=after))
    assert not helps(before, change)
    assert not helps(claiming("made", name="other"), change, claim("made", owner=after))


@pytest.mark.parametrize(
    ("resource", "new", "action", "expected"),
    [
        (Resource.NODE, node(), Action.ADD, True),
        (Resource.NODE, node(), Action.UPDATE_NODE_LABEL, True),
        (Resource.NODE, node(), Action.UPDATE_NODE_ALLOCATABLE, True),
        (Resource.NODE, node(), Action.UPDATE_NODE_TAINT, False),
        (Resource.DEVICE_CLASS, gpu_class(), Action.ADD, True),
        (Resource.DEVICE_CLASS, gpu_class(), Action.UPDATE_OTHER, True),
        (Resource.DEVICE_CLASS, None, Action.DELETE, False),
        (Resource.RESOURCE_SLICE, resource_slice("n1"), Action.ADD, True),
        (Resource.RESOURCE_SLICE, resource_slice("n1"), Action.UPDATE_OTHER, True),
        (Resource.RESOURCE_SLICE, None, Action.DELETE, False),
        (Resource.ASSIGNED_POD, None, Action.DELETE, False),
    ],
)
def test_what_may_bring_devices_helps(resource: Resource, new: Any, action: Action, expected: bool) -> None:
    assert helps(pod(), Change(resource, action, None, new)) is expected


def test_a_pod_stays_out_of_the_queue_until_its_claims_are_there() -> None:
    plugin = DynamicResources()
    assert plugin.pre_enqueue(pod(), Cluster()) is None
    assert plugin.pre_enqueue(claiming("mine"), two_nodes(MINE)) is None
    assert plugin.pre_enqueue(claiming("mine"), two_nodes()) == unresolvable(
        'could not find ResourceClaim "default/mine"'
    )
    assert plugin.pre_enqueue(claiming("mine"), two_nodes(changed(MINE))) is None
