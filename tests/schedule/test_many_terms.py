"""Many affinity terms of placed or pending pods: the cost of decisions and placements of other pods."""

from __future__ import annotations

import random
import weakref
from typing import Any

import pytest

from bench.workloads import HOST, ZONE, node, pod
from policysched.app.configuration.profiles import default_profile
from policysched.model.decode import decode_node
from policysched.model.objects import Pod
from policysched.model.selection import pod_affinity
from policysched.plugins.inter_pod_affinity import matching_terms
from policysched.schedule.cycle import class_cache
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.scheduler import Scheduler
from policysched.state.cluster import Cluster
from policysched.state.placed import counter, counters
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock
from tests.work import calls

NODES = 12


def engine() -> Engine:
    cluster = Cluster()
    for index in range(NODES):
        cluster.set_node(decode_node(node(index, 3)))
    return Engine(cluster, default_profile(), random.Random(0))


def about_all(value: str, key: str = HOST) -> dict[str, Any]:
    """Return a term that matches the pods of all namespaces, and is unique to a value."""
    expression = {"key": "unused", "operator": "NotIn", "values": [value]}
    return {"labelSelector": {"matchExpressions": [expression]}, "namespaceSelector": {}, "topologyKey": key}


def stating(identity: int, count: int, required: str = "", keys: tuple[str, ...] = (HOST, ZONE), **spec: Any) -> Pod:
    """Return a pod with many preferred affinity terms of its own, or with required terms."""
    terms = [about_all(f"{identity}-{number}", keys[number % len(keys)]) for number in range(count)]
    affinity: dict[str, Any] = {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1 + identity % 3, "podAffinityTerm": one} for one in terms
            ]
        }
    }
    if required:
        affinity["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": required}}, "namespaceSelector": {}, "topologyKey": HOST}
            ]
        }
    return pod(identity, "others", {"app": "stating"}, affinity=affinity, **spec)


def ordinary(identity: int, app: str = "plain", **spec: Any) -> Pod:
    return pod(identity, "default", {"app": app}, **spec)


def _calls_for_one_more(placed: int) -> int:
    made = engine()
    for identity in range(placed):
        made.cluster.set_pod(stating(identity, 100, nodeName=f"node-{identity % NODES}"))
    made.decide(ordinary(10_000))
    made.cluster.set_pod(stating(20_000, 1, nodeName="node-0"))
    return calls(lambda: made.decide(ordinary(10_001)))


def test_one_more_term_has_a_class_look_at_no_others() -> None:
    few, many = _calls_for_one_more(40), _calls_for_one_more(160)
    assert many < 2 * few + 2_000


@pytest.mark.parametrize("seed", range(4))
def test_decisions_are_those_of_an_engine_that_knows_nothing_yet(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TERMS_PER_BLOCK", 3), ("MOST_GONE", 4)):
        monkeypatch.setattr(matching_terms, name, value)
    rng, made = random.Random(seed), engine()
    cluster, placed = made.cluster, dict[str, Pod]()
    for identity in range(150):
        if placed and rng.random() < 0.45:
            cluster.remove_pod(placed.pop(rng.choice(sorted(placed))).metadata.uid)
        else:
            required = rng.choice(("", "", "plain", "rare"))
            name = f"node-{rng.randrange(NODES)}"
            one = stating(identity, rng.randrange(5), required, rng.choice(((HOST,), (HOST, ZONE))), nodeName=name)
            placed[one.metadata.uid] = one
            cluster.set_pod(one)
        if identity == 75:
            cluster.remove_node("node-3")
        if rng.random() < 0.3:
            continue
        asked = ordinary(10_000, rng.choice(("plain", "rare", "free")))
        live, anew = made.find(asked), Engine(cluster, default_profile(), random.Random(0)).find(asked)
        assert live.first[: cluster.nodes.size].tolist() == anew.first[: cluster.nodes.size].tolist()
        assert live.best().tolist() == anew.best().tolist()


def relabel(made: Engine, *keys: str) -> None:
    """Add labels to the first node."""
    raw = node(0, 3)
    raw["metadata"]["labels"] |= dict.fromkeys(keys, "x")
    made.cluster.set_node(decode_node(raw))


def test_labels_of_nodes_that_no_term_is_about_have_no_class_look_at_terms() -> None:
    called = []
    for placed in (10, 160):
        made = engine()
        for identity in range(placed):
            made.cluster.set_pod(stating(identity, 20, nodeName=f"node-{identity % NODES}"))
        for keys in (["unread"], []):
            relabel(made, *keys)
            made.decide(ordinary(10_000))
        relabel(made, "unread")
        called.append(calls(lambda made=made: made.decide(ordinary(10_001))))
    assert called[1] < called[0] + 160


def test_terms_that_are_gone_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_terms, "MOST_GONE", 8)
    made = engine()
    for identity in range(60):
        one = stating(identity, 6, nodeName="node-0")
        made.cluster.set_pod(one)
        made.decide(ordinary(10_000))
        made.cluster.remove_pod(one.metadata.uid)
    assert len(made.cluster.counters) < 60


