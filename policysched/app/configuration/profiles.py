"""Creation of profiles: plugins enabled, disabled and weighted by a configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from policysched.app.configuration.extenders import without_extenders_resources
from policysched.app.configuration.model import (
    POINTS,
    POLICIES,
    ListedPlugin,
    Plugins,
    PluginSet,
    ProfileConfig,
    completed_profile,
    default_arguments,
)
from policysched.app.configuration.plugin_lists import Lists, known_points, list_faults, plugin_lists
from policysched.app.configuration.reading import ConfigurationInput, ReadConfiguration, load_configuration
from policysched.errors import UsageError
from policysched.framework import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    ReservePlugin,
    ScorePlugin,
)
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.out_of_tree.placements import OutOfTreePlacements
from policysched.framework.out_of_tree.signatures import check_methods
from policysched.framework.partial_plugins import AlwaysZeroScore, FailingScore, filter_only, score_only
from policysched.framework.pod_groups import (
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupPostFilterPlugin,
)
from policysched.framework.profile import Filter, Profile, Score
from policysched.framework.registry import PluginRegistry, RegisteredPlugin
from policysched.model.release import DEFAULT, Release
from policysched.plugins import EnginePart, default_registry
from policysched.plugins.arguments import Fault, PluginArguments
from policysched.plugins.registry import DEFAULT_ORIGIN, MULTI_POINT

DEFAULT_NAME = "policysched"
NO_PLUGINS: Final = PluginRegistry()
"""An empty registry: no plugins besides the default plugins."""
_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "queue_sort": ("less", "key"),
    "pre_filter": ("pre_filter", "prepare_filter"),
    "filter": ("filter", "filter_nodes"),
    "pre_score": ("pre_score", "prepare_score"),
    "score": ("score", "score_nodes"),
    "reserve": ("reserve", "unreserve"),
    "placement_generate": ("generate_placements",),
    "placement_score": ("score_placement", "score_placements"),
}
"""Names of plugin methods by extension point, for points that do not consist of one method of the same name."""


def default_profile(
    scheduler_name: str = DEFAULT_NAME, *, off: Iterable[str] = (), release: Release = DEFAULT
) -> Profile:
    """Return the profile of the default plugins, except those in `off`, in kube-scheduler's order."""
    disabled = PluginSet(disabled=tuple(ListedPlugin(name=name) for name in off))
    given = ProfileConfig(scheduler_name=scheduler_name, plugins=Plugins(multi_point=disabled))
    return _Parts(completed_profile(given, release), registry_with(release=release), release).profile()


def registry_with(others: PluginRegistry = NO_PLUGINS, release: Release = DEFAULT) -> PluginRegistry:
    """Return the registry of the default plugins and of additional plugins.

    Raises:
        UsageError: an additional plugin has the name of a default plugin.
    """
    made = default_registry(release)
    # Policies are a plugin of this name in a profile; the engine evaluates them itself.
    made.register(POLICIES, lambda _args, _handle: EnginePart(POLICIES), origin=DEFAULT_ORIGIN)
    made.merge(others)
    return made


def points_of(plugin: Any) -> frozenset[str]:
    """Return the extension points whose methods a plugin has."""
    found = ((point, _METHODS.get(name, (name,))) for name, point in POINTS.items())
    return frozenset(point for point, methods in found if any(callable(getattr(plugin, one, None)) for one in methods))


def check_plugin(name: str, plugin: Any) -> None:
    """Validate the methods of an out-of-tree plugin or its class.

    Raises:
        UsageError: a method is misspelt or has a wrong signature.
    """
    if not _is_of_columns(plugin):
        check_methods(name, plugin)


def _is_of_columns(plugin: Any) -> bool:
    """Return whether a plugin (or a class) evaluates all nodes at once, as the default plugins do."""
    return issubclass(plugin if isinstance(plugin, type) else type(plugin), Plugin)


def configured_profiles(
    config: ConfigurationInput | ReadConfiguration | None,
    others: PluginRegistry = NO_PLUGINS,
    *,
    keep: Collection[str] = (),
    release: Release = DEFAULT,
) -> dict[str, Profile]:
    """Return the profiles of a KubeSchedulerConfiguration.

    Args:
        config: The configuration; without one, only the default profile.
        others: Additional plugins.
        keep: Names of profiles that are not created, because they exist already.
        release: The release that the plugins follow; a configuration that was read has its own.

    Raises:
        UsageError: the configuration is invalid, or an additional plugin has a name that is taken.
    """
    if config is None:
        registry_with(others)  # raises an error for a name that is taken
        return {DEFAULT_NAME: default_profile(release=release)}
    read = config if isinstance(config, ReadConfiguration) else load_configuration(config, release=release)
    registry = registry_with(others, read.release)
    placements = read.completed.percentage_of_placements_to_score or 0
    parts = {
        index: _Parts(one, registry, read.release, placements)
        for index, one in enumerate(without_extenders_resources(read.completed))
        if one.scheduler_name not in keep
    }
    found = [fault for index, one in parts.items() for fault in _placed(one, read, index)]
    found += _queue_sort_faults(parts) if not found else ()
    if found:
        raise read.error(found)
    return {one.name: one.profile() for one in parts.values()}


