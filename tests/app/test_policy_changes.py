"""Policies that are tried beside those of a cluster: in force is what a running scheduler puts in force."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import policysched
from policysched.app.dry_run.policies import compiled_policies, in_place, standing_policies, try_policies
from policysched.errors import UsageError
from policysched.model.policy import LAST_GOOD, decode_policy
from policysched.rules.policy_set.store import PolicyStore
from tests.app.dry_runs import Object, node, pod, requiring
from tests.rules.build import compiled, filtering

LIMIT = 20
NO_ROOM = (
    "it does not compile: the policy costs 12 units and would exceed the limit of 20 for all policies together "
    "(E0601, spec)"
)


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_UNITS", LIMIT)


def taking(units: int, last: str = 'node.labels["disk"] != "none"') -> Object:
    """A spec of so many units, an even number; none of its alternatives holds but the last one."""
    return {"filters": filtering(" or ".join([f"node.free.cpu >= {n + 1000}" for n in range(units // 2 - 1)] + [last]))}


def stored(name: str, spec: Any, age: int = 0, generation: int = 1, kept: Any = None) -> Object:
    """A policy as an API server has it; with `kept`, the spec that a scheduler noted as the last good one."""
    metadata: Object = {
        "name": name,
        "uid": f"uid-{name}",
        "generation": generation,
        "creationTimestamp": f"2026-01-01T00:00:{age:02}Z",
    }
    if kept is not None:
        good = {"uid": metadata["uid"], "generation": min(generation, 1), "spec": kept}
        metadata["annotations"] = {LAST_GOOD: json.dumps(good)}
    return {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": metadata, "spec": spec}


def tried(name: str, spec: Any) -> Object:
    """A policy as a file has it."""
    return {"kind": "SchedulingPolicy", "metadata": {"name": name}, "spec": spec}


def in_force(store: PolicyStore) -> dict[str, Any]:
    return {one.key: one.spec for one in compiled_policies(store).compiled}


def test_what_is_tried_comes_into_force_as_in_a_running_scheduler() -> None:
    rng = random.Random(7)
    outcomes = set()
    for _ in range(200):
        names = rng.sample("abcdefgh", rng.randint(1, 6))
        specs = [taking(2 * rng.randint(1, 4), f"node.free.cpu >= {rng.randint(0, 2)}") for _ in range(12)]
        running, objects = PolicyStore(), dict[str, Object]()
        for name in names:  # they came one after the other, and what came into force was noted
            made = stored(name, rng.choice(specs), rng.randint(0, 9))
            running.apply(decode_policy(made))
            entry = running.get(decode_policy(made).key)
            assert entry is not None
            objects[name] = stored(name, made["spec"], kept=made["spec"] if entry.active else None)
            objects[name]["metadata"]["creationTimestamp"] = made["metadata"]["creationTimestamp"]
        before = in_force(running)
        name, spec = rng.choice([*names, "new"]), rng.choice([*specs, requiring("((")])
        gone = {one for one in names if one != name and rng.random() < 0.2}
        trying = standing_policies(objects.values())
        assert in_force(trying) == before
        try_policies(trying, [tried(name, spec)], gone)
        coming = stored(name, spec, 30, generation=2)
        if name in objects:
            coming["metadata"] = objects[name]["metadata"] | {"generation": 2}
        running.change([decode_policy(coming)], [decode_policy(objects[one]).key for one in gone])
        after = in_force(running)
        assert in_force(trying) == after
        outcomes.add((name in before, name in after, before.get(name) != after.get(name), bool(after.keys() - before)))
    assert len(outcomes) > 5


READY = {
    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
    "conditions": [{"type": "Ready", "status": "True"}],
}
CLUSTER = [node("n1", labels={"disk": "ssd"}, status=READY), node("n2", labels={"disk": "hdd"}, status=READY)]
FULL = [stored("edited", taking(12), 1, kept=taking(12)), stored("other", taking(8), 2, kept=taking(8))]
PENDING = pod("a", schedulerName="policysched")
WAITER = stored("waiter", requiring("false"), 0)


def test_an_edit_has_the_room_of_what_it_edits_and_no_waiting_policy_takes_it() -> None:
    edit = tried("edited", taking(12, 'node.labels["disk"] == "hdd"'))
    told = policysched.dry_run([*CLUSTER, *FULL, WAITER], pod(), [edit]).to_dict()
    assert told["selected"] == "n2"
    assert told["notApplied"] == {"waiter": NO_ROOM.replace("12 units", "1 units")}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (taking(14), NO_ROOM.replace("12 units", "14 units")),
        (requiring("(("), "it does not compile: unexpected end, expected a value (E0100, "),
    ],
)
def test_what_is_in_force_stays_where_an_edit_cannot_come_into_force(spec: Object, why: str) -> None:
    standing = [stored("edited", taking(12, 'node.labels["disk"] == "hdd"'), 1), FULL[1]]
    report = policysched.dry_run([*CLUSTER, *standing], pod(), [tried("edited", spec)])
    assert (report.selected, report.not_applied) == ("n2", {})
    notes = [one for one in report.notes if one.startswith(f"policy edited: the edit is not used because {why}")]
    assert [one.endswith("; generation 1 decides") for one in notes] == [True]


def test_a_plan_refuses_a_policy_that_has_no_room() -> None:
    with pytest.raises(UsageError, match=r"^policy new cannot be used: it does not compile: the policy costs 12 units"):
        policysched.plan([*CLUSTER, *FULL, PENDING], policies=[tried("new", taking(12))])
    kept = r"^policy edited cannot be used: .*\(E0601, spec\); the previous generation stays"
    with pytest.raises(UsageError, match=kept):
        policysched.plan([*CLUSTER, *FULL, PENDING], policies=[tried("edited", taking(14))])
    assert not policysched.plan(
        [*CLUSTER, *FULL, PENDING], policies=[tried("new", taking(12))], without_policies=["edited"]
    ).changes


def test_a_plan_has_policies_come_into_force_that_waited_for_room() -> None:
    told = policysched.plan([*CLUSTER, *FULL, WAITER, PENDING], without_policies=["edited"])
    [effect] = told.effects
    assert (effect.pod, effect.effect.value) == ("default/a", "unschedulable")
    assert "waiter" in str(told.to_dict()["effects"])


def test_a_record_has_room_for_what_is_tried_or_it_is_refused() -> None:
    standing = [compiled("edited", **taking(12)), compiled("other", **taking(8))]
    assert in_place(standing, [compiled("edited", **taking(8))], ()) == [compiled("edited", **taking(8)), standing[1]]
    assert in_place(standing, [compiled("new", **taking(12))], ["edited"])[-1].key == "new"
    for name, units in (("new", 2), ("edited", 14)):
        with pytest.raises(UsageError, match=f"^policy {name} cannot be used: it does not compile: the policy costs"):
            in_place(standing, [compiled(name, **taking(units))], ())
