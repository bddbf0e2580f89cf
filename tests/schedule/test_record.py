from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import SKIP, Cluster, Code, Status
from policysched.model.objects import (
    Affinity,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Requirement,
    Taint,
)
from policysched.model.release import DEFAULT
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import Record, make_record
from tests.build import cluster, node, pod
from tests.rules.build import filtering, policy_set, scoring
from tests.schedule.parts import FakeFilter, FakeScore, engine


def record(around: Cluster, of: Pod, policies: PolicySet | None = None) -> Record:
    """Return the record of a decision with the default plugins."""
    in_force = policies if policies is not None else PolicySet()
    profile = in_force.join(default_profile("default-scheduler"))
    return make_record(Engine(around, profile, random.Random(0)).decide(of), in_force.active)


TAINTED = node("n2", taints=[Taint(key="k", effect="NoSchedule")])
PIN = {
    "filters": filtering('node.name != "n4"', "not-n4"),
    "scores": scoring(['node.name == "n1" → 100', 'node.name == "n3" and number(node.labels["x"]) > 1 → 1'], "by-name"),
}


PLAIN = {"TaintToleration": 300, "NodeResourcesFit": 97, "VolumeBinding": 0, "DynamicResources": 0, "ImageLocality": 0}
"""Scores of the default plugins for nodes that are all equal."""


def by(plugin: str, reason: str) -> dict[str, Any]:
    return {"plugin": plugin, "code": "UnschedulableAndUnresolvable", "reasons": [reason]}


def test_the_record_of_a_scheduled_pod() -> None:
    around = cluster(node("n1"), TAINTED, node("n3"), node("n4"))
    assert record(around, pod("web"), policy_set(pin=PIN)) == {
        "pod": "default/web",
        "schedulerName": "default-scheduler",
        "reference": DEFAULT.minor,
        "result": "Scheduled",
        "selected": "n1",
        "best": ["n1"],
        "rejected": {
            "n2": by("TaintToleration", "node(s) had untolerated taint(s)"),
            "n4": by("SchedulingPolicy/pin", 'policy pin/not-n4: node.name != "n4"'),
        },
        "scores": {"n1": PLAIN | {"SchedulingPolicy/pin": 100}, "n3": PLAIN | {"SchedulingPolicy/pin": 0}},
        "total": {"n1": 497, "n3": 397},
        "rules": {
            "pin": {
                "activeGeneration": 1,
                "mode": "Enforce",
                "filters": {"not-n4": {"n4": "false"}},
                "scores": {"by-name": {"n1": 100, "n3": None}},
            }
        },
    }


def test_the_record_of_a_pod_that_fits_nowhere() -> None:
    around = cluster(node("n1"), TAINTED)
    assert record(around, pod("big", requests={"cpu": 5}), policy_set(pin=PIN)) == {
        "pod": "default/big",
        "schedulerName": "default-scheduler",
        "reference": DEFAULT.minor,
        "result": "Unschedulable",
        "rejected": {
            "n1": {
                "plugin": "NodeResourcesFit",
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["Insufficient cpu"],
            },
            "n2": {
                "plugin": "TaintToleration",
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["node(s) had untolerated taint(s)"],
            },
        },
        "fitError": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).",
        "rules": {"pin": {"activeGeneration": 1, "mode": "Enforce"}},
    }


def test_the_record_of_a_pod_that_prefilter_rejects() -> None:
    named = [Requirement(key="metadata.name", operator="In", values=(name,)) for name in ("n1", "n4")]
    selector = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=tuple(named))])
    lost = pod("lost", affinity=Affinity(node_affinity=NodeAffinitySpec(required=selector)))
    said = "pod affinity terms conflict"
    assert record(cluster(node("n1"), node("n4")), lost, policy_set(pin=PIN)) == {
        "pod": "default/lost",
        "schedulerName": "default-scheduler",
        "reference": DEFAULT.minor,
        "result": "Unschedulable",
        "preFilter": {"plugin": "NodeAffinity", "code": "UnschedulableAndUnresolvable", "reasons": [said]},
        "fitError": f"0/2 nodes are available: {said}.",
        "rules": {"pin": {"activeGeneration": 1, "mode": "Enforce", "filters": {"not-n4": {"n4": "false"}}}},
    }


