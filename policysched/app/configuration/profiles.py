"""Build profiles: the default plugins as a configuration enables, disables and weighs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policysched.app.configuration.file import (
    POLICIES,
    ConfigurationError,
    ListedPlugin,
    Lists,
    Plugins,
    PluginSet,
    plugin_lists,
    read_profiles,
)
from policysched.errors import UsageError
from policysched.framework.partial_plugins import FilterOnly, ScoreOnly, ScoreWithoutPreFilter
from policysched.framework.profile import Profile
from policysched.plugins import check_arguments, plugin_named
from policysched.plugins.registry import ACTS_AT

DEFAULT_NAME = "policysched"


def default_profile(scheduler_name: str = DEFAULT_NAME, *, off: Iterable[str] = ()) -> Profile:
    """Make the profile of the default plugins, less those that are `off`, in kube-scheduler's order."""
    disabled = PluginSet(disabled=tuple(ListedPlugin(name=name) for name in off))
    return _profile(scheduler_name, Plugins(multi_point=disabled), {})


def configured_profiles(config: str | Mapping[str, Any] | None) -> dict[str, Profile]:
    """Make the profiles of a KubeSchedulerConfiguration, given as text or as a dict.

    Raises:
        UsageError: it is no such configuration, has a field that is not supported, or kube-scheduler would refuse it.
    """
    if config is None:
        return {DEFAULT_NAME: default_profile()}
    profiles = {}
    for index, (name, given) in enumerate(read_profiles(config).items()):
        try:
            profiles[name] = _profile(name, given.plugins, given.arguments)
        except UsageError as error:
            raise ConfigurationError(f"profiles[{index}]", str(error)) from error
    return profiles


def _profile(scheduler_name: str, plugins: Plugins, arguments: Mapping[str, Any]) -> Profile:
    lists = plugin_lists(plugins)
    for name in arguments.keys() - lists.enabled:
        check_arguments(name, arguments[name])
    return _Made(lists, arguments).profile(scheduler_name)


class _Made:
    """The plugins of one profile, made once each for all their points."""

    def __init__(self, lists: Lists, arguments: Mapping[str, Any]) -> None:
        self._lists = lists
        self._plugins: dict[str, Any] = {
            name: plugin_named(name, arguments.get(name)) for name in lists.enabled if name != POLICIES
        }

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
        return point in ACTS_AT[name] and name not in self._lists.points[point]

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
