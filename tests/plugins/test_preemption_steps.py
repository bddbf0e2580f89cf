"""The search for victims in steps with pauses: where policies that answer for all nodes together take long."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import ChangedRows, Cluster, PostFilterResult, RowVerdicts
from policysched.model.objects import Node, Pod
from policysched.pausing import Pausing
from policysched.plugins.default_preemption import search, slices, steps
from policysched.plugins.default_preemption.candidates import Candidate
from policysched.plugins.default_preemption.plugin import DefaultPreemption, PreemptionDetails
from policysched.plugins.default_preemption.search import MOVED
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import label
from tests.plugins.preempting import OneByOne, budget, low, outcome, wanted, world
from tests.rules.build import filtering, policy_set
from tests.work import calls

LOCAL = ("node.free.cpu >= 0", "node.requested.pods < 6", 'node.pods.count(peer.labels["app"] == "x") < 3')
WIDE = ("sum(node.requested.cpu) by node.zone < 9", "cluster.pods < 40", "max(node.requested.cpu) by node.zone < 6")
NODES = 8


class Stepping(FailedCycle):
    """A decision with policies; something may happen at each pause, and then it is decided anew."""

    def __init__(
        self, around: Cluster, of: Pod, policies: PolicySet, meanwhile: Callable[[int], bool] = lambda _: False
    ) -> None:
        profile = policies.join(default_profile())
        self.engine, self.of, self.meanwhile = Engine(around, profile, random.Random(0)), of, meanwhile
        self.asked = self.pauses = 0
        decision = self.engine.decide(of)
        assert decision.row < 0
        super().__init__(decision, random.Random(0), guards=lambda: profile.victim_guards, turn=self._others)

    def asking(self, changed: ChangedRows) -> Pausing[RowVerdicts | None]:
        self.asked += 1
        return super().asking(changed)

    async def _others(self) -> Decision | None:
        self.pauses += 1
        await asyncio.sleep(0)
        return self.engine.decide(self.of) if self.meanwhile(self.pauses) else None


def policies(*rules: str) -> PolicySet:
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


@pytest.mark.parametrize("seed", range(40))
def test_search_in_steps_finds_what_a_search_in_one_piece_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"steps/{seed}")
    around, rules = some_world(chance), policies(*chance.sample(LOCAL + WIDE, 3))
    for number in range(chance.choice((0, 2))):
        around.nominations.set(pod(f"q{number}", requests={"cpu": 1}, priority=12), f"n{chance.randrange(NODES)}")
    of = wanted(chance.randint(3, 4), labels={"app": chance.choice("xyz")})
    whole = Stepping(around, of, rules)
    in_one_piece = outcome(whole)
    monkeypatch.setattr(steps, "AT_ONCE", 0)
    failed = Stepping(around, of, rules)
    assert outcome(failed) == in_one_piece
    assert failed.pauses > 1
    assert not whole.pauses


def change(chance: random.Random, around: Cluster, number: int, below: int = 100) -> None:
    """Let a pod of low enough priority go, or one come that has to stay."""
    there = [one.pod for one in around.pods.by_id.values() if (one.pod.spec.priority or 0) < below]
    if chance.random() < 0.6:
        around.remove_pod(chance.choice(there).metadata.uid)
        return
    around.set_pod(pod(f"new{number}", on=f"n{chance.randrange(NODES)}", requests={"cpu": 1}, priority=20))


@pytest.mark.parametrize("seed", range(40))
def test_changes_in_pauses_count_for_nodes_whose_pods_change(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rules about single nodes every node is in the end as if it had been asked about in one piece.

    That is but for nodes that come into question meanwhile: no pod goes that would have had to stay.
    """
    monkeypatch.setattr(steps, "AT_ONCE", 0)
    chance = random.Random(f"changes/{seed}")
    around, rules, of = some_world(chance), policies(*LOCAL), wanted(4)
    for one in [*around.pods.by_id.values()]:  # what violates budgets is asked once, in the beginning
        around.set_pod(replace(one.pod, metadata=replace(one.pod.metadata, labels={})))
    at = sorted(chance.sample(range(1, 12), 3))

    def meanwhile(pause: int) -> bool:
        if pause in at:
            change(chance, around, pause, below=10)
        return pause in at

    found = outcome(failed := Stepping(around, of, rules, meanwhile))
    if not failed.holds:
        assert "may fit now" in found[0].message
        return
    monkeypatch.setattr(steps, "AT_ONCE", 1 << 40)
    assert candidates_of(found) == candidates_of(outcome(Stepping(around, of, rules)))


