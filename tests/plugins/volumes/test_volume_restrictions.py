from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, Action, Change, Resource, Status, unresolvable, unschedulable
from policysched.model.objects import Pod
from policysched.model.objects.pods import AWSDisk, AzureDisk, GCEDisk, ISCSIDisk, RBDImage, Volume
from policysched.plugins.volumes.volume_restrictions import CLAIM_REASON, DISK_REASON, Disks, VolumeRestrictions
from tests.build import node, pod
from tests.plugins.ask import filtered
from tests.plugins.stored import claim, claiming, volume, with_storage
from tests.work import calls

PLUGIN = VolumeRestrictions()
DISK, TAKEN = unschedulable(DISK_REASON), unschedulable(CLAIM_REASON)
ONE_POD = ["ReadWriteOncePod"]


def rbd(image: str = "i", pool: str = "p", monitors: str = "ab", *, read_only: bool = False) -> RBDImage:
    return RBDImage(image=image, pool=pool, monitors=tuple(monitors), read_only=read_only)


@pytest.mark.parametrize(
    ("source", "ours", "theirs", "conflicts"),
    [
        ("gce_persistent_disk", GCEDisk(pd_name="d"), GCEDisk(pd_name="d"), True),
        ("gce_persistent_disk", GCEDisk(pd_name="d"), GCEDisk(pd_name="e"), False),
        ("gce_persistent_disk", GCEDisk(pd_name="d", read_only=True), GCEDisk(pd_name="d"), True),
        ("gce_persistent_disk", GCEDisk(pd_name="d", read_only=True), GCEDisk(pd_name="d", read_only=True), False),
        ("aws_elastic_block_store", AWSDisk(volume_id="d"), AWSDisk(volume_id="d"), True),
        ("aws_elastic_block_store", AWSDisk(volume_id="d"), AWSDisk(volume_id="e"), False),
        ("iscsi", ISCSIDisk(iqn="q"), ISCSIDisk(iqn="q", lun=1), True),
        ("iscsi", ISCSIDisk(iqn="q"), ISCSIDisk(iqn="r"), False),
        ("iscsi", ISCSIDisk(iqn="q", read_only=True), ISCSIDisk(iqn="q", read_only=True), False),
        ("rbd", rbd(), rbd(monitors="bc"), True),
        ("rbd", rbd(), rbd(monitors="c"), False),
        ("rbd", rbd(), rbd(pool="other"), False),
        ("rbd", rbd(), rbd(image="other"), False),
        ("rbd", rbd(read_only=True), rbd(), True),
        ("rbd", rbd(read_only=True), rbd(read_only=True), False),
        ("azure_disk", AzureDisk(disk_name="d"), AzureDisk(disk_name="d"), False),
    ],
)
def test_disks(source: str, ours: Any, theirs: Any, conflicts: bool) -> None:
    around = with_storage(node("n1"), node("n2"), claiming("other", on="n1", namespace="x", **{source: theirs}))
    answer = filtered(PLUGIN, claiming("p", **{source: ours}), around)
    assert answer == ({"n1": DISK} if conflicts else SKIP if source == "azure_disk" else {})

    assert Disks(claiming("p", **{source: ours})).conflict_with(claiming("other", **{source: theirs})) is conflicts


def test_other_disks_of_a_pod_cost_no_call_each() -> None:
    mine = Disks(claiming("p", gce_persistent_disk=GCEDisk(pd_name="d")))
    some = pod("other")

    def work(volumes: int) -> int:
        many = tuple(
            Volume(name=f"v{number}", gce_persistent_disk=GCEDisk(pd_name=f"d{number}")) for number in range(volumes)
        )
        other = replace(some, spec=replace(some.spec, volumes=many))
        return calls(lambda: mine.conflict_with(other), "call")

    assert work(1000) == work(10)


