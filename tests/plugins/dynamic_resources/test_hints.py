"""What brings a pod back that DynamicResources turned away, and what keeps it out of the queue before."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Cluster, Resource, unresolvable
from policysched.model.objects import Pod, ResourceClaim
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from policysched.schedule.queue.hints import Interests
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.subqueues import Backoff
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
from tests.schedule.queue_parts import ByPriority, StandingClock
from tests.work import calls

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


def test_the_claim_that_a_pod_waits_for_may_be_another_one_each_time() -> None:
    plugin, rng = DynamicResources(), Random(5)
    names = [f"c{number}" for number in range(6)]
    waiting = [claiming(*names, name="a"), claiming(*names[:3], name="b"), claiming(*reversed(names), name="c")]
    for _ in range(300):
        there = rng.sample(names, rng.randint(0, 6))
        around = two_nodes(*(claim(one) for one in there))
        for of in waiting:
            wanted = {one.resource_claim_name for one in of.spec.resource_claims}
            status = plugin.pre_enqueue(of, around)
            missing = {f'could not find ResourceClaim "default/{one}"' for one in wanted.difference(there)}
            assert ({status.message} <= missing) if status is not None else not missing


def test_a_pod_of_many_claims_is_kept_out_by_a_look_at_the_one_that_it_waits_for() -> None:
    work = []
    for count in (20, 400):
        around, names = two_nodes(), [f"c{number}" for number in range(count)]
        for one in names[:-1]:
            around.take(claim(one))
        plugin = DynamicResources()
        gated = Interests((plugin,), {plugin.name: plugin.events()})
        held = Queue(StandingClock(), ByPriority(), around, profiles={"p": gated}, backoff=Backoff())
        of = claiming(*names)
        held.add(replace(of, spec=replace(of.spec, scheduler_name="p")))
        assert held.counts().gated == 1
        old, new = claim("c0"), allocated(claim("c0"), "n1", "d1")
        events = (Change(Resource.NODE, Action.UPDATE_NODE_LABEL, node(), node()), of_claim(old, new))
        for event in events:
            held.move(event)
        work.append([calls(lambda held=held, event=event: held.move(event)) for event in events])
        assert held.counts().gated == 1
    assert work[1] == work[0]
