"""Groups of policies: an edit leaves the plugins alone that say the same, and what they are evaluated with."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework.profile import Profile
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.plugin.policy_plugin import PolicyGroup, PolicyPlugin
from policysched.rules.policy_set import joined
from policysched.rules.policy_set.policy_set import PolicySet
from tests.rules.build import compiled, filtering, scoring

COUNT = 8


def one(number: int, generation: int = 1, **spec: Any) -> CompiledPolicy:
    rules = {"filters": filtering(f"node.free.cpu >= {number}m"), "scores": scoring(f"node.free.cpu / {number + 1}m")}
    return compiled(f"p{number}", generation=generation, **rules | spec)


class Edited:
    """Policies of which some are edited, and the profile with them."""

    def __init__(self) -> None:
        self.policies = {number: one(number) for number in range(COUNT)}
        self.set = PolicySet.of(self.policies.values())
        self.profile = self.set.join(default_profile())

    def edit(self, number: int, **spec: Any) -> Profile:
        """Edit a policy; return the profile before."""
        self.policies[number] = one(number, self.policies[number].generation + 1, **spec)
        return self.use()

    def use(self) -> Profile:
        before, self.set = self.profile, PolicySet.of(self.policies.values(), self.set)
        self.profile = self.set.join(default_profile())
        return before


def plugins(profile: Profile) -> dict[str, PolicyPlugin]:
    return {plugin.name[-2:]: plugin for plugin in profile.filters if isinstance(plugin, PolicyPlugin)}


def groups(profile: Profile) -> list[PolicyGroup]:
    return list(dict.fromkeys(plugin.group for plugin in plugins(profile).values()))


def changed(before: Profile, after: Profile) -> list[str]:
    """The policies that are other plugins than before."""
    known = plugins(before)
    return sorted(name for name, plugin in plugins(after).items() if known.get(name) is not plugin)


def test_policies_are_one_group_at_first() -> None:
    assert len(groups(Edited().profile)) == 1


@pytest.mark.parametrize("edit", [{"weight": 7}, {"priority": 3}, {"mode": "Enforce"}])
def test_a_policy_that_says_the_same_stays_the_same_plugin(edit: dict[str, Any]) -> None:
    policies = Edited()
    before = policies.edit(5, **edit)
    assert changed(before, policies.profile) == []
    assert dict(policies.profile.scores)[plugins(before)["p5"]] == edit.get("weight", 1)
    assert next(iter(plugins(policies.profile))) == ("p5" if "priority" in edit else "p0")


@pytest.mark.parametrize(
    "edit",
    [
        {"filters": filtering("node.ready")},
        {"scores": scoring("node.free.cpu / 2m")},
        {"scores": scoring("node.free.cpu / 6m", weight=2)},
        {"podSelector": {"matchLabels": {"a": "b"}}},
        {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        {"appliesTo": 'pod.name == "x"'},
        {"schedulerNames": ["other"]},
        {"includeSystemPods": True},
        {"preemption": {"require": "victim.priority < 5"}},
    ],
)
def test_a_policy_that_says_something_else_stands_apart(edit: dict[str, Any]) -> None:
    policies = Edited()
    [first] = groups(policies.profile)
    before = policies.edit(5, **edit)
    assert changed(before, policies.profile) == ["p5"]
    assert [group is first for group in groups(policies.profile)] == [True, False]
    again = policies.edit(5, **edit)
    assert changed(again, policies.profile) == []


def test_policies_that_stand_apart_are_made_anew_with_each_other_alone() -> None:
    policies = Edited()
    policies.edit(5, filters=filtering("node.ready"))
    before = policies.edit(6, filters=filtering("node.ready"))
    assert changed(before, policies.profile) == ["p5", "p6"]
    assert len(groups(policies.profile)) == 2


def test_many_that_stand_apart_are_put_together_with_the_others() -> None:
    policies = Edited()
    for number in range(3):
        policies.edit(number, filters=filtering(f"node.free.cpu < {number}m"))
    assert len(groups(policies.profile)) == 1


def test_policies_that_are_gone_leave_the_others_where_they_are_until_they_are_many() -> None:
    policies = Edited()
    for number, kept in ((0, True), (1, True), (2, False)):
        del policies.policies[number]
        assert (changed(policies.use(), policies.profile) == []) is kept


def test_profiles_in_which_policies_act_at_other_points_have_groups_of_their_own() -> None:
    policies, plain = Edited(), default_profile()
    filtering_alone = Profile(plain.scheduler_name, plain.queue_sort, policies_score=False)
    joined = policies.set.join(filtering_alone)
    assert groups(joined) != groups(policies.profile)
    assert joined.scores == ()
    assert groups(policies.set.join(default_profile("other"))) == groups(policies.profile)


@pytest.mark.parametrize("how", ["removed", "edited"])
def test_costly_policy_that_is_gone_is_not_evaluated_any_more(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one of eight, but what it takes of each decision is not an eighth."""
    monkeypatch.setattr(joined, "MOST_UNITS_GONE", 100)
    edited = Edited()
    costly = " and ".join(f'node.name != concat(pod.name, "{number}")' for number in range(40))
    edited.edit(3, filters=filtering(costly), scores=[])
    assert plugins(edited.profile)["p3"].units > 100
    if how == "removed":
        del edited.policies[3]
        edited.use()
    else:
        edited.edit(3)
    assert sum(units for group in groups(edited.profile) for units in group.units.values()) < 100
