"""Edits of policies: a live engine decides as a fresh one, and evaluates only what an edit affects."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import Pod
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.results.rule_rows import FilterRow, ScoreRow
from policysched.schedule.cycle import class_cache
from tests.build import node, pod
from tests.rules.build import Spec, compiled, filtering, scoring
from tests.schedule.life_pods import wanted
from tests.schedule.life_policies import SPECS
from tests.schedule.side import Side
from tests.schedule.test_truth import CALM
from tests.schedule.world import World
from tests.work import calls

EDITS = 40


class Policies:
    """Policies that are edited at random, of which a few apply at a time."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._specs: dict[str, Spec] = yaml.safe_load(SPECS.read_text("utf-8"))
        self._made: dict[str, CompiledPolicy] = {}
        self._generation = 1

    def edited(self) -> list[CompiledPolicy]:
        """Edit a random policy, and return the policies that apply."""
        chance = self._chance
        name = chance.choice(list(self._specs))
        edit = chance.choice((self._weight, self._rule, self._order, self._selection, self._mode, self._gone))
        self._generation += 1
        spec = deepcopy(self._specs[name])
        edit(spec)
        self._specs[name] = spec
        if name not in self._made or edit != self._gone:
            self._made[name] = compiled(name, generation=self._generation, **spec)
        else:
            del self._made[name]
        return list(self._made.values())

    def _weight(self, spec: Spec) -> None:
        spec["weight"] = self._chance.randint(0, 100)

    def _rule(self, spec: Spec) -> None:
        number = self._chance.randrange(5)
        if self._chance.random() < 0.5:
            spec["filters"] = [
                *spec.get("filters", [])[:3],
                *filtering(f'node.labels["disk{number}"] != pod.name or not node.cordoned', f"new{self._generation}"),
            ]
        else:
            spec["scores"] = [
                *scoring(f"node.requested.cpu / {number + 1}m", f"new{self._generation}", normalize="Max"),
                *spec.get("scores", [])[-3:],
            ][number % 2 :]
        for rule in spec.get("scores", []):
            rule["weight"] = self._chance.randint(1, 3)

    def _order(self, spec: Spec) -> None:
        spec["priority"] = self._chance.randint(0, 9)
        self._chance.shuffle(spec.get("filters", []))

    def _selection(self, spec: Spec) -> None:
        spec["podSelector"] = self._chance.choice(({}, {"matchLabels": {"team": self._chance.choice("ab")}}))
        spec["appliesTo"] = self._chance.choice(("true", 'pod.labels["team"] != "c"', 'pod.name != "p1"', "hour() > 3"))

    def _mode(self, spec: Spec) -> None:
        spec["mode"] = self._chance.choice(("Enforce", "Enforce", "Shadow", "Disabled"))

    def _gone(self, spec: Spec) -> None:
        """Marks the edit that removes a policy or adds it again."""


@pytest.mark.parametrize("calm", [False, True], ids=["default", "calm"])
@pytest.mark.parametrize("seed", range(2))
def test_an_engine_that_lives_through_edits_says_what_a_fresh_one_says(seed: int, calm: bool) -> None:
    off = CALM if calm else ()
    world, pods = World(1000 + seed, 40, calm=calm), wanted()
    chance, live = world.random, Side(world.cluster, off)
    policies = Policies(chance)
    for number in range(EDITS):
        acting = policies.edited()
        live.use(acting)
        for _ in range(chance.choice((0, 0, 1, 10))):
            world.step()
        fresh = Side(world.cluster, off).use(acting)
        for like in chance.sample(pods, 4):
            one = replace(like, metadata=replace(like.metadata, uid=f"e{number}"))
            assert live.record(one) == fresh.record(one), (number, one.key)
            kept, anew = (side.engine.find(one) for side in (live, fresh))
            assert (kept.first == anew.first).all()
            assert kept.feasible_count == anew.feasible_count
        used = {id(one.profile) for one in live.engine.classes.cached.values()}
        assert len(used) <= class_cache.RECENT_PROFILES


TEXTS = (
    'node.labels["zone"] != "x"',
    "node.free.cpu >= pod.requests.cpu",
    "node.pods.count(peer.namespace == pod.name) < 3",
)


def five(number: int, **spec: Any) -> CompiledPolicy:
    """Return a policy of three filters and two scores; the first filter and the last score do not read the pod."""
    texts = [f'{text} or node.name == "{number}"' for text in TEXTS]
    filters = [rule for place, text in enumerate(texts) for rule in filtering(text, f"f{place}")]
    own = scoring(f"node.free.cpu / {number + 1}m + pod.requests.cpu / 1m", "own")
    scores = [*own, *scoring(f"node.free.cpu / {number + 2}m", "s")]
    return compiled(f"p{number}", **({"filters": filters, "scores": scores} | spec))