@pytest.mark.parametrize("seed", range(40))
def test_pod_fits_beside_every_candidate_whatever_changed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "AT_ONCE", 0)
    chance = random.Random(f"valid/{seed}")
    around, rules, of = some_world(chance), policies(*LOCAL, *WIDE), wanted(3)
    often = chance.choice((0.1, 0.5, 1.0))

    def meanwhile(pause: int) -> bool:
        if chance.random() > often:
            return False
        change(chance, around, pause)
        return True

    failed = Stepping(around, of, rules, meanwhile)
    longest = int(around.nodes.pods_count.data.max())
    found = candidates_of(outcome(failed))
    assert failed.asked <= 2 * (2 * longest + 2) + 4
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
        decision = Engine(left, rules.join(default_profile()), random.Random(0)).decide(of)
        assert decision.row >= 0
        assert left.nodes.row_of[one.node] in decision.evaluation.feasible().nonzero()[0]


def heavy(pods: int, rules: int = 40) -> tuple[Cluster, PolicySet]:
    objects: list[Node | Pod] = []
    for number in range(NODES):
        objects.append(node(f"n{number}"))
        objects += [low(f"p{number}-{place}", f"n{number}", cpu=1) for place in range(pods)]
    return world(*objects), policies(*(f"node.free.memory + {place + 1}Ki > -{place + 1}Gi" for place in range(rules)))


async def attempt(failed: FailedCycle) -> PostFilterResult:
    result = DefaultPreemption().post_filter(failed.pod, failed)
    return result if result.ask is None else await result.ask()


def pieces(work: Coroutine[Any, Any, PostFilterResult]) -> tuple[list[int], PostFilterResult]:
    """Count the calls of each piece of work between two pauses."""
    made: list[int] = []
    ended: list[PostFilterResult] = []

    def piece() -> None:
        try:
            work.send(None)
        except StopIteration as end:
            ended.append(end.value)

    while not ended:
        made.append(calls(piece))
    return made, ended[0]


def test_longest_piece_is_that_of_one_policy_and_not_of_all_in_all_steps() -> None:
    def longest(pods: int, rules: int) -> tuple[int, int]:
        around, given = heavy(pods, rules)
        made, result = pieces(attempt(Stepping(around, wanted(), given)))
        assert isinstance(result.details, PreemptionDetails)
        return max(made), sum(made)

    few, many = longest(10, 100), longest(30, 100)
    assert many[1] > 2 * few[1]
    assert many[0] < 1.2 * few[0]
    assert many[0] * 10 < many[1]


def test_longest_piece_is_that_of_one_rule_and_not_of_a_policy() -> None:
    """But for looking up what each rule reads, a few calls; it is found out when the rule is asked the first time."""

    def longest(rules: int) -> tuple[int, int]:
        around, _ = heavy(30)
        texts = (f"node.free.memory + {place + 1}Ki > -{place + 1}Gi" for place in range(rules))
        filters = [{"name": f"r{place}", "require": text} for place, text in enumerate(texts)]
        failed = Stepping(around, wanted(), policy_set(p={"filters": filters}))
        pieces(attempt(failed))
        made, _ = pieces(attempt(failed))
        return max(made), sum(made)

    few, many = longest(30), longest(60)
    assert many[1] > 1.5 * few[1]
    assert many[0] - few[0] < 5 * 30


GUARD = {"preemption": {"require": 'concat(victim.labels["app"], "!") != "x!"'}}


