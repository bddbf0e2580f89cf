"""Placement rules of a policy: their values for sets of nodes, the placements by a label, and their description."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import (
    CandidatePlacement,
    FeasiblePlacement,
    PlacementProgress,
    PodGroupContext,
)
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.placement_record import describe_placements
from policysched.rules.plugin.placements import PolicyPlacements
from policysched.rules.policy_status.input_presence import absent
from tests.build import node
from tests.groups import GATED_38, TOPOLOGY_38, group, member
from tests.rules.build import compiled, filtering, scoring

RACKS = {"n0": "a", "n1": "b", "n2": "a", "n3": "b", "n4": ""}
FIRST = PlacementProgress(0, 0, 2)


def context(*, release: Any = TOPOLOGY_38, placed: tuple[str, ...] = (), **fields: Any) -> PodGroupContext:
    """A gang of two pods that wait, with placed members on some nodes."""
    cluster = Cluster(release=release)
    for name, rack in RACKS.items():
        labels = {"rack": rack, "gen": name[1]} if rack else {}
        cluster.set_node(node(name, labels=labels, allocatable={"cpu": int(name[1]) + 1}))
    made = group(least=2)
    cluster.take(made)
    pods = [member(f"p{number}", requests={"cpu": "500m"}, **fields) for number in range(2)]
    assert cluster.pod_groups is not None
    for one in pods:
        cluster.pod_groups.await_pod(one)
    for name in placed:
        one = member(f"on-{name}", requests={"cpu": "500m"})
        cluster.set_pod(replace(one, spec=replace(one.spec, node_name=name)))
    return PodGroupContext(made, pods, cluster, CycleState())


def plugin(name: str = "p", **spec: Any) -> PolicyPlacements:
    return PolicyPlacements(ActivePolicy(compiled(name, **spec)))


def placement(of: PodGroupContext, *names: str) -> CandidatePlacement:
    return CandidatePlacement("some", np.array(sorted(of.cluster.nodes.row_of[name] for name in names), np.intp))


def reasons(of: PodGroupContext, require: str, *names: str) -> list[str]:
    """Why a filter rejects a placement; empty if it accepts it."""
    status = plugin(placement={"filters": filtering(require)}).placement_feasible(of, placement(of, *names), FIRST)
    return [] if status is None else list(status.reasons)


CONDITIONS = {
    "placement.nodes.sum(node.free.cpu) == 4": {("n0", "n2"), ("n3",)},
    "placement.nodes.count(node.free.cpu > 2) >= 1": {("n0", "n2"), ("n3",), ("n1", "n4")},
    "placement.nodes.all(node.free.cpu > 2)": {("n3",)},
    "placement.nodes.any(not has(node.zone))": {("n0", "n2"), ("n3",), ("n1", "n4"), ("n0",)},
    "(placement.nodes.avg(node.free.cpu) >= 2) ?? false": {("n0", "n2"), ("n3",), ("n1", "n4")},
    'placement.nodes.max(number(node.labels["gen"])) == 2': {("n0", "n2")},
    "placement.size == 1": {("n3",), ("n0",)},
    "placement.nodes.sum(node.free.cpu) / sum(node.free.cpu) < 10%": {("n0",)},
    "placement.nodes.count(node.free.cpu > placement.nodes.avg(node.free.cpu)) == 1": {("n0", "n2"), ("n1", "n4")},
    'placement.nodes.sum((sum(node.free.pods) by node.labels["rack"]) ?? 0) == 440': {("n0", "n2")},
    "placement.nodes.sum(node.pods.count(peer.priority >= 0)) == 1": {("n1", "n4")},
    "placement.nodes.sum(node.group_members) == group.placed": {("n1", "n4")},
    "group.requests.cpu == 1 and group.size == 3 and cluster.nodes == 5": {
        ("n0", "n2"),
        ("n3",),
        ("n1", "n4"),
        ("n0",),
    },
}


@pytest.mark.parametrize(("require", "accepted"), CONDITIONS.items(), ids=CONDITIONS)
def test_rule_reads_the_nodes_of_the_placement(require: str, accepted: set[tuple[str, ...]]) -> None:
    of = context(placed=("n4",))
    sets = [("n0", "n2"), ("n3",), ("n1", "n4"), ("n0",)]
    if "free.cpu" in require:
        of = context()
    assert {one for one in sets if not reasons(of, require, *one)} == accepted


def test_reasons_name_the_rule_and_what_is_missing() -> None:
    of = context()
    assert reasons(of, "placement.size > 4", "n0") == ["policy p/r: placement.size > 4"]
    missing = reasons(of, 'placement.nodes.min(number(node.labels["gen"])) > 1', "n4")
    assert missing == ['policy p/r: node.labels["gen"] is missing']


def test_filters_are_evaluated_before_the_first_member_only() -> None:
    of, rule = context(), plugin(placement={"filters": filtering("placement.size > 4")})
    assert rule.placement_feasible(of, placement(of, "n0"), FIRST.after(fits=True)) is None


def test_nodes_are_divided_by_the_label() -> None:
    of, rule = context(), plugin(placement={"topologyKey": "rack"})
    parent = placement(of, "n0", "n1", "n3", "n4")
    found = [(one.name, one.rows.tolist()) for one in rule.generate_placements(of, parent)]
    assert found == [("a", [0]), ("b", [1, 3])]


@pytest.mark.parametrize(
    ("placed", "names"), [((), ["a", "b"]), (("n2",), ["a"]), (("n2", "n3"), ["a", "b"]), (("n4",), ["a", "b"])]
)
def test_only_the_domains_of_placed_members_remain(placed: tuple[str, ...], names: list[str]) -> None:
    of, rule = context(placed=placed), plugin(placement={"topologyKey": "rack"})
    assert [one.name for one in rule.generate_placements(of, placement(of, *RACKS))] == names


def test_without_a_key_or_for_other_pods_the_nodes_are_not_divided() -> None:
    of = context()
    parent = placement(of, *RACKS)
    others: list[dict[str, Any]] = [
        {"placement": {}},
        {"placement": {"topologyKey": "rack"}, "appliesTo": "pod.priority > 5"},
    ]
    for spec in others:
        assert [*plugin(**spec).generate_placements(of, parent)] == [parent]


def test_system_pods_are_ignored_by_filters_unless_included() -> None:
    rules = {"topologyKey": "rack", "filters": filtering("placement.size > 4"), "scores": scoring("placement.size")}
    of = context(priority=2_000_000_000)
    spared, included = plugin(placement=rules), plugin(placement=rules, includeSystemPods=True)
    assert spared.placement_feasible(of, placement(of, "n0"), FIRST) is None
    assert included.placement_feasible(of, placement(of, "n0"), FIRST) is not None
    assert scores(of, spared, ("n0",), ("n0", "n1")) == [1, 2]


def scores(of: PodGroupContext, rule: PolicyPlacements, *sets: tuple[str, ...]) -> list[int]:
    feasible = [FeasiblePlacement(placement(of, *names), (), ()) for names in sets]
    found: list[int] = rule.score_placements(of, feasible).tolist()
    return found


def test_score_is_the_weighted_mean_of_the_rules() -> None:
    rules = [
        *scoring("placement.size", weight=1, name="a"),
        *scoring("placement.nodes.sum(node.free.pods) / 11", weight=3, name="b"),
    ]
    assert scores(context(), plugin(placement={"scores": rules}), ("n0",), ("n0", "n1")) == [8, 16]


def test_values_are_clipped_normalized_and_replaced_if_missing() -> None:
    value = 'placement.nodes.sum(number(node.labels["gen"]) * 100) - 100'
    assert scores(context(), plugin(placement={"scores": scoring(value)}), ("n0",), ("n1",), ("n3",)) == [0, 0, 100]
    maximum = scoring('placement.nodes.max(number(node.labels["gen"]))', normalize="Max")
    assert scores(context(), plugin(placement={"scores": maximum}), ("n1",), ("n2",), ("n4",)) == [50, 100, 0]
    cases = scoring(['placement.nodes.min(number(node.labels["gen"])) > 1 → 80', "else → 10", "missing → 5"])
    assert scores(context(), plugin(placement={"scores": cases}), ("n1",), ("n2",), ("n4",)) == [10, 80, 5]


def test_rules_that_do_not_apply_give_no_scores() -> None:
    rules = scoring("placement.size", when="group.size > 5")
    assert scores(context(), plugin(placement={"scores": rules}), ("n0",), ("n1", "n2")) == [0, 0]


def test_without_the_gate_nothing_applies_and_a_warning_says_so() -> None:
    of, rule = context(release=GATED_38), plugin(placement={"filters": filtering("placement.size > 4")})
    assert rule.placement_feasible(of, placement(of, "n0"), FIRST) is None
    policy = compiled(placement={"topologyKey": "rack"})
    assert [(one.code, one.field) for one in absent(policy, of.cluster)] == [("W0715", "spec.placement")]
    assert absent(policy, context().cluster) == ()


def test_description_splits_filters_into_clauses_with_values() -> None:
    of = context()
    let = [{"name": "cores", "value": "sum(node.free.cpu)"}]
    require = "placement.size >= 2 and placement.nodes.sum(node.free.cpu) >= group.requests.cpu * 5 and cores > 1"
    active = ActivePolicy(
        compiled(let=let, placement={"filters": filtering(require), "scores": scoring("placement.size * 2")})
    )
    shadow = ActivePolicy(compiled("q", mode="Shadow", placement={"filters": filtering('placement.name == "x"')}))
    none, both = describe_placements(
        [active, shadow], of, [placement(of, "n0", "n3"), placement(of, "n2")], [True, False]
    )
    assert none == {
        "p": {"mode": "Enforce", "scores": {"s": 4}},
        "q": {
            "mode": "Shadow",
            "filters": {"r": {"result": "false", "clauses": {'placement.name == "x"': {"placement.name": '"some"'}}}},
        },
    }
    assert both["p"]["filters"]["r"] == {
        "result": "false",
        "clauses": {
            "placement.size >= 2": {"placement.size": "1"},
            "placement.nodes.sum(node.free.cpu) >= group.requests.cpu * 5": {
                "placement.nodes.sum(node.free.cpu)": "3",
                "group.requests.cpu": "1",
            },
        },
    }
