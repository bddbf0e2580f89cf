"""The search for victims on many nodes together and on one after another, with pauses."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster, Code, RowNumbers
from policysched.model.objects import (
    Affinity,
    Node,
    Pod,
    TopologySpreadConstraint,
)
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.plugin import PreemptionArguments
from policysched.plugins.default_preemption.search import Search, search_victims
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from policysched.schedule.cycle.what_if import Trial
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.plugins.preempting import NOW, OneByOne, budget, low, outcome, wanted, world

ASKED = 64


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
        search_victims(failed(decision, random.Random(0)), 10, rows, Budgets(around), NOW)
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


class Pausing(OneByOne):
    """Counts the nodes that are asked about one by one, and lets something happen at each pause."""

    def __init__(self, around: Cluster, of: Pod, meanwhile: Callable[[int], None] | None = None) -> None:
        self.engine, self.of, self.meanwhile = Engine(around, default_profile(), random.Random(0)), of, meanwhile
        self.asked: list[int] = []
        self.pauses = 0
        super().__init__(self.engine.decide(of), random.Random(0), turn=self._others)

    def trial(self, row: int) -> Trial:
        self.asked.append(row)
        return super().trial(row)

    async def _others(self) -> Decision | None:
        self.pauses += 1
        if self.meanwhile is None:
            return None
        self.meanwhile(self.pauses)
        return self.engine.decide(self.of)


def test_arguments_bound_how_many_nodes_are_asked_one_by_one() -> None:
    few = PreemptionArguments(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=7)
    failed = Pausing(many(300), wanted())
    *_, candidates = outcome(failed, few)
    assert (len(candidates), len(failed.asked)) == (7, 7)
    failed = Pausing(many(300), wanted())
    outcome(failed)
    assert sorted(failed.asked) == list(range(300))


class Counted(Pausing):
    """Counts the verdicts between two pauses."""

    def __init__(self, around: Cluster, of: Pod, meanwhile: Callable[[int], None] | None = None) -> None:
        super().__init__(around, of, meanwhile)
        self.pieces = [0]

    def trial(self, row: int) -> Trial:
        made, verdict = super().trial(row), Trial.verdict

        class Counting(Trial):
            def verdict(_self) -> Any:  # noqa: N805 - self is the decision
                self.pieces[-1] += 1
                return verdict(made)

            add, remove = made.add, made.remove

        return Counting(self.cluster, (), row)

    async def _others(self) -> Decision | None:
        self.pieces.append(0)
        return await super()._others()


@pytest.mark.parametrize(("nodes", "pods"), [(300, 1), (3, 100)])
def test_search_node_by_node_pauses_after_each_verdict(nodes: int, pods: int) -> None:
    objects: list[Node | Pod] = []
    for number in range(nodes):
        placed = [low(f"p{number}-{place}", f"n{number}", cpu=4 if place == 0 else 0) for place in range(pods)]
        objects += [node(f"n{number}"), *placed]
    failed = Counted(world(*objects), wanted())
    *_, candidates = outcome(failed)
    assert [len(one.victims) for one in candidates] == [1] * nodes
    assert sorted(failed.asked) == list(range(nodes))
    assert max(failed.pieces) == 1
    assert sum(failed.pieces) == nodes * (1 + pods)


def test_node_begins_anew_when_its_pods_change_and_goes_on_when_others_do() -> None:
    def search(gone: str = "", often: int = 1) -> tuple[int, list[str]]:
        lower = [low(f"p{place}", "n0", cpu=1, minute=place) for place in range(4)]
        around = world(node("n0"), node("n1", unschedulable=True), *lower, low("other", "n1"))

        def meanwhile(pause: int) -> None:
            if gone and pause % 3 == 0 and pause // 3 <= often:
                around.remove_pod(f"default.{gone}{pause // 3}")

        for number in range(1, 3):
            around.set_pod(low(f"other{number}", "n1"))
            around.set_pod(low(f"free{number}", "n0", cpu=0, minute=30))
        failed = Counted(around, wanted(2), meanwhile)
        *_, found = outcome(failed)
        assert len(found) == 1
        return sum(failed.pieces), [one.metadata.name for one in found[0].victims]

    whole = search()
    assert whole == (1 + 6 + 1, ["p2", "p3"])  # the last verdict as something may have changed
    assert search("other") == whole
    assert search("free") == (3 + 1 + 5 + 1, ["p2", "p3"])
    assert search("free", often=2) == (3 + 3 + 1 + 4, ["p2", "p3"])  # no more pauses


def test_what_changes_in_a_pause_counts_for_the_nodes_that_are_left_and_for_the_chosen_one() -> None:
    around = many(200)

    def meanwhile(pause: int) -> None:
        if pause == 2 * ASKED + 1:  # the nodes that were asked about are worse now or gone, all others but one are gone
            for number in range(199):
                if number >= ASKED or number % 2:
                    around.remove_node(f"n{number}")
                else:
                    around.remove_pod(f"default.p{number}")
                    around.set_pod(low(f"q{number}", f"n{number}", 9))

    failed = Pausing(around, wanted(), meanwhile)
    chosen_node, best, candidates = outcome(failed)
    assert chosen_node == "n199"
    assert "n199" in best
    assert {one.node for one in candidates} <= {f"n{number}" for number in (*range(ASKED), 199)}


def test_search_ends_where_the_pod_fits_by_now() -> None:
    around = many(200)

    def meanwhile(_: int) -> None:
        around.set_node(node("free"))

    status, nominated = outcome(Pausing(around, wanted(), meanwhile))
    assert "may fit now" in status.message
    assert nominated is None


def test_nodes_that_go_in_a_pause_are_counted_where_they_were_asked_about() -> None:
    around = many(200, priority=20)

    def meanwhile(pause: int) -> None:
        for number in range(ASKED) if pause == ASKED else ():
            around.remove_node(f"n{number}")

    status, _ = outcome(Pausing(around, wanted(), meanwhile))
    why = "200 No preemption victims found for incoming pod"
    assert status.message == f"preemption: 0/200 nodes are available: {why}."
