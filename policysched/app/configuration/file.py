"""The KubeSchedulerConfiguration as far as decisions depend on it: its profiles.

Knows the file's shape and what makes it valid as a whole, nothing of plugins' arguments. Every field of it that would
have no effect is refused by name, so that nobody believes it works.

Source: kube-scheduler/config/v1/types.go, pkg/scheduler/apis/config/validation/validation.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from policysched.app.configuration.old_versions import as_v1
from policysched.app.configuration.plugin_sets import Plugins, PluginSet
from policysched.app.files.objects import read as read_files
from policysched.errors import UsageError
from policysched.model.decode import ObjectError, decode
from policysched.plugins.arguments import API_VERSION, Given, Int32, without_null_fields

KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER: Final = "default-scheduler"
QUEUE_SORT: Final = "PrioritySort"
UNSUPPORTED: Final = (
    "clientConnection",
    "delayCacheUntilActive",
    "enableContentionProfiling",
    "enableProfiling",
    "extenders",
    "leaderElection",
    "parallelism",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
)
REMOVED: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
"""Plugins of long ago that `pluginConfig` must not name."""


class PluginConfig(Given, frozen=True):
    """The arguments of one plugin."""

    name: str = ""
    args: Any = None


class ProfileConfig(Given, frozen=True):
    """One profile, as it is written."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by plugin."""
        return {one.name: one.args for one in self.plugin_config}


class Configuration(Given, frozen=True):
    """The configuration, as it is written."""

    api_version: str = ""
    kind: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    profiles: tuple[ProfileConfig, ...] = ()


def read_profiles(config: str | Mapping[str, Any]) -> dict[str, ProfileConfig]:
    """Read a configuration, given as text or as a dict; give its profiles by scheduler name.

    Raises:
        UsageError: it is no such configuration, has a field that is not supported, or is not valid.
    """
    read = _decoded(_object(config))
    _check_percentage(read.percentage_of_nodes_to_score, "percentageOfNodesToScore")
    profiles = read.profiles or (ProfileConfig(),)
    named: dict[str, ProfileConfig] = {}
    for index, one in enumerate(profiles):
        place = f"profiles[{index}]"
        _check_profile(one, place)
        name = _name(one, place, alone=len(profiles) == 1)
        if name in named:
            raise ConfigurationError(f"{place}.schedulerName", f'duplicate profile "{name}"')
        named[name] = one
    _check_queue_sort(profiles)
    return named


class ConfigurationError(UsageError):
    """A configuration that cannot be used.

    Attributes:
        place: The field, empty for the whole.
        why: What is wrong, with the field.
    """

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, f"{place}: {why}" if place else why
        super().__init__(f"config: {self.why}")


def _object(config: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(config, str):
        documents = read_files(config, "config")
        if len(documents) != 1:
            raise ConfigurationError("", f"expected one document, got {len(documents)}")
        config = documents[0].object
    if not isinstance(config, Mapping) or config.get("kind") != KIND:
        raise ConfigurationError("", f"expected an object of kind {KIND}")
    config = as_v1(config)
    if config.get("apiVersion") != API_VERSION:
        raise ConfigurationError("apiVersion", f"expected {API_VERSION}")
    return config


def _decoded(config: Mapping[str, Any]) -> Configuration:
    for name in UNSUPPORTED:
        if name in config:
            why = "is not supported yet; supported here are percentageOfNodesToScore and profiles"
            raise ConfigurationError(name, why)
    plain, strange = without_null_fields(config, Configuration, kept="args")
    if strange:
        raise ConfigurationError(strange, "there is no such field")
    try:
        return decode(Configuration, KIND, plain)
    except ObjectError as error:
        raise ConfigurationError(error.field, error.reason) from error


def _name(profile: ProfileConfig, place: str, *, alone: bool) -> str:
    name = profile.scheduler_name
    if name is None and alone:
        return DEFAULT_SCHEDULER
    if not name:
        raise ConfigurationError(f"{place}.schedulerName", "a name is needed")
    return name


def _check_profile(profile: ProfileConfig, place: str) -> None:
    _check_percentage(profile.percentage_of_nodes_to_score, f"{place}.percentageOfNodesToScore")
    seen: set[str] = set()
    for one in profile.plugin_config:
        if one.name in seen:
            raise ConfigurationError(f"{place}.pluginConfig", f"repeated config for plugin {one.name}")
        if one.name in REMOVED:
            raise ConfigurationError(f"{place}.pluginConfig", f"the plugin {one.name} is no longer there")
        seen.add(one.name)


def _check_percentage(percentage: int | None, place: str) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        raise ConfigurationError(place, f"{percentage} is not between 0 and 100")


def _check_queue_sort(profiles: Sequence[ProfileConfig]) -> None:
    """Refuse profiles that would sort the one queue in different ways.

    Where the first profile names no plugin for it, arguments without a plugin's name count as those of the sorter.
    """
    first = profiles[0].plugins.queue_sort
    declared = first.enabled[0].name if first.enabled else ""
    arguments = {QUEUE_SORT: profiles[0].arguments.get(QUEUE_SORT)}
    arguments[declared] = profiles[0].arguments.get(declared) if declared else None
    for index, one in enumerate(profiles[1:], 1):
        own = one.plugins.queue_sort
        same = own.enabled == first.enabled and _names(own) == _names(first)
        if not same or any(one.arguments.get(name) != args for name, args in arguments.items()):
            raise ConfigurationError(
                f"profiles[{index}]", "queueSort and its arguments have to be the same in all profiles"
            )


def _names(plugins: PluginSet) -> list[str]:
    return [one.name for one in plugins.disabled]
