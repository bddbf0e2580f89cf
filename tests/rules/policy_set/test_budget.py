"""How much policies may cost together: who comes into force, who waits for room, and that no restart changes that."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from bench.rules import policies
from policysched.model.policy import LAST_GOOD, Policy, PolicyKey, last_good_text
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.budget import MAX_UNITS
from policysched.rules.policy_set.store import NO_ROOM, PolicyStore
from policysched.rules.policy_status.status import make_status
from tests.rules.build import Spec, compiled, filtering, policy, scoring

LIMIT = 20
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_UNITS", LIMIT)


def taking(units: int, **spec: Any) -> Spec:
    """A spec that takes so many units: a unit for the rule, one for each operator."""
    return {
        "filters": filtering(" or ".join(["node.ready"] + [f"node.free.cpu >= {n}" for n in range(units // 2)])),
        **spec,
    }


def made(name: str, units: int, since: str = "2026-01-01T00:00:00Z", **given: Any) -> Policy:
    return policy(name, since=since, **{**taking(units), **given})


def units_of(**spec: Any) -> int:
    return compiled("p", **spec).units


def in_force(store: PolicyStore) -> dict[str, int]:
    entries = {name: store.get(name) for name in sorted(store.listed())}
    return {name: one.active.generation for name, one in entries.items() if one is not None and one.active is not None}


def conditions(store: PolicyStore, name: str) -> list[tuple[str, str]]:
    entry = store.get(PolicyKey(name))
    assert entry is not None
    made = make_status(entry, "me", NOW)["conditions"]
    return [(one["status"], one["reason"]) for one in made if one["type"] in {"Compiled", "Active"}]


def applied(*given: Policy) -> PolicyStore:
    store = PolicyStore()
    for one in given:
        store.apply(one)
    return store


@pytest.mark.parametrize("units", [1, 3, 7, 19])
def test_the_policies_of_these_tests_take_what_they_say(units: int) -> None:
    assert units_of(**taking(units)) == units


def test_a_policy_for_which_there_is_no_room_does_nothing_and_says_so() -> None:
    store = applied(made("old", 11), made("new", 11))
    assert in_force(store) == {"old": 1}
    assert conditions(store, "new") == [("False", "CostError"), ("False", "TooCostly")]
    entry = store.get(PolicyKey("new"))
    assert entry is not None
    [said] = entry.result.diagnostics
    assert (said.code, said.field) == ("E0601", "spec")
    assert said.message == f"the policy costs 11 units and would exceed the limit of {LIMIT} for all policies together"


def test_an_edit_for_which_there_is_no_room_leaves_the_last_good_generation_in_force() -> None:
    store = applied(made("old", 5), made("other", 11))
    assert not store.apply(made("old", 11, generation=2))
    assert in_force(store) == {"old": 1, "other": 1}
    assert conditions(store, "old") == [("False", "CostError"), ("True", "LastGoodGeneration")]


@pytest.mark.parametrize("how", ["removed", "edited", "disabled", "shadowed"])
def test_what_waits_comes_into_force_once_there_is_room(how: str) -> None:
    store = applied(
        made("big", 15), made("b", 11, since="2026-02-02T00:00:00Z"), made("a", 11, since="2026-03-03T00:00:00Z")
    )
    assert in_force(store) == {"big": 1}
    changed = {
        "removed": lambda: store.remove(PolicyKey("big")),
        "edited": lambda: store.apply(made("big", 9, generation=2)),
        "disabled": lambda: store.apply(made("big", 15, generation=2, mode="Disabled")),
        "shadowed": lambda: store.apply(made("big", 15, generation=2, mode="Shadow")),
    }[how]()
    assert changed == {"big", "b"}
    assert in_force(store) == {"b": 1} | ({} if how == "removed" else {"big": 2})
    assert conditions(store, "b") == [("True", "Compiled"), ("True", "Enforce")]
    assert conditions(store, "a")[1] == ("False", "TooCostly")


def test_policies_for_other_schedulers_take_no_room() -> None:
    one, other = made("a", 15, schedulerNames=["one"]), made("b", 15, schedulerNames=["other", "other"])
    store = applied(one, other, made("c", 7), made("d", 5))
    assert in_force(store) == {"a": 1, "b": 1, "d": 1}


def test_shadow_and_disabled_policies_take_no_room() -> None:
    given = [made(f"p{n}", 19, mode=mode) for n, mode in enumerate(["Shadow", "Disabled", "Enforce", "Shadow"])]
    assert len(in_force(applied(*given))) == len(given)


@pytest.mark.parametrize("mode", ["Enforce", "Shadow"])
def test_so_many_policies_may_be_in_force(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_POLICIES", 3)
    given = [made(f"p{n}", 1, mode=mode) for n in range(3)] + [made("off", 1, mode="Disabled")]
    store = applied(*given, made("more", 1))
    assert set(in_force(store)) == {"p0", "p1", "p2", "off"}
    entry = store.get(PolicyKey("more"))
    assert entry is not None
    assert [one.message for one in entry.result.diagnostics] == ["the limit of 3 policies in force is reached"]
    assert conditions(store, "more") == [("False", "CostError"), ("False", "TooCostly")]
    store.apply(made("p1", 1, mode="Disabled", generation=2))
    assert "more" in in_force(store)


def asking(name: str, *queries: str, mode: str = "Shadow") -> Policy:
    metrics = [{"name": f"m{n}", "query": query, "nodeLabel": "node"} for n, query in enumerate(queries)]
    rules = filtering(" and ".join(f"((metrics.m{n} < 5) ?? true)" for n in range(len(queries))))
    return policy(name, since="2026-01-01T00:00:00Z", mode=mode, metrics=metrics, filters=rules)


def test_policies_ask_so_many_different_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_QUERIES", 3)
    store = applied(
        asking("a", "x", "y"), asking("b", "y", "x"), asking("c", "z", "x"), asking("d", "w", mode="Enforce")
    )
    assert set(in_force(store)) == {"a", "b", "c"}
    entry = store.get(PolicyKey("d"))
    assert entry is not None
    assert [one.message for one in entry.result.diagnostics] == [
        "the policy has 1 metric queries and would exceed the limit of 3 for all policies together"
    ]
    store.remove(PolicyKey("c"))
    assert set(in_force(store)) == {"a", "b", "d"}


def test_policies_without_room_are_told_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_POLICIES", 1)
    store = applied(*(made(f"p{n}", 1) for n in range(3)))
    before = [store.get(PolicyKey(f"p{n}")) for n in (1, 2)]
    store.apply(made("p0", 3, generation=2))
    assert all(store.get(PolicyKey(f"p{n}")) is one for n, one in zip((1, 2), before, strict=True))


def test_at_the_start_the_oldest_come_first_in_whatever_order_they_are_listed() -> None:
    ages = {"x": "2026-03-01T00:00:00Z", "y": "2026-01-01T00:00:00Z", "z": "2026-02-01T00:00:00Z"}
    for names in permutations(ages):
        store = PolicyStore()
        store.change([made(name, 9, since=ages[name]) for name in names])
        assert in_force(store) == {"y": 1, "z": 1}


def kept(store: PolicyStore, given: Policy) -> Policy:
    """The object with the annotation that the scheduler writes."""
    entry = store.get(given.key)
    assert entry is not None
    if entry.active is None:
        return given
    text = last_good_text(given, entry.active.generation, entry.active.spec)
    return replace(given, metadata=replace(given.metadata, annotations={LAST_GOOD: text}))


@pytest.mark.parametrize("seed", range(30))
def test_a_restart_puts_in_force_what_was_in_force(seed: int) -> None:
    rng = random.Random(seed)
    store, objects = PolicyStore(), dict[str, Policy]()
    for _ in range(30):
        name = f"p{rng.randrange(6)}"
        if name in objects and rng.random() < 0.2:
            del objects[name]
            store.remove(PolicyKey(name))
            continue
        known = objects.get(name)
        generation = known.metadata.generation + 1 if known else 1
        since = known.metadata.creation_timestamp if known else f"2026-01-{rng.randrange(1, 29):02}T00:00:00Z"
        mode = rng.choice(["Enforce", "Enforce", "Enforce", "Shadow", "Disabled"])
        objects[name] = made(name, rng.randrange(1, 10) * 2 + 1, since=str(since), generation=generation, mode=mode)
        store.apply(objects[name])
    again = PolicyStore()
    listed = [kept(store, one) for one in objects.values()]
    rng.shuffle(listed)
    again.change(listed)
    assert in_force(again) == in_force(store)


def test_what_an_annotation_keeps_takes_no_more_room_than_there_is() -> None:
    entry = {"generation": 1, "spec": taking(15)}
    broken: dict[str, Any] = {"filters": filtering("nod.ready")}
    store = PolicyStore()
    store.change([made("a", 7), policy("b", since="2026-05-05T00:00:00Z", generation=2, last_good=entry, **broken)])
    assert in_force(store) == {"b": 1}
    store.change([made("c", 7)])
    store = PolicyStore()
    older = policy("a", since="2025-01-01T00:00:00Z", generation=2, last_good=entry, **broken)
    younger = policy("b", since="2026-01-01T00:00:00Z", generation=2, last_good=entry, **broken)
    store.change([younger, older])
    assert in_force(store) == {"a": 1}
    found = store.get(PolicyKey("b"))
    assert found is not None
    assert found.refused == NO_ROOM
    assert conditions(store, "b")[1] == ("False", "NotTrusted")


def test_an_edit_of_the_number_alone_keeps_a_policy_waiting_or_in_force() -> None:
    store = applied(made("old", 11), made("new", 11))
    for name in ("old", "new"):
        store.apply(made(name, 11, generation=2))
    assert in_force(store) == {"old": 2}
    entry = store.get(PolicyKey("new"))
    assert entry is not None
    assert [one.code for one in entry.result.diagnostics] == ["E0601"]


@pytest.mark.parametrize(
    ("spec", "units"),
    [
        ({"filters": filtering("node.ready")}, 1),
        ({"filters": filtering("node.ready"), "mode": "Shadow"}, 0),
        ({"scores": scoring("node.free.pods")}, 3),
        ({"scores": scoring("node.free.pods", normalize="Max")}, 12),
        ({"filters": filtering("pod.priority + 1 > 2")}, 3),
        ({"filters": filtering('node.name == concat(pod.name, "a")')}, 3),
        ({"filters": filtering('concat(node.name, "a") == pod.name')}, 1 + 1 + 8 * 16),
        ({"filters": filtering('concat(node.name, pod.name) == "a"')}, 1 + 1 + 8 * 16 * 8),
        ({"filters": filtering(f'concat(node.name, pod.name, "{"a" * 3000}") == "a"')}, 1 + 1 + 8 * 16 * (8 + 2 * 3)),
        ({"filters": filtering('starts_with(node.name, "a")')}, 1 + 16),
        ({"filters": filtering("starts_with(node.name, pod.name)")}, 1 + 16 * 32),
        ({"filters": filtering('glob(node.zone, pod.labels["a"]) ?? true')}, 1 + 1 + (1 + 63 // 4) * 16 * 3),
        ({"filters": filtering("node.pods.count(peer.name == pod.name) < 9")}, 1 + 1 + 2 * 40 * 16),
        ({"filters": filtering('contains(node.name, "a")')}, 1 + 16),
        ({"filters": filtering('contains(node.annotations["a"], "a") ?? true')}, 1 + 1 + 12 * 16),
        ({"filters": filtering('node.pods.count(peer.labels["a"] == pod.labels["a"]) < 9')}, 1 + 1 + 2 * 40),
        ({"filters": filtering('node.pods.count(peer.labels["a"] == "b") < 9')}, 1 + 1 + 2 * 40),
        ({"filters": filtering("max(node.free.cpu) > 5")}, 1 + 1 + 4),
        ({"filters": filtering("min(node.free.cpu) by node.name > 5")}, 1 + 1 + 4 * 3),
        ({"filters": filtering("sum(node.free.cpu) > 5")}, 1 + 1 + 16),
    ],
)
def test_what_takes_long_counts_more(spec: Spec, units: int) -> None:
    assert units_of(**spec) == units


def test_ordinary_policies_are_far_from_the_limit() -> None:
    made = [compile_policy(one).policy for one in policies(20)]
    assert 3 * sum(one.units for one in made if one is not None) < MAX_UNITS
