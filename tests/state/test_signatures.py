"""Signatures of placed pods: what makes a pod another signature, and when a signature goes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from policysched.model.objects import OwnerReference, Pod, PodStatus
from policysched.state.placed.pods import signature_key
from tests.build import cluster, pod
from tests.state.signatures_build import REPELLING, WEB, signature


def terminating(one: Pod) -> Pod:
    return replace(one, metadata=replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


def owned(one: Pod, name: str, *, controller: bool = True) -> Pod:
    owner = OwnerReference(kind="ReplicaSet", name=name, controller=controller)
    return replace(one, metadata=replace(one.metadata, owner_references=[owner]))


def test_siblings_are_one_kind_whatever_their_names_and_nodes() -> None:
    made = cluster(pod("a", on="n1", labels={"x": "1", "y": "2"}), pod("b", on="n2", labels={"y": "2", "x": "1"}))
    assert signature(made, "a") == signature(made, "b")
    assert made.signatures.stamp == 1


@pytest.mark.parametrize(
    "other",
    [
        pod("b", on="n1", namespace="other"),
        pod("b", on="n1", labels={"app": "db"}),
        pod("b", on="n1", requests={"cpu": "1"}),
        pod("b", on="n1", priority=5),
        pod("b", on="n1", priority_class_name="high"),
        pod("b", on="n1", service_account_name="robot"),
        pod("b", on="n1", affinity=REPELLING),
        terminating(pod("b", on="n1")),
        owned(pod("b", on="n1"), "rs"),
        replace(pod("b", on="n1"), status=PodStatus(qos_class="Guaranteed")),
    ],
)
def test_what_rules_about_other_pods_read_makes_a_kind(other: Pod) -> None:
    made = cluster(pod("a", on="n1"), other)
    assert len({one.signature for one in made.pods.by_id.values()}) == 2


def test_an_owner_that_does_not_control_makes_no_kind() -> None:
    made = cluster(pod("a", on="n1"), owned(pod("b", on="n1"), "rs", controller=False))
    assert signature(made, "a") == signature(made, "b")


def test_a_kind_goes_with_its_last_pod_and_its_number_is_used_again() -> None:
    made = cluster(pod("a", on="n1"), pod("b", on="n1"), pod("c", on="n1", labels=WEB))
    first, generation = signature(made, "a"), made.signatures.stamp
    made.remove_pod("default.a")
    assert (made.signatures.present[first] is not None, made.signatures.stamp) == (True, generation)
    made.remove_pod("default.b")
    assert (made.signatures.present[first], made.signatures.stamp) == (None, generation + 1)
    made.set_pod(pod("d", on="n1", labels={"app": "new"}))
    assert signature(made, "d") == first


@pytest.mark.parametrize(
    "later",
    [
        terminating(pod("a", on="n1")),
        owned(pod("a", on="n1"), "rs"),
        pod("a", on="n1", labels=WEB),
        pod("a", on="n1", affinity=REPELLING),
        pod("a", on="n1", requests={"cpu": "1"}),
        pod("a", on="n1", service_account_name="robot"),
        pod("a", on="n1", priority_class_name="high"),
    ],
)
def test_an_update_can_change_a_pods_kind(later: Pod) -> None:
    made = cluster(pod("a", on="n1"))
    made.set_pod(later)
    placed = made.pods.by_id["default.a"]
    assert placed.pod is later
    assert cluster(later).signatures.present[0] == placed.__class__(later, placed.row, placed.pod_resources,
                                                               assumed=False,
                                                               signature=0, slot=placed.slot)  # fmt: skip
    assert made.pods.signatures[placed.slot] == placed.signature
    assert made.signatures._keys[placed.signature] == signature_key(placed)
