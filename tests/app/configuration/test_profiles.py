"""Profiles made of configurations: the plugins at their points, whole or partial, with their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from policysched.app.configuration.profiles import configured_profiles, default_profile
from policysched.errors import UsageError
from policysched.framework import FilterPlugin, Plugin, ScorePlugin
from policysched.framework.partial_plugins import FailingScore
from policysched.framework.profile import Profile
from tests.app.configuration.test_reading import HEAD


def configured(*profiles: Any, **fields: Any) -> dict[str, Profile]:
    return configured_profiles({**HEAD, "profiles": list(profiles), **fields})


def one(**plugins: Any) -> Profile:
    [made] = configured({"plugins": plugins}).values()
    return made


def disabled(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names]}


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


NEEDED = enabled("PrioritySort", "DefaultBinder")
"""What no profile can do without, where everything else is disabled."""


def named(plugins: Sequence[Plugin] | None) -> list[str]:
    return [plugin.name for plugin in plugins or ()]


def scores(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}


FILTERS = [
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
]
SCORES = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def test_the_default_profile_has_kube_schedulers_plugins_in_their_order() -> None:
    profile = default_profile("me")
    assert (profile.scheduler_name, named(profile.filters), scores(profile)) == ("me", FILTERS, SCORES)
    assert named(profile.pre_enqueue) == ["SchedulingGates", "DynamicResources", "DefaultPreemption"]
    assert named(profile.post_filters) == ["DynamicResources", "DefaultPreemption"]
    assert profile.queue_sort.key is not None
    assert profile.prepared is profile.filters
    assert profile.pre_scores == ()
    assert named(profile.reserves) == ["VolumeBinding", "DynamicResources"]
    assert profile.policies_filter
    assert profile.policies_score


def test_without_a_configuration_there_is_one_profile_of_our_name() -> None:
    assert list(configured_profiles(None)) == ["policysched"]


def test_every_profile_has_its_own_plugins() -> None:
    made = configured({"schedulerName": "a"}, {"schedulerName": "b", "plugins": {"score": disabled("*")}})
    assert {name: len(profile.scores) for name, profile in made.items()} == {"a": len(SCORES), "b": 0}
    assert [profile.scheduler_name for profile in made.values()] == ["a", "b"]


@pytest.mark.parametrize(
    ("plugins", "without_filters", "without_scores"),
    [
        ({"multiPoint": disabled("TaintToleration")}, ["TaintToleration"], ["TaintToleration"]),
        ({"filter": disabled("TaintToleration")}, ["TaintToleration"], []),
        ({"score": disabled("TaintToleration", "ImageLocality")}, [], ["TaintToleration", "ImageLocality"]),
        ({"multiPoint": {**NEEDED, **disabled("*")}}, FILTERS, list(SCORES)),
        ({"filter": disabled("*")}, FILTERS, []),
        ({"score": disabled("*")}, [], list(SCORES)),
        ({"filter": disabled("NotThere")}, [], []),
    ],
)
def test_plugins_are_taken_away_where_they_are_disabled(
    plugins: dict[str, Any], without_filters: list[str], without_scores: list[str]
) -> None:
    profile = one(**plugins)
    assert named(profile.filters) == [name for name in FILTERS if name not in without_filters]
    assert scores(profile) == {name: weight for name, weight in SCORES.items() if name not in without_scores}


@pytest.mark.parametrize(
    ("point", "acting"),
    [("multiPoint", (False, False)), ("filter", (False, True)), ("score", (True, False))],
)
@pytest.mark.parametrize("name", ["SchedulingPolicy", "*"])
def test_policies_are_taken_away_where_they_are_disabled(name: str, point: str, acting: tuple[bool, bool]) -> None:
    kept = NEEDED if point == "multiPoint" else {}
    profile = one(**{point: {**kept, **disabled(name)}})
    assert (profile.policies_filter, profile.policies_score) == acting


def test_filters_that_are_put_first_are_prepared_where_they_were() -> None:
    profile = one(filter=enabled("NodeResourcesFit", "NodeName"))
    rest = [name for name in FILTERS if name not in ("NodeResourcesFit", "NodeName")]
    assert named(profile.filters) == ["NodeResourcesFit", "NodeName", *rest]
    assert named(profile.prepared)[:3] == ["NodeName", "NodeUnschedulable", "TaintToleration"]
    assert set(profile.prepared) == set(profile.filters)


def test_filters_that_are_prepared_in_another_order_report_where_they_were() -> None:
    profile = one(preFilter=enabled("VolumeBinding"))
    assert named(profile.filters) == FILTERS
    assert named(profile.prepared)[0] == "VolumeBinding"


def test_a_plugin_may_act_at_pre_filter_alone() -> None:
    profile = one(filter=disabled("NodeAffinity"))
    assert "NodeAffinity" not in named(profile.filters)
    assert "NodeAffinity" in named(profile.prepared)


def test_a_plugin_may_act_at_filter_alone() -> None:
    profile = one(preFilter=disabled("NodeAffinity", "NodePorts"))
    partial = [one.name for one in profile.filters if isinstance(one, FilterPlugin) and not one.pre_filters]
    assert partial == ["NodeAffinity", "NodePorts"]
    assert named(profile.filters) == FILTERS
    assert named(profile.prepared)[-2:] == ["NodeAffinity", "NodePorts"] or set(partial) <= set(named(profile.prepared))
    assert not {"NodeAffinity", "NodePorts"} & set(profile.pre_filter_names)
    assert "DynamicResources" in profile.pre_filter_names


def test_a_plugin_may_act_at_pre_score_alone() -> None:
    profile = one(score=disabled("NodeAffinity", "ImageLocality"))
    assert named(profile.pre_scores) == ["NodeAffinity"]


def test_a_plugin_may_act_at_score_alone() -> None:
    profile = one(preScore=disabled("*"))
    assert scores(profile) == SCORES
    whole = [one.name for one, _ in profile.scores if isinstance(one, ScorePlugin) and one.pre_scores]
    assert whole == ["VolumeBinding", "DynamicResources", "ImageLocality"]


def test_a_plugin_that_scores_what_pre_filter_prepared_needs_it() -> None:
    profile = one(preFilter=disabled("DynamicResources"))
    assert [plugin.name for plugin, _ in profile.scores if isinstance(plugin, FailingScore)] == ["DynamicResources"]
    off = one(preFilter=disabled("*"), score=disabled("*"))
    assert off.scores == ()


def test_gates_and_what_runs_after_filters_can_be_taken_away() -> None:
    profile = one(preEnqueue=disabled("*"), postFilter=disabled("DynamicResources"))
    assert profile.pre_enqueue == ()
    assert named(profile.post_filters) == ["DefaultPreemption"]


def test_arguments_reach_their_plugin() -> None:
    entry = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["x.io/y"]}}
    [profile] = configured({"pluginConfig": [entry, {"name": "Other", "args": 5}]}).values()
    fit: Any = profile.filters[FILTERS.index("NodeResourcesFit")]
    assert fit._ignored == {"x.io/y"}
    assert profile.scores[2][0] is fit


def entries(**args: Any) -> list[dict[str, Any]]:
    return [{"name": name, "args": given} for name, given in args.items()]


STRANGE = {"scoringStrategy": {"type": "NoneAllocated"}}


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (
            {"pluginConfig": entries(NodeResourcesFit=STRANGE)},
            'pluginConfig[0].args.scoringStrategy.type: "NoneAllocated"',
        ),
        ({"pluginConfig": entries(NodeAffinity=[])}, "pluginConfig[0].args: args must be an object"),
        ({"plugins": {"bind": disabled("*")}}, "plugins.bind: at least one bind plugin is required"),
        (
            {
                "plugins": {"multiPoint": disabled("NodeResourcesBalancedAllocation")},
                "pluginConfig": entries(NodeResourcesBalancedAllocation={"resources": [{"name": "cpu", "weight": 3}]}),
            },
            "pluginConfig[0].args.resources[0].weight: 3 is not 1",
        ),
        (
            {
                "plugins": {"multiPoint": disabled("NodeResourcesFit")},
                "pluginConfig": entries(NodeResourcesFit={"strategy": {}}),
            },
            "pluginConfig[0].args.strategy: unknown field",
        ),
    ],
)
def test_what_is_refused_names_the_profile(profile: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        configured({"schedulerName": "a"}, {"schedulerName": "b", **profile})
    assert str(caught.value).startswith(f"config: profiles[1].{message}")


def test_of_a_fit_that_is_disabled_only_the_shape_of_its_arguments_counts() -> None:
    made = configured(
        {"plugins": {"multiPoint": disabled("NodeResourcesFit")}, "pluginConfig": entries(NodeResourcesFit=STRANGE)}
    )
    assert "NodeResourcesFit" not in named(made["default-scheduler"].filters)
