"""kube-scheduler's verdicts about cases whose answers are known from its sources and from clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from . import configs
from .objects import case, container, named, node, pod, requesting, required
from .oracle import InvalidCaseError

if TYPE_CHECKING:
    from .oracle import Oracle

pytestmark = pytest.mark.oracle

UNRESOLVABLE = "UnschedulableAndUnresolvable"


def scores(oracle: Oracle, objects: list[Any], wanted: Any, plugin: str) -> dict[str, int]:
    record = oracle.decide(case(objects, wanted))
    return {name: found[plugin] for name, found in record["scores"].items()}


def test_balanced_allocation_compares_with_and_without_the_pod(oracle: Oracle) -> None:
    # A quarter of the cpu and an eighth of the memory deviate by 1/16 from their mean, nothing from
    # nothing by 0: 93 with the pod, 100 without it, so 50 + (50 + 93 - 100) / 2.
    found = scores(oracle, [node("a")], requesting(cpu="1", memory="1Gi"), "NodeResourcesBalancedAllocation")
    assert found == {"a": 71}


def test_balanced_allocation_is_absent_for_a_pod_without_requests(oracle: Oracle) -> None:
    record = oracle.decide(case([node("a")], pod()))
    assert set(record["scores"]["a"]) == {
        "DynamicResources",
        "ImageLocality",
        "NodeResourcesFit",
        "TaintToleration",
    }


def test_least_allocated_counts_defaults_for_missing_requests(oracle: Oracle) -> None:
    # (4000 - 100) / 4000 = 97 and (8192 - 200) / 8192 = 97.
    assert scores(oracle, [node("a")], pod(), "NodeResourcesFit") == {"a": 97}


def test_scores_are_given_for_a_single_feasible_node(oracle: Oracle) -> None:
    record = oracle.decide(case([node("a")], requesting(cpu="1")))
    assert record["result"] == "Scheduled"
    assert record["total"] == {"a": sum(record["scores"]["a"].values())}
    assert record["best"] == ["a"]


def test_dynamic_resources_scores_zero_by_default(oracle: Oracle) -> None:
    assert scores(oracle, [node("a"), node("b")], pod(), "DynamicResources") == {"a": 0, "b": 0}


def test_default_configuration_leaves_out_what_skips(oracle: Oracle) -> None:
    record = oracle.decide({"objects": [node("a")], "pod": pod(), "config": None})
    assert record["schedulerName"] == "policysched"
    assert "PodTopologySpread" not in record["scores"]["a"]


@pytest.mark.parametrize(
    ("requests", "code"),
    [
        ({"cpu": "3"}, "Unschedulable"),
        ({"cpu": "5"}, UNRESOLVABLE),
        ({"cpu": "3", "memory": "9Gi"}, UNRESOLVABLE),
        ({"example.com/gpu": 1}, UNRESOLVABLE),
    ],
)
def test_fit_is_unresolvable_beyond_the_whole_node(oracle: Oracle, requests: dict[str, Any], code: str) -> None:
    objects = [node("a"), requesting("placed", node_name="a", cpu="2")]
    record = oracle.decide(case(objects, requesting(**requests)))
    assert record["result"] == "Unschedulable"
    assert record["rejected"]["a"]["plugin"] == "NodeResourcesFit"
    assert record["rejected"]["a"]["code"] == code


def test_fit_error_counts_a_node_in_each_of_its_reasons(oracle: Oracle) -> None:
    objects = [node("a"), node("b", allocatable={"cpu": "16", "memory": "8Gi", "pods": "110"})]
    record = oracle.decide(case(objects, requesting(cpu="5", memory="9Gi")))
    assert record["fitError"] == "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory."


@pytest.mark.parametrize(
    ("sidecar", "rejected"),
    [(True, True), (False, False)],
    ids=["restartable", "ordinary"],
)
def test_host_ports_of_init_containers_count_when_they_restart(oracle: Oracle, sidecar: bool, rejected: bool) -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    restart = {"restartPolicy": "Always"} if sidecar else {}
    initial = container("init", ports=ports, **restart)
    objects = [node("a"), pod("placed", containers=[container(ports=ports)], nodeName="a")]
    record = oracle.decide(case(objects, pod(initContainers=[initial])))
    assert ("a" in record.get("rejected", {})) is rejected


def test_host_network_turns_container_ports_into_host_ports(oracle: Oracle) -> None:
    exposed = container(ports=[{"containerPort": 80}])
    placed = pod("placed", containers=[exposed], hostNetwork=True, nodeName="a")
    record = oracle.decide(case([node("a"), placed], pod(containers=[exposed], hostNetwork=True)))
    assert record["rejected"]["a"] == {
        "plugin": "NodePorts",
        "code": "Unschedulable",
        "reasons": ["node(s) didn't have free ports for the requested pod ports"],
    }


def test_untolerated_taints_are_not_named(oracle: Oracle) -> None:
    tainted = node("a", spec={"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})
    record = oracle.decide(case([tainted], pod()))
    assert record["rejected"]["a"]["reasons"] == ["node(s) had untolerated taint(s)"]
    assert record["fitError"] == "0/1 nodes are available: 1 node(s) had untolerated taint(s)."


def test_match_fields_narrow_when_every_term_has_one(oracle: Oracle) -> None:
    record = oracle.decide(case([node("a"), node("b")], pod(affinity=required(named("b")))))
    assert record["best"] == ["b"]
    assert record["rejected"] == {
        "a": {
            "plugin": "PreFilterResult",
            "code": UNRESOLVABLE,
            "reasons": ["node(s) didn't satisfy plugin(s) [NodeAffinity]"],
        }
    }


def test_match_fields_do_not_narrow_beside_a_term_without(oracle: Oracle) -> None:
    labelled = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    record = oracle.decide(case([node("a"), node("b")], pod(affinity=required(named("b"), labelled))))
    assert record["rejected"]["a"]["plugin"] == "NodeAffinity"


def test_absent_names_leave_the_narrowing_plugins_in_the_message(oracle: Oracle) -> None:
    record = oracle.decide(case([node("a"), node("b")], pod(affinity=required(named("c")))))
    assert record["fitError"] == ("0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity].")


def test_conflicting_names_are_rejected_before_filtering(oracle: Oracle) -> None:
    both = {"matchFields": [*named("a")["matchFields"], *named("b")["matchFields"]]}
    record = oracle.decide(case([node("a")], pod(affinity=required(both))))
    assert "rejected" not in record
    assert record["preFilter"] == {
        "plugin": "NodeAffinity",
        "code": UNRESOLVABLE,
        "reasons": ["pod affinity terms conflict"],
    }
    assert record["fitError"] == "0/1 nodes are available: pod affinity terms conflict."


def test_first_unresolvable_prefilter_ends_the_loop(oracle: Oracle) -> None:
    both = {"matchFields": [*named("a")["matchFields"], *named("b")["matchFields"]]}
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]
    wanted = pod(volumes=claim, affinity=required(both))
    record = oracle.decide({"objects": [node("a")], "pod": wanted, "config": None})
    assert record["preFilter"]["plugin"] == "NodeAffinity"
    del wanted["spec"]["affinity"]
    record = oracle.decide({"objects": [node("a")], "pod": wanted, "config": None})
    assert record["preFilter"]["reasons"] == ['persistentvolumeclaim "missing" not found']


def test_declared_features_reject_unresolvably(oracle: Oracle) -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    restarting = container(restartPolicy="Never", restartPolicyRules=[rule])
    objects = [node("a"), node("b", declaredFeatures=["RestartAllContainersOnContainerExits"])]
    record = oracle.decide(case(objects, pod(containers=[restarting])))
    assert record["best"] == ["b"]
    assert record["rejected"]["a"]["plugin"] == "NodeDeclaredFeatures"
    assert record["rejected"]["a"]["code"] == UNRESOLVABLE


def test_extended_resource_of_a_device_class_is_left_to_dynamic_resources(oracle: Oracle) -> None:
    mapping = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    record = oracle.decide(case([node("a"), mapping], pod(containers=[container(requests={"example.com/gpu": 1})])))
    assert record["rejected"]["a"]["plugin"] == "DynamicResources"


@pytest.mark.parametrize(
    ("condition", "best"),
    [
        ([], ["b"]),
        ([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}], ["a", "b"]),
    ],
    ids=["wanted", "infeasible"],
)
def test_resizing_pods_count_with_the_larger_of_wanted_and_allocated(
    oracle: Oracle, condition: list[Any], best: list[str]
) -> None:
    in_force = {"requests": {"cpu": "1"}}
    status = {
        "containerStatuses": [{"name": "app", "allocatedResources": in_force["requests"], "resources": in_force}],
        "conditions": condition,
    }
    resizing = pod("resizing", containers=[container(requests={"cpu": "3"})], nodeName="a", status=status)
    objects = [node("a"), node("b"), resizing, requesting("other", node_name="b", cpu="1")]
    record = oracle.decide(case(objects, requesting(cpu="1")))
    assert record["best"] == best


def test_quantities_are_rounded_up_to_thousandths_before_they_are_added(oracle: Oracle) -> None:
    small = node("a", allocatable={"cpu": "1m", "memory": "1Gi", "pods": "110"})
    containers = [container("one", requests={"cpu": "1n"}), container("two", requests={"cpu": "1n"})]
    record = oracle.decide(case([small], pod(containers=containers)))
    assert record["rejected"]["a"]["reasons"] == ["Insufficient cpu"]


def test_image_size_is_the_one_that_the_first_node_reported(oracle: Oracle) -> None:
    def holding(name: str, size: int) -> Any:
        return node(name, images=[{"names": ["app:1"], "sizeBytes": size * 2**20}])

    objects = [holding("a", 900), holding("b", 100)]
    assert scores(oracle, objects, pod(), "ImageLocality") == {"a": 89, "b": 89}
    assert scores(oracle, objects[::-1], pod(), "ImageLocality") == {"a": 7, "b": 7}


def test_finished_and_earlier_pods_hold_nothing(oracle: Oracle) -> None:
    finished = requesting("finished", node_name="a", cpu="4") | {"status": {"phase": "Succeeded"}}
    earlier = requesting("web", node_name="a", cpu="4")
    record = oracle.decide(case([node("a"), finished, earlier], requesting(cpu="4")))
    assert record["result"] == "Scheduled"


def test_terminating_pods_and_pods_on_unknown_nodes_are_kept_apart(oracle: Oracle) -> None:
    leaving = requesting("leaving", node_name="a", cpu="4")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ghost = requesting("ghost", node_name="gone", cpu="4")
    record = oracle.decide(case([node("a"), leaving, ghost], requesting(cpu="1")))
    assert record["fitError"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_nominated_pods_of_equal_priority_hold_their_node(oracle: Oracle) -> None:
    promised = requesting("promised", cpu="4") | {"status": {"nominatedNodeName": "a"}}
    objects = [node("a"), node("b"), promised]
    assert oracle.decide(case(objects, requesting(cpu="1")))["best"] == ["b"]
    promised["spec"]["priority"] = -1
    assert oracle.decide(case(objects, requesting(cpu="1")))["best"] == ["a", "b"]


def test_anti_affinity_of_nominated_pods_counts_where_a_placed_pod_repels(oracle: Oracle) -> None:
    """PreFilter skips where none does; pods that are nominated are not looked at then."""
    apart = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
    repels = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    nodes = [node(name, labels={"zone": name}) for name in ("a", "b", "c")]
    promised, wanted = pod("promised", status={"nominatedNodeName": "a"}, **repels), pod("wanted")
    placed = pod("placed", nodeName="b", **repels)
    for one in (promised, wanted, placed):
        one["metadata"] |= {"uid": one["metadata"]["name"], "labels": {"app": "x" if one is wanted else "y"}}

    def feasible(*pods: Any) -> set[str]:
        return set(oracle.decide(case([*nodes, *pods], wanted, configs.RELATED.base()))["scores"])

    assert feasible(promised) == {"a", "b", "c"}
    assert feasible(placed) == {"a", "c"}
    assert feasible(promised, placed) == {"c"}


def test_own_nominated_node_is_tried_first_and_alone(oracle: Oracle) -> None:
    wanted = requesting(cpu="1") | {"status": {"nominatedNodeName": "b"}}
    record = oracle.decide(case([node("a"), node("b")], wanted))
    assert record["best"] == ["b"]
    assert set(record["scores"]) == {"b"}


def test_cluster_without_nodes_has_its_own_message(oracle: Oracle) -> None:
    record = oracle.decide(case([], pod()))
    assert record["result"] == "Unschedulable"
    assert record["fitError"] == "no nodes available to schedule pods"


@pytest.mark.parametrize(("weight", "score"), [({}, 100), ({"weight": 7}, 700)], ids=["none", "given"])
def test_reenabled_plugin_loses_its_default_weight(oracle: Oracle, weight: Any, score: int) -> None:
    config = configs.base()
    config["profiles"][0]["plugins"]["multiPoint"]["enabled"] = [{"name": "TaintToleration", **weight}]
    record = oracle.decide(case([node("a")], pod(), config))
    assert record["scores"]["a"]["TaintToleration"] == score


def test_filters_enabled_by_point_come_first(oracle: Oracle) -> None:
    config = configs.base()
    config["profiles"][0]["plugins"]["filter"] = {"enabled": [{"name": "NodeResourcesFit"}]}
    tainted = node("a", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]})
    record = oracle.decide(case([tainted], requesting(cpu="5"), config))
    assert record["rejected"]["a"]["plugin"] == "NodeResourcesFit"


def test_pods_of_a_sequence_see_those_before_them(oracle: Oracle) -> None:
    wanted = [requesting(f"web-{i}", cpu="3") for i in range(3)]
    question = {"objects": [node("a"), node("b")], "sequence": wanted, "config": configs.base()}
    records = oracle.decide_sequence(question)
    assert [record.get("best") for record in records] == [["a", "b"], ["b"], None]
    records = oracle.decide_sequence(question | {"choices": ["b"]})
    assert [record.get("best") for record in records] == [["a", "b"], ["a"], None]


def test_unreadable_case_does_not_end_the_oracle(oracle: Oracle) -> None:
    with pytest.raises(InvalidCaseError, match="Kind"):
        oracle.decide(case([{"apiVersion": "v1"}], pod()))
    with pytest.raises(InvalidCaseError, match="configuration"):
        oracle.decide(case([], pod(), {"apiVersion": configs.API_VERSION, "kind": "Unknown"}))
    assert oracle.decide(case([node("a")], pod()))["best"] == ["a"]
