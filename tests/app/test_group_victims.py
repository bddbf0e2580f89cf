"""`victim.group.*`: conditions of policies on the pod groups of the pods that preemption evicts."""

from __future__ import annotations

from typing import Any

import pytest

import policysched
from tests.app.dry_runs import Object, node, pod, policy
from tests.app.why.test_pod_groups import group, members, on

ABOVE = "not has(victim.group.min_count) or victim.group.placed > victim.group.min_count"


def guarded(condition: str) -> Object:
    return policy("guard", preemption={"require": condition})


def victims(condition: str, least: int | None, placed: int = 4, waiting: int = 0, **more: Any) -> list[str]:
    """The victims of a pod that needs a CPU on a node that is full of members of a group."""
    objects = [node("n1"), {**group(least, priority=-1), **more}, *_members(placed, waiting)]
    record = policysched.dry_run(objects, pod("web", 1), [guarded(condition)]).to_dict()
    return list(record.get("nominated", {}).get("victims", []))


def _members(placed: int, waiting: int) -> list[Object]:
    made = members(placed + waiting, 1, priority=-1)
    return [on(one, "n1") for one in made[:placed]] + made[placed:]


@pytest.mark.parametrize(("least", "evicts"), [(3, True), (4, False), (None, True)])
def test_gangs_stay_above_their_minimum(least: int | None, evicts: bool) -> None:
    assert bool(victims(ABOVE, least)) is evicts


@pytest.mark.parametrize(
    ("condition", "evicts"),
    [
        ('victim.group.name == "train"', True),
        ('victim.group.name == "other"', False),
        ('victim.group.labels["tier"] == "batch"', True),
        ('(victim.group.labels["tier"] ?? "") == "web"', False),
        ("victim.group.size == 6", False),
        ("victim.group.size == 4", True),
        ("victim.group.placed == 4", True),
        ("victim.group.min_count < 4", True),
        ("victim.group.min_count < 3", False),
    ],
)
def test_values_of_the_group_of_a_victim(condition: str, evicts: bool) -> None:
    metadata = {"name": "train", "namespace": "default", "labels": {"tier": "batch"}}
    assert bool(victims(condition, 3, metadata=metadata)) is evicts


def test_a_protected_pod_is_reported_with_the_values() -> None:
    objects = [node("n1"), group(4, priority=-1), *_members(4, 0)]
    record = policysched.dry_run(objects, pod("web", 1), [guarded(ABOVE)]).to_dict()
    told = str(record["rules"]["guard"]["preemption"]["default/train-0"])
    assert "victim.group.placed is 4" in told
    assert "victim.group.min_count is 4" in told


def test_groups_preempt_only_pods_that_a_policy_permits() -> None:
    low = {**group(2, priority=-1), "metadata": {"name": "low", "namespace": "default"}}
    named = {"schedulingGroup": {"podGroupName": "low"}}
    placed = [on(pod(f"low-{number}", 2, priority=-1, **named), "n1") for number in range(2)]
    objects = [node("n1"), low, group(1), *placed]
    kept = policysched.dry_run_group(objects, members(1, 1), [guarded(ABOVE)])
    assert "victims" not in kept.to_dict()
    assert policysched.dry_run_group(objects, members(1, 1)).to_dict()["victims"]


def test_without_a_group_the_numbers_are_zero_and_the_rest_is_missing() -> None:
    condition = "not has(victim.group.name) and victim.group.size == 0 and victim.group.placed == 0"
    low = on(pod("low", 4, priority=-1), "n1")
    record = policysched.dry_run([node("n1"), low], pod("web", 1), [guarded(condition)]).to_dict()
    assert record["nominated"]["victims"] == ["default/low"]


def test_why_knows_the_groups_of_victims() -> None:
    objects = [node("n1"), group(4, priority=-1), *_members(4, 0), pod("web", 1)]
    protected = policysched.why(objects, "web", policies=[guarded(ABOVE)])
    assert protected.preemption is None
    assert "victim.group.placed is 4" in " ".join(protected.notes)
    free = [node("n1"), group(3, priority=-1), *_members(4, 0), pod("web", 1)]
    assert policysched.why(free, "web", policies=[guarded(ABOVE)]).preemption is not None
