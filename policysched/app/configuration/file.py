"""Parse a KubeSchedulerConfiguration: its profiles, and which plugins act at which extension point.

Knows the file's shape, names, points and weights, nothing of plugins and their arguments. Every field of it that would
have no effect is refused by name, so that nobody believes it works. What a profile enables and disables is applied to
the default plugins by kube-scheduler's rules, with one name more: `SchedulingPolicy` stands for all policies, last of
the default plugins, at filter and score. Files of older versions (v1beta1 to v1beta3) are read as those of v1, without
the plugins that are gone since: the limit plugins of single clouds, whose work NodeVolumeLimits does, and
SelectorSpread, whose work PodTopologySpread does. In a v1 file such names are refused. All defaults are v1's.

Source: kube-scheduler/config/v1/types.go, pkg/scheduler/apis/config/validation/validation.go,
pkg/scheduler/apis/config/v1/default_plugins.go (mergePlugins), framework/runtime/framework.go (NewFramework,
expandMultiPointPlugins, getValidScoreWeights), v1.36.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from msgspec.structs import fields

from policysched.app.files.objects import read as read_files
from policysched.errors import UsageError
from policysched.model.decode import ObjectError, decode
from policysched.plugins.arguments import API_VERSION, Given, Int32, without_null_fields
from policysched.plugins.registry import ACTS_AT, DEFAULTS, MULTI_POINT, WEIGHTS

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


class ListedPlugin(Given, frozen=True):
    """A plugin in a list; a weight of 0 is none."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Given, frozen=True):
    """What is enabled and disabled at one point, or at all (`multiPoint`)."""

    enabled: tuple[ListedPlugin, ...] = ()
    disabled: tuple[ListedPlugin, ...] = ()

    def disables(self, name: str) -> bool:
        """Return whether a plugin is disabled by its name."""
        return any(one.name == name for one in self.disabled)


class Plugins(Given, frozen=True):
    """What a profile enables and disables, point by point."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def by_point(self) -> dict[str, PluginSet]:
        """Return the sets by the names of their points."""
        return {field.encode_name: getattr(self, field.name) for field in fields(self)}


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


POLICIES: Final = "SchedulingPolicy"
"""The name that stands for all policies."""
ALL: Final = "*"
PointsByPlugin: TypeAlias = Mapping[str, frozenset[str]]
POINTS_OF: Final[PointsByPlugin] = {**ACTS_AT, POLICIES: frozenset({"filter", "score"})}


@dataclass(frozen=True, slots=True)
class Lists:
    """The plugins of a profile."""

    points: Mapping[str, tuple[str, ...]]
    """By point, in the order in which they act."""
    weights: Mapping[str, int]
    """Of the plugins that score."""
    enabled: frozenset[str]
    """Everything that is enabled anywhere, even where no point is left for it."""


DEFAULT: Final = PluginSet(
    enabled=(*(ListedPlugin(name=name, weight=WEIGHTS.get(name, 0)) for name in DEFAULTS), ListedPlugin(name=POLICIES))
)


def plugin_lists(given: Plugins, acts_at: PointsByPlugin = POINTS_OF) -> Lists:
    """Apply what a profile gives to the default plugins.

    Args:
        given: What the profile enables and disables.
        acts_at: The points of each plugin that there is, by name.

    Raises:
        UsageError: the profile would be refused.
    """
    multi = merged(DEFAULT, given.multi_point)
    sets = {point: own for point, own in given.by_point().items() if point != MULTI_POINT}
    _check_names(multi, sets, acts_at)
    points = {point: tuple(_expanded(point, own, multi, acts_at)) for point, own in sets.items()}
    _check_counts(points)
    weights = _weights("score", (*given.score.enabled, *multi.enabled), acts_at)
    _weights("placementScore", (*given.placement_score.enabled, *multi.enabled), acts_at)
    return Lists(points, weights, enabled_anywhere(given))


def enabled_anywhere(given: Plugins) -> frozenset[str]:
    """Return the names that are enabled at any point, those of default plugins too."""
    sets = (own for point, own in given.by_point().items() if point != MULTI_POINT)
    return frozenset(one.name for own in (merged(DEFAULT, given.multi_point), *sets) for one in own.enabled)


def merged(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Put what is custom over what is enabled by default.

    A default plugin that is enabled once more keeps its place and takes the new weight; what is enabled and disabled
    goes to the end.
    """
    latest = {one.name: (position, one) for position, one in enumerate(custom.enabled)}
    kept, used = [], set()
    for one in () if custom.disables(ALL) else default.enabled:
        if custom.disables(one.name):
            continue
        position, own = latest.get(one.name, (-1, one))
        used.add(position)
        kept.append(own)
    rest = (one for position, one in enumerate(custom.enabled) if position not in used)
    return PluginSet(enabled=(*kept, *rest), disabled=custom.disabled)


