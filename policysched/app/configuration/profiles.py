"""Build profiles: the default plugins as a configuration enables, disables and weighs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import fields

from policysched.app.configuration.file import (
    POINTS_OF,
    POLICIES,
    ConfigurationError,
    ListedPlugin,
    Lists,
    Plugins,
    PluginSet,
    PointsByPlugin,
    enabled_anywhere,
    plugin_lists,
    read_profiles,
)
from policysched.errors import UsageError
from policysched.framework.partial_plugins import FilterOnly, ScoreOnly, ScoreWithoutPreFilter
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.plugins import EnginePart, check_arguments, default_registry
from policysched.plugins.registry import DEFAULT_ORIGIN

DEFAULT_NAME = "policysched"
NO_PLUGINS: Final = PluginRegistry()
"""What is there beside the default plugins where nobody adds any."""
_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "queue_sort": ("less", "key"),
    "pre_filter": ("pre_filter", "prepare_filter"),
    "filter": ("filter", "filter_nodes"),
    "pre_score": ("pre_score", "prepare_score"),
    "score": ("score", "score_nodes"),
    "reserve": ("reserve", "unreserve"),
}
"""The methods of the points of which a plugin may have others than one of the point's own name."""


def default_profile(scheduler_name: str = DEFAULT_NAME, *, off: Iterable[str] = ()) -> Profile:
    """Make the profile of the default plugins, less those that are `off`, in kube-scheduler's order."""
    disabled = PluginSet(disabled=tuple(ListedPlugin(name=name) for name in off))
    return _profile(scheduler_name, Plugins(multi_point=disabled), {}, registry_with())


def registry_with(others: PluginRegistry = NO_PLUGINS) -> PluginRegistry:
    """Make the registry of all plugins: the default ones and others.

    Raises:
        UsageError: one of the others has the name of a default plugin.
    """
    made = default_registry()
    # Policies stand in a profile as a plugin of this name; the engine asks them itself.
    made.register(POLICIES, lambda _args, _handle: EnginePart(POLICIES), origin=DEFAULT_ORIGIN)
    made.merge(others)
    return made


def points_of(plugin: Any) -> frozenset[str]:
    """Return the points at which a plugin acts: those whose methods it has."""
    found = ((one.encode_name, _METHODS.get(one.name, (one.name,))) for one in fields(Plugins))
    return frozenset(point for point, methods in found if any(callable(getattr(plugin, one, None)) for one in methods))


def configured_profiles(
    config: str | Mapping[str, Any] | None, others: PluginRegistry = NO_PLUGINS, handle: Any = None
) -> dict[str, Profile]:
    """Make the profiles of a KubeSchedulerConfiguration, given as text or as a dict.

    Args:
        config: The configuration; without one there is the default profile alone.
        others: The plugins that there are beside the default ones.
        handle: What these are given to reach the cluster with.

    Raises:
        UsageError: it is no such configuration, has a field that is not supported, or kube-scheduler would refuse it;
            or one of the other plugins has a name that is taken.
    """
    registry = registry_with(others)
    if config is None:
        return {DEFAULT_NAME: default_profile()}
    profiles = {}
    for index, (name, given) in enumerate(read_profiles(config).items()):
        try:
            profiles[name] = _profile(name, given.plugins, given.arguments, registry, handle)
        except UsageError as error:
            raise ConfigurationError(f"profiles[{index}]", str(error)) from error
    return profiles


def _profile(
    scheduler_name: str, plugins: Plugins, arguments: Mapping[str, Any], registry: PluginRegistry, handle: Any = None
) -> Profile:
    enabled = enabled_anywhere(plugins)
    made = {name: registry.make(name, arguments.get(name), handle) for name in enabled if name in registry}
    acts_at = {**{name: points_of(made.get(name)) for name in registry}, **POINTS_OF}
    lists = plugin_lists(plugins, acts_at)
    for name in arguments.keys() - enabled:
        check_arguments(name, arguments[name])
    return _Made(lists, made, acts_at).profile(scheduler_name)


class _Made:
    """The plugins of one profile, made once each for all their points."""

    def __init__(self, lists: Lists, plugins: Mapping[str, Any], acts_at: PointsByPlugin) -> None:
        self._lists = lists
        self._plugins = plugins
        self._acts_at = acts_at

    def profile(self, scheduler_name: str) -> Profile:
        """Put the plugins at their points."""
        filters = self._filters()
        return Profile(
            scheduler_name=scheduler_name,
            queue_sort=self._at("queueSort")[0],
            pre_enqueue=self._having("preEnqueue", "pre_enqueue"),
            filters=filters,
            pre_filters=self._prepared(filters),
            scores=tuple(self._scores()),
            pre_scores=tuple(
                one for one in self._at("preScore") if one.name not in self._names("score") and hasattr(one, "score")
            ),
            post_filters=self._having("postFilter", "post_filter"),
            reserves=self._having("reserve", "reserve"),
            permits=self._having("permit", "permit"),
            pre_binds=self._having("preBind", "pre_bind"),
            binds=self._having("bind", "bind"),
            post_binds=self._having("postBind", "post_bind"),
            policies_filter=POLICIES in self._lists.points["filter"],
            policies_score=POLICIES in self._lists.points["score"],
        )

    def _names(self, point: str) -> list[str]:
        return [name for name in self._lists.points[point] if name != POLICIES]

    def _at(self, point: str) -> list[Any]:
        return [self._plugins[name] for name in self._names(point)]

    def _having(self, point: str, method: str) -> tuple[Any, ...]:
        """List the plugins at a point that have code for it."""
        return tuple(one for one in self._at(point) if hasattr(one, method))

    def _lacks(self, name: str, point: str) -> bool:
        """Return whether a plugin would act at a point, but is not enabled there."""
        return point in self._acts_at[name] and name not in self._lists.points[point]

    def _filters(self) -> tuple[Any, ...]:
        return tuple(FilterOnly(one) if self._lacks(one.name, "preFilter") else one for one in self._at("filter"))

    def _prepared(self, filters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the order in which filters are prepared, None where it is their own."""
        first = self._names("preFilter")
        if [one.name for one in filters if one.name in first] == first:
            return None
        return (*self._at("preFilter"), *(one for one in filters if one.name not in first))

    def _scores(self) -> Iterable[tuple[Any, int]]:
        for plugin in self._at("score"):
            if not hasattr(plugin, "score"):
                continue
            weight = self._lists.weights[plugin.name]
            if getattr(plugin, "scores_after_pre_filter", False) and self._lacks(plugin.name, "preFilter"):
                yield ScoreWithoutPreFilter(plugin), weight
            else:
                yield ScoreOnly(plugin) if self._lacks(plugin.name, "preScore") else plugin, weight
