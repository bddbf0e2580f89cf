"""Configuration files of older versions."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.app.configuration.profiles import configured_profiles
from policysched.app.configuration.reading import OLD_VERSIONS, REPLACED, load_configuration
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
    assert caplog.messages == [
        f"apiVersion {version} is read as {V1} with its defaults",
        f"plugin {gone} was removed from Kubernetes and is ignored; {REPLACED[gone]} replaces it",
    ]


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


def test_the_old_one_is_not_changed() -> None:
    stated = config(OLD_VERSIONS[0], pluginConfig=[{"name": "EBSLimits"}])
    assert "EBSLimits" not in load_configuration(stated).completed.profiles[0].arguments
    assert stated == config(OLD_VERSIONS[0], pluginConfig=[{"name": "EBSLimits"}])


def test_an_old_file_has_the_defaults_of_v1() -> None:
    old, new = (load_configuration(config(version)).completed for version in (OLD_VERSIONS[1], V1))
    assert old == new


def test_fields_that_are_gone_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    stated = config(OLD_VERSIONS[2]) | {"healthzBindAddress": "0.0.0.0:10251", "metricsBindAddress": None}
    assert load_configuration(stated).completed == load_configuration(config(V1)).completed
    assert caplog.messages[1:] == ["healthzBindAddress was removed from Kubernetes and is ignored"]


TEXT = """apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    filter:
      enabled:
      - name: EBSLimits
      - name: NodePorts
      - name: CinderLimits
      - name: 5
  pluginConfig:
  - name: EBSLimits
  - {name: VolumeBinding, args: {bindTimeoutSeconds: -1}}
"""


def test_places_are_those_of_the_file_whatever_is_left_out() -> None:
    with pytest.raises(UsageError) as refusal:
        load_configuration(TEXT)
    assert str(refusal.value).startswith("config:10:15: profiles[0].plugins.filter.enabled[3].name: expected text")
    with pytest.raises(UsageError) as refusal:
        load_configuration(TEXT.replace("name: 5", "name: NodeName"))
    assert str(refusal.value) == (
        "config:13:54: profiles[0].pluginConfig[1].args.bindTimeoutSeconds: -1 is less than 0"
    )
