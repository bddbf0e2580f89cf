"""The guards for volumes.

They know which fields of a pod need these plugins. What kube-scheduler would not look at is let through: an inline
CSI volume counts nowhere, and a claim is VolumeBinding's first of all, so the guards beside it take only the disks
that are theirs alone.

Source: plugins/volumebinding, volumerestrictions, nodevolumelimits, volumezone and
csi-translation-lib (IsInlineMigratable), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable

from policysched.model.objects import Pod
from policysched.plugins.guards import Guard

CLAIMS = "policysched does not support persistent volume claims and ephemeral volumes yet"
DISKS = "policysched does not support disks named in the pod itself yet"


def volume_binding() -> Guard:
    """Guard pods with persistent volume claims, of their own or made for them."""
    return Guard("VolumeBinding", lambda pod, _: _claims(pod), by_pod=True)


def volume_zone() -> Guard:
    """Guard the same pods where VolumeBinding is disabled."""
    return Guard("VolumeZone", lambda pod, _: _claims(pod), by_pod=True)


def volume_restrictions() -> Guard:
    """Guard pods with inline disks that another pod must not use at the same time."""
    return Guard(
        "VolumeRestrictions",
        lambda pod, _: _disks(pod, ("gce_persistent_disk", "aws_elastic_block_store", "iscsi", "rbd")),
        by_pod=True,
    )


def node_volume_limits() -> Guard:
    """Guard pods with the other inline disks that count against a driver's limit on its node."""
    return Guard(
        "NodeVolumeLimits",
        lambda pod, _: _disks(pod, ("azure_disk", "azure_file", "cinder", "vsphere_volume", "portworx_volume")),
        by_pod=True,
    )


def _claims(pod: Pod) -> str:
    claimed = any(one.persistent_volume_claim or one.ephemeral for one in pod.spec.volumes)
    return CLAIMS if claimed else ""


def _disks(pod: Pod, sources: Iterable[str]) -> str:
    for volume in pod.spec.volumes:
        if any(getattr(volume, source) is not None for source in sources):
            return f"{DISKS}: volume {volume.name}"
    return ""
