"""Existing terms that may be about a pod are listed and counted before the first cycle of its class, in pieces."""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from bench.workloads import HOST
from policysched.app.configuration.profiles import default_profile
from policysched.model.objects import Affinity, Metadata, Namespace, PodAffinity
from policysched.model.selection import pod_affinity, pod_part_cache
from policysched.plugins.inter_pod_affinity import matching_terms, shared_counts
from policysched.plugins.inter_pod_affinity import plugin as plugin_module
from policysched.plugins.inter_pod_affinity import terms as own_terms
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.scheduler import Scheduler
from policysched.state.placed import existing_terms
from tests.build import cluster, node, pod
from tests.plugins.inter_pod_affinity.build import away, both, label, likes, near, term, weighted
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock
from tests.schedule.test_many_terms import NODES, engine, ordinary, relabel, stating

PIECE = 50
ANYWHERE = term(label("own"), HOST, of=label("team", *(f"t{one}" for one in range(100)), operator="NotIn"))


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_module, "MANY_PEERS", 100)
    monkeypatch.setattr(shared_counts, "MANY_TERMS", 100)
    for module in (existing_terms, matching_terms):
        monkeypatch.setattr(module, "TERMS_PER_PIECE", PIECE)
    for name, value in (("LEAST_TOGETHER", 4), ("USUALLY_TOGETHER", 8), ("MOST_TOGETHER", 16)):
        monkeypatch.setattr(matching_terms, name, value)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The peers of terms that were asked whether they mean a pod."""
    found: list[object] = []
    is_in = pod_affinity.PeerSelector.is_in

    def noted(self: pod_affinity.PeerSelector, *given: object) -> bool:
        found.append(self)
        return is_in(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(pod_affinity.PeerSelector, "is_in", noted)
    yield found


def crowded(pods: int = 60, terms: int = 20) -> Engine:
    made = engine()
    for identity in range(pods):
        made.cluster.set_pod(stating(identity, terms, nodeName=f"node-{identity % NODES}"))
    return made


def test_a_cycle_finds_the_terms_about_its_class_listed(asked: list[object]) -> None:
    made = crowded()
    pieces, before = [], 0
    for _ in made.working_ahead(ordinary(10_000)):
        pieces.append(len(asked) - before)
        before = len(asked)
    assert before == 60 * 20
    assert max(pieces) <= PIECE
    asked.clear()
    counters = len(made.cluster.counters)
    first = made.find(ordinary(10_000))
    assert not asked
    assert len(made.cluster.counters) == counters
    anew = Engine(made.cluster, default_profile(), random.Random(0)).find(ordinary(10_000))
    assert first.first.tolist() == anew.first.tolist()
    assert first.best().tolist() == anew.best().tolist()
    made.decide(ordinary(10_000))
    assert not list(made.working_ahead(ordinary(10_000)))  # the class is known


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "more than is kept"])
def test_a_cycle_finds_its_own_terms_resolved_and_counted(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved: list[object] = []
    meant_by = own_terms.meant_by

    def noted(*given: Any) -> Any:
        resolved.append(given[0])
        return meant_by(*given)

    monkeypatch.setattr(own_terms, "meant_by", noted)
    monkeypatch.setattr(plugin_module, "MANY_STATED", 100)
    pod_affinity.pod_terms.forget()
    if not kept:
        monkeypatch.setattr(pod_part_cache, "KEPT_BYTES", 0)
    made = crowded()
    made.cluster.set_namespace(Namespace(metadata=Metadata(name="default", labels={"team": "a"})))
    stated = [term(label("own"), HOST, of=label("team", f"t{one}", operator="NotIn")) for one in range(300)]
    preferred = PodAffinity(preferred=[weighted(1 + one % 100, each) for one, each in enumerate(stated[:100])])
    repelling = PodAffinity(required=stated[100:])
    asking = pod("asking", affinity=Affinity(pod_affinity=preferred, pod_anti_affinity=repelling))
    assert len(list(made.working_ahead(asking))) > 2
    assert len(resolved) == 300
    counters = len(made.cluster.counters)
    first = made.find(asking)
    assert len(resolved) == 300
    assert len(made.cluster.counters) == counters
    anew = Engine(made.cluster, default_profile(), random.Random(0)).find(asking)
    assert first.first.tolist() == anew.first.tolist()
    assert first.best().tolist() == anew.best().tolist()


def test_what_is_kept_of_a_class_holds_none_of_what_its_pods_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A term with 200,000 values for all namespaces resolves to next to nothing, which is what is counted."""
    monkeypatch.setattr(plugin_module, "MANY_STATED", 1)
    made = crowded()
    for number, sort in enumerate((likes(1, ANYWHERE), away(ANYWHERE), near(ANYWHERE))):
        asking = pod(f"asking-{number}", affinity=sort)
        list(made.working_ahead(asking))
        made.decide(asking)
        stated = weakref.ref(pod_affinity.pod_terms(asking))
        del asking
        pod_affinity.pod_terms.forget()
        pod_affinity.existing_terms.forget()
        assert stated() is None


