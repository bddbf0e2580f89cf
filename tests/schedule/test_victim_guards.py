"""Victim guards: the protected pods, the messages about them, and changes of the policy."""

from __future__ import annotations

import logging
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.shadow_victims import ShadowVictims
from policysched.framework import Cluster, Code, PostFilterResult, RowNumbers, plugin_name
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.model.objects import Metadata, Namespace, OwnerReference, Pod
from policysched.model.policy import PolicyKey
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.plugin.guard import PolicyGuard
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, at_once, run_post_filters
from policysched.schedule.cycle.record import make_record
from policysched.schedule.shadow_guards import MOST_SAID, ShadowGuards
from tests.build import node, pod
from tests.plugins.preempting import NOW, low, wanted, world
from tests.rules.build import Spec, policy, policy_set
from tests.schedule.queue_parts import StandingClock
from tests.schedule.stand import running

HOUR = 3600.0
NONE_OF_ONE = "preemption: 0/1 nodes are available:"
OLD = "(default/build: victim.age is 6h)"
SHORT = {"preemption": {"require": "victim.age < 1h"}}


def born(of: Pod, hours: float, **metadata: Any) -> Pod:
    """Return the pod with a creation time a number of hours ago."""
    text = datetime.fromtimestamp(NOW - hours * HOUR, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return replace(of, metadata=replace(of.metadata, creation_timestamp=text, **metadata))


def owned(of: Pod) -> Pod:
    owner = OwnerReference(kind="Job", name="build", controller=True)
    return replace(of, metadata=replace(of.metadata, owner_references=[owner]))


def preempt(around: Cluster, of: Pod, policies: PolicySet) -> tuple[PostFilterResult, dict[str, Any]]:
    profile = policies.join(default_profile())
    rng = random.Random(0)
    decision = Engine(around, profile, rng).decide(of)
    assert decision.row < 0
    result = at_once(run_post_filters(profile.post_filters, of, FailedCycle(decision, rng, (), profile.victim_guards)))
    return result, make_record(decision, policies.active, result)


def outcome(around: Cluster, of: Pod, policies: PolicySet) -> list[str] | str:
    """Return the names of the victims, or the reason for which there are none."""
    result, _ = preempt(around, of, policies)
    return (
        [one.metadata.name for one in result.victims]
        if result.status is None or result.status.code is Code.SUCCESS
        else _of_preemption(result.status.message)
    )


def _of_preemption(message: str) -> str:
    return message[message.index("preemption: ") :]


def guarded(require: str, **spec: Any) -> Spec:
    return {"preemption": {"require": require}, **spec}


VICTIM = owned(born(low("build", "n1", 3, labels={"app": "ci"}), 6))


@pytest.mark.parametrize(
    ("require", "goes"),
    [
        ('victim.name == "build"', True),
        ('victim.name != "build"', False),
        ('victim.namespace == "default"', True),
        ('victim.namespace == "other"', False),
        ('victim.labels["app"] == "ci"', True),
        ('victim.labels["app"] != "ci"', False),
        ("victim.priority <= 3", True),
        ("victim.priority < 3", False),
        ("victim.age >= 6h", True),
        ("victim.age < 6h", False),
        ('victim.owner_kind == "Job"', True),
        ('victim.owner_kind == "ReplicaSet"', False),
        ('victim.owner_name == "build"', True),
        ('not starts_with(victim.owner_name, "bu")', False),
        ("pod.priority - victim.priority >= 7", True),
        ("pod.priority - victim.priority > 7", False),
        ('node.name == "n1"', True),
        ('node.name != "n1"', False),
        ("node.pods.count(peer.priority > 2) == 1", True),
        ("node.pods.count(peer.priority > 2) > 1", False),
        ("sum(node.pods.count(true)) by node.name == 1", True),
        ("sum(node.pods.count(true)) == 2", False),
    ],
)
def test_each_input_decides_who_must_stay(require: str, goes: bool) -> None:
    found = outcome(world(node("n1"), VICTIM), wanted(), policy_set(keep=guarded(require)))
    if goes:
        assert found == ["build"]
    else:
        assert str(found).startswith(f"preemption: 0/1 nodes are available: 1 policy keep/preemption: {require}")


@pytest.mark.parametrize(
    "require", ['number(victim.labels["max"]) > 1', 'not (number(victim.labels["max"]) > 1)', "1 / node.free.pods > 9"]
)
def test_what_is_unknown_protects(require: str) -> None:
    around = world(node("n1", allocatable={"cpu": 4, "memory": "8Gi", "pods": 1}), low("l", "n1"))
    found = outcome(around, wanted(), policy_set(keep=guarded(require)))
    assert isinstance(found, str)
    assert "policy keep/preemption: " in found


def test_missing_input_is_named() -> None:
    found = outcome(
        world(node("n1"), low("l", "n1")), wanted(), policy_set(keep=guarded('number(victim.labels["x"]) > 1'))
    )
    assert found == (
        'preemption: 0/1 nodes are available: 1 policy keep/preemption: victim.labels["x"] is missing (default/l).'
    )


def test_message_stands_in_the_place_of_the_condition() -> None:
    spec = {"preemption": {"require": "victim.age < 1h", "message": "it has run for too long"}}
    found = outcome(world(node("n1"), VICTIM), wanted(), policy_set(keep=spec))
    assert found == f"{NONE_OF_ONE} 1 policy keep/preemption: it has run for too long {OLD}."


def test_name_stands_in_the_reason() -> None:
    spec = {"preemption": {"name": "no-long-runners", "require": "victim.age < 1h", "message": "it runs"}}
    found = outcome(world(node("n1"), VICTIM), wanted(), policy_set(keep=spec))
    assert found == f"{NONE_OF_ONE} 1 policy keep/no-long-runners: it runs {OLD}."


@pytest.mark.parametrize(
    ("hours", "shown"), [(0, "0s"), (1 / 60 + 1 / 360, "1min 10s"), (1.5, "1h 30min"), (24, "1d"), (30.9, "1d 6h")]
)
def test_ages_are_told_in_their_two_largest_units(hours: float, shown: str) -> None:
    around = world(node("n1"), born(low("build", "n1"), hours))
    found = outcome(around, wanted(), policy_set(keep=guarded("victim.age < 0s")))
    assert found == f"{NONE_OF_ONE} 1 policy keep/preemption: victim.age < 0s (default/build: victim.age is {shown})."


def test_of_several_pods_the_least_important_one_is_told_and_nodes_are_counted() -> None:
    pods = [born(low(f"p{n}", f"n{n % 3}", n % 2, cpu=2), 1 + n) for n in range(6)]
    around = world(*(node(f"n{n}") for n in range(3)), *pods)
    found = outcome(around, wanted(), policy_set(keep=SHORT))
    said = "3 policy keep/preemption: victim.age < 1h (default/p0: victim.age is 1h)"
    assert found == f"preemption: 0/3 nodes are available: {said}."


def test_only_the_parts_that_are_not_true_tell_their_values() -> None:
    require = 'victim.labels["app"] == "ci" and victim.age < 1h'
    found = outcome(world(node("n1"), VICTIM), wanted(), policy_set(keep=guarded(require)))
    assert found == f"{NONE_OF_ONE} 1 policy keep/preemption: {require} {OLD}."


def test_victim_that_goes_already_is_asked_of_no_guard() -> None:
    going = replace(VICTIM, metadata=replace(VICTIM.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    assert outcome(world(node("n1"), going), wanted(), policy_set(keep=SHORT)) == ["build"]


def test_guard_of_an_unknown_namespace_turns_no_pod_away_at_filter() -> None:
    around = world(node("n1"))
    around.drop(Namespace(metadata=Metadata(name="default")))
    require = 'pod.namespace_labels["team"] == "a"'
    spec = {"preemption": {"require": require}, "filters": [{"name": "a", "require": "node.ready or not node.ready"}]}
    profile = policy_set(keep=spec).join(default_profile())
    assert Engine(around, profile, random.Random(0)).decide(wanted()).row >= 0
    around.set_pod(low("low", "n1"))
    result, _ = preempt(around, wanted(), policy_set(keep=spec))
    assert result.status is not None
    assert 'policy keep: namespace "default" is not known yet' in result.status.message


def test_cost_counts_a_guard_for_each_placed_pod() -> None:
    [plugin] = policy_set(keep=guarded("victim.age < 1h and victim.priority < 5")).active
    assert plugin.policy.units == 3 * 40 + 1
    glob = " or ".join(f'glob(victim.name, "{"x" * 90}{n}")' for n in range(2))
    result = compile_policy(policy("keep", preemption={"require": glob}))
    assert [one.code for one in result.diagnostics] == ["E0601"]


def test_every_guard_has_to_let_a_pod_go() -> None:
    around = world(node("n1"), node("n2"), VICTIM, born(low("young", "n2", labels={"app": "db"}), 0.5))
    both = policy_set(a=SHORT, b=guarded('victim.labels["app"] != "db"'))
    assert outcome(around, wanted(), policy_set(a=SHORT)) == ["young"]
    found = outcome(around, wanted(), both)
    assert found == (
        f"preemption: 0/2 nodes are available: 1 policy a/preemption: victim.age < 1h {OLD}, "
        '1 policy b/preemption: victim.labels["app"] != "db" (default/young: victim.labels["app"] is "db").'
    )


def test_protected_pod_counts_as_one_that_stays_beside_others_that_may_go() -> None:
    around = world(node("n1"), born(low("old", "n1", cpu=2), 6), born(low("young", "n1", cpu=2), 0.5))
    assert outcome(around, wanted(2), policy_set(a=SHORT)) == ["young"]
    assert outcome(around, wanted(4), policy_set(a=SHORT)) == (
        "preemption: 0/1 nodes are available: 1 Insufficient cpu, "
        "1 policy a/preemption: victim.age < 1h (default/old: victim.age is 6h)."
    )
    assert outcome(around, wanted(4), policy_set()) == ["old", "young"]


@pytest.mark.parametrize(
    ("spec", "of", "protects"),
    [
        ({}, wanted(), True),
        ({"mode": "Shadow"}, wanted(), False),
        ({"mode": "Disabled"}, wanted(), False),
        ({"appliesTo": "pod.priority < 100"}, wanted(), True),
        ({"appliesTo": "pod.priority > 100"}, wanted(), False),
        ({"podSelector": {"matchLabels": {"app": "web"}}}, wanted(labels={"app": "web"}), True),
        ({"podSelector": {"matchLabels": {"app": "web"}}}, wanted(), False),
        ({"schedulerNames": ["other"]}, wanted(), False),
        ({}, wanted(priority=2_000_000_000), False),
        ({"includeSystemPods": True}, wanted(priority=2_000_000_000), True),
    ],
)
def test_policy_guards_against_the_pods_that_it_is_for(spec: Spec, of: Pod, protects: bool) -> None:
    found = outcome(world(node("n1"), VICTIM), of, policy_set(keep=SHORT | spec))
    assert (found != ["build"]) == protects


def test_unknown_namespace_protects_until_it_is_known() -> None:
    around = world(node("n1"), VICTIM)
    around.drop(Namespace(metadata=Metadata(name="default")))
    keep = policy_set(keep=SHORT | {"namespaceSelector": {"matchLabels": {"team": "a"}}})
    assert outcome(around, wanted(), keep) == (
        'preemption: 0/1 nodes are available: 1 policy keep: namespace "default" is not known yet.'
    )
    around.set_namespace(Namespace(metadata=Metadata(name="default", labels={"team": "b"})))
    assert outcome(around, wanted(), keep) == ["build"]


def test_guard_makes_no_more_pod_classes_and_no_filter() -> None:
    joined = policy_set(keep=guarded("pod.name != victim.name")).join(default_profile())
    assert joined.extra_key is None
    assert len(joined.filters) == len(default_profile().filters)


@pytest.mark.parametrize("mode", ["Enforce", "Shadow"])
def test_record_says_which_pods_are_protected_with_their_values(mode: str) -> None:
    around = world(node("n1"), VICTIM, low("equal", "n1", 10, cpu=0))
    require = 'victim.age < 1h and victim.priority > 5 and number(victim.labels["x"]) > 1 and node.name == "n1"'
    _, record = preempt(around, wanted(), policy_set(keep=guarded(require, mode=mode)))
    assert record["rules"] == {
        "keep": {
            "activeGeneration": 1,
            "mode": mode,
            "preemption": {"default/build": 'victim.age is 6h, victim.priority is 3, victim.labels["x"] is missing'},
        }
    }


async def test_event_tells_of_the_guard_and_a_reload_lets_the_pod_preempt() -> None:
    born_at = StandingClock(StandingClock().at - 6 * HOUR).now().strftime("%Y-%m-%dT%H:%M:%SZ")
    old = pod("low", on="n1", requests={"cpu": 4})
    old = replace(old, metadata=replace(old.metadata, creation_timestamp=born_at))
    async with running(node("n1")) as stand:
        stand.scheduler.use_policies(policy_set(keep=SHORT), frozenset())
        await stand.settled(old, pod("high", requests={"cpu": 4}, priority=10))
        assert stand.client.deleted == []
        assert stand.notes == [
            "0/1 nodes are available: 1 Insufficient cpu. "
            f"{NONE_OF_ONE} 1 policy keep/preemption: victim.age < 1h (default/low: victim.age is 6h)."
        ]
        looser = policy_set(keep=guarded("victim.age < 1d"))
        stand.scheduler.use_policies(looser, frozenset({plugin_name(PolicyKey("keep"))}))
        await stand.pass_time(2)
        assert stand.client.deleted == ["default/low"]


async def test_labels_that_let_a_victim_go_try_the_pod_again_and_others_do_not() -> None:
    old = pod("low", on="n1", requests={"cpu": 4}, labels={"app": "ci", "step": "1"})
    labelled = [
        replace(old, metadata=replace(old.metadata, labels={"app": app, "step": step}))
        for app, step in (("ci", "2"), ("web", "2"))
    ]
    async with running(node("n1")) as stand:
        stand.scheduler.use_policies(policy_set(keep=guarded('victim.labels["app"] != "ci"')), frozenset())
        await stand.settled(old, pod("high", requests={"cpu": 4}, priority=10))
        stand.scheduler.set_pod(labelled[0])
        await stand.pass_time(2)
        assert stand.scheduler.queue.counts().unschedulable == 1
        stand.scheduler.set_pod(labelled[1])
        await stand.pass_time(2)
        assert stand.client.deleted == ["default/low"]


async def test_node_that_lets_its_victims_go_tries_the_pod_again() -> None:
    async with running(node("n1", labels={"keep": "yes"})) as stand:
        stand.scheduler.use_policies(policy_set(keep=guarded('node.labels["keep"] != "yes"')), frozenset())
        await stand.settled(pod("low", on="n1", requests={"cpu": 4}), pod("high", requests={"cpu": 4}, priority=10))
        assert stand.client.deleted == []
        stand.scheduler.set_node(node("n1", labels={"keep": "no"}))
        await stand.pass_time(2)
        assert stand.client.deleted == ["default/low"]


async def test_shadow_counts_and_logs_the_victims_that_it_would_keep(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "policysched.schedule.shadow_guards")
    registry = CollectorRegistry()
    async with running(node("n1")) as stand:
        registry.register(ShadowVictims(stand.scheduler.shadows))
        both = policy_set(
            keep=guarded('victim.name != "a"', mode="Shadow"), other=guarded('victim.name != "c"', mode="Shadow")
        )
        stand.scheduler.use_policies(both, frozenset())
        lows = [pod(name, on="n1", requests={"cpu": 2}) for name in "ab"]
        await stand.settled(*lows, pod("high", requests={"cpu": 4}, priority=10))
        assert sorted(stand.client.deleted) == ["default/a", "default/b"]
    assert [one.getMessage() for one in caplog.records] == [
        'shadow: victim "default/a" of pod "default/high" would be protected: policy keep/preemption: '
        'victim.name != "a" '
        '(victim.name is "a")'
    ]
    name = "policysched_shadow_kept_victims_total"
    assert registry.get_sample_value(name, {"policy": "keep"}) == 1
    assert registry.get_sample_value(name, {"policy": "other"}) is None


def test_many_shadow_guards_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "policysched.schedule.shadow_guards")
    around = world(node("n1"), *(pod(name, on="n1") for name in "ab"))
    victims = [one.pod for one in around.pods.by_id.values()]
    specs = {f"p{number}": guarded('victim.name != "a"', mode="Shadow") for number in range(40)}
    guards = policy_set(**specs).join(default_profile()).shadow_guards
    shadows = ShadowGuards()
    shadows.look(guards, pod("high"), around, victims)
    assert len(caplog.records) == MOST_SAID + 1
    assert (
        caplog.records[-1].getMessage() == f'shadow: pod "default/high" has {40 - MOST_SAID} more protected '
        "victims, which are not logged one by one"
    )
    shadows.keep({plugin_name(PolicyKey("p1")), plugin_name(PolicyKey("p2")), plugin_name(PolicyKey("new"))})
    assert shadows.kept == {plugin_name(PolicyKey("p1")): 1, plugin_name(PolicyKey("p2")): 1}


def test_records_tell_of_some_pods_and_count_the_rest() -> None:
    count = 1005
    pods = [born(low(f"p{number:04}", "n1", cpu=0), 2) for number in range(count)]
    around = world(node("n1"), *pods, pod("equal", on="n1", requests={"cpu": 4}, priority=10))
    _, record = preempt(around, wanted(), policy_set(keep=SHORT))
    assert record["preemption"]["protectedMore"] == record["rules"]["keep"]["preemptionMore"] == count - 1000
    assert len(record["preemption"]["protected"]["n1"]) == len(record["rules"]["keep"]["preemption"]) == 1000
    assert "default/p0999" in record["preemption"]["protected"]["n1"]


def test_unreadable_time_of_creation_protects() -> None:
    odd = replace(VICTIM, metadata=replace(VICTIM.metadata, creation_timestamp="yesterday"))
    for require in ("victim.age < 1h", "not (victim.age < 1h)"):
        found = outcome(world(node("n1"), odd), wanted(), policy_set(keep=guarded(require)))
        assert found == f"{NONE_OF_ONE} 1 policy keep/preemption: victim.age is missing (default/build)."


def test_guards_of_several_policies_and_reasons_are_all_told_of_a_node() -> None:
    around = world(node("n1"), born(low("a", "n1", cpu=2), 6), low("b", "n1", cpu=2))
    both = policy_set(x=SHORT, y={"preemption": {"require": 'victim.name != "a"', "message": "a stays"}})
    assert outcome(around, wanted(), both) == (
        f"{NONE_OF_ONE} 1 policy x/preemption: victim.age < 1h (default/a: victim.age is 6h), "
        "1 policy x/preemption: victim.age is missing (default/b), "
        '1 policy y/preemption: a stays (default/a: victim.name is "a").'
    )
    _, record = preempt(around, wanted(), both)
    assert record["preemption"]["protected"] == {
        "n1": {
            "default/a": "policy x/preemption: victim.age < 1h (victim.age is 6h); "
            'policy y/preemption: a stays (victim.name is "a")',
            "default/b": "policy x/preemption: victim.age is missing",
        }
    }


class LetsPass:
    """An out-of-tree filter that accepts every node, one node at a time."""

    def filter(self, state: Any, pod: Pod, node: Any) -> None:
        """Accept the node."""


def test_guard_is_heard_where_nodes_are_searched_one_by_one() -> None:
    nodes = [node(f"n{number}") for number in range(9)]
    pods = [born(low(f"p{number}", f"n{number}"), 6 - number / 2) for number in range(9)]
    around = world(*nodes, *pods)
    adapted: Any = OutOfTreePlugin("Lets", LetsPass(), PluginHandle("policysched"))
    base = default_profile().with_policies((adapted,), (), None)

    def found(require: str) -> PostFilterResult:
        profile = policy_set(keep=guarded(require)).join(base)
        decision = Engine(around, profile, random.Random(0)).decide(wanted())
        failed = FailedCycle(decision, random.Random(0), (), profile.victim_guards)
        return at_once(run_post_filters(profile.post_filters, wanted(), failed))

    assert [one.metadata.name for one in found('victim.name == "p7"').victims] == ["p7"]
    status = found("victim.age < 1h").status
    assert status is not None
    said = "9 policy keep/preemption: victim.age < 1h (default/p0: victim.age is 6h)"
    assert status.message.endswith(f"preemption: 0/9 nodes are available: {said}.")


def test_guards_are_asked_about_all_pods_at_once_and_read_values_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [born(low(f"p{number:03}", f"n{number % 10}", cpu=0), 2) for number in range(400)]
    full = [pod(f"full{number}", on=f"n{number}", requests={"cpu": 4}, priority=20) for number in range(10)]
    around = world(*(node(f"n{number}") for number in range(10)), *pods, *full)
    keeping = policy_set(**{f"g{number}": guarded(f'victim.labels["a"] == "{number}"') for number in range(20)})
    asked: list[int] = []
    read = 0
    protected, values = PolicyGuard.protected, PolicyGuard._values

    def asking(self: PolicyGuard, of: Pod, among: Cluster, slots: RowNumbers) -> Any:
        asked.append(slots.size)
        return protected(self, of, among, slots)

    def reading(self: PolicyGuard, slot: int, of: Pod, context: Any) -> str:
        nonlocal read
        read += 1
        return values(self, slot, of, context)

    monkeypatch.setattr(PolicyGuard, "protected", asking)
    monkeypatch.setattr(PolicyGuard, "_values", reading)
    profile, rng = keeping.join(default_profile()), random.Random(0)
    decision = Engine(around, profile, rng).decide(wanted())
    failed = FailedCycle(decision, rng, (), profile.victim_guards)
    assert not at_once(run_post_filters(profile.post_filters, wanted(), failed)).nominated_node
    assert asked == [400] * 20
    assert read <= 2 * 20
