"""Reading a KubeSchedulerConfiguration: what is accepted, and how everything else is refused."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.app.configuration.model import ListedPlugin, PluginSet
from policysched.app.configuration.reading import load_configuration
from policysched.errors import UsageError

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
TEXT_HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(*profiles: Any, **fields: Any) -> Any:
    """Read profiles, by their names."""
    return {
        one.scheduler_name: one
        for one in load_configuration({**HEAD, "profiles": list(profiles), **fields}).completed.profiles
    }


def refusal(*profiles: Any, **fields: Any) -> str:
    with pytest.raises(UsageError) as caught:
        read(*profiles, **fields)
    return str(caught.value)


@pytest.mark.parametrize(
    ("profiles", "names"),
    [
        ([], ["default-scheduler"]),
        ([{}], ["default-scheduler"]),
        ([None], ["default-scheduler"]),
        ([{"schedulerName": None}], ["default-scheduler"]),
        ([{"schedulerName": "a"}, {"schedulerName": "b"}], ["a", "b"]),
    ],
)
def test_profiles_go_by_their_names(profiles: list[Any], names: list[str]) -> None:
    assert list(read(*profiles)) == names


@pytest.mark.parametrize(
    "text",
    [
        "profiles: []",
        "profiles: null",
        "percentageOfNodesToScore: 50",
        "profiles: [{plugins: null, pluginConfig: null, percentageOfNodesToScore: 100}]",
        "profiles:\n- pluginConfig:\n  - name: Other\n    args: {anything: [1, 22:00]}\n",
    ],
)
def test_a_configuration_may_be_a_text(text: str) -> None:
    assert [one.scheduler_name for one in load_configuration(TEXT_HEAD + text).completed.profiles] == [
        "default-scheduler"
    ]


def test_a_json_text_is_a_text_too() -> None:
    text = '{"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1"}'
    assert [one.scheduler_name for one in load_configuration(text).completed.profiles] == ["default-scheduler"]


def test_plugins_and_arguments_are_read_as_they_are_written() -> None:
    plugins = {"score": {"enabled": [{"name": "A", "weight": 5}, {"name": "B"}], "disabled": [{"name": "*"}]}}
    entries = [{"name": "A", "args": {"x": 1}}, {"name": "B"}]
    [profile] = read({"plugins": {**plugins, "bind": None}, "pluginConfig": entries}).values()
    enabled = (ListedPlugin(name="A", weight=5), ListedPlugin(name="B"))
    assert profile.plugins.score == PluginSet(enabled=enabled, disabled=(ListedPlugin(name="*"),))
    assert [profile.arguments[name] for name in ("A", "B")] == [{"x": 1}, None]


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"percentageOfNodesToScore": 101}, "profiles[0].percentageOfNodesToScore: 101 is not between 0 and 100"),
        (
            {"plugins": {"postPone": {}}},
            "profiles[0].plugins.postPone: unknown field",
        ),
        ({"plugins": {"filter": {"enable": []}}}, "profiles[0].plugins.filter.enable: unknown field"),
        (
            {"plugins": {"filter": {"disabled": [{"name": "a", "x": 1}]}}},
            "profiles[0].plugins.filter.disabled[0].x: unknown field",
        ),
        ({"Plugins": {}}, "profiles[0].Plugins: unknown field"),
        ({"plugins": []}, "profiles[0].plugins: expected object, got array"),
        ({"plugins": {"filter": "x"}}, "profiles[0].plugins.filter: expected object, got str"),
        ({"plugins": {"filter": {"disabled": {}}}}, "profiles[0].plugins.filter.disabled: expected array, got object"),
        ({"plugins": {"filter": {"disabled": ["x"]}}}, "profiles[0].plugins.filter.disabled[0]: expected object"),
        ({"plugins": {"score": {"disabled": [{"name": 5}]}}}, "profiles[0].plugins.score.disabled[0].name: expected"),
        ({"plugins": {"score": {"enabled": [{"weight": "5"}]}}}, "profiles[0].plugins.score.enabled[0].weight: expect"),
        ({"plugins": {"score": {"enabled": [{"weight": 2**31}]}}}, "profiles[0].plugins.score.enabled[0].weight: exp"),
        ({"pluginConfig": [{"name": 5}]}, "profiles[0].pluginConfig[0].name: expected text, got int: quote it"),
        ({"pluginConfig": [{"name": "A"}, {"name": "A"}]}, "profiles[0].pluginConfig[1]: repeated config for plugin A"),
        (
            {"pluginConfig": [{"name": "EBSLimits"}]},
            "profiles[0].pluginConfig[0]: plugin EBSLimits was removed from Kubernetes",
        ),
        ({"schedulerName": 5}, "profiles[0].schedulerName: expected text, got int: quote it"),
        ({"schedulerName": ""}, "profiles[0].schedulerName: name is empty"),
        ("x", "profiles[0]: expected object, got str"),
    ],
)
def test_a_mistake_in_a_profile_is_refused_by_its_field(profile: Any, message: str) -> None:
    assert refusal(profile).startswith(f"config: {message}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parallelism": 0}, "parallelism: 0 is not greater than 0"),
        ({"podInitialBackoffSeconds": 11}, "podMaxBackoffSeconds: 10 is less than podInitialBackoffSeconds 11"),
        ({"leaderElect": True}, "leaderElect: unknown field"),
        ({"profiles": {}}, "profiles: expected array, got object"),
        ({"percentageOfNodesToScore": -1}, "percentageOfNodesToScore: -1 is not between 0 and 100"),
        ({"kind": "Other"}, "kind: expected an object of kind KubeSchedulerConfiguration"),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1alpha1"}, "apiVersion: expected kubescheduler.config.k8s.io/v1"),
    ],
)
def test_a_mistake_in_the_whole_is_refused_by_its_field(fields: dict[str, Any], message: str) -> None:
    assert refusal(**fields).startswith(f"config: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "config:1:1: "),
        ("5\n", "config:1:1: "),
        ("\n", "config: "),
        ("kind: [", "config:2:1: not valid YAML"),
        ("a: b: c", "config:1:"),
        (f"{TEXT_HEAD}kind: Other", 'config:3:1: duplicate key "kind"'),
        (f"{TEXT_HEAD}---\n{TEXT_HEAD}", "config: expected one document, got 2"),
    ],
)
def test_a_text_that_is_no_configuration_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_configuration(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"schedulerName": "a"}, 'profiles[1].schedulerName: duplicate profile "a"'),
        ({}, "profiles[1].schedulerName: name is empty"),
        (
            {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}},
            "profiles[1].plugins.queueSort: must be the same in all profiles",
        ),
        (
            {"schedulerName": "b", "plugins": {"queueSort": {"disabled": [{"name": "Other"}]}}},
            "profiles[1].plugins.queueSort: must be the same",
        ),
        (
            {"schedulerName": "b", "pluginConfig": [{"args": {"a": 1}}]},
            "profiles[1].pluginConfig[0].args: arguments of the queueSort plugin must be the same",
        ),
    ],
)
def test_profiles_have_to_agree(second: dict[str, Any], message: str) -> None:
    assert refusal({"schedulerName": "a"}, second).startswith(f"config: {message}")


def test_profiles_that_sort_the_queue_alike_are_accepted() -> None:
    sorting = {
        "plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}},
        "pluginConfig": [{"name": "PrioritySort", "args": {"a": 1}}],
    }
    assert list(read({"schedulerName": "a", **sorting}, {"schedulerName": "b", **sorting})) == ["a", "b"]


@pytest.mark.parametrize(("given", "taken"), [(0, 50), (1e-320, 50), (-1e-320, 50), (0.5, 0.5), (-1, -1)])
def test_number_of_requests_a_second_is_never_none(given: float, taken: float) -> None:
    assert load_configuration({**HEAD, "clientConnection": {"qps": given}}).completed.client_connection.qps == taken
