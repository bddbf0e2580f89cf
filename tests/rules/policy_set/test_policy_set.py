from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Mask
from policysched.framework.plugin import PREFIX
from policysched.framework.profile import Profile, members_of
from policysched.rules.plugin.record import describe
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from tests.build import cluster, node, pod
from tests.rules.build import Spec, compiled, filtering, plugin, policy_set, scoring

READY = filtering("node.ready")


def names(plugins: Any) -> list[str]:
    return [one.name for one in plugins]


def test_policies_come_by_priority_then_by_name() -> None:
    made = policy_set(b={}, a={}, low={"priority": -1}, high={"priority": 7}, z_high={"priority": 7})
    assert [one.policy.key for one in made.active] == ["high", "z-high", "a", "b", "low"]


def test_the_policy_of_the_highest_priority_reports_a_rejection() -> None:
    made = policy_set(a={"filters": READY}, b={"filters": READY, "priority": 1}).join(default_profile())
    assert names(members_of(made.filters))[-2:] == ["SchedulingPolicy/b", "SchedulingPolicy/a"]


def test_policies_stand_behind_the_plugins_where_they_have_rules() -> None:
    profile = default_profile()
    made = policy_set(
        both={"filters": READY, "scores": scoring(1), "weight": 7},
        filters={"filters": READY},
        scores={"scores": scoring(1)},
        empty={},
    ).join(profile)
    assert made.filters[:-1] == profile.filters
    assert names(members_of(made.filters[-1:])) == ["SchedulingPolicy/both", "SchedulingPolicy/filters"]
    assert made.scores[:-1] == profile.scores
    assert names(members_of([made.scores[-1][0]])) == ["SchedulingPolicy/both", "SchedulingPolicy/scores"]
    own = {name: given for name, given in made.weights.items() if name.startswith(PREFIX)}
    assert own == {"SchedulingPolicy/both": (7, 0), "SchedulingPolicy/scores": (1, 0)}


@pytest.mark.parametrize(("mode", "described", "acting"), [("Enforce", 1, 1), ("Shadow", 1, 0), ("Disabled", 0, 0)])
def test_only_enforced_policies_act_and_shadows_are_told(mode: str, described: int, acting: int) -> None:
    made = policy_set(p={"mode": mode, "filters": READY})
    profile = default_profile()
    assert len(made.active) == len(made.acting(profile)) == described
    assert len(made.join(profile).filters) - len(profile.filters) == acting


@pytest.mark.parametrize(
    ("points", "told"), [((True, True), 1), ((True, False), 1), ((False, True), 1), ((False, False), 0)]
)
def test_a_profile_may_take_policies_away_point_by_point(points: tuple[bool, bool], told: int) -> None:
    plain = default_profile()
    profile = Profile(plain.scheduler_name, plain.queue_sort, policies_filter=points[0], policies_score=points[1])
    made = policy_set(p={"filters": READY, "scores": scoring(1)})
    joined = made.join(profile)
    assert (bool(joined.filters), bool(joined.scores)) == points
    acting = made.acting(profile)
    assert len(acting) == told
    around = cluster(node("a"))
    said = [describe(one, pod(), around, np.array([True])) or {} for one in acting]
    assert [("filters" in one, "scores" in one) for one in said] == [points] * told


@pytest.mark.parametrize(
    ("spec", "told_apart"),
    [
        ({"filters": filtering('pod.annotations["a"] == "x"')}, True),
        ({"filters": filtering('pod.annotations["b"] == "x"')}, False),
        ({"filters": filtering("node.labels[pod.annotations[pod.name]] == pod.namespace")}, True),
        ({"filters": filtering('pod.labels["a"] == "x"')}, False),
        ({"appliesTo": 'has(pod.annotations["a"])', "filters": READY}, True),
        ({"filters": filtering("node.ready", when='has(pod.annotations["a"])')}, True),
        ({"scores": scoring(["else → 1"], when='has(pod.annotations["a"])')}, True),
        ({"let": [{"name": "x", "value": 'pod.annotations["a"]'}], "filters": filtering('x == "x"')}, True),
        ({"let": [{"name": "x", "value": 'pod.annotations["a"]'}], "filters": READY}, False),
        ({"mode": "Shadow", "filters": filtering('pod.annotations["a"] == "x"')}, False),
    ],
)
def test_what_policies_read_of_a_pod_splits_its_class(spec: Spec, told_apart: bool) -> None:
    extra = policy_set(p=spec).join(default_profile()).extra_key
    one, other = pod(), replace(pod(), metadata=replace(pod().metadata, annotations={"a": "x"}))
    around = cluster()
    assert (extra is not None and extra(one, around) != extra(other, around)) is told_apart