def _expanded(point: str, own: PluginSet, multi: PluginSet, acts_at: PointsByPlugin) -> list[str]:
    """List the plugins at a point: first those of its own that multiPoint has too, then those of multiPoint alone."""
    specific = [one.name for one in own.enabled]
    spread: list[str] = []
    overridden: set[str] = set()
    for one in () if own.disables(ALL) else multi.enabled:
        if point not in acts_at[one.name] or own.disables(one.name):
            continue
        if one.name in specific:
            overridden.add(one.name)
            continue
        if one.name in spread:
            raise UsageError(f"plugins.{MULTI_POINT}.enabled: {one.name} is there twice")
        spread.append(one.name)
    first = [name for name in specific if name in overridden]
    return [*first, *spread, *(name for name in specific if name not in overridden)]


def _check_names(multi: PluginSet, sets: Mapping[str, PluginSet], acts_at: PointsByPlugin) -> None:
    for point, plugins in ((MULTI_POINT, multi), *sets.items()):
        place = f"plugins.{point}.enabled"
        for position, one in enumerate(plugins.enabled):
            if one.name not in acts_at:
                raise UsageError(f'{place}: there is no plugin "{one.name}"; there are {", ".join(sorted(acts_at))}')
            if one.name == POLICIES and one.weight:
                raise UsageError(f"{place}: {POLICIES} takes no weight: every policy has its own")
            if point == MULTI_POINT:
                continue
            if point not in acts_at[one.name]:
                raise UsageError(f"{place}: {one.name} does nothing at {point}")
            if one.name in {other.name for other in plugins.enabled[:position]}:
                raise UsageError(f"{place}: {one.name} is there twice")


def _check_counts(points: Mapping[str, tuple[str, ...]]) -> None:
    if len(points["queueSort"]) != 1:
        raise UsageError(f"plugins.queueSort: exactly one plugin has to sort the queue, not {len(points['queueSort'])}")
    if not points["bind"]:
        raise UsageError("plugins.bind: at least one plugin has to bind")
    if len(points["placementGenerate"]) > 1:
        raise UsageError("plugins.placementGenerate: at most one plugin can generate placements")


def _weights(point: str, plugins: Iterable[ListedPlugin], acts_at: PointsByPlugin) -> dict[str, int]:
    """Return the weights at a point: that of its own list before that of multiPoint, and 1 where none is given.

    Raises:
        UsageError: on the way through them their sum falls below 0.
    """
    weights: dict[str, int] = {}
    for one in plugins:
        if one.name == POLICIES or point not in acts_at[one.name] or one.name in weights:
            continue
        if sum(weights.values()) < 0:
            raise UsageError(f"plugins.{point}: the weights before {one.name} add up to less than 0")
        weights[one.name] = one.weight or 1
    return weights


log = logging.getLogger(__name__)
OLD_VERSIONS: Final = tuple(f"kubescheduler.config.k8s.io/v1beta{number}" for number in (1, 2, 3))
REPLACED: Final = {
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "SelectorSpread": "PodTopologySpread",
}
"""Plugins that are gone, with those that do their work."""


def as_v1(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration as v1 writes it; one that is of no older version is given back as it is."""
    if config.get("apiVersion") not in OLD_VERSIONS:
        return config
    gone: set[str] = set()
    made = _renewed(config, gone)
    for name in sorted(gone):
        log.warning("plugin %s is no longer there and is left out: %s does its work", name, REPLACED[name])
    return {**made, "apiVersion": API_VERSION}


def _renewed(value: Any, gone: set[str]) -> Any:
    """Copy a value without the plugins that are gone, noting their names."""
    if isinstance(value, Mapping):
        return {key: API_VERSION if _is_version(key, item) else _renewed(item, gone) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_renewed(item, gone) for item in value if not _is_gone(item, gone)]
    return value


def _is_version(key: str, item: Any) -> bool:
    return key == "apiVersion" and item in OLD_VERSIONS


def _is_gone(item: Any, gone: set[str]) -> bool:
    name = item.get("name") if isinstance(item, Mapping) else None
    if not isinstance(name, str) or name not in REPLACED:
        return False
    gone.add(name)
    return True
