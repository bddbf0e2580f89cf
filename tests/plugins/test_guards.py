"""The guards and DynamicResources: what they turn away, and that they let everything else through."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Action, Change, Cluster, Resource, Status, unresolvable, unschedulable
from policysched.model.objects import (
    DeviceClass,
    DeviceClassSpec,
    LabelSelector,
    Metadata,
    Pod,
    PodResourceClaim,
    Volume,
)
from policysched.model.volumes import (
    AWSDisk,
    AzureDisk,
    AzureFile,
    CinderDisk,
    ClaimSource,
    CSISource,
    EphemeralSource,
    GCEDisk,
    ImageSource,
    ISCSIDisk,
    PortworxDisk,
    RBDImage,
    VSphereDisk,
)
from policysched.plugins import plugin_named
from policysched.plugins.dynamic_resources import DynamicResources
from policysched.plugins.guards import Guard
from tests.build import cluster, node, pod
from tests.plugins.ask import filtered, hinted, scored

WEB = LabelSelector(match_labels={"app": "web"})
GPU = "example.com/gpu"


def guard(name: str) -> Guard:
    made = plugin_named(name)
    assert isinstance(made, Guard)
    return made


def reasons(answer: object) -> tuple[str, ...]:
    """The reasons of a rejection, none for a pod that is skipped."""
    if answer is SKIP:
        return ()
    assert isinstance(answer, Status)
    assert answer == unresolvable(*answer.reasons)
    return answer.reasons


CLAIMS = "policysched does not support persistent volume claims and ephemeral volumes yet"
DISKS = "policysched does not support disks named in the pod itself yet: volume v"
GUARDS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")


@pytest.mark.parametrize(
    ("source", "by"),
    [
        ({}, {}),
        ({"csi": CSISource()}, {}),
        ({"image": ImageSource()}, {}),
        ({"persistent_volume_claim": ClaimSource()}, dict.fromkeys(("VolumeBinding", "VolumeZone"), CLAIMS)),
        ({"ephemeral": EphemeralSource()}, dict.fromkeys(("VolumeBinding", "VolumeZone"), CLAIMS)),
        ({"gce_persistent_disk": GCEDisk()}, {"VolumeRestrictions": DISKS}),
        ({"aws_elastic_block_store": AWSDisk()}, {"VolumeRestrictions": DISKS}),
        ({"iscsi": ISCSIDisk()}, {"VolumeRestrictions": DISKS}),
        ({"rbd": RBDImage()}, {"VolumeRestrictions": DISKS}),
        ({"azure_disk": AzureDisk()}, {"NodeVolumeLimits": DISKS}),
        ({"azure_file": AzureFile()}, {"NodeVolumeLimits": DISKS}),
        ({"cinder": CinderDisk()}, {"NodeVolumeLimits": DISKS}),
        ({"vsphere_volume": VSphereDisk()}, {"NodeVolumeLimits": DISKS}),
        ({"portworx_volume": PortworxDisk()}, {"NodeVolumeLimits": DISKS}),
    ],
)
def test_volume_guards_take_what_is_theirs(source: dict[str, Any], by: dict[str, str]) -> None:
    incoming = pod(volumes=[Volume(name="plain"), Volume(name="v", **source)])
    answers = {name: reasons(filtered(guard(name), incoming, cluster(node()))) for name in GUARDS}
    assert answers == {name: (by[name],) if name in by else () for name in GUARDS}


def test_guard_has_no_state_to_be_asked_about() -> None:
    plugin = guard("VolumeBinding")
    with pytest.raises(RuntimeError, match="VolumeBinding prepared no state"):
        plugin.filter(None, slice(0, 1))
    with pytest.raises(RuntimeError, match="VolumeBinding gave no reason codes"):
        plugin.reason(None, 1)


def device_class(name: str, resource: str | None) -> DeviceClass:
    return DeviceClass(metadata=Metadata(name=name), spec=DeviceClassSpec(extended_resource_name=resource))


def test_dynamic_resources_scores_nothing_and_finds_nothing_to_take_back() -> None:
    plugin = DynamicResources()
    assert filtered(plugin, pod(), cluster(node())) is SKIP
    assert scored(plugin, pod(), cluster(node("a"), node("b"))) == {"a": 0, "b": 0}
    assert plugin.post_filter(pod()) == unschedulable("no new claims to deallocate")


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
    before = plugin.epoch(state)
    assert not hinted(plugin, incoming, change, state)
    state.remove_device_class("gpus")
    assert hinted(plugin, incoming, change, state)
    assert not hinted(plugin, pod(resource_claims=[PodResourceClaim(name="c")]), change, state)
    assert plugin.epoch(state) != before


def test_guards_reject_whole_pods_before_any_node() -> None:
    claiming: Pod = pod(volumes=[Volume(name="v", persistent_volume_claim=ClaimSource(claim_name="c"))])
    assert isinstance(guard("VolumeBinding").prepare_filter(claiming, Cluster()), Status)
