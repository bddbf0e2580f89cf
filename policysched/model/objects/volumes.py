"""A pod's volumes: the sources that scheduling looks at, each with the fields that say which disk it is.

Only the shapes. Sources that never matter to scheduling (config maps, secrets, empty directories) are not
named here, so a volume of that kind has no source.

Source: k8s.io/api/core/v1/types.go, v0.36; read by VolumeRestrictions, VolumeBinding, NodeVolumeLimits and
csi-translation-lib.
"""

from __future__ import annotations

import msgspec

from policysched.model.objects.meta import Int32, Struct


class ClaimSource(Struct, frozen=True):
    """A volume that is a persistent volume claim."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralSource(Struct, frozen=True):
    """A volume whose claim is made for this pod, under the name `<pod>-<volume>`."""


class ImageSource(Struct, frozen=True):
    """A volume that is an image."""

    reference: str = ""


class CSISource(Struct, frozen=True):
    """A volume of the pod's own that a CSI driver serves."""

    driver: str = ""


class GCEDisk(Struct, frozen=True):
    """A persistent disk of Google's."""

    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSDisk(Struct, frozen=True):
    """An elastic block store volume of Amazon's."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDisk(Struct, frozen=True):
    """A data disk of Azure's."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class AzureFile(Struct, frozen=True):
    """A file share of Azure's."""

    secret_name: str = ""
    share_name: str = ""


class CinderDisk(Struct, frozen=True):
    """A volume of OpenStack's."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VSphereDisk(Struct, frozen=True):
    """A disk of vSphere's."""

    volume_path: str = ""


class PortworxDisk(Struct, frozen=True):
    """A volume of Portworx's."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSIDisk(Struct, frozen=True):
    """A disk reached over iSCSI."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBDImage(Struct, frozen=True):
    """A block image of Ceph's."""

    monitors: list[str] = []
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Volume(Struct, frozen=True):
    """A pod's volume; of the sources, those that scheduling looks at."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    image: ImageSource | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: AWSDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderDisk | None = None
    vsphere_volume: VSphereDisk | None = None
    portworx_volume: PortworxDisk | None = None
    iscsi: ISCSIDisk | None = None
    rbd: RBDImage | None = None
