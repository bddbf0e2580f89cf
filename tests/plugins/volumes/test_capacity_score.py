"""Scores of VolumeBinding by storage capacity, as kube-scheduler 1.37 gives them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import SKIP, Action, Change, Resource
from policysched.model.quantity import exact_value
from policysched.model.release import V1_36, V1_37
from policysched.plugins import plugin_named
from policysched.plugins.curves import curve_of
from policysched.plugins.volumes.volume_binding import DEFAULT_SHAPE, VolumeBinding
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.pod_classes import class_key
from policysched.schedule.cycle.record import make_record
from tests.build import node, pod
from tests.plugins.ask import filtered, hinted, scored
from tests.plugins.stored import ZONE, claim, claiming, csi_capacity, csi_driver, storage_class, volume, with_storage
from tests.plugins.volumes.binding_build import NODES, STATIC, WAIT, at

CURVE = curve_of(DEFAULT_SHAPE)
PLUGIN = VolumeBinding(curve=CURVE)
DRIVER = csi_driver()
OTHER = storage_class("other")
ZONES: list[dict[str, Any]] = [{"nodeTopology": {"matchLabels": {ZONE: zone}}} for zone in "ab"]


def room(of: str = "wait", **amounts: str) -> list[Any]:
    """Storage of a class in zones, by zone."""
    return [
        csi_capacity(f"{of}-{zone}", of, nodeTopology={"matchLabels": {ZONE: zone}}, capacity=amount)
        for zone, amount in amounts.items()
    ]


def static(name: str, zone: str, size: str) -> Any:
    """A volume of a class without a provisioner."""
    return volume(name, nodes=at(zone), size=size, of="static")


def scores(*objects: Any, claims: tuple[str, ...] = ("c",), plugin: VolumeBinding = PLUGIN) -> Any:
    around, of = with_storage(*NODES, *objects), claiming("p", *claims)
    filtered(plugin, of, around)
    found = scored(plugin, of, around)
    assert scored(plugin, of, around) == found, "without the results of the filter"
    return found


def test_a_volume_to_provision_scores_by_the_storage_of_its_class() -> None:
    assert scores(WAIT, DRIVER, claim(size="10Gi"), *room(a="20Gi", b="100Gi")) == {"a": 50, "b": 90, "c": 0}


def test_claims_of_one_class_share_its_storage() -> None:
    two = [claim("c", size="10Gi"), claim("d", size="15Gi")]
    found = scores(WAIT, DRIVER, *two, *room(a="50Gi", b="100Gi"), claims=("c", "d"))
    assert (found["a"], found["b"]) == (50, 75)
    assert scores(WAIT, DRIVER, *two, *room(a="20Gi"), claims=("c", "d"))["a"] == 0, "more than there is"


def test_a_claim_of_two_volumes_counts_twice() -> None:
    assert scores(WAIT, DRIVER, claim(size="10Gi"), *room(a="100Gi"), claims=("c", "c"))["a"] == 80


def test_the_score_is_the_rounded_mean_over_classes() -> None:
    two = [claim("c", size="10Gi"), claim("d", of="other", size="25Gi")]
    stated = [*room(a="100Gi", b="100Gi"), *room("other", a="100Gi", b="50Gi")]
    found = scores(WAIT, OTHER, DRIVER, *two, *stated, claims=("c", "d"))
    assert (found["a"], found["b"]) == (83, 70)  # 82.5 is rounded up


@pytest.mark.parametrize(
    "objects",
    [
        [csi_driver(capacity=False), claim(size="10Gi")],
        [csi_driver(capacity=None), claim(size="10Gi")],
        [claim(size="10Gi")],
        [DRIVER, claim(size=None)],
        [DRIVER, claim(to="v"), volume("v")],
    ],
)
def test_claims_without_a_capacity_to_compare_score_nothing(objects: list[Any]) -> None:
    assert scores(WAIT, *objects, *room(a="20Gi", b="100Gi")) == {"a": 0, "b": 0, "c": 0}


def test_an_existing_volume_scores_by_its_own_size() -> None:
    volumes = [
        volume("va", nodes=at("a"), size="20Gi", of="static"),
        volume("vb", nodes=at("b"), size="40Gi", of="static"),
    ]
    assert scores(STATIC, claim(of="static", size="10Gi"), *volumes) == {"a": 50, "b": 75, "c": 0}


def test_volumes_to_provision_are_ignored_where_a_claim_takes_an_existing_one() -> None:
    taken = volume("va", nodes=at("a"), size="40Gi", of="wait")
    two = [claim("c", size="10Gi"), claim("d", size="30Gi", volumeMode="Block")]
    found = scores(WAIT, DRIVER, *two, taken, *room(a="100Gi", b="100Gi"), claims=("c", "d"))
    assert (found["a"], found["b"]) == (75, 60)


def test_existing_volumes_of_one_class_are_added_up() -> None:
    volumes = [
        volume("v1", nodes=at("a"), size="10Gi", of="static"),
        volume("v2", nodes=at("a"), size="30Gi", of="static"),
    ]
    two = [claim("c", of="static", size="5Gi"), claim("d", of="static", size="15Gi")]
    assert scores(STATIC, *two, *volumes, claims=("c", "d"))["a"] == 50


def test_the_storage_that_allows_the_largest_volume_counts() -> None:
    several = [
        csi_capacity("1", capacity="200Gi", maximumVolumeSize="11Gi", **ZONES[0]),
        csi_capacity("2", capacity="40Gi", **ZONES[0]),
        csi_capacity("3", capacity="20Gi", **ZONES[0]),
        csi_capacity("4", maximumVolumeSize="90Gi", **ZONES[1]),
    ]
    # kube-scheduler panics where an object states no capacity
    assert scores(WAIT, DRIVER, claim(size="10Gi"), *several) == {"a": 75, "b": 0, "c": 0}


def test_pods_without_claims_score_zero_as_a_class() -> None:
    around = with_storage(*NODES)
    assert PLUGIN.class_score is not None
    assert scored(PLUGIN.class_score, pod(), around) == dict.fromkeys("abc", 0)
    assert VolumeBinding().class_score is None
    assert scored(VolumeBinding(), pod(), around) is SKIP


def test_results_of_another_pod_are_not_scored() -> None:
    around = with_storage(*NODES, WAIT, DRIVER, claim("c", size="10Gi"), claim("d", size="80Gi"), *room(a="100Gi"))
    filtered(PLUGIN, claiming("p", "c"), around)
    assert scored(PLUGIN, claiming("q", "d"), around) == {"a": 20, "b": 0, "c": 0}


@pytest.mark.parametrize(
    ("shape", "score"),
    [(None, 90), ([], 90), ([{"utilization": 0, "score": 0}, {"utilization": 20, "score": 10}], 50)],
)
def test_the_argument_shape_is_the_curve(shape: Any, score: int) -> None:
    made: Any = plugin_named("VolumeBinding", {"shape": shape}, V1_37)
    assert scores(WAIT, DRIVER, claim(size="10Gi"), *room(a="100Gi"), plugin=made)["a"] == score
    assert made.scores_after_pre_filter
    old: Any = plugin_named("VolumeBinding", {}, V1_36)
    assert scored(old, claiming("p", "c"), with_storage(*NODES)) is SKIP


@pytest.mark.parametrize(
    ("size", "amount", "fits", "fits_exactly"),
    [
        ("2", "1500m", True, False),
        ("1200m", "1500m", True, True),
        ("1500m", "1200m", True, False),
        ("1", "1", True, True),
        ("9223372036854775808", "9223372036854775807", True, False),
        ("1Gi", "1Mi", False, False),
    ],
)
def test_sizes_are_compared_in_whole_bytes_or_exactly(size: str, amount: str, fits: bool, fits_exactly: bool) -> None:
    around = with_storage(node("a", labels={ZONE: "a"}), WAIT, DRIVER, claim(size=size), *room(a=amount))
    for plugin, expected in ((VolumeBinding(), fits), (VolumeBinding(measure=exact_value), fits_exactly)):
        assert (filtered(plugin, claiming("p", "c"), around) == {}) is expected


def test_a_capacity_helps_if_it_grows_in_its_measure() -> None:
    change = Change(
        Resource.STORAGE_CAPACITY,
        Action.UPDATE_OTHER,
        csi_capacity("k", capacity="1200m"),
        csi_capacity("k", capacity="1500m"),
    )
    assert not hinted(VolumeBinding(), claiming("p", "c"), change)
    assert hinted(VolumeBinding(measure=exact_value), claiming("p", "c"), change)


def test_amounts_overflow_as_in_kube_scheduler() -> None:
    huge = claim(size="100e15")
    around = with_storage(node("a", labels={ZONE: "a"}), WAIT, DRIVER, huge, *room(a="9e18"))
    state = PLUGIN.prepare_score(claiming("p", "c"), around)
    assert isinstance(state, np.ndarray)
    # 100 times the size wraps to a negative utilization
    assert state.tolist() == [100]


@pytest.mark.parametrize("first", ["plain", "claiming"])
def test_pods_with_and_without_claims_of_one_class_have_their_own_scores(first: str) -> None:
    around = with_storage(*NODES, WAIT, DRIVER, claim(size="10Gi"), *room(a="20Gi", b="100Gi"))
    engine = Engine(around, PolicySet().join(default_profile(release=V1_37)), random.Random(0))
    pods = {"plain": pod("plain"), "claiming": claiming("claiming", "c")}
    assert class_key(pods["plain"]) == class_key(pods["claiming"])
    for _ in range(2):
        for name in (first, *pods):
            told = make_record(engine.decide(pods[name]))["scores"]
            found = {node: scores["VolumeBinding"] for node, scores in told.items()}
            assert found == ({"a": 50, "b": 90} if name == "claiming" else dict.fromkeys("abc", 0))