def _placed(parts: _Parts, read: ReadConfiguration, index: int) -> Iterator[Fault]:
    """Yield a profile's errors with list indexes as in the file, where default plugins are not merged yet."""
    everywhere = parts.given.plugins.multi_point.enabled
    stated = read.multi_point(index)
    for place, why in parts.faults():
        before, _, rest = place.partition(f"plugins.{MULTI_POINT}.enabled[")
        if before or not rest:
            yield f"profiles[{index}].{place}", why
        else:
            name = everywhere[int(rest.removesuffix("]"))].name
            yield f"profiles[{index}].plugins.{MULTI_POINT}.enabled[{stated.index(name)}]", why


def _queue_sort_faults(parts: Mapping[int, _Parts]) -> Iterator[Fault]:
    """Yield errors if profiles have different QueueSort plugins or arguments after defaulting."""
    sorting = {index: one.queue_sort() for index, one in parts.items()}
    first = next(iter(sorting.values()), ("", None))
    for index, (name, args) in sorting.items():
        if name != first[0]:
            yield f"profiles[{index}].plugins.queueSort", f"{name} differs from {first[0]} of the first profile"
        elif args != first[1]:
            yield f"profiles[{index}].pluginConfig", f"arguments of {name} differ from the first profile"


def _adapted(entry: RegisteredPlugin, plugin: Any, handle: PluginHandle) -> Any:
    """Return a plugin for a profile; wrap an out-of-tree plugin in an adapter unless it evaluates all nodes at once."""
    if entry.origin == DEFAULT_ORIGIN or _is_of_columns(plugin):
        return plugin
    return OutOfTreePlugin(entry.name, plugin, handle)


