"""KubeSchedulerConfiguration v1: the fields of the file as structs, with kube-scheduler's defaults.

The one place of the file's defaults; those of plugins' arguments stand with the plugins. A default is the field's own
where an absent field has it. Where kube-scheduler takes a zero value for an absent one too (`Filled`), and where a
default depends on something else, it is filled in when the struct is made, or by `completed`, which needs the whole
file: what comes out is complete, and reading it again changes nothing.

Source: kube-scheduler/config/v1/types.go, component-base/config/v1alpha1/{types,defaults}.go,
pkg/scheduler/apis/config/v1/{defaults,default_plugins}.go, v1.36.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec.structs import FieldInfo, fields, force_setattr, replace

from policysched.extenders.settings import TlsSettings
from policysched.plugins.arguments import (
    API_VERSION,
    Given,
    Int32,
    Int64,
    StatedDuration,
    go_duration,
    nanoseconds,
    read_arguments,
)
from policysched.plugins.registry import DEFAULTS, PLUGINS, WEIGHTS

KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER: Final = "default-scheduler"
POLICIES: Final = "SchedulingPolicy"
"""The name that stands for all policies."""
ALL: Final = "*"
QPS: Final = 50
"""How many requests a second there may be where nothing else is said."""
_HIGHEST_FLOAT32: Final = 3.4028234663852886e38
Float32 = Annotated[float, msgspec.Meta(ge=-_HIGHEST_FLOAT32, le=_HIGHEST_FLOAT32)]


class Filled(Given, frozen=True):
    """Fields of which the zero value counts as absent, but for booleans; durations are written as Go does."""

    def __post_init__(self) -> None:
        """Put defaults in the place of zero values."""
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
    """List the fields of a struct: finding them out takes longer than making one."""
    return fields(shape)


class LeaderElection(Filled, frozen=True):
    """How several schedulers agree on one that works."""

    leader_elect: bool = True
    lease_duration: StatedDuration = "15s"
    renew_deadline: StatedDuration = "10s"
    retry_period: StatedDuration = "2s"
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Filled, frozen=True):
    """How the API server is reached."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: Float32 = QPS
    burst: Int32 = 100

    def __post_init__(self) -> None:
        """Round as kube-scheduler does, which reads 32 bits; what rounds to none is as if it were absent."""
        super().__post_init__()
        rounded = float(str(np.float32(self.qps))) or float(QPS)
        force_setattr(self, "qps", int(rounded) if abs(rounded) < 2**53 and rounded.is_integer() else rounded)


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
        return {point: getattr(self, attribute) for attribute, point in POINTS.items()}

    @property
    def enabled_anywhere(self) -> frozenset[str]:
        """The names that are enabled at any point."""
        return frozenset(one.name for own in self.by_point().values() for one in own.enabled)


POINTS: Final = dict(zip(Plugins.__struct_fields__, Plugins.__struct_encode_fields__, strict=True))
"""The names of points in configurations, multiPoint among them, by those of the fields."""


class PluginConfig(Given, frozen=True):
    """The arguments of one plugin: a `PluginArguments` for a plugin that has some, else whatever stands there."""

    name: str = ""
    args: Any = None


class ProfileConfig(Given, frozen=True):
    """A profile."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by plugin."""
        return {one.name: one.args for one in self.plugin_config}


class ManagedResource(Given, frozen=True):
    """An extended resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(Given, frozen=True):
    """An HTTP service that takes part in decisions."""

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
        """Write the duration as Go does."""
        force_setattr(self, "http_timeout", go_duration(self.http_timeout))


class Configuration(Given, frozen=True):
    """The whole file."""

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileConfig, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: bool = False

    def __post_init__(self) -> None:
        """Have contention profiled where anything is."""
        if self.enable_contention_profiling is None:
            force_setattr(self, "enable_contention_profiling", self.enable_profiling)


DEFAULT: Final = PluginSet(
    enabled=(*(ListedPlugin(name=name, weight=WEIGHTS.get(name, 0)) for name in DEFAULTS), ListedPlugin(name=POLICIES))
)
"""The plugins that are enabled where a profile says nothing."""


def completed(given: Configuration) -> Configuration:
    """Fill in what depends on the whole file: the profiles, their names, plugins and arguments."""
    profiles = given.profiles or (ProfileConfig(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    return replace(given, profiles=tuple(map(completed_profile, profiles)))


def completed_profile(given: ProfileConfig) -> ProfileConfig:
    """Put what a profile enables and disables over the default plugins, and give all their arguments."""
    nothing = PluginSet()
    sets = {name: merged(nothing, getattr(given.plugins, name)) for name in POINTS}
    plugins = Plugins(**sets | {"multi_point": merged(DEFAULT, given.plugins.multi_point)})
    stated = {one.name for one in given.plugin_config}
    missing = sorted(name for name in plugins.enabled_anywhere - stated if default_arguments(name) is not None)
    added = (PluginConfig(name=name, args=default_arguments(name)) for name in missing)
    return replace(given, plugins=plugins, plugin_config=(*given.plugin_config, *added))


def default_arguments(name: str) -> Any:
    """Return the arguments that a default plugin has where none are stated, None where it takes none."""
    entry = PLUGINS.get(name)
    return None if entry is None or entry.arguments is None else read_arguments(name, None, entry.arguments)[0]


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
    return PluginSet(enabled=(*kept, *rest), disabled=tuple(ListedPlugin(name=one.name) for one in custom.disabled))