def test_few_terms_are_listed_in_the_cycle(asked: list[object]) -> None:
    made = crowded(pods=4)
    assert not list(made.working_ahead(ordinary(10_000)))
    made.decide(ordinary(10_000))
    assert asked


@pytest.mark.parametrize("seed", range(6))
def test_what_changes_meanwhile_counts(seed: int) -> None:
    rng, made = random.Random(seed), crowded()
    around = made.cluster
    asking = ordinary(10_000, rng.choice(("plain", "rare")))
    for number, _ in enumerate(made.working_ahead(asking)):
        if rng.random() < 0.3:
            one = stating(1000 + number, 3, rng.choice(("", "plain")), nodeName=f"node-{rng.randrange(NODES)}")
            around.set_pod(one)
        if rng.random() < 0.3:
            around.remove_pod(stating(rng.randrange(60), 0).metadata.uid)
        if number == 20 and seed % 2:
            around.remove_node("node-3")
        if number == 30 and seed % 3 == 0:
            around.set_namespace(Namespace(metadata=Metadata(name="default", labels={"new": str(seed)})))
    live = made.find(asking)
    anew = Engine(around, default_profile(), random.Random(0)).find(asking)
    assert live.first[: around.nodes.size].tolist() == anew.first[: around.nodes.size].tolist()
    assert live.best().tolist() == anew.best().tolist()
    assert live.ranked.tolist() == anew.ranked.tolist()


@pytest.mark.parametrize("flaps", range(12))
def test_a_label_that_goes_and_comes_back_meanwhile_keeps_pods_away(flaps: int) -> None:
    """Only while nodes have a topology key do terms with it count: those counted meanwhile must be counted anew."""
    allocatable: dict[str, str | int] = {"cpu": 64, "memory": "64Gi", "pods": 500}
    around = cluster(node("n1", labels={"rare": "r"}, allocatable=allocatable))
    for number in range(120):
        meant = both(label("app", "db"), label("own", f"v{number}", operator="NotIn"))
        around.set_pod(pod(f"p{number}", on="n1", affinity=away(term(meant, "rare"))))
    made, asking = Engine(around, default_profile(), random.Random(0)), pod("in", labels={"app": "db"})
    pieces = 0
    for piece, _ in enumerate(made.working_ahead(asking)):
        pieces += 1
        if piece == flaps:
            around.set_node(node("n1", allocatable=allocatable))
    around.set_node(node("n1", labels={"rare": "r"}, allocatable=allocatable))
    assert pieces > 4
    decisions = [made.decide(asking) for _ in range(2)]
    assert [one.row for one in decisions] == [-1, -1]
    assert "existing pods anti-affinity" in decisions[0].fit_error()


def test_terms_are_listed_ahead_again_where_nodes_get_or_lose_the_key_of_one(asked: list[object]) -> None:
    made = engine()
    for identity in range(60):
        made.cluster.set_pod(stating(identity, 20, keys=(HOST, "rack"), nodeName=f"node-{identity % NODES}"))
    for keys in ([], ["rack"], [], ["rack"]):
        relabel(made, *keys)
        pieces, before = [], 0
        for _ in made.working_ahead(ordinary(10_000)):
            pieces.append(len(asked) - before)
            before = len(asked)
        assert before == 60 * (20 if keys else 10)
        assert max(pieces) <= PIECE
        asked.clear()
        live = made.find(ordinary(10_000))
        assert not asked
        anew = Engine(made.cluster, default_profile(), random.Random(0)).find(ordinary(10_000))
        assert live.best().tolist() == anew.best().tolist()
        assert live.ranked.tolist() == anew.ranked.tolist()
        asked.clear()
        relabel(made, *keys, "unread")
        assert not [*made.working_ahead(ordinary(10_000))]
        made.decide(ordinary(10_000))
        assert not asked


async def test_the_loop_has_its_turn_between_pieces(asked: list[object]) -> None:
    around = crowded().cluster
    profile = default_profile("policysched")
    scheduler = Scheduler({"policysched": profile}, FakeClient(), StandingClock(), random.Random(0), cluster=around)
    scheduler.take(ordinary(10_000))
    queued = scheduler.queue.pop()
    assert queued is not None
    attempt = asyncio.create_task(scheduler.attempts.make(queued))
    turns = [0]
    while not attempt.done():
        await asyncio.sleep(0)
        turns.append(len(asked))
    assert max(after - before for before, after in pairwise(turns)) <= PIECE
