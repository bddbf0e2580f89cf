"""The profiles of a process: the default plugins, less what a configuration takes away.

Of KubeSchedulerConfiguration this reads the profiles' names, the plugins that `multiPoint`, `filter` and `score`
disable, and the plugins' arguments; every other field is refused by name, so that nobody believes it works.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    if raw.get("kind") != "KubeSchedulerConfiguration" or raw.get("apiVersion") != API_VERSION:
        raise UsageError(f"config: expected kind KubeSchedulerConfiguration of {API_VERSION}")
    _only(raw, {"kind", "apiVersion", "profiles", "percentageOfNodesToScore"}, "config")
    profiles: dict[str, Profile] = {}
    for index, profile in enumerate(raw.get("profiles") or [{}]):
        made = _configured(profile, f"profiles[{index}]")
        if made.scheduler_name in profiles:
            raise UsageError(f'config: profiles[{index}].schedulerName: duplicate profile "{made.scheduler_name}"')
        profiles[made.scheduler_name] = made
    return profiles


def _configured(raw: Mapping[str, Any], place: str) -> Profile:
    _only(raw, {"schedulerName", "plugins", "pluginConfig"}, place)
    plugins = raw.get("plugins") or {}
    _only(plugins, {"multiPoint", "filter", "score"}, f"{place}.plugins")
    choice = Choice(
        off=_disabled(plugins, "multiPoint", place),
        no_filter=_disabled(plugins, "filter", place),
        no_score=_disabled(plugins, "score", place),
        args={str(entry["name"]): entry.get("args") or {} for entry in raw.get("pluginConfig") or ()},
    )
    return default_profile(raw.get("schedulerName") or "default-scheduler", choice)


def _disabled(plugins: Mapping[str, Any], point: str, place: str) -> frozenset[str]:
    points = plugins.get(point) or {}
    _only(points, {"disabled"}, f"{place}.plugins.{point}")
    return frozenset(str(entry["name"]) for entry in points.get("disabled") or ())


def _load(text: str) -> Mapping[str, Any]:
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"config: not valid YAML: {error}") from error
    if not isinstance(loaded, dict):
        raise UsageError("config: expected an object")
    return loaded


def _only(raw: Mapping[str, Any], known: set[str], field: str) -> None:
    for name in raw:
        if name not in known:
            raise UsageError(f"config: {field}.{name} is not supported yet; supported here: {', '.join(sorted(known))}")
