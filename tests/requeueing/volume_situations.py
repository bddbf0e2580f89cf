"""Situations of the plugins that read volumes: zones, restrictions, binding, limits."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.objects import Json, node
from tests.requeueing.situations import (
    ZONE,
    Change,
    Create,
    Delete,
    Situation,
    Waiting,
    annotated,
    attachment,
    capacity,
    claim,
    claims,
    csi_driver,
    csi_node,
    device_class,
    host,
    labelled,
    placed,
    rejected,
    situation,
    storage_class,
    volume,
    with_fields,
    with_spec,
)

DRIVER: Final = "disks.example.com"
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_WEST, _EAST = {ZONE: "west"}, {ZONE: "east"}
_ONCE: Final = "ReadWriteOncePod"


def _using(name: str, by: str, *names: str, **fields: Any) -> Waiting:
    """Return a rejected pod that uses claims."""
    return rejected(name, by, volumes=claims(*names), **fields)


def _inline(name: str, **source: Any) -> Waiting:
    """Return a pod with an inline volume."""
    return rejected(name, "NodeVolumeLimits", volumes=[{"name": "disk", **source}])


def _bind_to_shed(obj: Json) -> None:
    obj["spec"].update(volumeName="shed")
    obj["metadata"].setdefault("annotations", {}).update({"pv.kubernetes.io/bind-completed": "yes"})


ZONES: Final[tuple[Situation, ...]] = (
    situation(
        "a volume that comes helps the pod whose claim is bound to it",
        plugins="VolumeZone",
        given=[host("oak", zone_="west"), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeZone", "tool")],
        steps=[Create(volume("shed", labels=_WEST))],
        wakes="gardener",
        events="PersistentVolumeAdd",
    ),
    situation(
        "a volume in another zone helps",
        plugins="VolumeZone",
        given=[host("oak", zone_="west"), volume("shed", labels=_EAST), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeZone", "tool")],
        steps=[Change("PersistentVolume", "shed", lambda obj: obj["metadata"].update(labels=dict(_WEST)))],
        wakes="gardener",
        events="PersistentVolumeUpdate",
    ),
    situation(
        "another label of a volume does not help",
        plugins="VolumeZone",
        given=[host("oak", zone_="west"), volume("shed", labels=_EAST), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeZone", "tool")],
        steps=[Change("PersistentVolume", "shed", lambda obj: obj["metadata"]["labels"].update(colour="red"))],
        events="PersistentVolumeUpdate",
    ),
    situation(
        "a claim that comes helps the pod that uses it",
        plugins="VolumeZone",
        given=[host("oak", zone_="west"), volume("shed", labels=_WEST)],
        waiting=[_using("gardener", "VolumeZone", "tool"), _using("cook", "VolumeZone", "pan")],
        steps=[Create(claim("tool", to="shed"))],
        wakes="gardener",
        events="PersistentVolumeClaimAdd",
    ),
    situation(
        "a claim that is bound helps the pod that uses it",
        plugins="VolumeZone",
        given=[host("oak", zone_="west"), volume("shed", labels=_WEST), claim("tool", done=True)],
        waiting=[_using("gardener", "VolumeZone", "tool"), _using("cook", "VolumeZone", "pan")],
        steps=[Change("PersistentVolumeClaim", "tool", with_spec(volumeName="shed"))],
        wakes="gardener",
        events="PersistentVolumeClaimUpdate",
    ),
    situation(
        "a storage class that waits for pods helps, one that does not wait does not",
        plugins="VolumeZone",
        given=[host("oak", zone_="west"), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeZone", "tool")],
        steps=[Create(storage_class("slow"))],
        wakes="gardener",
        events="storage.k8s.io/StorageClassAdd",
    ),
    situation(
        "a storage class that does not wait for pods does not help",
        plugins="VolumeZone",
        given=[host("oak", zone_="west"), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeZone", "tool")],
        steps=[Create(storage_class("quick", "Immediate"))],
        events="storage.k8s.io/StorageClassAdd",
    ),
)
RESTRICTIONS: Final[tuple[Situation, ...]] = (
    situation(
        "a claim that comes helps the pod that uses it alone",
        plugins="VolumeRestrictions",
        given=[node("oak"), volume("shed")],
        waiting=[_using("gardener", "VolumeRestrictions", "tool"), _using("cook", "VolumeRestrictions", "pan")],
        steps=[Create(claim("tool", to="shed", mode=_ONCE))],
        wakes="gardener",
        events="PersistentVolumeClaimAdd",
    ),
    situation(
        "a pod that leaves helps the one that waits for its claim",
        plugins="VolumeRestrictions",
        given=[
            node("oak"),
            volume("shed"),
            claim("tool", to="shed", mode=_ONCE),
            placed("gardener", "oak", volumes=claims("tool")),
        ],
        waiting=[_using("heir", "VolumeRestrictions", "tool"), _using("cook", "VolumeRestrictions", "pan")],
        steps=[Delete("Pod", "gardener")],
        wakes="heir",
        events="AssignedPodDelete",
    ),
)
BINDING: Final[tuple[Situation, ...]] = (
    situation(
        "a new node helps a pod whose volume is elsewhere",
        plugins="VolumeBinding",
        given=[host("oak", zone_="east"), volume("shed", nodes={ZONE: ["west"]}), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Create(host("elm", zone_="west"))],
        wakes="gardener",
        events="NodeAdd",
    ),
    situation(
        "another label of a node helps a pod whose volume is elsewhere",
        plugins="VolumeBinding",
        given=[host("oak", soil="clay"), volume("shed", nodes={"soil": ["sand"]}), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Change("Node", "oak", labelled(soil="sand"))],
        wakes="gardener",
        events="NodeUpdateNodeLabel",
    ),
    situation(
        "a volume that comes again elsewhere helps",
        plugins="VolumeBinding",
        given=[host("oak", soil="clay"), volume("shed", nodes={"soil": ["sand"]}), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Delete("PersistentVolume", "shed"), Create(volume("shed", nodes={"soil": ["clay"]}))],
        wakes="gardener",
        events="PersistentVolumeAdd",
    ),
    situation(
        "a volume whose zone is named anew helps",
        plugins="VolumeBinding",
        given=[host("oak", zone_="west"), volume("shed", nodes={OLD_ZONE: ["west"]}), claim("tool", to="shed")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[
            Change(
                "PersistentVolume",
                "shed",
                with_spec(nodeAffinity=volume("shed", nodes={ZONE: ["west"]})["spec"]["nodeAffinity"]),
            )
        ],
        wakes="gardener",
        events="PersistentVolumeUpdate",
    ),
    situation(
        "a claim that comes again bound helps the pod that uses it",
        plugins="VolumeBinding",
        given=[node("oak"), volume("shed"), claim("tool"), claim("pan")],
        waiting=[_using("gardener", "VolumeBinding", "tool"), _using("cook", "VolumeBinding", "pan")],
        steps=[Delete("PersistentVolumeClaim", "tool"), Create(claim("tool", to="shed"))],
        wakes="gardener",
        events="PersistentVolumeClaimAdd",
    ),
    situation(
        "a claim that a controller binds helps the pod that uses it",
        plugins="VolumeBinding",
        given=[node("oak"), volume("shed"), claim("tool"), claim("pan")],
        waiting=[_using("gardener", "VolumeBinding", "tool"), _using("cook", "VolumeBinding", "pan")],
        steps=[
            Change(
                "PersistentVolumeClaim",
                "tool",
                _bind_to_shed,
            )
        ],
        wakes="gardener",
        events="PersistentVolumeClaimUpdate",
    ),
    situation(
        "the storage class of a claim helps when it comes",
        plugins="VolumeBinding",
        given=[node("oak"), volume("shed", of="slow"), claim("tool", of="slow")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Create(storage_class("slow"))],
        wakes="gardener",
        events="storage.k8s.io/StorageClassAdd",
    ),
    situation(
        "a storage class that allows other zones helps",
        plugins="VolumeBinding",
        given=[host("oak", zone_="west"), storage_class("slow", zones=["east"]), claim("tool", of="slow")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[
            Change(
                "StorageClass",
                "slow",
                with_fields(allowedTopologies=storage_class("slow", zones=["west"])["allowedTopologies"]),
            )
        ],
        wakes="gardener",
        events="storage.k8s.io/StorageClassUpdate",
    ),
    situation(
        "a storage class with another label does not help",
        plugins="VolumeBinding",
        given=[host("oak", zone_="west"), storage_class("slow", zones=["east"], key="old"), claim("tool", of="slow")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Change("StorageClass", "slow", labelled(key="new"))],
        events="storage.k8s.io/StorageClassUpdate",
    ),
    situation(
        "the CSI drivers of a node help when they come",
        plugins="VolumeBinding",
        given=[node("oak"), volume("shed"), claim("tool")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Create(csi_node("oak"))],
        wakes="gardener",
        events="storage.k8s.io/CSINodeAdd",
    ),
    situation(
        "another list of migrated plugins of a node helps",
        plugins="VolumeBinding",
        given=[node("oak"), csi_node("oak"), volume("shed"), claim("tool")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Change("CSINode", "oak", annotated({MIGRATED: "kubernetes.io/aws-ebs"}))],
        wakes="gardener",
        events="storage.k8s.io/CSINodeUpdate",
    ),
    situation(
        "a driver that no longer tracks capacity helps the pod with a volume of its own",
        plugins="VolumeBinding",
        given=[node("oak"), csi_driver(DRIVER, tracks_capacity=True), claim("tool")],
        waiting=[
            rejected(
                "gardener",
                "VolumeBinding",
                volumes=[*claims("tool"), {"name": "own", "csi": {"driver": DRIVER}}],
            )
        ],
        steps=[Change("CSIDriver", DRIVER, with_spec(storageCapacity=False))],
        wakes="gardener",
        events="storage.k8s.io/CSIDriverUpdate",
    ),
    situation(
        "a driver that begins to track capacity does not help",
        plugins="VolumeBinding",
        given=[node("oak"), csi_driver(DRIVER, tracks_capacity=False), claim("tool")],
        waiting=[
            rejected(
                "gardener",
                "VolumeBinding",
                volumes=[*claims("tool"), {"name": "own", "csi": {"driver": DRIVER}}],
            )
        ],
        steps=[Change("CSIDriver", DRIVER, with_spec(storageCapacity=True))],
        events="storage.k8s.io/CSIDriverUpdate",
    ),
    situation(
        "capacity that comes helps",
        plugins="VolumeBinding",
        given=[node("oak"), storage_class("quick", "Immediate"), claim("tool", of="quick")],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Create(capacity("loft", "quick", "10Mi"))],
        wakes="gardener",
        events="storage.k8s.io/CSIStorageCapacityAdd",
    ),
    situation(
        "capacity that grows helps",
        plugins="VolumeBinding",
        given=[
            node("oak"),
            storage_class("quick", "Immediate"),
            claim("tool", of="quick"),
            capacity("loft", "quick", "10Mi"),
        ],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Change("CSIStorageCapacity", "loft", with_fields(capacity="20Mi"))],
        wakes="gardener",
        events="storage.k8s.io/CSIStorageCapacityUpdate",
    ),
    situation(
        "capacity that shrinks does not help",
        plugins="VolumeBinding",
        given=[
            node("oak"),
            storage_class("quick", "Immediate"),
            claim("tool", of="quick"),
            capacity("loft", "quick", "10Mi"),
        ],
        waiting=[_using("gardener", "VolumeBinding", "tool")],
        steps=[Change("CSIStorageCapacity", "loft", with_fields(capacity="5Mi"))],
        events="storage.k8s.io/CSIStorageCapacityUpdate",
    ),
    situation(
        "the claim of another pod does not help",
        plugins="VolumeBinding",
        given=[node("oak"), claim("pan")],
        waiting=[_using("cook", "VolumeBinding", "pan")],
        steps=[Create(claim("tool")), Create(device_class("unrelated"))],
        events="PersistentVolumeClaimAdd",
    ),
)
LIMITS: Final[tuple[Situation, ...]] = (
    situation(
        "the CSI drivers of any node help when they come",
        plugins="NodeVolumeLimits",
        given=[
            node("oak"),
            csi_driver(DRIVER, tracks_capacity=True),
            csi_node("oak", disks_example_com=1),
            volume("shed", driver=DRIVER),
            volume("loft", driver=DRIVER),
            claim("tool", to="shed"),
            claim("pan", to="loft"),
            placed("cook", "oak", volumes=claims("pan")),
        ],
        waiting=[_using("gardener", "NodeVolumeLimits", "tool")],
        steps=[Create(csi_node("elm"))],
        wakes="gardener",
        events="storage.k8s.io/CSINodeAdd",
    ),
    situation(
        "a higher limit helps",
        plugins="NodeVolumeLimits",
        given=[
            node("oak"),
            csi_node("oak", disks_example_com=1),
            volume("shed", driver=DRIVER),
            volume("loft", driver=DRIVER),
            claim("tool", to="shed"),
            claim("pan", to="loft"),
            placed("cook", "oak", volumes=claims("pan")),
        ],
        waiting=[_using("gardener", "NodeVolumeLimits", "tool")],
        steps=[Change("CSINode", "oak", lambda obj: obj["spec"]["drivers"][0]["allocatable"].update(count=2))],
        wakes="gardener",
        events="storage.k8s.io/CSINodeUpdate",
        served=False,
    ),
    situation(
        "a pod with a claim that leaves helps",
        plugins="NodeVolumeLimits",
        given=[
            node("oak"),
            csi_node("oak", disks_example_com=1),
            volume("shed", driver=DRIVER),
            volume("loft", driver=DRIVER),
            claim("tool", to="shed"),
            claim("pan", to="loft"),
            placed("cook", "oak", volumes=claims("pan")),
        ],
        waiting=[_using("gardener", "NodeVolumeLimits", "tool")],
        steps=[Delete("Pod", "cook")],
        wakes="gardener",
        events="AssignedPodDelete",
    ),
    situation(
        "a pod without volumes that leaves does not help",
        plugins="NodeVolumeLimits",
        given=[
            node("oak"),
            csi_node("oak", disks_example_com=1),
            volume("shed", driver=DRIVER),
            volume("loft", driver=DRIVER),
            claim("tool", to="shed"),
            claim("pan", to="loft"),
            placed("cook", "oak", volumes=claims("pan")),
            placed("cat", "oak"),
        ],
        waiting=[_using("gardener", "NodeVolumeLimits", "tool")],
        steps=[Delete("Pod", "cat")],
        events="AssignedPodDelete",
    ),
    situation(
        "its claim helps a pod when it comes",
        plugins="NodeVolumeLimits",
        given=[
            node("oak"),
            csi_node("oak", disks_example_com=1),
            volume("shed", driver=DRIVER),
        ],
        waiting=[_using("gardener", "NodeVolumeLimits", "tool")],
        steps=[Create(claim("tool", to="shed"))],
        wakes="gardener",
        events="PersistentVolumeClaimAdd",
    ),
    situation(
        "a volume that is detached helps a pod with a claim",
        plugins="NodeVolumeLimits",
        given=[
            node("oak"),
            csi_node("oak", disks_example_com=1),
            volume("shed", driver=DRIVER),
            volume("loft", driver=DRIVER),
            claim("tool", to="shed"),
            attachment("kept", "loft", DRIVER, "oak"),
        ],
        waiting=[_using("gardener", "NodeVolumeLimits", "tool")],
        steps=[Delete("VolumeAttachment", "kept")],
        wakes="gardener",
        events="storage.k8s.io/VolumeAttachmentDelete",
    ),
    situation(
        "a volume that is detached helps the pod whose own volume has the same driver",
        plugins="NodeVolumeLimits",
        given=[
            node("oak"),
            csi_node("oak", ebs_csi_aws_com=1, pd_csi_storage_gke_io=1),
            volume("shed", driver="ebs.csi.aws.com"),
            volume("loft", driver="pd.csi.storage.gke.io"),
            attachment("kept-shed", "shed", "ebs.csi.aws.com", "oak"),
            attachment("kept-loft", "loft", "pd.csi.storage.gke.io", "oak"),
        ],
        waiting=[
            _inline("on-ebs", awsElasticBlockStore={"volumeID": "vol-1"}),
            _inline("on-pd", gcePersistentDisk={"pdName": "disk-1"}),
        ],
        steps=[Delete("VolumeAttachment", "kept-shed")],
        wakes="on-ebs",
        events="storage.k8s.io/VolumeAttachmentDelete",
    ),
)
VOLUME_SITUATIONS: Final = (*ZONES, *RESTRICTIONS, *BINDING, *LIMITS)
