from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Action, Change, ChangedRow, Code, Resource, Status, unresolvable, unschedulable
from policysched.model.objects import Pod
from policysched.model.objects.pods import AWSDisk, AzureFile, GCEDisk
from policysched.plugins.volumes.node_volume_limits import REASON, NodeVolumeLimits
from tests.build import node, pod
from tests.plugins.ask import filtered, rejected
from tests.plugins.stored import (
    attachment,
    claim,
    claiming,
    csi_driver,
    csi_node,
    owned,
    storage_class,
    volume,
    with_storage,
)
from tests.work import calls

PLUGIN = NodeVolumeLimits()
FULL = unschedulable(REASON)
EBS = "ebs.csi.aws.com"


def csi(name: str, driver: str = "csi.x", handle: str = "") -> Any:
    return volume(name, csi={"driver": driver, "volumeHandle": handle or f"h-{name}"})


def pairs(*names: str, driver: str = "csi.x") -> list[Any]:
    """Volumes of a driver, each with a claim that is bound to it."""
    return [made for name in names for made in (csi(name, driver), claim(f"c-{name}", to=name))]


@pytest.mark.parametrize(
    ("limit", "there", "brought", "full"),
    [
        (2, ["a"], ["b"], False),
        (1, ["a"], ["b"], True),
        (1, ["a"], ["a"], False),
        (2, ["a"], ["b", "d"], True),
        (2, ["a", "b"], ["a", "d"], True),
        (2, ["a", "b"], ["a", "b"], False),
        (0, [], ["a"], True),
        (None, ["a", "b"], ["d"], False),
        (1, ["a", "b"], [], False),
    ],
)
def test_volumes_count_once_each_against_the_limit(
    limit: int | None, there: list[str], brought: list[str], full: bool
) -> None:
    users = [claiming(f"user-{name}", f"c-{name}", on="n1") for name in there]
    around = with_storage(node("n1"), node("n2"), csi_node("n1", {"csi.x": limit}), *pairs(*"abd"), *users)
    pod_ = claiming("p", *(f"c-{name}" for name in brought))
    assert (filtered(PLUGIN, pod_, around) == {"n1": FULL}) is full


def test_drivers_have_limits_of_their_own() -> None:
    around = with_storage(
        node("n1"), csi_node("n1", {"csi.x": 1, "csi.y": 2}), *pairs("a", "b"), *pairs("d", driver="csi.y"),
        claiming("user", "c-a", on="n1"),
    )  # fmt: skip
    assert rejected(PLUGIN, claiming("p", "c-b"), around) == {"n1"}
    assert rejected(PLUGIN, claiming("p", "c-d"), around) == set()


def test_attachments_count_where_no_pod_uses_the_volume() -> None:
    objects = [node("n1"), node("n2"), csi_node("n1", {"csi.x": 2}), csi_node("n2", {"csi.x": 2}), *pairs(*"abd")]
    around = with_storage(*objects, attachment("1", "n1", "a"), attachment("2", "n1", "b"))
    assert rejected(PLUGIN, claiming("p", "c-d"), around) == {"n1"}
    used = with_storage(*objects, attachment("1", "n1", "a"), claiming("user", "c-a", on="n1"))
    assert rejected(PLUGIN, claiming("p", "c-d"), used) == set()
    # a volume that is attached but used by no pod is new all the same
    assert rejected(PLUGIN, claiming("p", "c-a", "c-d"), around) == {"n1"}


@pytest.mark.parametrize(
    "one",
    [
        attachment("1", "n1", None),
        attachment("1", "n1", "gone"),
        attachment("1", "n1", "plain"),
        attachment("1", "n1", "a", ""),
    ],
)
def test_attachments_that_say_too_little_do_not_count(one: Any) -> None:
    around = with_storage(node("n1"), csi_node("n1", {"csi.x": 1}), *pairs("a", "b"), volume("plain"), one)
    assert rejected(PLUGIN, claiming("p", "c-b"), around) == set()


