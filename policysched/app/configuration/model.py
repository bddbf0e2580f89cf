"""KubeSchedulerConfiguration v1: structs with kube-scheduler's defaults.

All defaults of the file are here; defaults of plugin arguments are with the plugins. A default is the field's own if an
absent field has it. If kube-scheduler treats a zero value as absent (`Filled`), or a default depends on other fields,
it is set when the struct is created, or by `completed`, which needs the whole file. The result is complete; decoding it
again changes nothing.

Source: kube-scheduler/config/v1/types.go, component-base/config/v1alpha1/{types,defaults}.go,
pkg/scheduler/apis/config/v1/{defaults,default_plugins}.go, v1.36 and v1.37.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec.structs import FieldInfo, fields, force_setattr, replace

from policysched.extenders.settings import TlsSettings
from policysched.model.release import DEFAULT, Release
from policysched.plugins.arguments import API_VERSION, Given, Int32, Int64, StatedDuration, read_arguments
from policysched.plugins.registry import plugin_entries
from policysched.reading.durations import go_duration, nanoseconds

KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER: Final = "default-scheduler"
POLICIES: Final = "SchedulingPolicy"
"""Plugin name in configurations that means all policies, which are enabled and disabled together."""
ALL: Final = "*"
QPS: Final = 50
"""Default limit of requests per second to the API server."""
_HIGHEST_FLOAT32: Final = 3.4028234663852886e38
Float32 = Annotated[float, msgspec.Meta(ge=-_HIGHEST_FLOAT32, le=_HIGHEST_FLOAT32)]


class Filled(Given, frozen=True):
    """Base of structs in which zero values are treated as absent, except booleans; durations are in Go's format."""

    def __post_init__(self) -> None:
        """Replace zero values by defaults."""
        for field in _fields(type(self)):
            value = getattr(self, field.name)
            if isinstance(value, bool):
                continue
            if not value or (isinstance(value, str) and nanoseconds(value) == 0):
                force_setattr(self, field.name, field.default)
            elif field.type is StatedDuration:
                force_setattr(self, field.name, go_duration(value))


@lru_cache(maxsize=16)
def _fields(shape: type[Filled]) -> tuple[FieldInfo, ...]:
    """Return the fields of a struct, cached."""
    return fields(shape)


class LeaderElection(Filled, frozen=True):
    """Settings of leader election."""

    leader_elect: bool = True
    lease_duration: StatedDuration = "15s"
    renew_deadline: StatedDuration = "10s"
    retry_period: StatedDuration = "2s"
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Filled, frozen=True):
    """Settings of the connection to the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: Float32 = QPS
    burst: Int32 = 100

    def __post_init__(self) -> None:
        """Round QPS to 32 bits as kube-scheduler does; a result of 0 is treated as absent."""
        super().__post_init__()
        rounded = float(str(np.float32(self.qps))) or float(QPS)
        force_setattr(self, "qps", int(rounded) if abs(rounded) < 2**53 and rounded.is_integer() else rounded)


class ListedPlugin(Given, frozen=True):
    """A plugin in a list of enabled or disabled plugins; a weight of 0 is treated as absent."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Given, frozen=True):
    """Enabled and disabled plugins of one extension point, or of all extension points (`multiPoint`)."""

    enabled: tuple[ListedPlugin, ...] = ()
    disabled: tuple[ListedPlugin, ...] = ()

    def disables(self, name: str) -> bool:
        """Return whether a plugin is disabled by name."""
        return any(one.name == name for one in self.disabled)


class Plugins(Given, frozen=True):
    """Enabled and disabled plugins of a profile by extension point."""

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
    pod_group_post_filter: PluginSet | None = None
    """Plugins at the extension point PodGroupPostFilter; None in a release without the extension point."""
    placement_feasible: PluginSet | None = None
    """Plugins at the extension point PlacementFeasible; None in a release without the extension point."""

    def by_point(self) -> dict[str, PluginSet]:
        """Return the plugin sets by name of the extension point."""
        sets = ((point, getattr(self, attribute)) for attribute, point in POINTS.items())
        return {point: own for point, own in sets if own is not None}

    @property
    def enabled_anywhere(self) -> frozenset[str]:
        """Names of plugins that are enabled at one extension point or more."""
        return frozenset(one.name for own in self.by_point().values() for one in own.enabled)


