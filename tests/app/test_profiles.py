from __future__ import annotations

from typing import Any

import pytest

from policysched.app.profiles import configured_profiles, default_profile
from policysched.errors import UsageError
from policysched.framework.profile import Profile

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def configured(*profiles: Any, **fields: Any) -> dict[str, Profile]:
    return configured_profiles({**HEAD, "profiles": list(profiles), **fields})


def one(**plugins: Any) -> Profile:
    [made] = configured({"plugins": plugins}).values()
    return made


def disabled(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names]}


def filters(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def scores(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}


FILTERS = [
    "NodeUnschedulable",
    "NodeName",
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
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def test_the_default_profile_has_kube_schedulers_plugins_in_their_order() -> None:
    profile = default_profile("me")
    assert (profile.scheduler_name, filters(profile), scores(profile)) == ("me", FILTERS, SCORES)
    assert [plugin.name for plugin in profile.pre_enqueue] == ["SchedulingGates"]
    assert profile.queue_sort.key is not None
    assert profile.policies_filter
    assert profile.policies_score


def test_without_a_configuration_there_is_one_profile_of_our_name() -> None:
    assert list(configured_profiles(None)) == ["policysched"]


@pytest.mark.parametrize(
    ("profiles", "names"),
    [
        ([], ["default-scheduler"]),
        ([{}], ["default-scheduler"]),
        ([{"schedulerName": "a"}, {"schedulerName": "b"}], ["a", "b"]),
        ([{"schedulerName": ""}], ["default-scheduler"]),
    ],
)
def test_profiles_go_by_their_names(profiles: list[Any], names: list[str]) -> None:
    made = configured(*profiles)
    assert list(made) == names
    assert [profile.scheduler_name for profile in made.values()] == names


TEXTS = [
    "profiles: []",
    "profiles: null",
    "percentageOfNodesToScore: 50",
    "profiles: [{plugins: null, pluginConfig: null}]",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_configuration_may_be_a_text(text: str) -> None:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    assert list(configured_profiles(head + text)) == ["default-scheduler"]


@pytest.mark.parametrize(
    ("plugins", "without_filters", "without_scores"),
    [
        ({"multiPoint": disabled("TaintToleration")}, ["TaintToleration"], ["TaintToleration"]),
        ({"filter": disabled("TaintToleration")}, ["TaintToleration"], []),
        ({"score": disabled("TaintToleration", "ImageLocality")}, [], ["TaintToleration", "ImageLocality"]),
        ({"multiPoint": disabled("*")}, FILTERS, list(SCORES)),
        ({"filter": disabled("*")}, FILTERS, []),
        ({"score": disabled("*")}, [], list(SCORES)),
        ({"filter": disabled("NotThere")}, [], []),
    ],
)
def test_plugins_are_taken_away_where_they_are_disabled(
    plugins: dict[str, Any], without_filters: list[str], without_scores: list[str]
) -> None:
    profile = one(**plugins)
    assert filters(profile) == [name for name in FILTERS if name not in without_filters]
    assert scores(profile) == {name: weight for name, weight in SCORES.items() if name not in without_scores}


@pytest.mark.parametrize(
    ("point", "acting"),
    [("multiPoint", (False, False)), ("filter", (False, True)), ("score", (True, False))],
)
@pytest.mark.parametrize("name", ["SchedulingPolicy", "*"])
def test_policies_are_taken_away_where_they_are_disabled(name: str, point: str, acting: tuple[bool, bool]) -> None:
    profile = one(**{point: disabled(name)})
    assert (profile.policies_filter, profile.policies_score) == acting


def test_arguments_reach_their_plugin() -> None:
    entry = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["x.io/y"]}}
    [profile] = configured({"pluginConfig": [entry]}).values()
    fit = profile.filters[FILTERS.index("NodeResourcesFit")]
    assert fit._ignored == {"x.io/y"}  # type: ignore[attr-defined]
    assert profile.scores[2][0] is fit


def refusal(*profiles: Any, **fields: Any) -> str:
    with pytest.raises(UsageError) as caught:
        configured(*profiles, **fields)
    return str(caught.value)


SUPPORTED = "is not supported yet; supported here:"


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        ({"percentageOfNodesToScore": 5}, f"profiles[0].percentageOfNodesToScore {SUPPORTED} pluginConfig, plugins"),
        ({"plugins": {"bind": {}}}, f"profiles[0].plugins.bind {SUPPORTED} filter, multiPoint, score"),
        ({"plugins": {"filter": {"enabled": []}}}, f"profiles[0].plugins.filter.enabled {SUPPORTED} disabled"),
        (
            {"plugins": {"filter": {"disabled": [{"name": "a", "x": 1}]}}},
            f"profiles[0].plugins.filter.disabled[0].x {SUPPORTED}",
        ),
        ({"plugins": []}, "profiles[0].plugins: expected an object"),
        ({"plugins": {"filter": "x"}}, "profiles[0].plugins.filter: expected an object"),
        ({"plugins": {"filter": {"disabled": {}}}}, "profiles[0].plugins.filter.disabled: expected a list"),
        ({"plugins": {"filter": {"disabled": ["x"]}}}, "profiles[0].plugins.filter.disabled[0]: expected an object"),
        ({"plugins": {"filter": {"disabled": [{}]}}}, "profiles[0].plugins.filter.disabled[0].name: expected a text"),
        ({"plugins": {"score": {"disabled": [{"name": 5}]}}}, "profiles[0].plugins.score.disabled[0].name: expected"),
        ({"pluginConfig": [{"args": {}}]}, "profiles[0].pluginConfig[0].name: expected a text"),
        ({"pluginConfig": [{"name": "A", "args": []}]}, "profiles[0].pluginConfig.A.args: expected an object"),
        ({"pluginConfig": [{"name": "A"}, {"name": "A"}]}, "profiles[0].pluginConfig: repeated config for plugin A"),
        ({"schedulerName": 5}, "profiles[0].schedulerName: expected a text"),
        ("x", "profiles[0]: expected an object"),
    ],
)
def test_what_is_not_supported_or_malformed_is_refused_by_its_field(profile: Any, field: str) -> None:
    assert refusal(profile).startswith(f"config: {field}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"extenders": []}, f"config: extenders {SUPPORTED} apiVersion, kind, percentageOfNodesToScore, profiles"),
        ({"leaderElection": {}}, f"config: leaderElection {SUPPORTED}"),
        ({"profiles": {}}, "config: profiles: expected a list"),
        ({"kind": "Other"}, "config: expected an object of kind KubeSchedulerConfiguration"),
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            "config: apiVersion: expected kubescheduler.config.k8s",
        ),
    ],
)
def test_the_configuration_as_a_whole_is_checked(fields: dict[str, Any], message: str) -> None:
    assert refusal(**fields).startswith(message)


@pytest.mark.parametrize("text", ["[]", "5", "", "kind: [", "a: b: c"])
def test_a_text_that_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^config: "):
        configured_profiles(text)


def test_two_profiles_of_one_name_are_refused() -> None:
    message = 'config: profiles[1].schedulerName: duplicate profile "a"'
    assert refusal({"schedulerName": "a"}, {"schedulerName": "a"}) == message


def test_arguments_that_a_plugin_refuses_name_it() -> None:
    entry = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "NoneAllocated"}}}
    assert refusal({"pluginConfig": [entry]}).startswith("NodeResourcesFit: scoringStrategy.type")