def beside_guard(given: PolicySet) -> PolicySet:
    return PolicySet.of([*(one.policy for one in given.plugins), *(one.policy for one in policy_set(g=GUARD).plugins)])


def test_longest_piece_beside_long_guards_is_that_of_one_policy_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "ASKED", 1)

    def longest(pods: int, rules: int) -> tuple[int, int]:
        around, given = heavy(pods, rules)
        failed = Stepping(around, wanted(), beside_guard(given))
        made, result = pieces(attempt(failed))
        assert isinstance(result.details, PreemptionDetails)
        return max(made), sum(made)

    few, many = longest(4, 60), longest(12, 60)
    assert many[1] > 2 * few[1]
    assert many[0] < 1.2 * few[0]
    assert many[0] * 50 < many[1]


@pytest.mark.parametrize("seed", range(20))
def test_search_in_slices_beside_long_guards_finds_what_a_search_in_one_piece_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"guarded/{seed}")
    around, rules = some_world(chance), beside_guard(policies(*chance.sample(LOCAL + WIDE, 3)))
    of = wanted(chance.randint(3, 4), labels={"app": chance.choice("xyz")})
    in_one_piece = outcome(Stepping(around, of, rules))
    monkeypatch.setattr(slices, "ASKED", chance.choice((1, 100)))
    failed = Stepping(around, of, rules)
    assert outcome(failed) == in_one_piece
    assert failed.pauses > 1


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_pod_fits_beside_the_chosen_candidate_of_slices_whatever_changed(
    seed: int, one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "ASKED", 1)
    if one_by_one:
        monkeypatch.setattr(Stepping, "asking", OneByOne.asking)
    chance = random.Random(f"slices/{seed}")
    around, rules, of = some_world(chance), beside_guard(policies(*LOCAL, *WIDE)), wanted(3)
    often = chance.choice((0.05, 0.2, 1.0))

    def meanwhile(pause: int) -> bool:
        if chance.random() > often:
            return False
        change(chance, around, pause)
        return True

    found = outcome(Stepping(around, of, rules, meanwhile))
    one = candidates_of(found).get(found[0])
    if one is None:
        return
    row = around.nodes.row_of[one.node]
    away = [around.pods.by_id[victim.metadata.uid] for victim in one.victims]
    assert away
    assert all(placed.row == row and (placed.pod.spec.priority or 0) < 10 for placed in away)
    assert all(placed.pod.metadata.labels.get("app") != "x" for placed in away)
    for placed in away:
        around.remove_pod(placed.pod.metadata.uid)
    decision = Engine(around, rules.join(default_profile()), random.Random(0)).decide(of)
    assert decision.row >= 0
    assert row in decision.evaluation.feasible().nonzero()[0]


def test_guard_that_comes_into_force_while_a_node_is_cut_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stepping, "asking", OneByOne.asking)
    for pause in range(1, 8):
        around, given = (
            world(node("n1"), *(low(f"p{place}", "n1", cpu=1) for place in range(4))),
            policies("node.free.cpu >= 0"),
        )
        guards: list[Any] = []
        new = policy_set(g={"preemption": {"require": 'victim.name == "p0"'}}).join(default_profile()).victim_guards

        def meanwhile(number: int, at: int = pause, into: list[Any] = guards, of: Any = new) -> bool:
            if number == at:
                into.extend(of)
            return number == at

        failed = Stepping(around, wanted(1), given, meanwhile)
        failed._guards = lambda into=guards: into  # type: ignore[misc]
        found = outcome(failed)
        if failed.pauses >= pause:
            assert [one.metadata.name for one in candidates_of(found)["n1"].victims] == ["p0"]