def test_claims_of_one_handle_are_one_volume() -> None:
    shared = [csi("a", handle="h"), csi("b", handle="h"), claim("c-a", to="a"), claim("c-b", to="b")]
    around = with_storage(node("n1"), csi_node("n1", {"csi.x": 1}), *shared, claiming("user", "c-a", on="n1"))
    assert rejected(PLUGIN, claiming("p", "c-b"), around) == set()


def test_unbound_claims_count_for_the_driver_that_will_provision_them() -> None:
    waiting: list[Any] = [claim("w1"), claim("w2"), storage_class()]
    around = with_storage(node("n1"), csi_node("n1", {"csi.x": 1}), *waiting, claiming("user", "w1", on="n1"))
    assert rejected(PLUGIN, claiming("p", "w2"), around) == {"n1"}
    assert rejected(PLUGIN, claiming("p", "w1"), around) == set()


@pytest.mark.parametrize(
    "one", [claim("w", of=None), claim("w", of="gone"), claim("w", to="gone", of=None), claim("w", of="none")]
)
def test_claims_that_lead_nowhere_do_not_count(one: Any) -> None:
    around = with_storage(node("n1"), csi_node("n1", {"csi.x": 0, "": 0}), one, storage_class("none", provisioner=""))
    assert rejected(PLUGIN, claiming("p", "w"), around) == set()


IN_TREE: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def test_in_tree_volumes_count_for_their_driver_on_nodes_with_csi_drivers() -> None:
    around = with_storage(
        node("n1"), node("n2"), csi_node("n1", {EBS: 0}), volume("a", **IN_TREE), claim(to="a"),
    )  # fmt: skip
    assert filtered(PLUGIN, claiming("p", "c"), around) == {"n1": FULL}
    inline = claiming("p", aws_elastic_block_store=AWSDisk(volume_id="vol-1"))
    assert filtered(PLUGIN, inline, around) == {"n1": FULL}
    provisioned = storage_class("old", provisioner="kubernetes.io/aws-ebs")
    around = with_storage(node("n1"), csi_node("n1", {EBS: 0}), claim(of="old"), provisioned)
    assert filtered(PLUGIN, claiming("p", "c"), around) == {"n1": FULL}


def test_an_in_tree_volume_and_its_driver_s_are_the_same_one() -> None:
    around = with_storage(
        node("n1"), csi_node("n1", {EBS: 1}), volume("a", **IN_TREE), claim(to="a"), claiming("user", "c", on="n1"),
        volume("b", csi={"driver": EBS, "volumeHandle": "vol-1"}), claim("d", to="b"),
    )  # fmt: skip
    assert rejected(PLUGIN, claiming("p", "d"), around) == set()


def test_volumes_that_have_no_driver_do_not_count() -> None:
    around = with_storage(node("n1"), csi_node("n1", {"csi.x": 0}), volume("a"), claim(to="a"))
    assert filtered(PLUGIN, claiming("p", "c"), around) == {}
    bad = volume("b", azureDisk={"diskURI": "u", "kind": "Shared"})
    around = with_storage(node("n1"), csi_node("n1", {"disk.csi.azure.com": 0}), bad, claim(to="b"))
    assert filtered(PLUGIN, claiming("p", "c"), around) == {}
    assert filtered(PLUGIN, claiming("p", azure_file=AzureFile(share_name="s")), around) is SKIP


# What cannot be told


def test_a_claim_that_is_not_there_rejects_and_one_of_another_pod_fails() -> None:
    around = with_storage(node("n1"), node("n2"), csi_node("n1", {"csi.x": 9}), claim("p-e"))
    missing = unresolvable('looking up PVC default/c: persistentvolumeclaim "c" not found')
    assert filtered(PLUGIN, claiming("p", "c"), around) == {"n1": missing, "n2": missing}
    foreign = Status(Code.ERROR, ("PVC default/p-e was not created for pod default/p (pod is not owner)",))
    assert filtered(PLUGIN, claiming("p", made="e"), around) == {"n1": foreign, "n2": foreign}
    nameless = Status(Code.ERROR, ("PersistentVolumeClaim had no name",))
    assert filtered(PLUGIN, claiming("p", ""), around) == {"n1": nameless, "n2": nameless}