def fake(filters: Any, scores: Any = (), around: Cluster | None = None, of: Pod | None = None) -> Record:
    """Return the record of a decision with fake plugins on nodes a and b."""
    made = engine(around or cluster(node("a"), node("b")), filters, scores)
    return make_record(made.decide(of or pod()))


HEAD = {"pod": "default/p", "schedulerName": "default-scheduler", "reference": DEFAULT.minor}


@pytest.mark.parametrize(
    ("filters", "scores", "text"),
    [
        ([FakeFilter("A", Status(Code.ERROR, ("broken",)))], (), 'running PreFilter plugin "A": broken'),
        ((), [(FakeScore("S", Status(Code.ERROR, ("broken",))), 1)], 'running PreScore plugin "S": broken'),
    ],
)
def test_an_error_has_its_text_and_nothing_else(filters: Any, scores: Any, text: str) -> None:
    assert fake(filters, scores) == HEAD | {"result": "Error", "error": text}


def test_without_score_plugins_every_feasible_node_totals_one() -> None:
    assert fake([FakeFilter("A", {"a"})]) == HEAD | {
        "result": "Scheduled",
        "selected": "b",
        "best": ["b"],
        "rejected": {"a": {"plugin": "A", "code": "Unschedulable", "reasons": ["A says no"]}},
        "total": {"b": 1},
    }


def test_the_only_feasible_node_has_its_scores_too() -> None:
    made = fake([FakeFilter("A", {"a"})], [(FakeScore("S", {"a": 9, "b": 4}, normalizes=True), 3)])
    assert (made["scores"], made["total"]) == ({"b": {"S": 300}}, {"b": 300})


def test_a_failure_to_score_the_only_feasible_node_leaves_its_scores_out() -> None:
    made = fake([FakeFilter("A", {"a"})], [(FakeScore("S", Status(Code.ERROR, ("broken",))), 1)])
    assert (made["selected"], "scores" in made, "total" in made) == ("b", False, False)


def test_scores_of_zero_are_told_and_skipped_ones_are_not() -> None:
    made = fake([FakeFilter("A", {"a"})], [(FakeScore("S"), 3), (FakeScore("T", SKIP), 1)])
    assert made["scores"] == {"b": {"S": 0}}


def test_without_nodes_the_record_says_so() -> None:
    assert fake([FakeFilter("A", Status(Code.UNSCHEDULABLE, ("x",)))], (), cluster(pod("ghost", on="gone"))) == HEAD | {
        "result": "Unschedulable",
        "fitError": "no nodes available to schedule pods",
    }


def test_a_nominated_node_that_fits_stands_alone() -> None:
    of = replace(pod(), status=replace(pod().status, nominated_node_name="b"))
    made = fake([FakeFilter("A", {"a"})], [(FakeScore("S", {"b": 4, "c": 9}, normalizes=True), 1)],
                cluster(node("a"), node("b"), node("c")), of)  # fmt: skip
    assert made == HEAD | {
        "result": "Scheduled",
        "selected": "b",
        "best": ["b"],
        "scores": {"b": {"S": 100}},
        "total": {"b": 100},
    }


def test_a_nominated_node_that_does_not_fit_is_one_of_all() -> None:
    of = replace(pod(), status=replace(pod().status, nominated_node_name="a"))
    made = fake([FakeFilter("A", {"a"})], (), None, of)
    assert (made["best"], list(made["rejected"])) == (["b"], ["a"])


def test_the_best_are_sorted_by_name_whatever_their_rows() -> None:
    around = cluster(*(node(name) for name in ("z", "gone", "m", "b")))
    around.remove_node("gone")
    around.set_node(node("a"))
    assert fake((), (), around)["best"] == ["a", "b", "m", "z"]
