"""The members of pod groups by state, as the cluster changes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as changed

from policysched.framework import Action, Change, Cluster, Resource
from policysched.model.objects import Metadata, Pod, PodGroup, PodSchedulingGroup, PodStatus
from policysched.model.release import V1_37, V1_38, Release
from policysched.state.pod_groups import PodGroups, group_key
from tests.build import node, pod
from tests.groups import GATED, group, member


def cluster(release: Release = GATED) -> Cluster:
    made = Cluster(release=release)
    for name in ("n1", "n2"):
        made.set_node(node(name))
    return made


def groups(made: Cluster) -> PodGroups:
    assert made.pod_groups is not None
    return made.pod_groups


def states(made: Cluster, key: str = "default/g") -> tuple[list[str], list[str], list[str]]:
    """The names of the unscheduled, assumed and assigned members."""
    state = groups(made).get(key)
    assert state is not None
    kinds = (state.unscheduled, state.assumed, state.assigned)
    unscheduled, assumed, assigned = ([one.metadata.name for one in kind.values()] for kind in kinds)
    assert state.count == len(unscheduled) + state.scheduled_count
    assert [one.metadata.name for one in state.scheduled] == [*assigned, *assumed]
    return unscheduled, assumed, assigned


def test_pods_are_in_no_group_without_the_gate() -> None:
    for release in (V1_37, V1_38):
        made = cluster(release)
        made.assume(member("a"), 0)
        made.set_pod(member("b", on="n1"))
        assert made.take(group("g", 2)).action is Action.ADD
        made.remove_pod("default.b")
        assert made.pod_groups is None


def test_a_member_is_unscheduled_assumed_and_assigned() -> None:
    made = cluster()
    for name in ("a", "b"):
        groups(made).await_pod(member(name))
    assert states(made) == (["a", "b"], [], [])
    made.assume(member("a"), 0)
    assert states(made) == (["b"], ["a"], [])
    made.set_pod(member("a", on="n1"))
    assert states(made) == (["b"], [], ["a"])
    made.set_pod(member("a", on="n1", labels={"x": "y"}))
    made.set_pod(member("a", on="n2"))
    assert states(made) == (["b"], [], ["a"])


def test_a_forgotten_member_is_unscheduled_again_and_a_confirmed_one_is_not() -> None:
    made = cluster()
    for name in ("a", "b"):
        made.assume(member(name), 0)
    made.forget("default.a")
    made.set_pod(member("b", on="n1"))
    made.forget("default.b")
    assert states(made) == (["a"], [], ["b"])


def test_a_version_of_an_assumed_pod_leaves_it_assumed() -> None:
    made = cluster()
    made.assume(member("a"), 0)
    groups(made).await_pod(member("a", labels={"x": "y"}))
    assert states(made) == ([], ["a"], [])


def test_removed_and_finished_members_are_in_no_group() -> None:
    made = cluster()
    groups(made).await_pod(member("a"))
    made.assume(member("b"), 0)
    made.set_pod(member("c", on="n1"))
    made.set_pod(member("d", on="n1"))
    made.set_pod(changed(member("d", on="n1"), status=PodStatus(phase="Succeeded")))
    assert states(made) == (["a"], ["b"], ["c"])
    for name in ("a", "b", "c"):
        made.remove_pod(f"default.{name}")
    assert groups(made).get("default/g") is None
    assert len(groups(made)) == 0


@pytest.mark.parametrize(
    ("pod_", "key"),
    [
        (pod("p"), ""),
        (pod("p", scheduling_group=PodSchedulingGroup()), ""),
        (member("p", "g"), "default/g"),
        (member("p", "g", namespace="other"), "other/g"),
    ],
)
def test_pod_names_a_group_of_its_namespace(pod_: Pod, key: str) -> None:
    made = cluster()
    groups(made).await_pod(pod_)
    made.set_pod(changed(pod_, spec=changed(pod_.spec, node_name="n1")))
    state = groups(made).of_pod(pod_)
    assert group_key(pod_) == key
    assert (state.key if state else "") == key
    assert len(groups(made)) == bool(key)


def test_pod_of_the_same_identity_in_another_group_is_in_the_other_group_only() -> None:
    made = cluster()
    groups(made).await_pod(member("p", "g"))
    made.assume(member("p", "other"), 0)
    assert [state.key for state in groups(made)] == ["default/other"]
    made.remove_pod("default.p")
    assert not list(groups(made))


def test_group_stays_while_it_has_an_object_or_members() -> None:
    made = cluster()
    first, second = group("g", 2), group("g", 3)
    changes = [made.take(first), made.take(first), made.take(second)]
    assert changes == [
        Change(Resource.POD_GROUP, Action.ADD, None, first),
        Change(Resource.POD_GROUP, Action.NONE, first, first),
        Change(Resource.POD_GROUP, Action.UPDATE_OTHER, first, second),
    ]
    groups(made).await_pod(member("a"))
    assert made.drop(second) == Change(Resource.POD_GROUP, Action.DELETE, second)
    assert states(made) == (["a"], [], [])
    made.remove_pod("default.a")
    assert not list(groups(made))
    assert made.drop(second).nothing
    made.take(first)
    made.drop(first)
    assert not list(groups(made))


@pytest.mark.parametrize(("least", "needed"), [(3, 3), (1, 1), (None, 1)])
def test_quorum_counts_members_of_all_states(least: int | None, needed: int) -> None:
    made = cluster()
    groups(made).await_pod(member("a"))
    made.assume(member("b"), 0)
    made.set_pod(member("c", on="n1"))
    state = groups(made).get("default/g")
    assert state is not None
    reached = [state.has_quorum]
    made.take(group("g", least))
    reached.append(state.has_quorum)
    for name in ("a", "b", "c"):
        made.remove_pod(f"default.{name}")
        reached.append(state.has_quorum)
    assert reached == [False, *(count >= needed for count in (3, 2, 1, 0))]


def test_report_of_an_object_is_remembered_by_its_uid() -> None:
    made = cluster()
    known = groups(made)
    known.note_scheduled(group("unknown"))
    made.take(group("g", 1, uid="one"))
    known.note_scheduled(group("g", 1, uid="one"))
    state = known.get("default/g")
    assert state is not None
    assert state.initially_scheduled == "one"
    made.take(group("g", 1, uid="two"))
    assert state.group is not None
    assert state.initially_scheduled != state.group.metadata.uid
    assert known.get("default/unknown") is None


def test_priority_and_threshold_of_a_group() -> None:
    assert (group("g").priority, group("g", priority=-7).priority) == (0, -7)
    assert (group("g").min_count, group("g", 5).min_count, PodGroup(metadata=Metadata(name="g")).min_count) == (1, 5, 1)
