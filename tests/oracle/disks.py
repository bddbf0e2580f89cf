"""Sources of volumes for generated cases: of persistent volumes, and of those that pods name themselves.

Knows nothing of the objects around them. Names are few, so that disks are shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from random import Random

Thing: TypeAlias = dict[str, Any]

IN_TREE = [
    "kubernetes.io/gce-pd",
    "kubernetes.io/aws-ebs",
    "kubernetes.io/cinder",
    "kubernetes.io/azure-disk",
    "kubernetes.io/portworx-volume",
]
DRIVERS = ["pd.csi.storage.gke.io", "ebs.csi.aws.com", "disk.csi.azure.com"]
TOPOLOGY_KEYS = ["topology.gke.io/zone", "topology.ebs.csi.aws.com/zone"]


def source(rng: Random, name: str, drivers: list[str]) -> Thing:
    """Draw what a persistent volume is."""
    handle = rng.choice([name, name, name, "shared"])
    draw = rng.random()
    if draw < 0.6:
        return {"csi": {"driver": rng.choice([*drivers, *DRIVERS]), "volumeHandle": handle}}
    if draw < 0.95:
        return rng.choice(
            [
                {"gcePersistentDisk": {"pdName": handle}},
                {"awsElasticBlockStore": {"volumeID": rng.choice([handle, f"aws://zone/vol-{handle}"])}},
                {"cinder": {"volumeID": handle}},
                {
                    "azureDisk": {
                        "diskName": "d",
                        "diskURI": handle,
                        "kind": rng.choices(["Managed", "Shared"], [9, 1])[0],
                    }
                },
                {"portworxVolume": {"volumeID": handle}},
                {"azureFile": {"secretName": "s", "shareName": handle}},
                {"vsphereVolume": {"volumePath": handle}},
            ]
        )
    return {"hostPath": {"path": "/data"}}


def inline(rng: Random) -> Thing:
    """Draw a volume that a pod names itself."""
    name, read_only = rng.choice("abc"), rng.random() < 0.5
    return rng.choice(
        [
            {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}},
            {
                "awsElasticBlockStore": {
                    "volumeID": rng.choice([f"vol-{name}", name, "aws://zone/x"][: rng.choice([2, 2, 3])])
                }
            },
            {"iscsi": {"targetPortal": "p", "iqn": name, "lun": 0, "readOnly": read_only}},
            {"rbd": {"monitors": rng.sample("xyz", 2), "image": name, "readOnly": read_only}},
            {"azureDisk": {"diskName": name, "diskURI": name}},
            {"cinder": {"volumeID": name}},
            {"portworxVolume": {"volumeID": name}},
            {"azureFile": {"secretName": "s", "shareName": name}},
            {"csi": {"driver": "csi.one"}},
        ]
    )