class _Parts:
    """The plugins of one profile, each created once for all its extension points."""

    def __init__(self, given: ProfileConfig, registry: PluginRegistry, release: Release, placements: int = 0) -> None:
        self.given = given
        own = given.percentage_of_placements_to_score
        self._placements_percentage = placements if own is None else own
        self.name = given.scheduler_name or ""
        self._handle = PluginHandle(self.name)
        self._release, self._known_points = release, known_points(release)
        self._plugins: dict[str, Any] = {}
        self._acts_at: dict[str, frozenset[str]] = {name: frozenset() for name in registry}
        self._unmade: list[Fault] = []
        for name in sorted(given.plugins.enabled_anywhere & set(registry)):
            self._make(name, registry)
        self._acts_at |= self._known_points

    def _make(self, name: str, registry: PluginRegistry) -> None:
        places = {one.name: f"pluginConfig[{index}].args" for index, one in enumerate(self.given.plugin_config)}
        args = self.given.arguments.get(name)
        if args is None and default_arguments(name, self._release) is not None:
            self._unmade.append(("plugins", f"{name} needs an entry in pluginConfig"))
            return
        wrong = list(args.faults()) if isinstance(args, PluginArguments) else []
        self._unmade += ((f"{places[name]}.{field}", why) for field, why in wrong)
        if wrong:
            return
        try:
            plugin = registry.make(name, args, self._handle)
            self._acts_at[name] = points_of(plugin)
            self._plugins[name] = _adapted(registry[name], plugin, self._handle)
        except UsageError as error:
            self._unmade.append((places.get(name, "plugins"), str(error)))

    def faults(self) -> Iterator[Fault]:
        """Yield the errors of the profile."""
        yield from self._unmade
        if self._points_are_known:
            yield from list_faults(self.given.plugins, self._acts_at, self._release)

    @property
    def _points_are_known(self) -> bool:
        """Whether the extension points of all enabled plugins are known, because all plugins could be created."""
        known = self._plugins.keys() | self._known_points.keys()
        return self.given.plugins.enabled_anywhere & self._acts_at.keys() <= known

    def queue_sort(self) -> tuple[str, Any]:
        """Return the name of the QueueSort plugin and its arguments."""
        [name] = self._lists.points["queueSort"]
        return name, self.given.arguments.get(name)

    @cached_property
    def _lists(self) -> Lists:
        return plugin_lists(self.given.plugins, self._acts_at, self._release)

    def profile(self) -> Profile:
        """Return the profile with the plugins at their points."""
        filters = self._filters()
        return Profile(
            scheduler_name=self.name,
            handle=self._handle,
            queue_sort=self._at("queueSort")[0],
            pre_enqueue=tuple(one for one in self._at("preEnqueue") if isinstance(one, PreEnqueuePlugin)),
            filters=filters,
            pre_filters=self._prepared(filters),
            scores=tuple(self._scores()),
            pre_scores=tuple(self._pre_scores()),
            pre_score_order=tuple(self._names("preScore")),
            post_filters=tuple(one for one in self._at("postFilter") if isinstance(one, PostFilterPlugin)),
            pod_group_post_filters=tuple(self._pod_group_post_filters()),
            placement_generate=tuple(self._placement_generate()),
            placement_feasible=tuple(self._placement_feasible()),
            placement_scores=tuple(self._placement_scores()),
            placements_percentage=self._placements_percentage,
            reserves=tuple(one for one in self._at("reserve") if isinstance(one, ReservePlugin)),
            permits=tuple(one for one in self._at("permit") if isinstance(one, PermitPlugin)),
            pre_binds=tuple(one for one in self._at("preBind") if isinstance(one, PreBindPlugin)),
            binds=tuple(one for one in self._at("bind") if isinstance(one, BindPlugin)),
            post_binds=tuple(one for one in self._at("postBind") if isinstance(one, PostBindPlugin)),
            policies_filter=POLICIES in self._lists.points["filter"],
            policies_score=POLICIES in self._lists.points["score"],
        )

    def _pod_group_post_filters(self) -> Iterable[PodGroupPostFilterPlugin]:
        named = self._at("podGroupPostFilter") if "podGroupPostFilter" in self._lists.points else ()
        return (one for one in named if isinstance(one, PodGroupPostFilterPlugin))

    def _placement_feasible(self) -> Iterable[PlacementFeasiblePlugin]:
        """Return the enabled PlacementFeasible plugins; all such plugins if configurations cannot list the point."""
        is_point = "placementFeasible" in self._lists.points
        named = self._for_placements("placementFeasible") if is_point else self._plugins.values()
        return (one for one in named if isinstance(one, PlacementFeasiblePlugin))

    def _placement_generate(self) -> Iterable[PlacementGeneratePlugin]:
        return (one for one in self._for_placements("placementGenerate") if isinstance(one, PlacementGeneratePlugin))

    def _placement_scores(self) -> Iterable[tuple[PlacementScorePlugin, int]]:
        weights, named = self._lists.weights["placementScore"], self._for_placements("placementScore")
        return ((one, weights[one.name]) for one in named if isinstance(one, PlacementScorePlugin))

    def _for_placements(self, point: str) -> list[Any]:
        """Return the plugins enabled at an extension point for placements of pod groups, adapted if out-of-tree."""
        return [OutOfTreePlacements(one) if isinstance(one, OutOfTreePlugin) else one for one in self._at(point)]

    def _names(self, point: str) -> list[str]:
        """Return the names of the plugins enabled at a point, without plugins that the engine itself implements."""
        return [name for name in self._lists.points[point] if not isinstance(self._plugins[name], EnginePart)]

    def _at(self, point: str) -> list[Any]:
        """Return the plugins enabled at a point, without plugins that the engine itself implements."""
        return [self._plugins[name] for name in self._names(point)]

    def _scores_at(self, point: str) -> list[Score]:
        return [one for one in self._at(point) if isinstance(one, ScorePlugin | OutOfTreePlugin)]

    def _lacks(self, name: str, point: str) -> bool:
        """Return whether a plugin has the methods of an extension point but is not enabled at that point."""
        return point in self._acts_at[name] and name not in self._lists.points[point]

    def _filters(self) -> tuple[Filter, ...]:
        return tuple(filter_only(one) if self._lacks(one.name, "preFilter") else one for one in self._at("filter"))

    def _prepared(self, filters: tuple[Filter, ...]) -> tuple[Filter, ...] | None:
        """Return the filters in the order of their PreFilter calls; None if Filter calls have the same order."""
        first = self._names("preFilter")
        if [one.name for one in filters if one.name in first] == first:
            return None
        return (*self._at("preFilter"), *(one for one in filters if one.name not in first))

    def _pre_scores(self) -> Iterable[Score]:
        scoring = self._names("score")
        return [self._scoring(plugin) for plugin in self._scores_at("preScore") if plugin.name not in scoring]

    def _scores(self) -> Iterable[tuple[Score, int]]:
        weights = self._lists.weights["score"]
        return [(self._scoring(plugin), weights[plugin.name]) for plugin in self._scores_at("score")]

    def _scoring(self, plugin: Score) -> Score:
        """Return a Score plugin as it behaves if its PreFilter, Filter or PreScore is disabled."""
        if plugin.scores_after_pre_filter and self._lacks(plugin.name, "preFilter"):
            return FailingScore(plugin.name, "preFilter")
        if plugin.scores_after_filter and self._lacks(plugin.name, "filter"):
            return AlwaysZeroScore(plugin.name)
        return score_only(plugin) if self._lacks(plugin.name, "preScore") else plugin
