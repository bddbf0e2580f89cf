"""Extension points and fields of a configuration that only some releases of Kubernetes have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policysched.app.configuration.model import ListedPlugin, Plugins, PluginSet, ProfileConfig, completed_profile
from policysched.app.configuration.plugin_lists import known_points, list_faults, plugin_lists
from policysched.app.configuration.printing import to_dict
from policysched.app.configuration.profiles import configured_profiles
from policysched.app.configuration.reading import ConfigurationError, load_configuration
from policysched.model.release import RELEASES

MINORS = list(RELEASES)
SPARED = {"podGroupPostFilter": {"disabled": [{"name": "*"}]}}


def config(plugins: Any = None, profile: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins or {}, **(profile or {})}],
        **fields,
    }


def enabled(*names: str) -> PluginSet:
    return PluginSet(enabled=tuple(ListedPlugin(name=name) for name in names))


def refusals(minor: str, given: dict[str, Any]) -> list[str]:
    try:
        read = load_configuration(given, release=RELEASES[minor])
        configured_profiles(read)
    except ConfigurationError as error:
        return [str(one).removeprefix("config: ") for one in error.faults]
    return []


def lists(minor: str, plugins: Any = None) -> dict[str, tuple[str, ...]]:
    release = RELEASES[minor]
    (profile,) = load_configuration(config(plugins), release=release).completed.profiles
    return dict(plugin_lists(profile.plugins, known_points(release), release).points)


@pytest.mark.parametrize(("field", "first"), [("podGroupPostFilter", "1.37"), ("placementFeasible", "1.38")])
def test_a_later_point_is_an_unknown_field_that_names_the_first_minor_with_it(field: str, first: str) -> None:
    for minor in MINORS:
        found = refusals(minor, config({field: {}}))
        later = f"profiles[0].plugins.{field}: unknown field; Kubernetes {first} has it"
        assert found == ([later] if minor < first else [])


@pytest.mark.parametrize("value", [{}, None, 5])
def test_a_later_point_is_refused_whatever_its_value(value: Any) -> None:
    assert any("Kubernetes 1.37 has it" in one for one in refusals("1.36", config({"podGroupPostFilter": value})))


def test_the_share_of_placements_is_an_unknown_field_or_needs_a_gate() -> None:
    given = config(profile={"percentageOfPlacementsToScore": 5}, percentageOfPlacementsToScore=0)
    places = ["percentageOfPlacementsToScore", "profiles[0].percentageOfPlacementsToScore"]
    for minor in ("1.36", "1.37"):
        assert sorted(refusals(minor, given)) == [f"{one}: unknown field; Kubernetes 1.38 has it" for one in places]
    assert sorted(refusals("1.38", given)) == [
        f"{one}: requires the feature gate TopologyAwareWorkloadScheduling" for one in places
    ]


def test_the_plugins_after_an_unplaceable_group_are_the_default_ones_from_1_37_on() -> None:
    assert "podGroupPostFilter" not in lists("1.36")
    for minor in ("1.37", "1.38"):
        assert lists(minor)["podGroupPostFilter"] == ("DynamicResources", "DefaultPreemption")
        assert lists(minor, SPARED)["podGroupPostFilter"] == ()
        assert lists(minor, SPARED)["postFilter"] == ("DynamicResources", "DefaultPreemption")


def test_plugins_after_an_unplaceable_group_are_validated_like_others() -> None:
    for name, why in (("NodeName", "NodeName does not implement podGroupPostFilter"), ("No", 'unknown plugin "No"')):
        (found,) = refusals("1.37", config({"podGroupPostFilter": {"enabled": [{"name": name}]}}))
        assert found.startswith(f"profiles[0].plugins.podGroupPostFilter.enabled[0]: {why}")


def test_a_plugin_of_groups_alone_needs_arguments_in_1_37() -> None:
    needed = [{"name": name} for name in ("PrioritySort", "DefaultBinder")]
    given = config(
        {
            "multiPoint": {"disabled": [{"name": "*"}], "enabled": needed},
            "podGroupPostFilter": {"enabled": [{"name": "DefaultPreemption"}]},
        }
    )
    assert refusals("1.37", given) == ["profiles[0].plugins: DefaultPreemption needs an entry in pluginConfig"]
    assert refusals("1.38", given) == []
    given["profiles"][0]["pluginConfig"] = [{"name": "DefaultPreemption"}]
    assert refusals("1.37", given) == []


@pytest.mark.parametrize("minor", MINORS)
def test_the_printed_configuration_has_the_points_of_its_release_and_is_read_again(minor: str) -> None:
    printed = to_dict(load_configuration(config(), release=RELEASES[minor]).completed)
    plugins = printed["profiles"][0]["plugins"]
    shown = {name for name in ("podGroupPostFilter", "placementFeasible") if name in plugins}
    assert shown == {"1.36": set(), "1.37": {"podGroupPostFilter"}}.get(
        minor, {"podGroupPostFilter", "placementFeasible"}
    )
    disabled = {"disabled": [{"name": "DefaultPreemption", "weight": 0}]}
    assert plugins["reserve"] == (disabled if minor == "1.38" else {})
    assert to_dict(load_configuration(printed, release=RELEASES[minor]).completed)["profiles"][0]["schedulerName"]


def test_default_preemption_is_no_reserve_plugin_by_default() -> None:
    for minor in MINORS:
        assert lists(minor)["reserve"] == ("VolumeBinding", "DynamicResources")
    everywhere = {"reserve": {"enabled": [{"name": "DefaultPreemption"}]}}
    assert refusals("1.37", config(everywhere))
    assert lists("1.38", everywhere)["reserve"] == ("VolumeBinding", "DynamicResources", "DefaultPreemption")


@pytest.mark.parametrize("minor", ["1.37", "1.38"])
def test_gate_for_pod_groups_enables_their_plugins(minor: str) -> None:
    gated = replace(RELEASES[minor], generic_workload=True)
    before, after = (
        to_dict(load_configuration(config(), release=one).completed)["profiles"][0]["plugins"]
        for one in (RELEASES[minor], gated)
    )
    *others, policies = before["multiPoint"]["enabled"]
    assert after["multiPoint"]["enabled"] == [*others, {"name": "GangScheduling", "weight": 0}, policies]
    assert after["reserve"] == {}


def test_deferred_pod_scheduling_can_be_enabled_from_1_37_on_and_changes_nothing() -> None:
    given = config({"multiPoint": {"enabled": [{"name": "DeferredPodScheduling"}]}})
    assert "unknown plugin" in refusals("1.36", given)[0]
    for minor in ("1.37", "1.38"):
        release = RELEASES[minor]
        (profile,) = configured_profiles(given, release=release).values()
        (default,) = configured_profiles(config(), release=release).values()
        assert [one.name for one in profile.filters] == [one.name for one in default.filters]
        assert [one.name for one in profile.permits] == [one.name for one in default.permits]


def test_several_placement_generators_and_removed_plugins_there_in_1_38() -> None:
    gone = config({"placementScore": {"enabled": [{"name": "EBSLimits"}]}})
    (found,) = refusals("1.38", gone)
    assert found.endswith("plugin EBSLimits was removed from Kubernetes")
    assert "unknown plugin" in refusals("1.37", gone)[0]
    two = completed_profile(ProfileConfig(plugins=Plugins(placement_generate=enabled("One", "Two")))).plugins
    acts_at = {**known_points(), **dict.fromkeys(("One", "Two"), frozenset({"placementGenerate"}))}
    faults = {minor: list(list_faults(two, acts_at, RELEASES[minor])) for minor in MINORS}
    assert faults == {
        "1.36": [("plugins.placementGenerate", "at most one placementGenerate plugin is allowed")],
        "1.37": [("plugins.placementGenerate", "at most one placementGenerate plugin is allowed")],
        "1.38": [],
    }


def test_gang_scheduling_acts_at_the_points_of_its_release() -> None:
    points = {minor: known_points(RELEASES[minor])["GangScheduling"] for minor in MINORS}
    assert points == {
        "1.36": {"preEnqueue", "permit"},
        "1.37": {"preEnqueue", "permit"},
        "1.38": {"preEnqueue", "placementFeasible"},
    }
