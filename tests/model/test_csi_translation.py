"""In-tree disks as the volumes of the drivers that took their place."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.model.csi_translation import (
    BY_IN_TREE,
    MIGRATIONS,
    OVERLOOKED,
    Migration,
    TranslationError,
    inline_migration_of,
    migration_of,
    translate,
    translate_affinity,
    translate_inline,
)
from policysched.model.kinds import KINDS
from policysched.model.objects import PersistentVolume, Volume
from policysched.model.objects.pods import (
    AWSDisk,
    AzureDisk,
    AzureFile,
    CinderDisk,
    GCEDisk,
    PortworxDisk,
    VSphereDisk,
)

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
GKE = "topology.gke.io/zone"
LABELLED = (GKE, "us-a-1")


def volume(labels: dict[str, str] | None = None, terms: list[list[tuple[str, str]]] | None = None, **spec: Any) -> Any:
    """A volume whose node affinity has one term a list, of keys with `|` separated values."""
    affinity = None
    if terms is not None:
        expressions = [
            [{"key": key, "operator": "In", "values": values.split("|")} for key, values in term] for term in terms
        ]
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": one} for one in expressions]}}
    raw = {"metadata": {"name": "v", "labels": labels or {}}, "spec": {**spec, "nodeAffinity": affinity}}
    made = KINDS["PersistentVolume"].decode(raw)
    assert isinstance(made, PersistentVolume)
    return made


def moved(one: PersistentVolume) -> Migration:
    migration = migration_of(one)
    assert migration is not None
    return migration


def affinity(one: PersistentVolume) -> list[list[tuple[str, str]]] | None:
    made = translate_affinity(one, moved(one))
    if made is None or made.required is None:
        return None
    terms = made.required.node_selector_terms
    return [[(one.key, "|".join(one.values)) for one in term.match_expressions] for term in terms]


PD = {"gcePersistentDisk": {"pdName": "d"}}
NOWHERE = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"


@pytest.mark.parametrize(
    ("spec", "labels", "driver", "handle"),
    [
        (PD, {}, "pd.csi.storage.gke.io", NOWHERE),
        (PD, {ZONE: "us-east1-b"}, "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/us-east1-b/disks/d"),
        (PD, {BETA_ZONE: "a", ZONE: "b"}, "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/a/disks/d"),
        (
            PD,
            {ZONE: "us-east1-b__us-east1-c"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/regions/us-east1/disks/d",
        ),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "anything"}}, {}, "ebs.csi.aws.com", "anything"),
        ({"azureDisk": {"diskURI": "/subscriptions/x"}}, {}, "disk.csi.azure.com", "/subscriptions/x"),
        ({"azureDisk": {"diskURI": "u", "kind": "Managed"}}, {}, "disk.csi.azure.com", "u"),
        ({"cinder": {"volumeID": "c"}}, {}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, {}, "pxd.portworx.com", "p"),
    ],
)
def test_drivers_and_handles(spec: dict[str, Any], labels: dict[str, str], driver: str, handle: str) -> None:
    made = volume(labels, **spec)
    assert (moved(made).driver, translate(made, moved(made))) == (driver, handle)


@pytest.mark.parametrize(
    ("spec", "labels", "message"),
    [
        (PD, {ZONE: "a__b"}, "failed to get region from zones: zone in unexpected format"),
        (PD, {ZONE: "us-east1-b__us-west1-c"}, "failed to get region from zones: multiple or no regions"),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/other"}}, {}, "Invalid format for AWS volume"),
        ({"azureDisk": {"diskURI": "u", "kind": "Shared"}}, {}, "is not supported in csi migration"),
    ],
)
def test_disks_without_a_counterpart(spec: dict[str, Any], labels: dict[str, str], message: str) -> None:
    made = volume(labels, **spec)
    with pytest.raises(TranslationError, match=message.replace("(", r"\(")):
        translate(made, moved(made))


@pytest.mark.parametrize(
    ("labels", "terms", "expected"),
    [
        ({}, None, None),
        ({}, [[(ZONE, "a")]], [[(GKE, "a")]]),
        ({}, [[(ZONE, "a"), ("x", "y")], [(ZONE, "b")]], [[(GKE, "a"), ("x", "y")], [(GKE, "b")]]),
        ({}, [[(BETA_ZONE, "a"), (BETA_REGION, "r")]], [[(GKE, "a"), (REGION, "r")]]),
        ({}, [[(ZONE, "a"), (REGION, "r")]], [[(GKE, "a"), (REGION, "r")]]),
        ({}, [[("x", "y")]], [[("x", "y")]]),
        ({ZONE: "us-a-1"}, None, [[(GKE, "us-a-1")]]),
        ({ZONE: "us-a-2__us-a-1"}, None, [[(GKE, "us-a-1|us-a-2")]]),
        (
            {ZONE: "us-a-1"},
            [[("x", "y")], [("z", "w")]],
            [[("x", "y"), (GKE, "us-a-1")], [("z", "w"), (GKE, "us-a-1")]],
        ),
        ({ZONE: "us-a-1"}, [[(ZONE, "us-a-2")]], [[(GKE, "us-a-2")]]),
        ({BETA_ZONE: "us-a-1"}, None, [[(GKE, "us-a-1")]]),
        ({BETA_ZONE: "us-a-1"}, [[(BETA_REGION, "r")]], [[(REGION, "r"), (GKE, "us-a-1")]]),
        ({BETA_ZONE: "us-a-1"}, [[(ZONE, "us-a-2"), (BETA_REGION, "r")]], [[(GKE, "us-a-2"), (BETA_REGION, "r")]]),
        ({ZONE: ""}, None, None),
    ],
)
def test_zones_are_written_in_the_driver_s_label(
    labels: dict[str, str], terms: list[list[tuple[str, str]]] | None, expected: list[list[tuple[str, str]]] | None
) -> None:
    assert affinity(volume(labels, terms, **PD)) == expected


def test_drivers_without_a_label_of_their_own_keep_the_affinity() -> None:
    terms = [[(ZONE, "a")]]
    assert affinity(volume({ZONE: "b"}, terms, azureDisk={"diskURI": "u"})) == terms


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"gce_persistent_disk": GCEDisk(pd_name="d")}, ("pd.csi.storage.gke.io", NOWHERE)),
        ({"aws_elastic_block_store": AWSDisk(volume_id="vol-1")}, ("ebs.csi.aws.com", "vol-1")),
        ({"azure_disk": AzureDisk(disk_uri="u")}, ("disk.csi.azure.com", "u")),
        ({"cinder": CinderDisk(volume_id="c")}, ("cinder.csi.openstack.org", "c")),
        ({"portworx_volume": PortworxDisk(volume_id="p")}, ("pxd.portworx.com", "p")),
        ({"azure_file": AzureFile(share_name="s")}, None),
        ({"vsphere_volume": VSphereDisk(volume_path="p")}, None),
        ({}, None),
    ],
)
def test_disks_of_the_pod_s_own(source: dict[str, Any], expected: tuple[str, str] | None) -> None:
    one = Volume(name="v", **source)
    migration = inline_migration_of(one)
    assert (None if migration is None else (migration.driver, translate_inline(one, migration))) == expected


def test_volumes_that_never_moved_have_no_migration() -> None:
    assert migration_of(volume(csi={"driver": "x", "volumeHandle": "h"})) is None
    assert migration_of(volume()) is None


def test_migrations_are_found_by_the_plugin_s_name() -> None:
    assert {name: one.in_tree for name, one in BY_IN_TREE.items()} == {one.in_tree: one.in_tree for one in MIGRATIONS}
    assert not OVERLOOKED & BY_IN_TREE.keys()
