"""Plugins of which a configuration enables one of two points, other orders at PreFilter, and weights of any size."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import configured_profiles
from policysched.framework import Cluster
from policysched.model.objects import (
    Affinity,
    ClaimSource,
    LabelSelector,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Requirement,
    Taint,
    Volume,
)
from policysched.model.release import DEFAULT, V1_37, Release
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import Record, make_record
from tests.app.configuration.test_reading import HEAD
from tests.build import cluster, node, pod
from tests.plugins.stored import claim, claiming, csi_capacity, csi_driver, storage_class, with_storage

LABELLED = {"zone": "a"}


def built(around: Cluster, plugins: dict[str, Any], *arguments: Any, release: Release = DEFAULT) -> Engine:
    config = {**HEAD, "profiles": [{"plugins": plugins, "pluginConfig": list(arguments)}]}
    [profile] = configured_profiles(config, release=release).values()
    return Engine(around, PolicySet().join(profile), random.Random(0))


def decided(of: Pod, around: Cluster, **plugins: Any) -> Decision:
    return built(around, plugins).decide(of)


def record(of: Pod, around: Cluster, **plugins: Any) -> Record:
    return make_record(decided(of, around, **plugins))


def off(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names]}


def on(*entries: Any, off: tuple[str, ...] = ()) -> dict[str, Any]:
    """Enable names, or pairs of a name and a weight."""
    pairs = [one if isinstance(one, tuple) else (one, 0) for one in entries]
    return {
        "enabled": [{"name": name, "weight": weight} for name, weight in pairs],
        "disabled": [{"name": name} for name in off],
    }


def named(*names: str) -> Pod:
    """A pod that demands a node of all these names at once."""
    fields = [Requirement(key="metadata.name", operator="In", values=(name,)) for name in names]
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=tuple(fields))])
    return pod(affinity=Affinity(node_affinity=NodeAffinitySpec(required=required)))


def two(**fields: Any) -> Cluster:
    return cluster(node("a", **fields), node("b", labels=LABELLED))


UNMATCHED = "node(s) didn't match Pod's node affinity/selector"


def test_pre_filter_alone_narrows_and_conflicts_but_does_not_filter() -> None:
    narrowed = record(named("b"), two(), filter=off("NodeAffinity"))
    assert narrowed["rejected"]["a"]["plugin"] == "PreFilterResult"
    assert narrowed["best"] == ["b"]
    conflict = record(named("a", "b"), two(), filter=off("NodeAffinity"))
    assert conflict["preFilter"]["reasons"] == ["pod affinity terms conflict"]
    selecting = replace(pod(), spec=replace(pod().spec, node_selector={"zone": "none"}))
    assert record(selecting, two(), filter=off("NodeAffinity"))["best"] == ["a", "b"]
    both = record(named("b"), two(), filter=off("NodeAffinity"), preFilter=off("NodeAffinity"))
    assert both["best"] == ["a", "b"]


def test_filter_alone_filters_what_would_be_narrowed_or_rejected_outright() -> None:
    filtered = record(named("b"), two(), preFilter=off("NodeAffinity"))
    assert filtered["rejected"] == {
        "a": {"plugin": "NodeAffinity", "code": "UnschedulableAndUnresolvable", "reasons": [UNMATCHED]}
    }
    conflict = record(named("a", "b"), two(), preFilter=off("NodeAffinity"))
    assert {one["reasons"][0] for one in conflict["rejected"].values()} == {UNMATCHED}
    assert "preFilter" not in conflict


@pytest.mark.parametrize("plugin", ["NodePorts", "NodeResourcesFit", "PodTopologySpread", "VolumeBinding"])
def test_a_filter_that_cannot_do_without_pre_filter_fails_on_every_node_that_reaches_it(plugin: str) -> None:
    taint = Taint(key="k", effect="NoSchedule")
    text = f'running "{plugin}" filter plugin: {plugin} cannot filter while its preFilter is disabled'
    failed = decided(pod(), two(), preFilter=off(plugin))
    assert (failed.failed, failed.error()) == (True, text)
    assert record(pod(), two(taints=[taint]), preFilter=off(plugin))["error"] == text
    tainted = cluster(node("a", taints=[taint]), node("b", taints=[taint]))
    unreached = record(pod(), tainted, preFilter=off(plugin))
    assert {one["plugin"] for one in unreached["rejected"].values()} == {"TaintToleration"}
    others = ("filter", "preScore", "score") if plugin == "VolumeBinding" else ("filter",)
    assert record(pod(), two(), **dict.fromkeys(("preFilter", *others), off(plugin)))["best"] == ["a", "b"]


def test_a_failure_comes_and_goes_with_the_nodes_that_reach_it() -> None:
    around = cluster(node("a", taints=[Taint(key="k", effect="NoSchedule")]))
    made = built(around, {"preFilter": off("NodePorts")})
    assert not made.decide(pod()).failed
    around.set_node(node("b"))
    assert made.decide(pod()).failed
    around.remove_node("b")
    assert not made.decide(pod()).failed


def test_the_first_filter_of_the_configuration_reports() -> None:
    taint = Taint(key="k", effect="NoSchedule")
    around = cluster(node("a", taints=[taint], allocatable={"cpu": "1"}))
    greedy = pod(requests={"cpu": "2"})
    assert record(greedy, around)["rejected"]["a"]["plugin"] == "TaintToleration"
    assert record(greedy, around, filter=on("NodeResourcesFit"))["rejected"]["a"]["plugin"] == "NodeResourcesFit"


@pytest.mark.parametrize("plugin", ["NodeAffinity", "NodeResourcesBalancedAllocation"])
def test_a_plugin_that_is_not_skipped_any_more_scores_zero(plugin: str) -> None:
    assert plugin not in record(pod(), two())["scores"]["a"]
    told = record(pod(), two(), preScore=off(plugin))["scores"]
    assert {name: scores[plugin] for name, scores in told.items()} == {"a": 0, "b": 0}


def test_scores_that_do_without_pre_score_stay_what_they_are() -> None:
    of = pod(requests={"cpu": "1", "memory": "1Gi"})
    around = cluster(node("a"), node("b", allocatable={"cpu": "16"}))
    names = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")
    assert record(of, around, preScore=off(*names)) == record(of, around)


@pytest.mark.parametrize("plugin", ["TaintToleration", "PodTopologySpread", "InterPodAffinity"])
def test_a_score_that_cannot_do_without_pre_score_fails_where_there_is_a_choice(plugin: str) -> None:
    text = f'running PreScore plugin "{plugin}": {plugin} cannot score while its preScore is disabled'
    assert record(pod(), two(), preScore=off(plugin))["error"] == text
    alone = record(pod(), cluster(node("a")), preScore=off(plugin))
    assert (alone["best"], "scores" in alone) == (["a"], False)
    assert "error" not in record(pod(), two(), preScore=off(plugin), score=off(plugin))


def test_pre_score_alone_can_fail_but_only_where_anything_scores() -> None:
    term = NodeSelectorTerm(match_expressions=(Requirement(key="zone", operator="Like", values=("x",)),))
    wish = NodeAffinitySpec(preferred=[PreferredSchedulingTerm(weight=1, preference=term)])
    wishing = pod(affinity=Affinity(node_affinity=wish))
    assert '"Like"' in record(wishing, two(), score=off("NodeAffinity"))["error"]
    assert record(wishing, two(), score=off("*"))["total"] == {"a": 1, "b": 1}


def test_terms_that_cannot_be_parsed_fail_at_pre_score_where_pre_filter_is_disabled() -> None:
    selector = LabelSelector(match_expressions=(Requirement(key="app", operator="Like"),))
    near = PodAffinity(required=[PodAffinityTerm(topology_key="zone", label_selector=selector)])
    of = pod(affinity=Affinity(pod_affinity=near))
    parts = {point: off("InterPodAffinity") for point in ("preFilter", "filter")}
    text = 'running PreScore plugin "InterPodAffinity": failed to parse pod: '
    assert record(of, two(), **parts)["error"].startswith(text)
    assert record(of, two())["preFilter"]["plugin"] == "InterPodAffinity"


def test_dynamic_resources_cannot_score_what_pre_filter_did_not_prepare() -> None:
    text = "DynamicResources cannot score while its preFilter is disabled"
    kept = {"preFilter": off("DynamicResources"), "filter": off("DynamicResources")}
    assert text in record(pod(), two(), **kept)["error"]
    assert "error" not in record(pod(), two(), **kept, score=off("DynamicResources"))


@pytest.mark.parametrize(
    ("points", "score"),
    [
        ((), 90),
        (("preScore",), 90),
        (("filter",), 0),
        (("filter", "preScore"), 0),
        (("preFilter", "filter"), None),
        (("preFilter", "filter", "preScore"), None),
        (("preFilter", "filter", "score"), None),
    ],
)
def test_volume_binding_scores_what_its_filter_found(points: tuple[str, ...], score: int | None) -> None:
    rooms = [
        csi_capacity(name, nodeTopology={"matchLabels": {"zone": name}}, capacity=size)
        for name, size in (("a", "100Gi"), ("b", "20Gi"))
    ]
    around = with_storage(
        node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}), storage_class(), csi_driver(),
        claim(size="10Gi"), *rooms,
    )  # fmt: skip
    parts = {point: off("VolumeBinding") for point in points}
    told = make_record(built(around, parts, release=V1_37).decide(claiming("p", "c")))
    if score is None:
        assert "VolumeBinding cannot score while its preFilter is disabled" in told["error"]
    else:
        assert told["scores"]["a"]["VolumeBinding"] == score


def test_plugins_that_all_skip_leave_totals_of_zero() -> None:
    only = on("NodeAffinity", off=("*",))
    assert record(pod(), two(), score=only) == {
        "pod": "default/p",
        "schedulerName": "default-scheduler",
        "reference": DEFAULT.minor,
        "result": "Scheduled",
        "selected": record(pod(), two(), score=only)["selected"],
        "best": ["a", "b"],
        "total": {"a": 0, "b": 0},
    }


WEIGHTS = [1, 7, 21_474_836, 21_474_837, 2**31 - 1]


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("plugin", ["NodeResourcesFit", "TaintToleration"])
def test_weights_of_any_size_are_counted_exactly(plugin: str, weight: int) -> None:
    soft = Taint(key="k", effect="PreferNoSchedule")
    around = cluster(node("a", taints=[soft]), node("b"), pod("placed", on="a", requests={"cpu": "1"}))
    usual = record(pod(), around)["scores"]
    made = record(pod(), around, score=on((plugin, weight)))
    default = 3 if plugin == "TaintToleration" else 1
    for name in ("a", "b"):
        assert made["scores"][name][plugin] == usual[name][plugin] // default * weight
        assert made["total"][name] == sum(made["scores"][name].values())
    assert made["best"] == ["b"]


@pytest.mark.parametrize("weight", [-1, -5, -(2**31)])
def test_a_weight_below_zero_turns_the_choice_around(weight: int) -> None:
    around = cluster(node("a"), node("b"), pod("placed", on="a", requests={"cpu": "2"}))
    usual = {name: scores["NodeResourcesFit"] for name, scores in record(pod(), around)["scores"].items()}
    only = on("PrioritySort", "DefaultBinder", ("NodeResourcesFit", weight), off=("*",))
    made = record(pod(), around, multiPoint=only)
    assert made["total"] == {name: weight * score for name, score in usual.items()}
    assert made["best"] == ["a"]


def test_filters_that_read_volumes_are_partial_in_the_same_way() -> None:
    claim = ClaimSource(claim_name="none")
    claiming = pod(volumes=[Volume(name="v", persistent_volume_claim=claim)])
    assert record(claiming, two())["preFilter"]["plugin"] == "VolumeRestrictions"
    assert record(claiming, two(), preFilter=on("VolumeZone"))["preFilter"]["plugin"] == "VolumeZone"
    unfiltered = record(claiming, two(), filter=off("VolumeRestrictions", "VolumeZone", "VolumeBinding"))
    assert unfiltered["preFilter"]["plugin"] == "VolumeRestrictions"
    others = ("VolumeRestrictions", "VolumeBinding")
    alone = record(claiming, two(), preFilter=off("VolumeZone", *others), filter=off("NodeVolumeLimits", *others))
    assert {one["plugin"] for one in alone["rejected"].values()} == {"VolumeZone"}
    limited = record(claiming, two(), preFilter=off("VolumeZone", *others), filter=off("VolumeZone", *others))
    assert limited == record(claiming, two(), multiPoint=off("VolumeZone", *others))
