"""Rules about other pods as the API server would not store them, and clusters that do not fit their rules.

Every test says what kube-scheduler answers and that we answer the same; the case is as small as its corner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .minors import AT_EACH_MINOR
from .objects import node
from .test_traps import HOST, PREFERRED, REQUIRED, WEB, ZONE, agreed, labelled, spread, two_zones, web

if TYPE_CHECKING:
    from .oracle import Oracle

pytestmark = [pytest.mark.oracle, AT_EACH_MINOR]

PEERS, SPREADING = "InterPodAffinity", "PodTopologySpread"
NEAR = "node(s) didn't match pod affinity rules"
AWAY = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"
UNEVEN = "node(s) didn't match pod topology spread constraints"
BARE = f"{UNEVEN} (missing required label)"


def term(key: str = ZONE, selector: Any = WEB, **fields: Any) -> Any:
    return {"topologyKey": key, "labelSelector": selector, **fields}


def near(*terms: Any) -> Any:
    return {"podAffinity": {REQUIRED: list(terms)}}


def away(*terms: Any) -> Any:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def likes(weight: int, one: Any) -> Any:
    return {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": one}]}}


def reasons(record: Any) -> dict[str, list[str]]:
    """Say why each node is rejected."""
    return {name: verdict["reasons"] for name, verdict in record.get("rejected", {}).items()}


def told_apart(record: Any, plugin: str) -> dict[str, int]:
    """Give the scores of a plugin by node."""
    return {name: scores[plugin] for name, scores in record["scores"].items()}


def expression(operator: str, *values: str, key: str = "app") -> Any:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


UNKNOWN = {
    "unknown operator": expression("Like", "web"),
    "operator of node selectors": expression("Gt", "1"),
    "no operator": expression(""),
    "In without values": expression("In"),
    "Exists with values": expression("Exists", "web"),
    "value that is none": expression("In", "not a value!"),
    "key that is none": expression("Exists", key="not a key"),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_selectors_that_cannot_be_read_reject_or_fail_the_pod(oracle: Oracle, kind: str) -> None:
    selector = UNKNOWN[kind]
    odd = term(selector=selector)
    for affinity in (near(odd), away(odd), likes(1, odd), near(term(namespaceSelector=selector))):
        assert agreed(oracle, two_zones(), web(affinity=affinity))["preFilter"]["plugin"] == PEERS
    for action in ("DoNotSchedule", "ScheduleAnyway"):
        wanted = web(topologySpreadConstraints=spread(selector, action=action))
        assert agreed(oracle, two_zones(), wanted)["result"] == "Error"


def test_an_empty_topology_key_is_a_label_that_no_node_has(oracle: Oracle) -> None:
    objects = two_zones()
    assert reasons(agreed(oracle, objects, web(affinity=near(term(""))))) == {"a": [NEAR], "b": [NEAR]}
    assert reasons(agreed(oracle, objects, web(affinity=away(term(""))))) == {}
    assert PEERS not in agreed(oracle, objects, web(affinity=likes(5, term(""))))["scores"]["a"]
    hard = web(topologySpreadConstraints=spread(key=""))
    assert reasons(agreed(oracle, objects, hard)) == {"a": [BARE], "b": [BARE]}
    soft = web(topologySpreadConstraints=spread(key="", action="ScheduleAnyway"))
    assert told_apart(agreed(oracle, objects, soft), SPREADING) == {"a": 0, "b": 0}
    standing = web("standing", nodeName="b", affinity=away(term("")))
    assert reasons(agreed(oracle, [*objects, standing], web())) == {}


def test_nodes_without_the_label_are_near_nothing_and_away_from_all(oracle: Oracle) -> None:
    objects = [*two_zones(), node("c")]
    assert reasons(agreed(oracle, objects, web(affinity=near(term())))) == {"b": [NEAR], "c": [NEAR]}
    assert reasons(agreed(oracle, objects, web(affinity=away(term())))) == {"a": [AWAY]}
    liking = agreed(oracle, objects, web(affinity=likes(5, term())))
    assert told_apart(liking, PEERS) == {"a": 200, "b": 0, "c": 0}
    soft = agreed(oracle, objects, web(topologySpreadConstraints=spread(action="ScheduleAnyway")))
    assert told_apart(soft, SPREADING) == {"a": 0, "b": 200, "c": 0}
    standing = [web("standing", nodeName="c", affinity=away(term()))]
    assert reasons(agreed(oracle, [*objects, *standing], web())) == {}


@pytest.mark.parametrize(("weight", "scores"), [(-5, [0, 200]), (0, [0, 0]), (1000, [200, 0])])
def test_weights_that_no_api_server_stores_are_added_as_they_are(
    oracle: Oracle, weight: int, scores: list[int]
) -> None:
    objects = two_zones()
    assert list(told_apart(agreed(oracle, objects, web(affinity=likes(weight, term()))), PEERS).values()) == scores
    standing = labelled(web("other", nodeName="a", affinity=likes(weight, term())), labels={"app": "other"})
    assert list(told_apart(agreed(oracle, [*objects[:2], standing], web()), PEERS).values()) == scores


def test_nodes_of_one_host_name_are_one_place(oracle: Oracle) -> None:
    objects = [node(name, labels={HOST: host}) for name, host in (("a", "x"), ("b", "x"), ("c", "y"))]
    objects.append(web("placed", nodeName="a"))
    assert reasons(agreed(oracle, objects, web(affinity=away(term(HOST))))) == {"a": [AWAY], "b": [AWAY]}
    assert reasons(agreed(oracle, objects, web(affinity=near(term(HOST))))) == {"c": [NEAR]}
    liking = agreed(oracle, objects, web(affinity=likes(3, term(HOST))))
    assert told_apart(liking, PEERS) == {"a": 200, "b": 200, "c": 0}
    hard = agreed(oracle, objects, web(topologySpreadConstraints=spread(key=HOST)))
    assert reasons(hard) == {"a": [UNEVEN], "b": [UNEVEN]}
    soft = web(topologySpreadConstraints=spread(key=HOST, action="ScheduleAnyway"))
    assert told_apart(agreed(oracle, objects, soft), SPREADING) == {"a": 0, "b": 200, "c": 200}


def test_a_namespace_that_is_gone_has_pods_but_no_labels(oracle: Oracle) -> None:
    prod = {"matchLabels": {"env": "prod"}}
    nodes = two_zones()[:2]
    lost = web("placed", namespace="gone", nodeName="a")
    assert reasons(agreed(oracle, [*nodes, lost], web(affinity=away(term(namespaces=["gone"]))))) == {"a": [AWAY]}
    assert reasons(agreed(oracle, [*nodes, lost], web(affinity=away(term(namespaceSelector={}))))) == {"a": [AWAY]}
    assert reasons(agreed(oracle, [*nodes, lost], web(affinity=away(term(namespaceSelector=prod))))) == {}
    incoming = web(namespace="gone")
    unlabelled = expression("DoesNotExist", key="env")
    for selector, expected in ((prod, {}), ({}, {"a": [REPELLED]}), (unlabelled, {"a": [REPELLED]})):
        standing = web("placed", nodeName="a", affinity=away(term(namespaceSelector=selector)))
        assert reasons(agreed(oracle, [*nodes, standing], incoming)) == expected
    spreading = web(namespace="gone", topologySpreadConstraints=spread())
    assert reasons(agreed(oracle, [*nodes, lost], spreading)) == {"a": [UNEVEN]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"maxSkew": 0}, {"a": [UNEVEN], "b": [UNEVEN]}),
        ({"maxSkew": -1}, {"a": [UNEVEN], "b": [UNEVEN]}),
        ({"minDomains": 0}, {"a": [UNEVEN]}),
        ({"minDomains": -1}, {"a": [UNEVEN]}),
        ({"whenUnsatisfiable": "Perhaps"}, {}),
        ({"nodeAffinityPolicy": "Perhaps", "nodeTaintsPolicy": "Perhaps"}, {"a": [UNEVEN]}),
    ],
    ids=str,
)
def test_constraints_that_no_api_server_stores_are_taken_as_they_are(
    oracle: Oracle, fields: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    assert reasons(agreed(oracle, two_zones(), web(topologySpreadConstraints=spread(**fields)))) == expected