def told(spec: Spec, feasible: Mask | None = None, **of: Any) -> dict[str, Any] | None:
    """What a policy says on three nodes of which two are feasible."""
    around = cluster(
        node("a", labels={"k": "30"}), node("b", labels={"k": "60.5"}), node("c", labels={"k": "200"}), node("d")
    )
    around.remove_node("d")
    around.set_pod(pod("ghost", on="d"))
    mask = np.resize(np.array([True, True, False]) if feasible is None else feasible, around.nodes.size)
    return describe(plugin("pol", **spec), pod(**of), around, mask & around.nodes.present.data[: mask.size])


K = 'number(node.labels["k"])'


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"filters": filtering(f"{K} < 50")}, {"filters": {"r": {"b": "false", "c": "false"}}}),
        (
            {"filters": [*filtering(f"{K} < 50", "one"), *filtering('number(node.labels["x"]) > 1', "two")]},
            {"filters": {"one": {"b": "false", "c": "false"}, "two": dict.fromkeys("abc", "missing")}},
        ),
        ({"filters": filtering(f"{K} < 500")}, {}),
        ({"scores": scoring(K)}, {"scores": {"s": {"a": 30, "b": 60.5}}}),
        ({"scores": scoring(f"{K} * 2")}, {"scores": {"s": {"a": 60, "b": 100}}}),
        ({"scores": scoring(K, normalize="Max"), "weight": 9}, {"scores": {"s": {"a": 3000 / 60.5, "b": 100}}}),
        ({"scores": scoring(f"only({K} > 50, 5)")}, {"scores": {"s": {"a": None, "b": 5}}}),
        (
            {"scores": scoring([f"{K} > 50 → 5", 'number(node.labels["x"]) > 1 → 6', "missing → 9"])},
            {"scores": {"s": {"a": 9, "b": 5}}},
        ),
        (
            {"scores": [*scoring(K, "one", weight=7), *scoring(f"normalize({K})", "two")]},
            {"scores": {"one": {"a": 30, "b": 60.5}, "two": {"a": 3000 / 60.5, "b": 100}}},
        ),
        ({"mode": "Shadow", "scores": scoring(1)}, {"mode": "Shadow", "scores": {"s": {"a": 1, "b": 1}}}),
    ],
)
def test_a_description_tells_rules_on_all_nodes_and_scores_on_feasible_ones(spec: Spec, said: dict[str, Any]) -> None:
    assert told(spec) == {"activeGeneration": 1, "mode": "Enforce"} | said


def test_a_policy_that_does_not_apply_is_not_described() -> None:
    assert told({"filters": READY, "scores": scoring(1), "appliesTo": 'pod.name == "other"'}) is None
    assert told({"filters": READY}, priority=2_000_000_000) is None


def test_without_feasible_nodes_there_are_no_scores() -> None:
    assert told({"scores": scoring(1)}, np.array([False])) == {"activeGeneration": 1, "mode": "Enforce"}


def test_of_policies_of_one_name_each_set_has_its_own() -> None:
    one, other = compiled("p", filters=READY), compiled("p", filters=filtering("node.cordoned"))
    assert PolicySet.of([one]).active[0].policy is one
    assert PolicySet.of([other]).active[0].policy is other


def test_what_edited_policies_were_made_of_is_forgotten() -> None:
    around, policies, sizes = cluster(node("a", labels={"k": "1"})), PolicySet(), []
    for number in range(30):
        texts = f'node.labels["k"] != "v{number}" and number(node.labels["k"]) < {number + 5}'
        policies = PolicySet.of([compiled("p", filters=filtering(texts))], policies)
        engine = Engine(around, policies.join(default_profile()), random.Random(0))
        assert engine.decide(pod()).node == "a"
        sizes.append(len(policies.active[0].context(around).no_pod.scalars))
    assert sizes[-1] == sizes[0]