def test_an_ephemeral_claim_that_was_made_for_the_pod_counts() -> None:
    wanting = claiming("p", made="e")
    around = with_storage(node("n1"), csi_node("n1", {"csi.x": 0}), owned(claim("p-e"), wanting), storage_class())
    assert filtered(PLUGIN, wanting, around) == {"n1": FULL}


def test_an_inline_disk_without_a_counterpart_fails_on_nodes_with_csi_drivers() -> None:
    around = with_storage(node("n1"), node("n2"), csi_node("n1"))
    text = (
        "converting volume(aws_elastic_block_store) from inline to csi: failed to translate Kubernetes ID to EBS "
        "Volume ID Invalid format for AWS volume (aws://z/x)"
    )
    wanting = claiming("p", aws_elastic_block_store=AWSDisk(volume_id="aws://z/x"))
    assert filtered(PLUGIN, wanting, around) == {"n1": Status(Code.ERROR, (text,))}


def test_a_placed_pod_whose_claims_cannot_be_told_fails_where_there_is_a_limit() -> None:
    users = [claiming("user", made="e", on=name) for name in ("n1",)]
    objects = [node("n1"), claim("user-e"), *pairs("a"), *users]
    text = "PVC default/user-e was not created for pod default/user (pod is not owner)"
    limited = with_storage(*objects, csi_node("n1", {"csi.x": 9}))
    assert filtered(PLUGIN, claiming("p", "c-a"), limited) == {"n1": Status(Code.ERROR, (text,))}
    assert filtered(PLUGIN, claiming("p", "c-a"), with_storage(*objects, csi_node("n1"))) == {}


def test_claims_of_placed_pods_that_are_gone_do_not_count() -> None:
    around = with_storage(node("n1"), csi_node("n1", {"csi.x": 1}), *pairs("a"), claiming("user", "gone", on="n1"))
    assert filtered(PLUGIN, claiming("p", "c-a"), around) == {}


# Keeping up


def steps() -> list[Any]:
    """Changes of a cluster in which n1 is full at times, each with whether it is afterwards."""
    user = claiming("user", "c-a", on="n1")
    return [
        (lambda around: around.set_pod(user), True),
        (lambda around: around.remove_pod("default.user"), False),
        (lambda around: around.set_stored(attachment("1", "n1", "a")), True),
        (lambda around: around.remove_stored(attachment("1", "n1", "a")), False),
        (lambda around: around.set_pod(user), True),
        (lambda around: around.set_stored(csi_node("n1", {"csi.x": 2})), False),
        (lambda around: around.set_stored(csi_node("n1", {"csi.x": 1})), True),
        (lambda around: around.remove_stored(csi("a")), False),
        (lambda around: around.set_stored(csi("a")), True),
        (lambda around: around.remove_stored(claim("c-a")), False),
        (lambda around: around.set_stored(claim("c-a")), False),
        (lambda around: around.set_stored(storage_class()), True),
        (lambda around: around.remove_stored(storage_class()), False),
        (lambda around: around.set_stored(claim("c-a", to="a")), True),
        (lambda around: around.remove_stored(csi_node("n1")), False),
        (lambda around: around.set_stored(csi_node("n1", {"csi.x": 1})), True),
        (lambda around: around.remove_node("n1"), False),
        (lambda around: around.set_node(node("n1")), True),
    ]