@contextmanager
def rules_asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the names of rules that are evaluated on more than five nodes."""
    asked: list[str] = []
    with monkeypatch.context() as patch:
        for kind, method in ((FilterRow, "result"), (ScoreRow, "values")):
            before = getattr(kind, method)

            def counted(self: Any, frame: Any, before: Any = before) -> Any:
                if frame.rows > 5:
                    asked.append(self.rule.name)
                return before(self, frame)

            patch.setattr(kind, method, counted)
        yield asked


def crowd() -> tuple[Cluster, list[Pod]]:
    cluster = Cluster()
    for number in range(20):
        cluster.set_node(node(f"n{number}"))
    return cluster, [pod(f"p{number}", labels={"class": f"{number}"}) for number in range(3)]


def test_an_edit_asks_rules_of_the_edited_policy_only(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, pods = crowd()
    acting = [five(number) for number in range(6)]
    side = Side(cluster, ()).use(acting)
    for one in pods:
        side.engine.decide(one)

    def asked(policies: list[CompiledPolicy]) -> list[str]:
        with rules_asked(monkeypatch) as names:
            side.use(policies)
            for one in pods:
                side.engine.decide(one)
        return sorted(names)

    others, own = acting[:5], ["f1", "f2", "own"] * len(pods)
    assert asked([*others, five(5, weight=7, priority=3)]) == []
    assert asked([*others, five(5, mode="Shadow")]) == []
    assert asked(others) == []
    assert asked(acting) == sorted([*own, "f0", "s"])
    scores = [*scoring("node.free.cpu / 6m + pod.requests.cpu / 1m", "own"), *scoring("node.free.cpu / 9m", "s")]
    assert asked([*others, five(5, scores=scores)]) == sorted([*["own"] * len(pods), "s"])
    filters = filtering(f'{TEXTS[0]} or node.name == "5"', "f0")
    assert asked([*others, five(5, scores=scores, filters=filters)]) == []


MANY = 20
SHARE = 0.4
"""Largest share of the calls of an uncached decision in the first decision after a rule was edited."""


def crowded() -> tuple[Side, list[Pod], list[CompiledPolicy]]:
    """Return an engine with many policies and several cached classes."""
    cluster, pods = crowd()
    acting = [five(number) for number in range(MANY)]
    side = Side(cluster, ()).use(acting)
    for one in (*pods, *pods):
        side.engine.decide(one)
    return side, pods, acting


def test_another_weight_or_rule_costs_a_class_little_of_what_is_known() -> None:
    side, [first, second, third], acting = crowded()
    acting[5] = five(5, generation=2, scores=scoring("node.free.cpu / 9m", "s"))
    side.use(acting)
    edited = calls(lambda: side.engine.decide(first))
    assert edited <= SHARE * calls(lambda: Side(side.engine.cluster, ()).use(acting).engine.decide(first))
    acting[5] = five(5, generation=3, scores=scoring("node.free.cpu / 8m", "s"))
    side.use(acting)
    assert calls(lambda: side.engine.decide(second)) <= 1.1 * edited
    acting[5] = five(5, generation=4, weight=7, scores=scoring("node.free.cpu / 8m", "s"))
    side.use(acting)
    assert calls(lambda: side.engine.decide(third)) <= 1.1 * edited


@pytest.mark.parametrize("seed", range(3))
def test_weights_that_change_between_decisions_rank_nodes_as_a_fresh_engine_does(seed: int) -> None:
    chance, world = random.Random(seed), World(3000 + seed, 30, calm=True)
    acting = [five(number, weight=number) for number in range(MANY)]
    live = Side(world.cluster, CALM).use(acting)
    for number in range(EDITS):
        chosen = chance.randrange(MANY)
        weight = chance.choice((0, 1, 7, 100))
        spec = {"scores": scoring(f"node.free.cpu / {number + 1}m", "s")} if chance.random() < 0.3 else {}
        acting[chosen] = five(chosen, generation=number + 2, weight=weight, **spec)
        live.use(acting)
        if chance.random() < 0.6:
            world.step()
        fresh = Side(world.cluster, CALM).use(acting)
        for like in chance.sample(wanted(), 2):
            one = replace(like, metadata=replace(like.metadata, uid=f"e{number}"))
            assert live.record(one) == fresh.record(one), (number, one.key)
            assert (live.engine.find(one).ranking() == fresh.engine.find(one).ranking()).all()
