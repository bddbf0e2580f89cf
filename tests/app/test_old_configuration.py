"""Configuration files of older versions."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.app.configuration.file import OLD_VERSIONS, REPLACED, as_v1
from policysched.app.configuration.profiles import configured_profiles
from policysched.errors import UsageError

V1 = "kubescheduler.config.k8s.io/v1"


def config(version: str, **profile: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


@pytest.mark.parametrize("version", OLD_VERSIONS)
@pytest.mark.parametrize("gone", REPLACED)
def test_plugins_that_are_gone_are_left_out_with_a_warning(
    version: str, gone: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = config(
        version,
        plugins={
            "filter": {"enabled": [{"name": gone}], "disabled": [{"name": "NodePorts"}]},
            "score": {"disabled": [{"name": gone}]},
        },
        pluginConfig=[{"name": gone, "args": {}}],
    )
    [profile] = configured_profiles(old).values()
    names = [plugin.name for plugin in profile.filters]
    assert gone not in names
    assert "NodePorts" not in names
    assert REPLACED[gone] in names
    assert caplog.messages == [f"plugin {gone} is no longer there and is left out: {REPLACED[gone]} does its work"]


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_arguments_of_an_older_version_are_read(version: str) -> None:
    arguments = {"apiVersion": version, "kind": "InterPodAffinityArgs", "hardPodAffinityWeight": 5}
    made = configured_profiles(config(version, pluginConfig=[{"name": "InterPodAffinity", "args": arguments}]))
    assert set(made) == {"default-scheduler"}


@pytest.mark.parametrize("name", ["EBSLimits", "SelectorSpread"])
def test_a_file_of_v1_must_not_name_them(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        configured_profiles(config(V1, plugins={"filter": {"enabled": [{"name": name}]}}))


def test_other_versions_are_refused() -> None:
    with pytest.raises(UsageError, match="expected kubescheduler"):
        configured_profiles(config("kubescheduler.config.k8s.io/v1alpha1"))


def test_a_configuration_of_v1_is_given_back() -> None:
    stated = config(V1)
    assert as_v1(stated) is stated


def test_the_old_one_is_not_changed() -> None:
    stated = config(OLD_VERSIONS[0], pluginConfig=[{"name": "EBSLimits"}])
    assert as_v1(stated)["profiles"] == [{"pluginConfig": []}]
    assert stated == config(OLD_VERSIONS[0], pluginConfig=[{"name": "EBSLimits"}])