def test_counts_follow_every_change() -> None:
    around = with_storage(node("n1"), node("n2"), csi_node("n1", {"csi.x": 1}), *pairs("a", "b"))
    wanting = claiming("p", "c-b")
    assert rejected(PLUGIN, wanting, around) == set()
    for number, (change, full) in enumerate(steps()):
        change(around)
        assert rejected(PLUGIN, wanting, around) == ({"n1"} if full else set()), number


def test_attachments_wait_for_their_node() -> None:
    around = with_storage(csi_node("n1", {"csi.x": 1}), attachment("1", "n1", "a"), *pairs("a", "b"))
    around.set_node(node("n1"))
    assert rejected(PLUGIN, claiming("p", "c-b"), around) == {"n1"}


# Drivers that a node must have

REQUIRING = NodeVolumeLimits(requires_drivers=True)


def missing(driver: str) -> Status:
    return unschedulable(f"{driver} CSI driver is not installed on the node")


def test_nodes_without_a_required_driver_are_rejected() -> None:
    objects: list[Any] = [
        node("n1"),
        node("n2"),
        node("n3"),
        csi_node("n1", {"csi.x": None}),
        csi_node("n2", {"csi.y": 9}),
    ]
    around = with_storage(*objects, csi_driver(required=True), *pairs("a"), *pairs("b", driver="csi.y"))
    of = claiming("p", "c-a", "c-b")
    assert filtered(REQUIRING, of, around) == {"n2": missing("csi.x"), "n3": missing("csi.x")}
    assert filtered(PLUGIN, of, around) == {}
    assert filtered(REQUIRING, claiming("p", "c-b"), around) == {}
    around.set_stored(csi_driver("csi.y", required=True))
    assert filtered(REQUIRING, of, around) == {"n1": missing("csi.y"), "n2": missing("csi.x"), "n3": missing("csi.x")}


@pytest.mark.parametrize("required", [False, None])
def test_a_driver_that_is_not_required_may_be_missing(required: bool | None) -> None:
    around = with_storage(node("n1"), csi_driver(required=required), *pairs("a"))
    assert filtered(REQUIRING, claiming("p", "c-a"), around) == {}


def test_a_missing_driver_is_reported_before_limits_and_errors_of_placed_pods() -> None:
    users: list[Any] = [claim("user-e"), claiming("user", made="e", on="n1")]
    objects = [node("n1"), csi_node("n1", {"csi.y": 0}), csi_driver(required=True), *pairs("a"), *users]
    around = with_storage(*objects, *pairs("b", driver="csi.y"))
    assert filtered(REQUIRING, claiming("p", "c-a", "c-b"), around) == {"n1": missing("csi.x")}
    text = "PVC default/user-e was not created for pod default/user (pod is not owner)"
    assert filtered(REQUIRING, claiming("p", "c-b"), around) == {"n1": Status(Code.ERROR, (text,))}
    absent = unresolvable('looking up PVC default/c: persistentvolumeclaim "c" not found')
    assert filtered(REQUIRING, claiming("p", "c-a", "c"), around) == {"n1": absent}


def test_drivers_follow_their_csi_nodes() -> None:
    around = with_storage(node("n1"), node("n2"), csi_driver(required=True), *pairs("a"), csi_node("n2", {"csi.x": 1}))
    of = claiming("p", "c-a")
    assert rejected(REQUIRING, of, around) == {"n1"}
    around.set_stored(csi_node("n1", {"csi.x": None}))
    assert rejected(REQUIRING, of, around) == set()
    around.set_stored(csi_node("n2"))
    assert rejected(REQUIRING, of, around) == {"n2"}
    around.remove_stored(csi_driver())
    assert rejected(REQUIRING, of, around) == set()


@pytest.mark.parametrize(("drivers", "status"), [({}, missing("csi.x")), ({"csi.x": 1}, FULL), ({"csi.x": 2}, None)])
def test_a_missing_driver_rejects_in_a_what_if(drivers: dict[str, int | None], status: Status | None) -> None:
    around = with_storage(node("n1"), csi_node("n1", drivers), csi_driver(required=True), *pairs("a", "b"))
    state: Any = REQUIRING.prepare_filter(claiming("p", "c-a"), around)
    changed = ChangedRow(around, 0)
    changed.add(claiming("user", "c-b"))
    assert REQUIRING.filter_changed(state, changed) == status