_EMPTY: Final = Plugins()
POINTS: Final = dict(zip(Plugins.__struct_fields__, Plugins.__struct_encode_fields__, strict=True))
"""Names of extension points in configurations, including multiPoint, by struct field."""


class PluginConfig(Given, frozen=True):
    """Arguments of one plugin: a `PluginArguments` for plugins that declare them, otherwise the raw value."""

    name: str = ""
    args: Any = None


class ProfileConfig(Given, frozen=True):
    """A profile of the configuration: scheduler name, plugins and plugin arguments."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    percentage_of_placements_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of plugins, by plugin name."""
        return {one.name: one.args for one in self.plugin_config}


class ManagedResource(Given, frozen=True):
    """An extended resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(Given, frozen=True):
    """An HTTP extender in the configuration."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TlsSettings | None = None
    http_timeout: StatedDuration = "0s"
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    def __post_init__(self) -> None:
        """Convert `httpTimeout` into Go's format of durations."""
        force_setattr(self, "http_timeout", go_duration(self.http_timeout))


class Configuration(Given, frozen=True):
    """A whole KubeSchedulerConfiguration."""

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 = 0
    percentage_of_placements_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileConfig, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: bool = False

    def __post_init__(self) -> None:
        """If `enableContentionProfiling` is absent, set it to the value of `enableProfiling`."""
        if self.enable_contention_profiling is None:
            force_setattr(self, "enable_contention_profiling", self.enable_profiling)


@lru_cache(maxsize=8)
def default_plugin_set(release: Release = DEFAULT) -> PluginSet:
    """Return the plugin set that applies if a profile does not define any plugins."""
    entries = plugin_entries(release).items()
    listed = (ListedPlugin(name=name, weight=entry.weight) for name, entry in entries if entry.is_default)
    return PluginSet(enabled=(*listed, ListedPlugin(name=POLICIES)))


def completed(given: Configuration, release: Release = DEFAULT) -> Configuration:
    """Return a configuration with defaults that depend on other fields: profiles, names, plugins, arguments."""
    profiles = given.profiles or (ProfileConfig(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    placements = given.percentage_of_placements_to_score
    if release.topology_aware and "percentageOfPlacementsToScore" in release.configuration_fields:
        placements = placements or 0
    return replace(
        given,
        percentage_of_placements_to_score=placements,
        profiles=tuple(completed_profile(one, release) for one in profiles),
    )


def completed_profile(given: ProfileConfig, release: Release = DEFAULT) -> ProfileConfig:
    """Return a profile with the default plugins merged and all their arguments set."""
    sets = {
        name: merged(_disabled_at(point, release), getattr(given.plugins, name) or PluginSet())
        for name, point in POINTS.items()
        if getattr(_EMPTY, name) is not None or point in release.configuration_fields
    }
    plugins = Plugins(**sets | {"multi_point": merged(default_plugin_set(release), given.plugins.multi_point)})
    stated = {one.name for one in given.plugin_config}
    named = {
        one.name
        for point, own in plugins.by_point().items()
        for one in (() if point in release.points_without_arguments else own.enabled)
    }
    defaults = {name: default_arguments(name, release) for name in sorted(named - stated)}
    added = (PluginConfig(name=name, args=args) for name, args in defaults.items() if args is not None)
    return replace(given, plugins=plugins, plugin_config=(*given.plugin_config, *added))


def _disabled_at(point: str, release: Release) -> PluginSet:
    """Return the plugins that a release disables at an extension point by default."""
    entries = plugin_entries(release).items()
    return PluginSet(disabled=tuple(ListedPlugin(name=name) for name, entry in entries if point in entry.disabled_at))


def default_arguments(name: str, release: Release = DEFAULT) -> Any:
    """Return the default arguments of a default plugin; None if the plugin has no arguments."""
    entry = plugin_entries(release).get(name)
    return None if entry is None or entry.arguments is None else read_arguments(name, None, entry.arguments)[0]


def merged(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge a custom plugin set into a default plugin set, as kube-scheduler does.

    A default plugin that is enabled again keeps its position and gets the new weight. One that is disabled and enabled
    moves to the end.
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
    disabled = tuple(ListedPlugin(name=one.name) for one in custom.disabled)
    return PluginSet(enabled=(*kept, *rest), disabled=disabled + default.disabled)
