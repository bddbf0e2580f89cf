"""Pods of pod groups as victims of single pods: alone, or all pods of their group together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster, Code, PostFilterResult
from policysched.framework.profile import Profile
from policysched.model.objects import (
    Affinity,
    AllDisruptionMode,
    DisruptionMode,
    Node,
    Pod,
    PodGroup,
    PodSchedulingGroup,
    TopologySpreadConstraint,
)
from policysched.model.release import V1_37, Release
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.search import SearchRules, search_victims
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, at_once, run_post_filters
from tests.build import node
from tests.groups import GATED, GATED_38, group
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.plugins.preempting import OneByOne, budget, low, wanted, world
from tests.rules.build import policy_set

WHOLE = DisruptionMode(all=AllDisruptionMode())
gated = partial(world, release=GATED)


def whole(name: str = "g", **spec: Any) -> PodGroup:
    """A group whose pods are evicted together."""
    return group(name, 1, disruption_mode=WHOLE, **spec)


def of(name: str, pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, scheduling_group=PodSchedulingGroup(pod_group_name=name)))


def answer(around: Cluster, preemptor: Pod, profile: Profile | None = None) -> PostFilterResult:
    profile = profile or default_profile(release=around.release)
    decision = Engine(around, profile, random.Random(0)).decide(preemptor)
    assert decision.row < 0
    failed = FailedCycle(decision, random.Random(0), victim_guards=profile.victim_guards)
    return at_once(run_post_filters(profile.post_filters, preemptor, failed))


def victims(around: Cluster, preemptor: Pod) -> tuple[str | None, list[str]]:
    result = answer(around, preemptor)
    return result.nominated_node, [one.metadata.name for one in result.victims]


def test_all_pods_of_a_group_are_evicted_together() -> None:
    pods = [of("g", low(f"g{on}", on)) for on in "abc"]
    around = gated(*map(node, "abc"), *pods, low("high", "c", 20, cpu=0), groups=[whole()])
    nominated, gone = victims(around, wanted())
    assert nominated in set("abc")
    assert gone == ["ga", "gb", "gc"]


def test_pods_of_other_groups_are_evicted_one_by_one() -> None:
    pods = [of("g", low(f"g{on}", on)) for on in "ab"]
    around = gated(*map(node, "ab"), *pods, groups=[group("g", 2)])
    nominated, gone = victims(around, wanted())
    assert gone == [f"g{nominated}"]


def test_without_the_gate_pods_of_a_group_are_evicted_one_by_one() -> None:
    around = gated(*map(node, "ab"), *(of("g", low(f"g{on}", on)) for on in "ab"), release=V1_37)
    nominated, gone = victims(around, wanted())
    assert gone == [f"g{nominated}"]


def test_a_single_pod_costs_less_than_a_group() -> None:
    pods = [of("g", low("ga", "a")), of("g", low("gb", "b")), low("single", "c")]
    around = gated(*map(node, "abc"), *pods, groups=[whole()])
    assert victims(around, wanted()) == ("c", ["single"])


def test_a_group_is_spared_before_single_pods_and_the_larger_group_first() -> None:
    """Of equal priority: the large group, the small one, then the pod that began first."""
    pods = [
        *(of("large", low(f"l{number}", "b" if number else "a", cpu=1)) for number in range(3)),
        *(of("small", low(f"s{number}", "b" if number else "a", cpu=1)) for number in range(2)),
        low("old", "a", cpu=1),
        low("young", "a", cpu=1, minute=5),
    ]
    around = gated(node("a"), node("b", unschedulable=True), *pods, groups=[whole("large"), whole("small")])
    assert victims(around, wanted(1)) == ("a", ["young"])
    assert victims(around, wanted(2)) == ("a", ["old", "young"])
    assert victims(around, wanted(3)) == ("a", ["s0", "s1", "old", "young"])


@pytest.mark.parametrize(("release", "gone"), [(GATED, "single"), (GATED_38, "member")])
def test_a_pod_of_a_group_that_is_evicted_alone_ranks_by_release(release: Release, gone: str) -> None:
    pods = [low("single", "a", cpu=2), of("g", low("member", "a", cpu=2, minute=5))]
    around = gated(node("a"), *pods, groups=[group("g", 1)], release=release)
    assert victims(around, wanted(2)) == ("a", [gone])


def test_a_pod_of_a_group_elsewhere_that_violates_a_budget_makes_the_group_violate_it() -> None:
    protected = [replace(one, metadata=replace(one.metadata, labels={"app": "web"})) for one in [low("gb", "b")]]
    pods = [of("g", low("ga", "a")), *(of("g", one) for one in protected), low("single", "c", 5)]
    around = gated(node("a"), node("b", unschedulable=True), node("c"), *pods, groups=[whole()])
    assert victims(around, wanted()) == ("a", ["ga", "gb"])
    around.take(budget("web", label("app", "web")))
    assert victims(around, wanted()) == ("c", ["single"])


def test_a_policy_that_protects_a_pod_protects_its_whole_group() -> None:
    protected = replace(low("gb", "b"), metadata=replace(low("gb", "b").metadata, labels={"keep": "yes"}))
    pods = [of("g", low("ga", "a")), of("g", protected), low("single", "c", 5)]
    around = gated(node("a"), node("b", unschedulable=True), node("c"), *pods, groups=[whole()])
    profile = policy_set(p={"preemption": {"require": 'not has(victim.labels["keep"])'}}).join(
        default_profile(release=around.release)
    )
    result = answer(around, wanted(), profile)
    assert (result.nominated_node, [one.metadata.name for one in result.victims]) == ("c", ["single"])
    around.remove_pod("default.single")
    around.set_pod(low("high", "c", 20))
    refused = answer(around, wanted(), profile)
    assert not refused.victims
    assert refused.status is not None
    assert '1 policy p/preemption: not has(victim.labels["keep"]) (default/gb: ' in refused.status.message


def test_an_evicted_pod_elsewhere_no_longer_keeps_the_preemptor_away() -> None:
    zones = {"zone": "z"}
    nodes = [node(name, labels=zones, allocatable={"cpu": 4, "pods": 9}) for name in "ab"]
    repelled = replace(low("gb", "b", cpu=1), metadata=replace(low("gb", "b").metadata, labels={"app": "x"}))
    pods = [of("g", low("ga", "a", cpu=4)), of("g", repelled)]
    around = gated(*nodes, *pods, groups=[whole()])
    preemptor = wanted(4, affinity=away(term(label("app", "x"), "zone")))
    nominated, gone = victims(around, preemptor)
    assert (nominated, gone) in (("a", ["ga", "gb"]), ("b", ["ga", "gb"]))
    around.take(group("g", 1))
    assert victims(around, preemptor) == ("b", ["gb"])


@pytest.mark.parametrize("seed", range(60))
def test_search_finds_the_victims_that_really_have_to_go(seed: int) -> None:
    """Together, node by node, and by removing pods from a cluster of their own."""
    chance = random.Random(f"groups/{seed}")
    release = chance.choice((GATED, GATED_38))
    groups = [whole(name) if chance.random() < 0.7 else group(name, 1) for name in "uvw"]
    nodes = [
        node(name, allocatable={"cpu": 4, "pods": 9}, labels={"host": name, "zone": chance.choice("yz")})
        for name in (f"n{number}" for number in range(5))
    ]
    rules: list[Affinity | None] = [None]
    if seed % 2:
        rules += [away(term(label("app", "x"), "zone")), near(term(label("app", "y"), "zone"))]
    pods = []
    for number in range(16):
        rule = chance.choice(rules)
        made = low(f"p{number}", f"n{number % 5}", chance.randint(0, 3), cpu=1, minute=number, affinity=rule)
        made = replace(made, metadata=replace(made.metadata, labels={"app": chance.choice("xyz")}))
        pods.append(of(chance.choice("uvw"), made) if chance.random() < 0.6 else made)
    around = gated(*nodes, *pods, groups=groups, release=release)
    preemptor = wanted(chance.randint(2, 4), priority=chance.randint(1, 4), affinity=chance.choice(rules))
    if seed % 2 and chance.random() < 0.5:
        spread = TopologySpreadConstraint(
            topology_key="zone", when_unsatisfiable="DoNotSchedule", max_skew=1, label_selector=label("app", "x")
        )
        preemptor = replace(preemptor, spec=replace(preemptor.spec, topology_spread_constraints=[spread]))
    decision = Engine(around, default_profile(release=release), random.Random(0)).decide(preemptor)
    assert decision.row < 0, "the pod fits: there is nothing to search"
    rows = decision.rows_with(Code.UNSCHEDULABLE)
    rules_of = SearchRules(release.uid_breaks_ties, release.members_rank_as_groups)
    found = [
        search_victims(failed(decision, random.Random(0)), rows, Budgets(around), rows.size, rules_of)
        for failed in (FailedCycle, OneByOne)
    ]
    told = [
        {one.cluster.nodes.names[int(one.rows[place])]: names(one.victims_and_violations(place)[0])
         for place in one.candidates.tolist()}
        for one in found
    ]  # fmt: skip
    assert told[0] == told[1]
    for name, gone in told[0].items():
        assert fits_without(gone, name, preemptor, (*nodes, *pods), groups, release)
        for one in gone if seed % 2 == 0 else ():  # with rules about pods, a victim may be superfluous without others
            rest = [other for other in gone if other not in evicted_with(one, pods, groups)]
            assert not fits_without(rest, name, preemptor, (*nodes, *pods), groups, release)


def names(pods: Sequence[Pod]) -> list[str]:
    return [one.metadata.name for one in pods]


def evicted_with(name: str, pods: Sequence[Pod], groups: Sequence[PodGroup]) -> set[str]:
    """The pods that are evicted together with a pod."""
    stated = next(one for one in pods if one.metadata.name == name).spec.scheduling_group
    if stated is None:
        return {name}
    if not next(one for one in groups if one.metadata.name == stated.pod_group_name).is_disrupted_as_whole:
        return {name}
    return {one.metadata.name for one in pods if one.spec.scheduling_group == stated}


def fits_without(
    gone: Sequence[str],
    on: str,
    preemptor: Pod,
    objects: Sequence[Node | Pod],
    groups: Sequence[PodGroup],
    release: Release,
) -> bool:
    stay = [one for one in objects if one.metadata.name not in gone]
    after = gated(*stay, groups=groups, release=release)
    found = Engine(after, default_profile(release=release), random.Random(0)).find(preemptor)
    return found.rejection is None and bool(found.feasible()[after.nodes.row_of[on]])
