"""The profiles of a process: the default plugins, less what a configuration takes away.

Of KubeSchedulerConfiguration this reads the profiles' names, the plugins that `multiPoint`, `filter` and `score`
disable, and the plugins' arguments; every other field is refused by name, so that nobody believes it works.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from policysched.errors import UsageError
from policysched.framework.profile import Profile
from policysched.plugins import Enabled, default_plugins, plugin_named
from policysched.plugins.priority_sort import PrioritySort

DEFAULT_NAME = "policysched"
API_VERSION = "kubescheduler.config.k8s.io/v1"
POLICIES = "SchedulingPolicy"
"""The name that stands for all policies where plugins are disabled."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a profile changes about the default plugins."""

    off: frozenset[str] = frozenset()
    """Plugins that are disabled everywhere."""
    no_filter: frozenset[str] = frozenset()
    no_score: frozenset[str] = frozenset()
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Arguments by plugin."""


def default_profile(scheduler_name: str = DEFAULT_NAME, choice: Choice = Choice()) -> Profile:
    """Make the profile of the default plugins, in kube-scheduler's order."""
    enabled = [
        Enabled(plugin_named(one.plugin.name, choice.args.get(one.plugin.name)), one.weight)
        for one in default_plugins()
        if not _is_off(one.plugin.name, choice.off)
    ]
    plugins: list[Any] = [one.plugin for one in enabled]
    return Profile(
        scheduler_name=scheduler_name,
        queue_sort=PrioritySort(),
        pre_enqueue=tuple(plugin for plugin in plugins if hasattr(plugin, "pre_enqueue")),
        filters=tuple(plugin for plugin in plugins if _acts(plugin, "filter", choice.no_filter)),
        scores=tuple(
            (plugin, one.weight or 1)
            for one, plugin in zip(enabled, plugins, strict=True)
            if _acts(plugin, "score", choice.no_score)
        ),
        post_filters=tuple(plugin for plugin in plugins if hasattr(plugin, "post_filter")),
        policies_filter=not _is_off(POLICIES, choice.off | choice.no_filter),
        policies_score=not _is_off(POLICIES, choice.off | choice.no_score),
    )


def _acts(plugin: Any, point: str, disabled: frozenset[str]) -> bool:
    return hasattr(plugin, point) and not _is_off(plugin.name, disabled)


def _is_off(name: str, disabled: frozenset[str]) -> bool:
    return name in disabled or "*" in disabled


def configured_profiles(config: str | Mapping[str, Any] | None) -> dict[str, Profile]:
    """Make the profiles of a KubeSchedulerConfiguration, given as text or as a dict.

    Raises:
        UsageError: it is no such configuration, or has a field that is not supported.
    """
    if config is None:
        return {DEFAULT_NAME: default_profile()}
    raw = _load(config) if isinstance(config, str) else config
    if not isinstance(raw, Mapping) or raw.get("kind") != "KubeSchedulerConfiguration":
        raise UsageError("config: expected an object of kind KubeSchedulerConfiguration")
    if raw.get("apiVersion") != API_VERSION:
        raise UsageError(f"config: apiVersion: expected {API_VERSION}")
    _fields(raw, "", {"kind", "apiVersion", "profiles", "percentageOfNodesToScore"})
    profiles: dict[str, Profile] = {}
    for index, profile in enumerate(_items(raw, "profiles", "") or [{}]):
        made = _configured(profile, f"profiles[{index}]")
        if made.scheduler_name in profiles:
            raise UsageError(f'config: profiles[{index}].schedulerName: duplicate profile "{made.scheduler_name}"')
        profiles[made.scheduler_name] = made
    return profiles


def _configured(raw: Any, place: str) -> Profile:
    profile = _fields(raw, place, {"schedulerName", "plugins", "pluginConfig"})
    plugins = _fields(profile.get("plugins"), f"{place}.plugins", {"multiPoint", "filter", "score"})
    choice = Choice(
        off=_disabled(plugins, "multiPoint", place),
        no_filter=_disabled(plugins, "filter", place),
        no_score=_disabled(plugins, "score", place),
        args=_arguments(profile, place),
    )
    return default_profile(_text(profile, "schedulerName", place) or "default-scheduler", choice)


def _disabled(plugins: Mapping[str, Any], point: str, place: str) -> frozenset[str]:
    where = f"{place}.plugins.{point}"
    points = _fields(plugins.get(point), where, {"disabled"})
    return frozenset(name for name, _ in _named(points, "disabled", where, {"name", "weight"}))


def _arguments(profile: Mapping[str, Any], place: str) -> dict[str, Mapping[str, Any]]:
    arguments: dict[str, Mapping[str, Any]] = {}
    for name, entry in _named(profile, "pluginConfig", place, {"name", "args"}):
        if name in arguments:
            raise UsageError(f"config: {place}.pluginConfig: repeated config for plugin {name}")
        arguments[name] = _object(entry.get("args"), f"{place}.pluginConfig.{name}.args")
    return arguments


def _named(raw: Mapping[str, Any], field: str, place: str, known: set[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the entries of a list that go by their names."""
    for index, item in enumerate(_items(raw, field, place)):
        where = f"{place}.{field}[{index}]"
        entry = _fields(item, where, known)
        name = _text(entry, "name", where)
        if not name:
            raise UsageError(f"config: {where}.name: expected a text")
        yield name, entry


def _load(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"config: not valid YAML: {error}") from error


def _fields(raw: Any, place: str, known: set[str]) -> Mapping[str, Any]:
    """Give an object that has no other fields than the known ones."""
    given = _object(raw, place)
    for name in given:
        if name not in known:
            field, supported = f"{place}.{name}".lstrip("."), ", ".join(sorted(known))
            raise UsageError(f"config: {field} is not supported yet; supported here: {supported}")
    return given


def _object(raw: Any, place: str) -> Mapping[str, Any]:
    """Give an object, empty where it is absent."""
    if not isinstance(raw, Mapping | None):
        raise UsageError(f"config: {place}: expected an object")
    return raw or {}


def _items(raw: Mapping[str, Any], field: str, place: str) -> list[Any]:
    value = raw.get(field)
    if not isinstance(value, list | None):
        raise UsageError(f"config: {f'{place}.{field}'.lstrip('.')}: expected a list")
    return value or []


def _text(raw: Mapping[str, Any], field: str, place: str) -> str:
    value = raw.get(field)
    if not isinstance(value, str | None):
        raise UsageError(f"config: {place}.{field}: expected a text")
    return value or ""
