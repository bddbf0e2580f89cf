"""Situations of the plugins that read other pods: affinity between pods and topology spread."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.objects import Json, node
from tests.requeueing.situations import (
    Change,
    Create,
    Delete,
    Situation,
    Waiting,
    apart,
    beside,
    host,
    labelled,
    on_nodes_with,
    placed,
    rejected,
    situation,
    spread,
    taint,
    tainted,
    tolerating,
)

ROW: Final = "row"
"""Topology key of most situations."""


def _avoiding(name: str, key: str, domain: str = ROW, **fields: Any) -> Waiting:
    """Return a rejected pod with anti-affinity to pods with a label."""
    return rejected(name, "InterPodAffinity", affinity=apart(key, domain), **fields)


def _seeking(name: str, key: str, domain: str = ROW, **fields: Any) -> Waiting:
    """Return a rejected pod with affinity to pods with a label."""
    return rejected(name, "InterPodAffinity", affinity=beside(key, domain), **fields)


def _spreading(name: str, key: str, domain: str, at_least: int = 3, **fields: Any) -> Waiting:
    """Return a rejected pod with a spread constraint that needs more domains than exist."""
    constraints = spread(key, domain, minDomains=at_least)
    return rejected(name, "PodTopologySpread", labels={key: "yes"}, topologySpreadConstraints=constraints, **fields)


def _counted(name: str, on: str, key: str) -> Json:
    return placed(name, on, labels={key: "yes"})


AFFINITY: Final[tuple[Situation, ...]] = (
    situation(
        "a new node helps a pod that keeps away from others, tainted or not",
        plugins="InterPodAffinity",
        given=[host("oak", row="1"), placed("bee", "oak", labels={"bees": "yes"})],
        waiting=[_avoiding("shy", "bees")],
        steps=[
            Create(node("elm", labels={ROW: "2"}, taints=[taint("dry")])),
            Change("Node", "elm", tainted()),
        ],
        wakes="shy",
        events="NodeAdd",
    ),
    situation(
        "a pod that loses a label helps the one that keeps away from it",
        plugins="InterPodAffinity",
        given=[host("oak", row="1"), placed("both", "oak", labels={"bees": "yes", "wasps": "yes"})],
        waiting=[_avoiding("no-bees", "bees"), _avoiding("no-wasps", "wasps")],
        steps=[Change("Pod", "both", labelled(wasps="yes"))],
        wakes="no-bees",
        events="AssignedPodUpdatePodLabel",
    ),
    situation(
        "a pod that leaves helps the one that keeps away from it",
        plugins="InterPodAffinity",
        given=[
            host("oak", row="1"),
            placed("bee", "oak", labels={"bees": "yes"}),
            placed("wasp", "oak", labels={"wasps": "yes"}),
        ],
        waiting=[_avoiding("no-bees", "bees"), _avoiding("no-wasps", "wasps")],
        steps=[Delete("Pod", "bee")],
        wakes="no-bees",
        events="AssignedPodDelete",
    ),
    situation(
        "a pod that leaves helps the one that it kept away",
        plugins="InterPodAffinity",
        given=[
            host("oak", row="1"),
            placed("no-bees", "oak", affinity=apart("bees", ROW)),
            placed("no-wasps", "oak", affinity=apart("wasps", ROW)),
        ],
        waiting=[
            rejected("bee", "InterPodAffinity", labels={"bees": "yes"}),
            rejected("wasp", "InterPodAffinity", labels={"wasps": "yes"}),
        ],
        steps=[Delete("Pod", "no-bees")],
        wakes="bee",
        events="AssignedPodDelete",
    ),
    situation(
        "a pod that gets a label helps the one that needs it",
        plugins="InterPodAffinity",
        given=[host("oak", row="1"), placed("hive", "oak")],
        waiting=[_seeking("bee", "honey"), _seeking("wasp", "jam")],
        steps=[Change("Pod", "hive", labelled(honey="yes"))],
        wakes="bee",
        events="AssignedPodUpdatePodLabel",
    ),
    situation(
        "a pod that comes helps the one that needs it",
        plugins="InterPodAffinity",
        given=[host("oak", row="1")],
        waiting=[_seeking("bee", "honey"), _seeking("wasp", "jam")],
        steps=[Create(placed("hive", "oak", labels={"honey": "yes"}))],
        wakes="bee",
        events="AssignedPodAdd",
    ),
    situation(
        "its own labels help a pod that others keep away",
        plugins="InterPodAffinity",
        given=[host("oak", row="1"), placed("no-bees", "oak", affinity=apart("bees", ROW))],
        waiting=[
            rejected("bee", "InterPodAffinity", labels={"bees": "yes"}),
            rejected("other-bee", "InterPodAffinity", labels={"bees": "yes"}),
        ],
        steps=[Change("Pod", "bee", labelled(wasps="yes"))],
        wakes="bee",
        events="UnschedulablePodUpdatePodLabel",
    ),
    situation(
        "a new node helps a pod that needs others where the node is in a domain of that kind",
        plugins="InterPodAffinity",
        given=[host("oak", bed="1")],
        waiting=[_seeking("in-row", "honey", ROW), _seeking("in-field", "honey", "field")],
        steps=[Create(host("elm", row="1"))],
        wakes="in-row",
        events="NodeAdd",
    ),
    situation(
        "a node that enters a domain helps the pods that need others there",
        plugins="InterPodAffinity NodeAffinity",
        given=[
            host("oak", field="1"),
            host("elm", field="2", soil="sand"),
            placed("hive", "oak", labels={"honey": "yes"}),
        ],
        waiting=[
            _seeking("in-row", "honey", ROW, labels={"honey": "yes"}),
            _seeking("in-bed", "honey", "bed", labels={"honey": "yes"}),
            rejected(
                "in-field",
                "InterPodAffinity NodeAffinity",
                affinity=beside("honey", "field") | on_nodes_with("soil", "sand"),
            ),
        ],
        steps=[Change("Node", "oak", labelled(row="1", field="2"))],
        wakes="in-row in-field",
        events="NodeUpdateNodeLabel",
    ),
    situation(
        "a node that leaves a domain helps the pods that keep away from others there",
        plugins="InterPodAffinity",
        given=[host("oak", row="1", field="1", bed="1"), placed("bee", "oak", labels={"bees": "yes"})],
        waiting=[
            _avoiding("in-row", "bees", ROW),
            _avoiding("in-field", "bees", "field"),
            _avoiding("in-bed", "bees", "bed"),
        ],
        steps=[Change("Node", "oak", labelled(field="2", bed="1", shade="deep"))],
        wakes="in-row in-field",
        events="NodeUpdateNodeLabel",
    ),
    situation(
        "a new node helps all that keep away from others",
        plugins="InterPodAffinity",
        given=[host("oak", row="1", bed="1"), placed("bee", "oak", labels={"bees": "yes"})],
        waiting=[_avoiding("in-row", "bees", ROW), _avoiding("in-bed", "bees", "bed")],
        steps=[Create(host("elm", row="1"))],
        wakes="in-row in-bed",
        events="NodeAdd",
    ),
    situation(
        "taints and amounts of nodes do not help a pod that needs others",
        plugins="InterPodAffinity",
        given=[host("oak", row="1")],
        waiting=[_seeking("bee", "honey")],
        steps=[
            Change("Node", "oak", lambda obj: obj["status"]["allocatable"].update(cpu="8"), "/status"),
            Create(placed("stone", "oak")),
        ],
        events="AssignedPodAdd",
    ),
)
SPREADING: Final[tuple[Situation, ...]] = (
    situation(
        "a pod that comes helps those that count it",
        plugins="PodTopologySpread",
        given=[host("oak", row="1"), _counted("bee", "oak", "bees"), _counted("wasp", "oak", "wasps")],
        waiting=[_spreading("next-bee", "bees", ROW), _spreading("next-wasp", "wasps", ROW)],
        steps=[Create(_counted("late-bee", "oak", "bees"))],
        wakes="next-bee",
        events="AssignedPodAdd",
    ),
    situation(
        "a pod that no longer counts helps those that counted it",
        plugins="PodTopologySpread",
        given=[host("oak", row="1"), _counted("bee", "oak", "bees"), _counted("wasp", "oak", "wasps")],
        waiting=[_spreading("next-bee", "bees", ROW), _spreading("next-wasp", "wasps", ROW)],
        steps=[Change("Pod", "bee", labelled(flies="yes"))],
        wakes="next-bee",
        events="AssignedPodUpdatePodLabel",
    ),
    situation(
        "a pod that leaves helps those that counted it",
        plugins="PodTopologySpread",
        given=[host("oak", row="1"), _counted("bee", "oak", "bees"), _counted("wasp", "oak", "wasps")],
        waiting=[_spreading("next-bee", "bees", ROW, 2), _spreading("next-wasp", "wasps", ROW)],
        steps=[Delete("Pod", "bee")],
        wakes="next-bee",
        events="AssignedPodDelete",
    ),
    situation(
        "a new node helps those that spread over domains of its kind",
        plugins="PodTopologySpread",
        given=[
            host("oak", row="1"),
            host("elm", field="1"),
            _counted("bee", "oak", "bees"),
            _counted("late-bee", "elm", "bees"),
        ],
        waiting=[_spreading("in-rows", "bees", ROW, 2), _spreading("in-fields", "bees", "field", 2)],
        steps=[Create(host("ash", row="1"))],
        wakes="in-rows",
        events="NodeAdd",
    ),
    situation(
        "a node that leaves, enters or changes a domain helps those that spread over that kind",
        plugins="PodTopologySpread",
        given=[
            host("oak", row="1", field="1", bed="1"),
            host("elm", row="1", field="1", bed="1"),
            _counted("bee", "oak", "bees"),
            _counted("bee-two", "elm", "bees"),
            _counted("bee-three", "elm", "bees"),
            _counted("bee-four", "elm", "bees"),
        ],
        waiting=[
            _spreading("left", "bees", ROW),
            _spreading("entered", "bees", "plot"),
            _spreading("same", "bees", "field"),
            _spreading("absent", "bees", "lane"),
            _spreading("changed", "bees", "bed"),
        ],
        steps=[Change("Node", "elm", labelled(plot="1", field="1", bed="2"))],
        wakes="left entered changed",
        events="NodeUpdateNodeLabel",
    ),
    situation(
        "a node that goes helps those that spread over domains of its kind",
        plugins="PodTopologySpread",
        given=[
            host("oak", row="1"),
            host("elm", field="1"),
            _counted("bee", "oak", "bees"),
            _counted("late-bee", "elm", "bees"),
        ],
        waiting=[_spreading("in-rows", "bees", ROW), _spreading("in-fields", "bees", "field")],
        steps=[Delete("Node", "elm")],
        wakes="in-fields",
        events="NodeDelete",
    ),
    situation(
        "another taint of a node helps those that spread over domains of its kind",
        plugins="PodTopologySpread",
        given=[
            host("oak", row="1"),
            host("elm", field="1"),
            node("ash", labels={"field": "1"}, taints=[taint("dry")]),
            _counted("bee", "oak", "bees"),
            _counted("late-bee", "elm", "bees"),
        ],
        waiting=[
            _spreading("in-rows", "bees", ROW),
            _spreading("in-fields", "bees", "field", tolerations=tolerating("frost")),
        ],
        steps=[Change("Node", "ash", tainted(taint("frost")))],
        wakes="in-fields",
        events="NodeUpdateNodeTaint",
    ),
    situation(
        "amounts of nodes do not help a pod that is spread",
        plugins="PodTopologySpread",
        given=[host("oak", row="1"), _counted("bee", "oak", "bees")],
        waiting=[_spreading("next-bee", "bees", ROW)],
        steps=[Change("Node", "oak", lambda obj: obj["status"]["allocatable"].update(cpu="8"), "/status")],
        events="",
    ),
)
PEER_SITUATIONS: Final = (*AFFINITY, *SPREADING)