def test_other_pods_with_other_kinds_of_disks_do_not_matter() -> None:
    other = claiming("other", "c", on="n1", aws_elastic_block_store=AWSDisk(volume_id="d"))
    around = with_storage(node("n1"), claim(), other)
    assert filtered(PLUGIN, claiming("p", gce_persistent_disk=GCEDisk(pd_name="d")), around) == {}


def using(**fields: Any) -> Pod:
    return claiming("user", "c", on="n1", **fields)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([claim(accessModes=ONE_POD), using()], {"n1": TAKEN, "n2": TAKEN}),
        ([claim(accessModes=ONE_POD)], SKIP),
        ([claim(), using()], SKIP),
        ([claim(accessModes=ONE_POD), using(namespace="x")], SKIP),
        ([claim(accessModes=ONE_POD), claiming("user", "c", on="gone")], SKIP),
        ([claim(accessModes=["ReadWriteOnce", *ONE_POD]), using()], {"n1": TAKEN, "n2": TAKEN}),
        ([], unresolvable('persistentvolumeclaim "c" not found')),
    ],
)
def test_claims_for_one_pod(objects: list[Any], expected: dict[str, Status] | Status) -> None:
    assert filtered(PLUGIN, claiming("p", "c"), with_storage(node("n1"), node("n2"), *objects)) == expected


def test_a_taken_disk_is_reported_before_a_taken_claim() -> None:
    disk = AWSDisk(volume_id="d")
    around = with_storage(
        node("n1"), node("n2"), claim(accessModes=ONE_POD), claiming("user", "c", on="n1", aws_elastic_block_store=disk)
    )
    answer = filtered(PLUGIN, claiming("p", "c", aws_elastic_block_store=disk), around)
    assert answer == {"n1": DISK, "n2": TAKEN}


def test_an_ephemeral_claim_of_another_pod_is_no_user() -> None:
    around = with_storage(node("n1"), claim("user-c", accessModes=ONE_POD), claiming("user", made="c", on="n1"))
    assert filtered(PLUGIN, claiming("p", "user-c"), around) is SKIP


def test_the_claim_is_free_once_its_user_is_gone() -> None:
    around = with_storage(node("n1"), claim(accessModes=ONE_POD), using())
    around.remove_pod("default.user")
    assert filtered(PLUGIN, claiming("p", "c"), around) is SKIP


def test_pods_without_volumes_are_skipped() -> None:
    assert filtered(PLUGIN, pod(), with_storage(node("n1"))) is SKIP


GONE = claiming("gone", "c", on="n1", aws_elastic_block_store=AWSDisk(volume_id="d"))
LEFT = Change(Resource.ASSIGNED_POD, Action.DELETE, GONE)


@pytest.mark.parametrize(
    ("waiting", "change", "expected"),
    [
        (claiming("p", "c"), LEFT, True),
        (claiming("p", "d"), LEFT, False),
        (claiming("p", "c", namespace="x"), LEFT, False),
        (
            claiming("p", aws_elastic_block_store=AWSDisk(volume_id="d")),
            LEFT,
            True,
        ),
        (
            claiming("p", aws_elastic_block_store=AWSDisk(volume_id="e")),
            LEFT,
            False,
        ),
        (claiming("p", "c"), Change(Resource.CLAIM, Action.ADD, new=claim()), True),
        (claiming("p", "c"), Change(Resource.CLAIM, Action.ADD, new=claim("other")), False),
        (claiming("p", "c"), Change(Resource.CLAIM, Action.UPDATE_OTHER, claim(), claim()), False),
        (claiming("p", "c"), Change(Resource.NODE, Action.ADD, new=node()), True),
        (claiming("p", "c"), Change(Resource.VOLUME, Action.ADD, new=volume()), False),
    ],
)
def test_changes_that_help(waiting: Pod, change: Change, expected: bool) -> None:
    hints = [one for one in PLUGIN.events() if one.resource is change.resource and one.actions & change.action]
    assert any(one.helps is None or one.helps(waiting, change, with_storage()) for one in hints) is expected
