"""The search for victims: on many nodes together and node by node it finds the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster, Code, RowNumbers, Status
from policysched.model.objects import (
    Affinity,
    Node,
    Pod,
    TopologySpreadConstraint,
)
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.candidates import Candidate
from policysched.plugins.default_preemption.plugin import PreemptionArguments
from policysched.plugins.default_preemption.search import NO_VICTIMS, Search, SearchRules, search_victims
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.plugins.preempting import OneByOne, budget, low, outcome, wanted, world
from tests.rules.build import filtering, policy_set

LOCAL = ("node.free.cpu >= 0", "node.requested.pods < 6", 'node.pods.count(peer.labels["app"] == "x") < 3')
WIDE = ("sum(node.requested.cpu) by node.zone < 9", "cluster.pods < 40", "max(node.requested.cpu) by node.zone < 6")
NODES = 8


class Unbounded(FailedCycle):
    """A decision that does not say how many pods may be on a node."""

    def most_pods(self, rows: RowNumbers) -> NDArray[np.int64]:
        return np.full(rows.size, 1 << 62)


def told(found: Search) -> list[Any]:
    candidates = set(found.candidates.tolist())
    victims = [found.victims_and_violations(place) for place in sorted(candidates)]
    return [found.rows.tolist(), candidates, victims, found.failures()]


def some_rule(chance: random.Random) -> Affinity:
    """What keeps a pod away from others, or near to them."""
    return chance.choice((away, away, near))(term(label("app", chance.choice("xyz")), chance.choice(("host", "zone"))))


def some_constraints(chance: random.Random) -> list[TopologySpreadConstraint]:
    made = TopologySpreadConstraint(
        topology_key=chance.choice(("host", "zone")),
        when_unsatisfiable="DoNotSchedule",
        max_skew=chance.randint(1, 4),
        label_selector=label("app", chance.choice("xyz")),
    )
    return [made] * chance.randint(0, 1)


@pytest.mark.parametrize("seed", range(80))
def test_search_on_all_nodes_together_finds_what_it_finds_on_one_after_the_other(seed: int) -> None:
    chance = random.Random(f"together/{seed}")
    names = [f"n{number}" for number in range(12)]
    objects: list[Node | Pod] = []
    rules = [None] if seed < 40 else [None, some_rule(chance), some_rule(chance)]
    for name in names:
        places = {"host": name, "zone": chance.choice("xyz")}
        allocatable = {"cpu": chance.randint(4, 6), "pods": chance.choice((5, 110))}
        objects.append(node(name, allocatable=allocatable, labels=places))
        left = 6
        while left > 0:
            cpu = chance.randint(0, min(2, left))
            affinity = chance.choice(rules)
            made = low(
                f"p{len(objects)}", name, chance.randint(-2, 11), cpu=cpu, minute=len(objects) % 60, affinity=affinity
            )
            objects.append(replace(made, metadata=replace(made.metadata, labels={"app": chance.choice("xyz")})))
            left -= cpu
    budgets = [budget(app, label("app", app), chance.randint(0, 2)) for app in "xy"]
    around = world(*objects, budgets=budgets)
    for number in range(chance.choice((0, 3))):
        affinity = chance.choice(rules)
        promised = pod(f"q{number}", requests={"cpu": 1}, priority=chance.randint(0, 12), affinity=affinity)
        around.nominations.set(promised, chance.choice(names))
    of = wanted(chance.randint(3, 5), affinity=chance.choice(rules), labels={"app": chance.choice("xyz")})
    if seed >= 40:
        of = replace(of, spec=replace(of.spec, topology_spread_constraints=some_constraints(chance)))
    decision = Engine(around, default_profile(), random.Random(0)).decide(of)
    assert decision.row < 0
    rows = decision.rows_with(Code.UNSCHEDULABLE)
    found = [
        search_victims(failed(decision, random.Random(0)), rows, Budgets(around), rows.size)
        for failed in (FailedCycle, OneByOne, Unbounded)
    ]
    assert found[0].verdicts is not None
    assert found[1].verdicts is None
    assert told(found[0]) == told(found[1]) == told(found[2])
    results = [outcome(failed(decision, random.Random(0))) for failed in (FailedCycle, OneByOne)]
    assert results[0] == results[1]


def many(count: int, priority: int = 0) -> Cluster:
    places = [(f"n{number}", low(f"p{number}", f"n{number}", priority)) for number in range(count)]
    return world(*(one for name, placed in places for one in (node(name), placed)))


class Counting(OneByOne):
    """A decision that notes which nodes are simulated and counts their verdicts."""

    def __init__(self, around: Cluster, of: Pod) -> None:
        super().__init__(Engine(around, default_profile(), random.Random(0)).decide(of), random.Random(0))
        self.asked: list[int] = []
        self.verdicts_of_nodes = 0

    def trial(self, row: int) -> Any:
        self.asked.append(row)
        made = super().trial(row)

        class Counted:
            add, remove = made.add, made.remove

            def verdict(_self) -> Status | None:  # noqa: N805 - self is the decision
                self.verdicts_of_nodes += 1
                return made.verdict()

        return Counted()


def test_arguments_bound_how_many_nodes_are_asked_one_by_one() -> None:
    few = PreemptionArguments(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=7)
    failed = Counting(many(300), wanted())
    *_, candidates = outcome(failed, few)
    assert (len(candidates), len(failed.asked)) == (7, 7)
    failed = Counting(many(300), wanted())
    outcome(failed)
    assert sorted(failed.asked) == list(range(300))


def test_bounded_search_node_by_node_goes_on_until_a_candidate_violates_nothing() -> None:
    pods = [low(f"p{number}", f"n{number}", labels={"app": "x"} if number else {}) for number in range(20)]
    around = world(*(node(f"n{number}") for number in range(20)), *pods, budgets=[budget("x", label("app", "x"))])
    few = PreemptionArguments(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1)
    failed = Counting(around, wanted())
    chosen, best, candidates = outcome(failed, few)
    assert (chosen, best) == ("n0", ["n0"])
    assert {one.node for one in candidates} == {f"n{row}" for row in failed.asked}


@pytest.mark.parametrize(("nodes", "pods"), [(300, 1), (3, 100)])
def test_search_node_by_node_asks_once_for_each_node_and_each_of_its_pods(nodes: int, pods: int) -> None:
    objects: list[Node | Pod] = []
    for number in range(nodes):
        placed = [low(f"p{number}-{place}", f"n{number}", cpu=4 if place == 0 else 0) for place in range(pods)]
        objects += [node(f"n{number}"), *placed]
    failed = Counting(world(*objects), wanted())
    *_, candidates = outcome(failed)
    assert [len(one.victims) for one in candidates] == [1] * nodes
    assert sorted(failed.asked) == list(range(nodes))
    assert failed.verdicts_of_nodes == nodes * (1 + pods)


def some_policies(*rules: str) -> PolicySet:
    return policy_set(**{f"p{place}": {"filters": filtering(text)} for place, text in enumerate(rules)})


def some_low(chance: random.Random, name: str, on: str) -> Pod:
    made = low(name, on, chance.randint(-2, 11), cpu=chance.randint(0, 2), minute=chance.randrange(60))
    return replace(made, metadata=replace(made.metadata, labels={"app": chance.choice("xyz")}))


def some_world(chance: random.Random) -> Cluster:
    objects: list[Node | Pod] = []
    for number in range(NODES):
        labels = {"topology.kubernetes.io/zone": chance.choice("ab")}
        objects.append(node(f"n{number}", allocatable={"cpu": 4, "pods": chance.choice((4, 110))}, labels=labels))
        pods = [some_low(chance, f"p{number}-{place}", f"n{number}") for place in range(chance.randint(2, 5))]
        objects += [*pods, low(f"base{number}", f"n{number}", 0, cpu=2)]
    budgets = [budget(app, label("app", app), chance.randint(0, 2)) for app in "xy"]
    return world(*objects, budgets=budgets)


def candidates_of(found: Any) -> dict[str, Candidate]:
    """The candidates of an outcome by name; none where no preemption helps."""
    return {one.node: one for one in found[2]} if len(found) == 3 else {}


GUARD = {"preemption": {"require": 'concat(victim.labels["app"], "!") != "x!"'}}


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_with_policies_both_find_the_same(seed: int, guarded: bool) -> None:
    chance = random.Random(f"steps/{seed}")
    around, rules = some_world(chance), some_policies(*chance.sample(LOCAL + WIDE, 3))
    for number in range(chance.choice((0, 2))):
        around.nominations.set(pod(f"q{number}", requests={"cpu": 1}, priority=12), f"n{chance.randrange(NODES)}")
    of = wanted(chance.randint(3, 4), labels={"app": chance.choice("xyz")})
    if guarded:
        rules = PolicySet.of([one.policy for given in (rules, policy_set(g=GUARD)) for one in given.active])
    profile = rules.join(default_profile())
    decision = Engine(around, profile, random.Random(0)).decide(of)
    assert decision.row < 0
    together, one_by_one = (
        outcome(kind(decision, random.Random(0), (), profile.victim_guards)) for kind in (FailedCycle, OneByOne)
    )
    assert together == one_by_one


@pytest.mark.parametrize("kind", [FailedCycle, OneByOne])
@pytest.mark.parametrize("seed", range(20))
def test_pod_fits_beside_every_candidate_whose_victims_are_gone(seed: int, kind: type[FailedCycle]) -> None:
    chance = random.Random(f"valid/{seed}")
    around, of = some_world(chance), wanted(3)
    profile = some_policies(*LOCAL, *WIDE).join(default_profile())
    decision = Engine(around, profile, random.Random(0)).decide(of)
    assert decision.row < 0
    found = candidates_of(outcome(kind(decision, random.Random(0))))
    for one in found.values():
        row = around.nodes.row_of[one.node]
        away = [around.pods.by_id[victim.metadata.uid] for victim in one.victims]
        assert away
        assert all(placed.row == row and (placed.pod.spec.priority or 0) < 10 for placed in away)
        stay = around.pods.by_id.keys() - {victim.metadata.uid for victim in one.victims}
        left = world(
            *(info for info in around.nodes.nodes if info is not None),
            *(around.pods.by_id[identity].pod for identity in sorted(stay)),
        )
        again = Engine(left, profile, random.Random(0)).decide(of)
        assert left.nodes.row_of[one.node] in again.evaluation.feasible().nonzero()[0]


def searched(around: Cluster, of: Pod, rules: SearchRules, *, one_by_one: bool = False) -> Search:
    decision = Engine(around, default_profile(), random.Random(0)).decide(of)
    rows = decision.rows_with(Code.UNSCHEDULABLE)
    failed = (OneByOne if one_by_one else FailedCycle)(decision, random.Random(0))
    return search_victims(failed, rows, Budgets(around), rows.size, rules)


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("names", ["xyz", "zyx", "yxz"])
def test_highest_uid_goes_first_of_equal_pods_where_a_release_says_so(names: str, one_by_one: bool) -> None:
    around = world(node("a"), *(low(name, "a", cpu=1) for name in names), low("later", "a", cpu=1, minute=1))
    for cpu, gone in ((1, ["later"]), (2, ["z", "later"]), (3, ["y", "z", "later"])):
        found = searched(around, wanted(cpu), SearchRules(uid_breaks_ties=True), one_by_one=one_by_one)
        assert [one.metadata.name for one in found.victims_and_violations(0)[0]] == gone


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    ("minute", "rules", "gone"),
    [
        (0, SearchRules(), ["x", "y"]),
        (0, SearchRules(evicts_first_unstarted=True), ["x", "y"]),
        (None, SearchRules(), ["x", "y"]),
        (None, SearchRules(uid_breaks_ties=True), ["x", "y"]),
        (None, SearchRules(evicts_first_unstarted=True), ["y", "z"]),
    ],
)
def test_last_placed_goes_first_of_equal_pods(
    minute: int | None, rules: SearchRules, gone: list[str], *, one_by_one: bool
) -> None:
    """The pod x is replaced by the last one as it is removed, and is placed once more behind the others."""
    pods = {name: low(name, "a", cpu=1, minute=minute) for name in "xyz"}
    around = world(node("a"), *pods.values())
    around.drop(pods["x"])
    around.take(pods["x"])
    assert [one.pod.metadata.name for one in around.pods.on_row(0)] == ["z", "y", "x"]
    found = searched(around, wanted(3), rules, one_by_one=one_by_one)
    assert sorted(one.metadata.name for one in found.victims_and_violations(0)[0]) == gone


@pytest.mark.parametrize("one_by_one", [False, True])
def test_node_that_needs_no_eviction_is_an_error_only_where_a_release_says_so(one_by_one: bool) -> None:
    high = low("high", "a", 20, cpu=3)
    around = world(node("a"), high, low("stays", "a", cpu=1))
    decision = Engine(around, default_profile(), random.Random(0)).decide(wanted(3))
    around.drop(high)
    failed = (OneByOne if one_by_one else FailedCycle)(decision, random.Random(0))
    rows = np.zeros(1, np.intp)
    kept = search_victims(failed, rows, Budgets(around), 1, SearchRules(extenders_add_victims=True))
    before = search_victims(failed, rows, Budgets(around), 1)
    assert (kept.candidates.size, before.candidates.size) == (0, 0)
    assert +kept.failures() == {NO_VICTIMS: 1}
    assert +before.failures() == {Status(Code.ERROR, ('expected at least one victim pod on node "a"',)): 1}
