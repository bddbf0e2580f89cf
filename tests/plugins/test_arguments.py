"""Which arguments of plugins are accepted: as by kube-scheduler, in words of our own."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.errors import UsageError
from policysched.framework import ScorePlugin
from policysched.model.release import V1_36, V1_37
from policysched.plugins import EnginePart, plugin_named
from policysched.plugins.arguments import API_VERSION
from policysched.reading.durations import nanoseconds
from tests.build import cluster, node, pod
from tests.plugins.ask import scored

RATIO = "RequestedToCapacityRatio"
FIT, BALANCE = "NodeResourcesFit", "NodeResourcesBalancedAllocation"


def strategy(kind: str = "LeastAllocated", **fields: Any) -> dict[str, Any]:
    return {"scoringStrategy": {"type": kind, **fields}}


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    written = [{"utilization": utilization, "score": score} for utilization, score in points]
    return strategy(RATIO, requestedToCapacityRatio={"shape": written})


def weights(**weights: Any) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def affinity(**fields: Any) -> dict[str, Any]:
    return {"addedAffinity": {f"{name}DuringSchedulingIgnoredDuringExecution": one for name, one in fields.items()}}


def term(**fields: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"], **fields}]}


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    (FIT, {}),
    (FIT, {"apiVersion": API_VERSION, "kind": "NodeResourcesFitArgs"}),
    (FIT, {"apiVersion": None, "kind": "", "scoringStrategy": None, "ignoredResources": None}),
    (FIT, {"ignoredResources": ["example.com/gpu", "cpu", "gpu"], "ignoredResourceGroups": ["example.com", "x"]}),
    (FIT, strategy()),
    (FIT, strategy("MostAllocated", resources=weights(cpu=100, memory=0))),
    (FIT, strategy(resources=[{"name": "cpu"}, {"name": "cpu", "weight": None}, {}])),
    (FIT, strategy(requestedToCapacityRatio=None)),
    (FIT, shape((0, 0), (50, 10), (100, 3))),
    (FIT, shape((70, 5))),
    (FIT, strategy(RATIO, requestedToCapacityRatio={"shape": [{}]})),
    (BALANCE, {}),
    (BALANCE, {"resources": weights(cpu=1, memory=0)}),
    ("NodeAffinity", {"addedAffinity": None}),
    (
        "NodeAffinity",
        affinity(required={"nodeSelectorTerms": [term()]}, preferred=[{"weight": 3, "preference": term()}]),
    ),
    ("NodeAffinity", affinity(required={}, preferred=[{"weight": 0, "preference": term(operator="Like")}])),
    ("NodeAffinity", affinity(required={"nodeSelectorTerms": [None, term(values=[None, "v"])]}, preferred=[None])),
    ("DefaultPreemption", {}),
    ("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}),
    ("DefaultPreemption", {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 0}),
    ("VolumeBinding", {"bindTimeoutSeconds": 0, "shape": None}),
    ("DynamicResources", {"filterTimeout": "0", "bindingTimeout": "1s"}),
    ("DynamicResources", {"filterTimeout": "1m30.5s", "bindingTimeout": None}),
    ("NodeName", {"anything": [1]}),
]


@pytest.mark.parametrize(("name", "args"), ACCEPTED)
def test_arguments_are_accepted(name: str, args: dict[str, Any]) -> None:
    assert plugin_named(name, args).name == name


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (FIT, {"kind": "NodeAffinityArgs"}, "kind: expected NodeResourcesFitArgs, got NodeAffinityArgs"),
    (FIT, {"apiVersion": "v1"}, "apiVersion: expected kubescheduler.config.k8s.io/v1, got v1"),
    (FIT, {"ignored": []}, "ignored: unknown field"),
    (FIT, {"IgnoredResources": []}, "IgnoredResources: unknown field"),
    (FIT, strategy(weights=[]), "scoringStrategy.weights: unknown field"),
    (
        FIT,
        strategy(resources=[{"name": "cpu"}, {"resource": "x"}]),
        "scoringStrategy.resources[1].resource: unknown field",
    ),
    (FIT, {"ignoredResources": [5]}, "ignoredResources[0]: expected text, got int"),
    (FIT, {"ignoredResources": "x"}, "ignoredResources: expected array, got str"),
    (FIT, {"ignoredResources": ["ok", "bad name"]}, 'ignoredResources[1]: "bad name" is not a resource name'),
    (FIT, {"ignoredResources": ["a/b/c"]}, 'ignoredResources[0]: "a/b/c" is not'),
    (FIT, {"ignoredResources": ["/c"]}, 'ignoredResources[0]: "/c" is not'),
    (FIT, {"ignoredResourceGroups": ["a.com/b"]}, 'ignoredResourceGroups[0]: "a.com/b" is not a resource name prefix'),
    (FIT, {"ignoredResourceGroups": [""]}, 'ignoredResourceGroups[0]: "" is not a resource name prefix'),
    (
        FIT,
        {"scoringStrategy": {}},
        'scoringStrategy.type: "" is not a strategy; use LeastAllocated, MostAllocated,',
    ),
    (FIT, strategy("Other"), 'scoringStrategy.type: "Other" is not a strategy'),
    (FIT, strategy(resources=weights(cpu=-1)), "scoringStrategy.resources[0].weight: -1 is not between 1 and 100"),
    (FIT, strategy(resources=weights(cpu=1, memory=101)), "scoringStrategy.resources[1].weight: 101 is not between"),
    (FIT, strategy(resources=weights(cpu="1")), "scoringStrategy.resources[0].weight: expected int, got str"),
    (FIT, strategy(resources=weights(cpu=True)), "scoringStrategy.resources[0].weight: expected int, got bool"),
    (FIT, strategy(requestedToCapacityRatio={}), "requestedToCapacityRatio: is allowed only for type Requested"),
    (FIT, strategy(RATIO), "requestedToCapacityRatio: is required for type RequestedToCapacityRatio"),
    (FIT, shape(), "requestedToCapacityRatio.shape: at least one point is required"),
    (FIT, shape((0, 0), (0, 1)), "shape[1].utilization: 0 is not greater than 0"),
    (FIT, shape((50, 0), (40, 1)), "shape[1].utilization: 40 is not greater than 50"),
    (FIT, shape((-1, 0)), "shape[0].utilization: -1 is not between 0 and 100"),
    (FIT, shape((0, 0), (101, 0)), "shape[1].utilization: 101 is not between 0 and 100"),
    (FIT, shape((0, -1)), "shape[0].score: -1 is not between 0 and 10"),
    (FIT, shape((0, 11)), "shape[0].score: 11 is not between 0 and 10"),
    (BALANCE, {"resources": weights(cpu=2)}, "resources[0].weight: 2 is not 1"),
    (BALANCE, {"resources": [{"name": "cpu"}, {"name": "cpu"}]}, 'resources[1].name: "cpu" is listed twice'),
    (BALANCE, {"resources": weights(cpu=2**63)}, "resources[0].weight: expected `int` <= 9223372036854775807"),
    (
        "NodeAffinity",
        affinity(required={"nodeSelectorTerms": [term(operator="Like")]}),
        'addedAffinity: "Like" is not a valid selector operator',
    ),
    ("NodeAffinity", affinity(preferred=[{"weight": 1, "preference": term(values=[])}]), "addedAffinity: "),
    (
        "NodeAffinity",
        affinity(required={"nodeSelectorTerms": [{"matchLabels": {"a": "b"}}]}),
        "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchLabels: unknown field",
    ),
    ("NodeAffinity", affinity(preferred=[{"weight": 2**31}]), "[0].weight: expected `int` <= 2147483647"),
    (FIT, {"ignored": None}, "ignored: unknown field"),
    (FIT, {"ignoredResources": [None]}, 'ignoredResources[0]: "" is not a resource name'),
    (FIT, strategy(resources=[{"name": "cpu", "weight": 101}, None]), "resources[0].weight: 101 is not between"),
    (BALANCE, {"resources": [None, {"weight": 1}]}, 'resources[1].name: "" is listed twice'),
    ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage: 101 is not between 0"),
    ("DefaultPreemption", {"minCandidateNodesPercentage": -1}, "minCandidateNodesPercentage: -1 is not between 0"),
    ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute: -1 is less than 0"),
    (
        "DefaultPreemption",
        {"minCandidateNodesAbsolute": 2**31},
        "minCandidateNodesAbsolute: expected `int` <= 2147483647",
    ),
    (
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
        "minCandidateNodesPercentage: cannot be 0 together with minCandidateNodesAbsolute",
    ),
    ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds: -1 is less than 0"),
    ("DynamicResources", {"filterTimeout": "-1s"}, 'filterTimeout: "-1s" is shorter than 0s'),
    ("DynamicResources", {"filterTimeout": 5}, "filterTimeout: expected text, got int"),
    ("DynamicResources", {"bindingTimeout": "999ms"}, 'bindingTimeout: "999ms" is shorter than 1s'),
    ("DynamicResources", {"bindingTimeout": "1d"}, 'bindingTimeout: "1d" is not a duration; write it as 10s or 1m30s'),
]


@pytest.mark.parametrize(("name", "args", "message"), REFUSED)
def test_arguments_are_refused_by_plugin_and_field(name: str, args: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        plugin_named(name, args)
    assert f"{name}: " in str(refusal.value)
    assert message in str(refusal.value)


@pytest.mark.parametrize("shape", [[], [{"utilization": 0, "score": 0}]])
def test_the_curve_of_volume_binding_is_refused_where_it_does_not_score(shape: list[dict[str, int]]) -> None:
    with pytest.raises(UsageError, match="VolumeBinding: shape: needs Kubernetes"):
        plugin_named("VolumeBinding", {"shape": shape}, V1_36)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([(50, 0), (40, 1)], "shape[1].utilization: 40 is not greater than 50"),
        ([(0, 11)], "shape[0].score: 11 is not between 0 and 10"),
    ],
)
def test_the_curve_of_volume_binding_is_validated_where_it_scores(points: list[tuple[int, int]], message: str) -> None:
    given = {"shape": [{"utilization": utilization, "score": score} for utilization, score in points]}
    with pytest.raises(UsageError) as refusal:
        plugin_named("VolumeBinding", given, V1_37)
    assert message in str(refusal.value)
    assert "1.37" not in str(refusal.value)


@pytest.mark.parametrize(
    ("args", "score"),
    [
        ({}, (75 + 50) // 2),
        (strategy(resources=weights(cpu=0, memory=3)), (75 + 3 * 50) // 4),
        (strategy("MostAllocated"), (25 + 50) // 2),
        (strategy("MostAllocated", resources=weights(memory=7)), 50),
        (shape((0, 0), (50, 10)), (50 + 100) // 2),
        (strategy(RATIO, requestedToCapacityRatio={"shape": [{"utilization": 30}]}), 0),
    ],
)
def test_strategies_reach_the_plugin(args: dict[str, Any], score: int) -> None:
    fit = plugin_named(FIT, args)
    assert isinstance(fit, ScorePlugin)
    assert scored(fit, pod(requests={"cpu": "1", "memory": "4Gi"}), cluster(node())) == {"n1": score}


@pytest.mark.parametrize("name", ["GangScheduling", "PodGroupPodsCount"])
def test_plugins_without_code_of_their_own_keep_their_place(name: str) -> None:
    assert plugin_named(name) == EnginePart(name)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0", 0),
        ("+0", 0),
        ("10s", 10 * 10**9),
        ("-1.5h", -5400 * 10**9),
        (".5s", 5 * 10**8),
        ("1.s", 10**9),
        ("1h2m3s4ms5us6ns", 3_723_004_005_006),
        ("3µs", 3000),
        ("", None),
        ("5", None),
        ("s", None),
        (".s", None),
        ("1s ", None),
        ("1 s", None),
        ("2562048h", None),
    ],
)
def test_durations_are_read_as_go_writes_them(text: str, length: int | None) -> None:
    assert nanoseconds(text) == length