def test_nothing_is_done_for_each_pod_by_itself_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for reading when each started, a few at once, when that is asked for the first time."""
    monkeypatch.setattr(search, "READ", 16)

    def longest(pods: int) -> tuple[int, int]:
        monkeypatch.setattr(steps, "MANY", 1)
        around, given = heavy(pods, 1)
        for number in range(NODES):  # what limits the number of steps
            around.set_node(node(f"n{number}", allocatable={"cpu": 4, "pods": 3}))
        failed = Stepping(around, wanted(), given)
        first, _ = pieces(attempt(failed))
        again, result = pieces(attempt(failed))
        assert isinstance(result.details, PreemptionDetails)
        return max(first), max(again)

    few, many = longest(20), longest(200)
    assert many[0] < 1.3 * few[0]
    assert many[1] < 1.3 * few[1]


def test_few_rules_are_asked_in_one_piece() -> None:
    around, given = heavy(4, 3)
    failed = Stepping(around, wanted(), given)
    outcome(failed)
    assert not failed.pauses


def test_search_in_steps_ends_where_the_pod_fits_by_now() -> None:
    around, given = heavy(10, 100)

    def meanwhile(pause: int) -> bool:
        if pause == 150:
            around.set_node(node("free"))
        return pause == 150

    failed = Stepping(around, wanted(), given, meanwhile)
    status, nominated = outcome(failed)
    assert "may fit now" in status.message
    assert nominated is None
    assert failed.pauses == 150


def test_candidates_that_are_gone_or_guarded_in_the_end_are_left_out() -> None:
    around, given = heavy(10, 100)
    guard = {"preemption": {"require": 'victim.labels["keep"] != "yes"'}}
    given = PolicySet.of([*(one.policy for one in given.plugins), *(one.policy for one in policy_set(g=guard).plugins)])
    rare = 800

    def meanwhile(pause: int) -> bool:
        if pause == rare:
            for number in range(NODES - 1):
                if number % 2:
                    around.remove_node(f"n{number}")
                    continue
                for placed in around.pods.on_row(around.nodes.row_of[f"n{number}"]):
                    kept = replace(placed.pod, metadata=replace(placed.pod.metadata, labels={"keep": "yes"}))
                    around.set_pod(kept)
        return pause == rare

    failed = Stepping(around, wanted(), given, meanwhile)
    chosen, best, found = outcome(failed)
    assert failed.pauses > rare
    assert chosen == f"n{NODES - 1}"
    assert best == [one.node for one in found] == [chosen]


def test_node_that_is_out_of_question_for_a_while_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows by then who of its pods may stay."""
    monkeypatch.setattr(steps, "AT_ONCE", 0)
    around, given = heavy(4, 2)

    def meanwhile(pause: int) -> bool:
        if pause in (5, 8):
            for number in range(NODES - 1):
                around.set_node(node(f"n{number}", unschedulable=pause == 5))
        return pause in (5, 8)

    failed = Stepping(around, wanted(1), given, meanwhile)
    chosen, _, found = outcome(failed)
    assert failed.pauses > 8
    assert [one.node for one in found] == [chosen] == [f"n{NODES - 1}"]
    assert len(found[0].victims) == 1


def test_preemption_that_changes_make_useless_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "AT_ONCE", 0)
    around, given = world(node("n1"), low("old", "n1")), policies("node.free.cpu >= 0")
    last = []

    def meanwhile(pause: int) -> bool:
        if pause == 6:
            around.remove_pod("default.old")
            around.set_pod(pod("new", on="n1", requests={"cpu": 4}, priority=20))
            last.append(pause)
        return pause == 6

    status, _ = outcome(Stepping(around, wanted(), given, meanwhile))
    assert last
    assert MOVED.message in status.message


def test_sums_that_can_be_told_with_some_pods_only_are_asked_node_by_node_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = {"cpu": "1m"}
    objects = [pod(name, on="n1", requests=small) for name in "ab"] + [pod("c", on="n1", requests={"cpu": 3})]
    have = node("n1", allocatable={"cpu": 4}, labels={"topology.kubernetes.io/zone": "x"})
    given = policies("sum(if(node.requested.pods == 1, 1 / 3 / 1G / 1G / 1G, 1)) by node.zone < 2")
    of = pod("high", requests={"cpu": 3}, priority=9)
    whole = outcome(Stepping(world(have, *objects), of, given))
    monkeypatch.setattr(steps, "AT_ONCE", 0)
    assert outcome(Stepping(world(have, *objects), of, given)) == whole
