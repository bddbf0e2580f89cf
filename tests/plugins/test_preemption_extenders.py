"""Extenders in preemption: candidates that they leave out, victims that they choose, and what goes wrong."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster, Code, PostFilterResult
from policysched.framework.extender import Extender, ExtenderError, NamedVictims, NodeVictims
from policysched.model.objects import Pod
from policysched.model.release import V1_37, V1_38, Release
from policysched.plugins.default_preemption.candidates import NONE_LEFT
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, run_post_filters
from tests.build import node
from tests.plugins.inter_pod_affinity.build import label
from tests.plugins.preempting import budget, low, wanted, world
from tests.rules.build import filtering, policy_set

Named = Mapping[str, NamedVictims]


@dataclass
class Preempting:
    """An extender that answers with what it is given, or leaves candidates as they are."""

    answer: Named | None = None
    error: str = ""
    ignorable: bool = False
    preempts: bool = True
    name: str = "http://one"
    asked: list[dict[str, tuple[list[str], int]]] = field(default_factory=list)

    async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> Named:
        assert pod.metadata.name == "wanted"
        self.asked.append(
            {name: ([one.metadata.name for one in of.pods], of.pdb_violations) for name, of in candidates.items()}
        )
        if self.error:
            raise ExtenderError(self.error)
        return {name: of.named() for name, of in candidates.items()} if self.answer is None else self.answer


def around() -> Cluster:
    """Nodes a, b and c; making room costs least on a."""
    pods = [low("a1", "a"), low("b1", "b", 1, cpu=2), low("b0", "b", 0, cpu=2), low("c1", "c", 2, labels={"app": "x"})]
    return world(node("a"), node("b"), node("c"), *pods, budgets=[budget("keep", label("app"))])


def preempt(cluster: Cluster, *extenders: Preempting, policies: PolicySet | None = None) -> PostFilterResult:
    profile = default_profile() if policies is None else policies.join(default_profile())
    rng = random.Random(0)
    decision = Engine(cluster, profile, rng).decide(wanted())
    assert decision.row < 0
    return asyncio.run(
        run_post_filters(
            profile.post_filters,
            wanted(),
            FailedCycle(decision, rng, cast("Sequence[Extender]", extenders), profile.victim_guards),
        )
    )


def victims(result: PostFilterResult) -> tuple[str | None, list[str]]:
    assert result.status is None or result.status.code is Code.SUCCESS, result.status
    return result.nominated_node, [one.metadata.name for one in result.victims]


def named(*names: str, violations: int = 0) -> NamedVictims:
    return NamedVictims(tuple(f"default.{name}" for name in names), violations)


def test_extender_is_asked_about_all_candidates() -> None:
    one = Preempting()
    assert victims(preempt(around(), one)) == ("a", ["a1"])
    assert one.asked == [{"a": (["a1"], 0), "b": (["b1", "b0"], 0), "c": (["c1"], 1)}]


def test_candidates_that_are_left_out_are_not_chosen_and_the_next_extender_sees_the_rest() -> None:
    one, two = Preempting({"b": named("b1", "b0"), "c": named("c1", violations=1)}), Preempting()
    assert victims(preempt(around(), one, two)) == ("b", ["b1", "b0"])
    assert two.asked == [{"b": (["b1", "b0"], 0), "c": (["c1"], 1)}]


def test_victims_and_violations_are_the_extenders() -> None:
    one = Preempting({"a": named("a1", violations=3), "b": named("b0", violations=1), "c": named("c1", violations=1)})
    assert victims(preempt(around(), one)) == ("b", ["b0"])


def test_extender_without_a_say_is_not_asked() -> None:
    one = Preempting(preempts=False, answer={})
    assert victims(preempt(around(), one)) == ("a", ["a1"])
    assert one.asked == []


def test_no_candidate_left_is_said_and_ends_the_asking() -> None:
    one, two = Preempting({}), Preempting()
    result = preempt(around(), one, two)
    assert result.status is not None
    assert (result.status.code, result.nominated_node) == (Code.UNSCHEDULABLE, None)
    assert result.status.message.endswith("preemption: no candidate node for preemption")
    assert two.asked == []


def test_where_no_candidate_is_left_it_is_told_which_plugins_reject_on_other_nodes_whichever_pods_go() -> None:
    policies = policy_set(p={"filters": filtering('node.name != "a"')})
    result = preempt(around(), Preempting({}), policies=policies)
    assert result.rejecting_anyway == {"SchedulingPolicy/p"}
    assert preempt(around(), Preempting({})).rejecting_anyway == frozenset()


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (Preempting(error="out of order"), "preemption: out of order"),
        (Preempting({"z": named("a1")}), 'preemption: nodeinfo not found for node name "z"'),
        (Preempting({"a": named()}), 'preemption: expected at least one victim pod on node "a"'),
        (
            Preempting({"a": named("b1")}),
            "preemption: extender: http://one claims to preempt pod (UID: default.b1) on node: a, "
            "but the pod is not found on that node",
        ),
    ],
)
def test_what_goes_wrong_fails_preemption_unless_the_extender_is_ignorable(one: Preempting, says: str) -> None:
    result = preempt(around(), one)
    assert result.status is not None
    assert (result.status.code, result.status.message) == (Code.ERROR, says)
    one.ignorable = True
    ignored = preempt(around(), one)
    if one.answer == {"a": named()}:  # the node is left out, and it was the only one
        assert ignored.status is not None
        assert ignored.status.message.endswith("no candidate node for preemption")
    else:
        assert victims(ignored) == ("a", ["a1"])


def test_extenders_are_asked_about_as_many_candidates_as_in_kube_scheduler() -> None:
    names = [f"n{number}" for number in range(150)]
    cluster = world(*map(node, names), *(low(f"p-{name}", name) for name in names))
    one = Preempting()
    preempt(cluster, one)
    assert len(one.asked[0]) == 100


@dataclass
class Meanwhile(Preempting):
    """An extender during whose answer the cluster changes."""

    cluster: Cluster = field(default_factory=around)
    pods: Sequence[str] = ()
    nodes: Sequence[str] = ()

    async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> Named:
        left = await super().preempt(pod, candidates)
        for name in self.pods:
            self.cluster.remove_pod(f"default.{name}")
        for name in self.nodes:
            self.cluster.remove_node(name)
        return left


def test_victims_and_nodes_that_are_gone_meanwhile_are_left_out() -> None:
    one = Meanwhile(pods=["a1", "b0"], nodes=["c"])
    assert victims(preempt(one.cluster, one)) == ("b", ["b1"])


def test_nothing_is_left_where_all_victims_are_gone_meanwhile() -> None:
    one = Meanwhile(pods=["a1", "b0", "b1", "c1"])
    result = preempt(one.cluster, one)
    assert result.status is not None
    assert result.status.code is Code.UNSCHEDULABLE
    assert result.status.message.endswith(NONE_LEFT)


def keeping(require: str) -> PolicySet:
    return policy_set(keep={"preemption": {"require": require}})


def test_pod_that_a_policy_keeps_is_no_victim_though_an_extender_names_it() -> None:
    keep_b1 = keeping('victim.name != "b1"')
    one = Preempting({"b": named("b1"), "c": named("c1", violations=1)})
    assert victims(preempt(around(), one, policies=keep_b1)) == ("c", ["c1"])
    # b1 stays, so b0 alone makes no room.
    assert one.asked == [{"a": (["a1"], 0), "c": (["c1"], 1)}]


def test_extender_that_names_kept_pods_alone_leaves_no_candidate_and_the_event_says_why() -> None:
    result = preempt(around(), Preempting({"b": named("b1", "b0")}), policies=keeping('victim.name != "b1"'))
    assert result.status is not None
    assert result.status.message.endswith(
        "preemption: no candidate node for preemption: policy keep/preemption: "
        'victim.name != "b1" (default/b1: victim.name is "b1")'
    )
    assert result.rejectors == {"SchedulingPolicy/keep"}


def test_guards_are_asked_again_about_what_extenders_leave() -> None:
    cluster = around()

    @dataclass
    class Slow(Preempting):
        async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> Named:
            for name in ("a1", "b0", "c1"):
                placed = cluster.pods.by_id[f"default.{name}"].pod
                cluster.set_pod(replace(placed, metadata=replace(placed.metadata, labels={"keep": "yes"})))
            return await super().preempt(pod, candidates)

    found = preempt(cluster, Slow(), policies=keeping('victim.labels["keep"] != "yes"'))
    assert found.status is not None
    assert 'policy keep/preemption: victim.labels["keep"] != "yes"' in found.status.message


def preempt_where_b_has_room(release: Release, *extenders: Preempting) -> PostFilterResult:
    """Preempt after the pod that kept others off b is gone: b needs no eviction."""
    high = low("high", "b", 20, cpu=3)
    cluster = world(node("a"), node("b"), low("a1", "a", 5), high, low("b1", "b", cpu=1))
    profile = default_profile(release=release)
    rng = random.Random(0)
    decision = Engine(cluster, profile, rng).decide(wanted(3))
    cluster.drop(high)
    failed = FailedCycle(decision, rng, cast("Sequence[Extender]", extenders), profile.victim_guards)
    return asyncio.run(run_post_filters(profile.post_filters, wanted(3), failed))


def test_extenders_see_nodes_that_need_no_eviction_and_can_add_victims_in_releases_that_say_so() -> None:
    one = Preempting()
    result = preempt_where_b_has_room(V1_38, one, two := Preempting({"a": named("a1"), "b": named("b1")}))
    assert (result.nominated_node, [pod.metadata.name for pod in result.victims]) == ("b", ["b1"])
    assert one.asked == two.asked == [{"a": (["a1"], 0), "b": ([], 0)}]
    preempt_where_b_has_room(V1_37, before := Preempting())
    assert before.asked == [{"a": (["a1"], 0)}]


def test_node_to_which_no_extender_adds_victims_is_left_out() -> None:
    assert preempt_where_b_has_room(V1_38, Preempting()).nominated_node == "a"
    result = preempt_where_b_has_room(V1_38, Preempting({"b": named()}))
    assert result.status is not None
    assert (result.status.code, NONE_LEFT in result.status.message) == (Code.UNSCHEDULABLE, True)
