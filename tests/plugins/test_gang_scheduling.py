"""GangScheduling: which pods of groups wait, for what, and which changes wake them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import default_profile
from policysched.app.running.process import Process
from policysched.app.running.run_options import RunOptions
from policysched.framework import Action, Change, Cluster, Code, Resource
from policysched.kube.connection import Connection
from policysched.metric_sources.no_source import NoSource
from policysched.model.kinds import POD_GROUPS
from policysched.model.objects import Pod, PodGroup, PodGroupSpec
from policysched.model.release import V1_37, V1_38, Release
from policysched.plugins.gang_scheduling import GangScheduling
from tests.build import pod
from tests.groups import GATED, GATED_38, group, member

MISSING = {
    GATED: 'waiting for pods\'s pod group "g" to appear in scheduling queue',
    GATED_38: 'pod group "g" or one of its composite pod group ancestors has not been created yet',
}
TOO_FEW = {
    GATED: "waiting for minCount pods from a gang to appear in scheduling queue",
    GATED_38: "waiting for podgroup/default/g to meet its quorum",
}


def plugin(release: Release) -> GangScheduling:
    [found] = [one for one in default_profile(release=release).pre_enqueue if isinstance(one, GangScheduling)]
    return found


def cluster(release: Release, *objects: Pod | PodGroup) -> Cluster:
    made = Cluster(release=release)
    assert made.pod_groups is not None
    for one in objects:
        if isinstance(one, PodGroup) or one.spec.node_name:
            made.take(one)
        else:
            made.pod_groups.await_pod(one)
    return made


def answer(release: Release, waiting: Pod, *objects: Pod | PodGroup) -> str:
    status = plugin(release).pre_enqueue(waiting, cluster(release, waiting, *objects))
    assert status is None or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return "" if status is None else status.message


@pytest.mark.parametrize("release", [GATED, GATED_38], ids=lambda one: one.minor)
@pytest.mark.parametrize(
    ("objects", "texts"),
    [
        ([], MISSING),
        ([group("other"), member("a", "other")], MISSING),
        ([replace(group("g"), metadata=replace(group("g").metadata, namespace="other"))], MISSING),
        ([group("g")], {}),
        ([group("g", 1)], {}),
        ([group("g", 2)], TOO_FEW),
        ([group("g", 2), member("a", "other"), member("a", "g", namespace="other")], TOO_FEW),
        ([group("g", 2), member("a")], {}),
        ([group("g", 3), member("a", on="n1"), member("b")], {}),
        ([group("g", 4), member("a", on="n1"), member("b")], TOO_FEW),
    ],
)
def test_pods_wait_for_their_group_and_for_enough_pods(
    release: Release, objects: list[Pod | PodGroup], texts: dict[Release, str]
) -> None:
    assert answer(release, member("p"), *objects) == texts.get(release, "")


@pytest.mark.parametrize("release", [GATED, GATED_38], ids=lambda one: one.minor)
def test_pods_without_a_group_do_not_wait(release: Release) -> None:
    assert answer(release, pod("p"), group("g", 2)) == ""


@pytest.mark.parametrize("release", [V1_37, V1_38], ids=lambda one: one.minor)
def test_plugin_is_enabled_by_the_gate_alone(release: Release) -> None:
    assert "GangScheduling" not in default_profile(release=release).plugin_names
    assert plugin(GATED if release is V1_37 else GATED_38).pre_enqueue(member("p"), Cluster(release=release)) is None


def added(new: Any, resource: Resource = Resource.PENDING_POD) -> Change:
    return Change(resource, Action.ADD, None, new)


def updated(old: PodGroup, new: PodGroup) -> Change:
    return Change(Resource.POD_GROUP, Action.UPDATE_OTHER, old, new)


NO_POLICY = replace(group("g"), spec=PodGroupSpec())


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        (added(member("a")), True),
        (added(member("a", on="n1"), Resource.ASSIGNED_POD), True),
        (added(member("a", "other")), False),
        (added(member("a", namespace="other")), False),
        (added(pod("a")), False),
        (added(group("g", 7), Resource.POD_GROUP), True),
        (added(group("other"), Resource.POD_GROUP), False),
        (updated(group("g", 3), group("g", 2)), True),
        (updated(group("g", 3), group("g", 3, priority=1)), False),
        (updated(group("g", 3), group("g", 4)), False),
        (updated(group("g"), group("g", priority=1)), False),
        (updated(group("g", 3), NO_POLICY), False),
        (updated(NO_POLICY, group("g", 3)), False),
        (updated(group("other", 3), group("other", 2)), False),
        (Change(Resource.POD_GROUP, Action.DELETE, group("g", 3)), False),
        (Change(Resource.ASSIGNED_POD, Action.DELETE, member("a", on="n1")), False),
    ],
)
@pytest.mark.parametrize("waiting", [member("p"), pod("q")], ids=["member", "ordinary"])
def test_pods_are_woken_by_their_group_and_its_pods(waiting: Pod, change: Change, wakes: bool) -> None:
    made = cluster(GATED, waiting)
    hints = [
        one for one in GangScheduling().events() if one.resource == change.resource and one.actions & change.action
    ]
    helps = [one.helps(waiting, change, made) for one in hints if one.helps is not None]
    found = [
        set(one.index.filed_under(waiting)) & set(one.index.leads_to(change, ()) or ())
        for one in hints
        if one.index is not None
    ]
    assert any(helps) is (wakes and waiting.metadata.name == "p")
    assert not any(helps) or all(found)


@pytest.mark.parametrize(("release", "watched"), [(V1_37, False), (V1_38, False), (GATED, True), (GATED_38, True)])
def test_pod_groups_are_watched_with_the_gate(release: Release, watched: bool) -> None:
    connection = Connection("http://nowhere", SystemClock())
    process = Process(RunOptions(), connection, NoSource(), CollectorRegistry(), release=release)
    assert ("podgroups" in {one.watched.plural for one in process.reflectors}) is watched
    assert (process.scheduler.cluster.pod_groups is not None) is watched


@pytest.mark.parametrize("plugins", [frozenset[str](), frozenset(("GangScheduling",))], ids=["disabled", "enabled"])
def test_pod_groups_are_read_with_the_gate_whichever_plugins_are_enabled(plugins: frozenset[str]) -> None:
    assert [POD_GROUPS.is_read(plugins, release) for release in (V1_37, GATED, V1_38, GATED_38)] == [False, True] * 2