# Hints

USER = claiming("user", "c", on="n1")
EBS_POD = claiming("p", aws_elastic_block_store=AWSDisk(volume_id="vol-1"))


def relimited(old: dict[str, int | None], new: dict[str, int | None]) -> Change:
    return Change(Resource.CSI_NODE, Action.UPDATE_OTHER, csi_node("n", old), csi_node("n", new))


def gone(one: Pod) -> Change:
    return Change(Resource.ASSIGNED_POD, Action.DELETE, one)


@pytest.mark.parametrize(
    ("waiting", "change", "expected"),
    [
        (claiming("p", "c"), Change(Resource.CSI_NODE, Action.ADD, new=csi_node("n")), True),
        (claiming("p", "c"), relimited({"x": 1}, {"x": 2}), True),
        (claiming("p", "c"), relimited({}, {"x": 2}), True),
        (claiming("p", "c"), relimited({"x": 2}, {"x": 2}), False),
        (claiming("p", "c"), relimited({"x": 2}, {"x": None}), False),
        (claiming("p", "c"), gone(USER), True),
        (claiming("p", "c"), gone(EBS_POD), False),
        (claiming("p", "c"), gone(claiming("u", on="n1", gce_persistent_disk=GCEDisk())), True),
        (claiming("p", "c"), gone(pod("u", on="n1")), False),
        (claiming("p", "c"), Change(Resource.CLAIM, Action.ADD, new=claim()), True),
        (claiming("p", made="e"), Change(Resource.CLAIM, Action.ADD, new=claim("p-e")), True),
        (claiming("p", "c"), Change(Resource.CLAIM, Action.ADD, new=claim("d")), False),
        (claiming("p", "c"), Change(Resource.ATTACHMENT, Action.DELETE, attachment("1", "n", "v")), True),
        (claiming("p", made="e"), Change(Resource.ATTACHMENT, Action.DELETE, attachment("1", "n", "v")), False),
        (EBS_POD, Change(Resource.ATTACHMENT, Action.DELETE, attachment("1", "n", "v", EBS)), True),
        (EBS_POD, Change(Resource.ATTACHMENT, Action.DELETE, attachment("1", "n", "v")), False),
        (claiming("p", "c"), Change(Resource.NODE, Action.ADD, new=node()), False),
    ],
)  # fmt: skip
def test_changes_that_help(waiting: Pod, change: Change, expected: bool) -> None:
    hints = [one for one in PLUGIN.events() if one.resource is change.resource and one.actions & change.action]
    assert any(one.helps is None or one.helps(waiting, change, with_storage()) for one in hints) is expected


def test_rows_whose_own_volumes_cannot_be_told_are_marked_together() -> None:
    def work(count: int) -> int:
        names = [f"n{number}" for number in range(count)]
        around = with_storage(
            *map(node, names),
            *(csi_node(name, {"csi.x": 9}) for name in names),
            *(claim(f"u-{name}-own") for name in names),  # made for nobody
            *(claiming(f"u-{name}", made="own", on=name) for name in names),
            claim(to="v"),
            volume("v", csi={"driver": "csi.x", "volumeHandle": "h"}),
        )
        plugin, rows = NodeVolumeLimits(), slice(0, count)
        state: Any = plugin.prepare_filter(claiming("p", "c"), around)
        codes = plugin.filter(state, rows)
        assert len(set(codes.tolist())) == count
        assert "was not created for pod default/u-n3" in plugin.reason(state, int(codes[3])).reasons[0]
        return calls(lambda: plugin.filter(state, rows), "c_call")

    assert work(80) == work(20)
