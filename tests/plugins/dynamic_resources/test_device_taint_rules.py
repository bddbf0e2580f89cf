"""DeviceTaintRules: which devices they taint, which claims find no device for it, and which pods they wake up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Cluster, Resource, unresolvable
from policysched.model.decode import decode
from policysched.model.objects import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
    Metadata,
    ResourceSlice,
)
from policysched.model.release import V1_36, V1_37
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import node
from tests.plugins.ask import filtered, hinted
from tests.plugins.dynamic_resources.objects import DRIVER, claim, claiming, device, exactly, gpu_class, resource_slice

NO_DEVICES = unresolvable("cannot allocate all claims")
ALL = DeviceTaintSelector()
ON_N1 = DeviceTaintSelector(driver=DRIVER, pool="n1")


def rule(selector: DeviceTaintSelector | None, name: str = "r", effect: str = "NoSchedule") -> DeviceTaintRule:
    taint = DeviceTaint(key=name, value="yes", effect=effect)
    return DeviceTaintRule(metadata=Metadata(name=name), spec=DeviceTaintRuleSpec(selector, taint))


def world(*objects: Any, release: Any = V1_37) -> Cluster:
    """A cluster of two nodes with two devices on the first and one on the second."""
    made = Cluster(release=release)
    slices = resource_slice("n1", "d1", "d2"), resource_slice("n2", "d1")
    for one in (node("n1"), node("n2"), gpu_class(), *slices, claim(), *objects):
        made.take(one)
    return made


def rejecting(around: Cluster) -> set[str]:
    """The nodes without a device for a pod."""
    answer = filtered(DynamicResources(), claiming("c"), around)
    assert isinstance(answer, dict)
    assert set(answer.values()) <= {NO_DEVICES}
    return set(answer)


SELECTORS: dict[str, tuple[DeviceTaintSelector | None, set[str]]] = {
    "none": (None, set()),
    "every device": (ALL, {"n1", "n2"}),
    "a driver": (DeviceTaintSelector(driver=DRIVER), {"n1", "n2"}),
    "another driver": (DeviceTaintSelector(driver="nic.example.com"), set()),
    "an empty driver": (DeviceTaintSelector(driver=""), set()),
    "a pool": (DeviceTaintSelector(pool="n1"), {"n1"}),
    "a pool of another driver": (DeviceTaintSelector(driver="nic.example.com", pool="n1"), set()),
    "devices of one name": (DeviceTaintSelector(device="d1"), {"n2"}),
    "an unknown device": (DeviceTaintSelector(pool="n1", device="d9"), set()),
}


@pytest.mark.parametrize(("selector", "rejected"), SELECTORS.values(), ids=SELECTORS)
def test_a_rule_taints_the_devices_that_it_selects(selector: DeviceTaintSelector | None, rejected: set[str]) -> None:
    assert rejecting(world(rule(selector))) == rejected
    assert rejecting(world(rule(selector), release=V1_36)) == set()


@pytest.mark.parametrize(("effect", "count"), [("NoSchedule", 1), ("NoExecute", 1), ("None", 0), ("Future", 0)])
def test_only_some_effects_keep_claims_from_a_device(effect: str, count: int) -> None:
    assert len(rejecting(world(rule(ON_N1, effect=effect)))) == count


def test_rules_add_to_the_taints_of_a_driver_and_of_other_rules() -> None:
    tolerant = exactly(tolerations=(DeviceToleration(key="a", operator="Exists"),))
    own = device("d1", taints=(DeviceTaint(key="own", effect="NoSchedule"),))
    around = world(claim("c", tolerant, version="2"), rule(ON_N1, "a"))
    assert rejecting(around) == set()
    around.take(rule(DeviceTaintSelector(pool="n1", device="d2"), "b"))
    assert rejecting(around) == set()
    around.take(resource_slice("n1", own, "d2"))
    assert rejecting(around) == {"n1"}


def test_rules_and_slices_arrive_in_any_order_and_go_again() -> None:
    around, late = world(rule(ON_N1)), resource_slice("n2", "d1")
    around.drop(resource_slice("n1", "d1", "d2"))
    around.take(resource_slice("n1", "d1", "d2", "d3"))
    assert rejecting(around) == {"n1"}
    around.take(rule(DeviceTaintSelector(pool="n2")))
    assert rejecting(around) == {"n2"}
    around.drop(late)
    around.drop(rule(DeviceTaintSelector(pool="n2")))
    around.take(late)
    assert rejecting(around) == set()


def test_stored_slices_stay_as_their_drivers_publish_them() -> None:
    around = world(rule(ALL))
    assert around.objects.of(ResourceSlice)["slice-n2"] == resource_slice("n2", "d1")


def test_a_rule_is_a_change_of_a_slice_that_it_taints_and_wakes_pods_up() -> None:
    around = world()
    changes = {
        "comes": around.take(rule(ON_N1)),
        "stays": around.take(rule(ON_N1)),
        "has no effect any more": around.take(rule(ON_N1, effect="None")),
        "goes": around.drop(rule(ON_N1, effect="None")),
        "is gone": around.drop(rule(ON_N1)),
        "selects nothing": around.take(rule(DeviceTaintSelector(pool="n9"))),
    }
    helpful = {name for name, change in changes.items() if not change.nothing}
    assert helpful == {"comes", "has no effect any more", "goes"}
    for name in helpful:
        change = changes[name]
        assert (change.resource, change.action) == (Resource.RESOURCE_SLICE, Action.UPDATE_OTHER)
        assert hinted(DynamicResources(), claiming("c"), change, around)
    assert changes["goes"].new == resource_slice("n1", "d1", "d2")
    assert world(release=V1_36).take(rule(ON_N1)).nothing


def test_a_rule_without_a_selector_differs_from_one_with_an_empty_selector() -> None:
    taint = {"taint": {"key": "k", "effect": "NoSchedule"}}
    specs: list[dict[str, Any]] = [taint, {"deviceSelector": {}, **taint}]
    without, empty = (
        decode(DeviceTaintRule, "DeviceTaintRule", {"metadata": {"name": "r"}, "spec": spec}) for spec in specs
    )
    assert rejecting(world(without)) == set()
    assert rejecting(world(empty)) == {"n1", "n2"}
    assert replace(without, spec=empty.spec) == empty