def test_classes_that_count_what_all_placed_pods_are_counted_in_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "CROWD", 40)
    monkeypatch.setattr(class_cache, "GIVEN_UP", 4)
    made = engine()
    for identity in range(60):
        made.decide(stating(identity, 4))
    assert len(made.cluster.counters) == 60 * 2
    for identity in range(100, 120):
        one = ordinary(identity)
        made.cluster.assume(one, made.decide(one).row)
    assert len(made.cluster.counters) <= 40
    key = made.classes.key(ordinary(1))
    assert key in made.classes.cached


def about_unused_labels(*keys: str) -> dict[str, Any]:
    """Return preferred terms for pods with a label that no pod has and one of these labels."""
    unused = {"key": "unused", "operator": "Exists"}
    terms = [
        {
            "labelSelector": {"matchExpressions": [unused, {**unused, "key": key}]},
            "namespaceSelector": {},
            "topologyKey": HOST,
        }
        for key in keys
    ]
    preferred = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def test_classes_whose_counters_weigh_each_new_kind_of_pod_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "CROWD", 40)
    monkeypatch.setattr(class_cache, "GIVEN_UP", 4)
    made = engine()
    for identity in range(60):
        made.decide(pod(identity, "others", {"app": "stating"}, affinity=about_unused_labels(f"k{identity}")))
    assert len(made.cluster.counters) == 60
    for identity in range(100, 120):
        one = ordinary(identity, f"app-{identity}")
        made.cluster.assume(one, made.decide(one).row)
    assert len(made.cluster.counters) <= 40


def test_counters_of_many_terms_count_as_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "CROWD", 40)
    monkeypatch.setattr(class_cache, "GIVEN_UP", 1)
    made = engine()
    for identity in range(10):
        keys = (f"k{identity}-{number}" for number in range(40))
        made.decide(pod(identity, "others", {"app": "stating"}, affinity=about_unused_labels(*keys)))
    assert len(made.cluster.counters) == 10
    for identity in range(100, 120):
        one = ordinary(identity, f"app-{identity}")
        made.cluster.assume(one, made.decide(one).row)
    assert len(made.cluster.counters) == 40 // (40 // counter.TERMS)


def test_no_more_classes_are_given_up_at_once_than_their_counters_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_cache, "FORGOTTEN", 3)
    made = engine()
    for identity in range(3):
        made.cluster.set_pod(ordinary(identity + 1, nodeName="node-0"))
    for identity in range(20):
        made.decide(stating(identity, 4))
    kept, weights = len(made.classes.cached), sum(map(len, made.cluster.counters._by_signature.values()))
    assert weights == 20 * 2
    made.classes.relieve()
    assert kept - len(made.classes.cached) == 2
    assert made.cluster.counters.forgotten == 4


async def test_classes_are_given_up_where_no_pod_is_decided_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "CROWD", 40)
    around = engine().cluster
    scheduler = Scheduler(
        {"policysched": default_profile("policysched")}, FakeClient(), StandingClock(), random.Random(0), cluster=around
    )
    made = scheduler._engines["policysched"]
    for identity in range(60):
        made.decide(stating(identity, 4))
    assert len(around.counters) == 60 * 2
    for identity in range(100, 120):
        scheduler.take(ordinary(identity, nodeName=f"node-{identity % NODES}"))
    assert len(around.counters) <= 40


def test_terms_count_from_when_nodes_get_their_key_until_they_lose_it() -> None:
    made = engine()
    for identity in range(60):
        made.cluster.set_pod(stating(identity, 20, keys=(HOST, "rack"), nodeName=f"node-{identity % NODES}"))
    for keys in ([], ["rack"], [], ["rack"], ["rack", "unread"]):
        relabel(made, *keys)
        live = made.find(ordinary(10_000))
        anew = Engine(made.cluster, default_profile(), random.Random(0)).find(ordinary(10_000))
        assert live.best().tolist() == anew.best().tolist()
        assert live.ranking().tolist() == anew.ranking().tolist()


def test_a_label_that_goes_and_comes_back_keeps_pods_away() -> None:
    made = engine()
    terms = [{**about_all(f"{number}"), "topologyKey": "rack"} for number in range(120)]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    relabel(made, "rack")
    for number in range(3):
        made.cluster.set_pod(pod(number, "others", {}, affinity=affinity, nodeName="node-0"))
    for keys, expected in ((["rack"], NODES - 1), ([], NODES), (["rack"], NODES - 1)):
        relabel(made, *keys)
        assert made.find(ordinary(10_000)).feasible_count == expected


@pytest.mark.parametrize("sort", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("required", [False, True])
def test_what_is_kept_of_a_class_holds_none_of_what_its_pods_state(sort: str, required: bool) -> None:
    """A term with 200,000 values for all namespaces resolves to little memory, and only that is counted."""
    values = [f"t{number}" for number in range(100)]
    of = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": values}]}
    term = {"labelSelector": {"matchLabels": {"own": ""}}, "namespaceSelector": of, "topologyKey": HOST}
    kinds = {
        False: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
        True: {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
    }
    made, asking = engine(), pod(1, "default", {}, affinity={sort: kinds[required]})
    made.decide(asking)
    stated = weakref.ref(pod_affinity.pod_terms(asking))
    del asking
    pod_affinity.pod_terms.forget()
    pod_affinity.existing_terms.forget()
    assert stated() is None
