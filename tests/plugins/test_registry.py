"""The default plugins: their order, weights and arguments."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.errors import UsageError
from policysched.framework import (
    SKIP,
    Aspect,
    BindPlugin,
    FilterPlugin,
    Incremental,
    PermitPlugin,
    PerPod,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
    RetryControl,
    ScorePlugin,
    WhatIfFilter,
)
from policysched.plugins import default_plugins, plugin_named
from policysched.plugins.registry import Enabled, points_of_defaults
from tests.build import cluster, node, pod
from tests.plugins.ask import rejected, scored

ORDER = """SchedulingGates PrioritySort NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts
NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity
DynamicResources DefaultPreemption NodeResourcesBalancedAllocation ImageLocality DefaultBinder NodeDeclaredFeatures"""


def test_default_plugins_are_in_kube_schedulers_order_with_its_weights() -> None:
    enabled = default_plugins()
    assert [one.plugin.name for one in enabled] == ORDER.split()
    assert {one.plugin.name: one.weight for one in enabled if one.weight} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


BASES: dict[str, type] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": FilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": ScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
OPTIONAL = (Incremental, WhatIfFilter, PerPod, RetryControl)


@pytest.mark.parametrize("enabled", default_plugins(), ids=lambda one: one.plugin.name)
def test_default_plugin_inherits_the_bases_of_its_points_and_methods(enabled: Enabled) -> None:
    plugin = enabled.plugin
    acts = points_of_defaults()[plugin.name] & BASES.keys()
    assert {point for point, base in BASES.items() if isinstance(plugin, base)} >= acts
    assert {base for base in BASES.values() if isinstance(plugin, base)} == {BASES[point] for point in acts}
    for base in OPTIONAL:
        own = {name for name in vars(base) if not name.startswith("_")}
        assert isinstance(plugin, base) or not any(hasattr(plugin, name) for name in own)


def test_default_plugins_take_part_at_the_points_that_are_theirs() -> None:
    plugins = [one.plugin for one in default_plugins()]
    filters = {one.name for one in plugins if isinstance(one, FilterPlugin)}
    scorers = {one.name for one in plugins if isinstance(one, ScorePlugin)}
    neither = {"SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder"}
    assert scorers == {
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    }
    assert filters == set(ORDER.split()) - neither - {"NodeResourcesBalancedAllocation", "ImageLocality"}


def test_only_plugins_of_resources_ports_volumes_and_neighbours_read_what_pods_use() -> None:
    usage = Aspect.USAGE | Aspect.PORTS | Aspect.PODS
    filters = [one.plugin for one in default_plugins() if isinstance(one.plugin, FilterPlugin)]
    assert {one.name for one in filters if one.filter_reads & usage} == {
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "InterPodAffinity",
    }
    scorers = [one.plugin for one in default_plugins() if isinstance(one.plugin, ScorePlugin)]
    assert {one.name for one in scorers if one.score_reads & usage} == {
        "NodeResourcesFit",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
    }


def test_plugins_whose_answers_depend_on_their_row_alone_never_go_stale() -> None:
    generations = ("InterPodAffinity", "ImageLocality", "DynamicResources", "NodeResourcesFit")
    before, after = cluster(), cluster(node(labels={"a": "b"}, images={"x": 1}), pod(on="n1"))
    for one in default_plugins():
        if isinstance(one.plugin, Incremental) and one.plugin.name not in generations:
            assert one.plugin.stamp(before) == one.plugin.stamp(after)


def test_a_plain_pod_is_let_through_and_scored_by_the_same_plugins_as_upstream() -> None:
    state = cluster(node("a"), node("b", unschedulable=True))
    incoming = pod(requests={"cpu": "1", "memory": "2Gi"})
    scores: dict[str, Any] = {}
    for one in default_plugins():
        if isinstance(one.plugin, FilterPlugin):
            assert rejected(one.plugin, incoming, state) <= {"b"}
        if isinstance(one.plugin, ScorePlugin):
            answer = scored(one.plugin, incoming, state)
            if answer is not SKIP:
                scores[one.plugin.name] = answer
    assert {name: answer["a"] for name, answer in scores.items()} == {
        "TaintToleration": 100,
        "NodeResourcesFit": 75,
        "VolumeBinding": 0,
        "DynamicResources": 0,
        "NodeResourcesBalancedAllocation": 75,
        "ImageLocality": 0,
    }


def test_plugin_named_passes_arguments_of_a_filter_on() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
    affinity = plugin_named(
        "NodeAffinity", {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    )
    assert isinstance(affinity, FilterPlugin)
    assert rejected(affinity, pod(), cluster(node("a", labels={"k": "v"}), node("b"))) == {"b"}


def test_plugin_named_passes_arguments_of_a_filter_and_score_on() -> None:
    fit = plugin_named(
        "NodeResourcesFit",
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "NodeResourcesFitArgs",
            "ignoredResourceGroups": ["example.com"],
            "scoringStrategy": {
                "type": "LeastAllocated",
                "resources": [{"name": "cpu", "weight": 0}, {"name": "memory", "weight": 3}],
            },
        },
    )
    assert isinstance(fit, FilterPlugin)
    assert isinstance(fit, ScorePlugin)
    incoming = pod(requests={"cpu": "4", "memory": "4Gi", "example.com/x": "1"})
    assert rejected(fit, incoming, cluster(node())) == set()
    assert scored(fit, incoming, cluster(node())) == {"n1": (0 + 3 * 50) // 4}


def test_plugin_named_passes_arguments_of_a_score_on() -> None:
    balance = plugin_named("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}]})
    assert isinstance(balance, ScorePlugin)
    assert scored(balance, pod(requests={"memory": "1Gi"}), cluster(node())) is SKIP


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("NoSuch", {}, 'unknown plugin "NoSuch"; the plugins are DefaultBinder, '),
        ("NodeResourcesFit", {"ignored": []}, "NodeResourcesFit: ignored: unknown field"),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            "InterPodAffinity: hardPodAffinityWeight: 101 is not in valid range [0, 100]",
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": -1},
            "InterPodAffinity: hardPodAffinityWeight: -1 is not in valid range [0, 100]",
        ),
        (
            "InterPodAffinity",
            {"hardWeight": 1},
            "InterPodAffinity: hardWeight: unknown field",
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Like"}]}]
                    }
                }
            },
            'NodeAffinity: addedAffinity: "Like" is not a valid selector operator',
        ),
    ],
)
def test_plugin_named_refuses_what_cannot_be_used(name: str, args: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        plugin_named(name, args)
    assert message in str(refusal.value)
