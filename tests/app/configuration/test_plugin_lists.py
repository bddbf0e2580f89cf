"""Merging what a profile states with the default plugins: which plugins act where, in which order, how heavy."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.app.configuration.model import (
    ListedPlugin,
    Plugins,
    PluginSet,
    ProfileConfig,
    completed_profile,
    default_plugin_set,
    merged,
)
from policysched.app.configuration.plugin_lists import Lists, known_points, plugin_lists
from policysched.errors import UsageError
from policysched.plugins.registry import plugin_entries

ENDS = ("PrioritySort", "DefaultBinder")


def plugins(*given: Any) -> tuple[ListedPlugin, ...]:
    """Names, or pairs of a name and a weight."""
    pairs = (one if isinstance(one, tuple) else (one, 0) for one in given)
    return tuple(ListedPlugin(name=name, weight=weight) for name, weight in pairs)


def enabled(*given: Any, off: tuple[str, ...] = ()) -> PluginSet:
    return PluginSet(enabled=plugins(*given), disabled=plugins(*off))


def disabled(*names: str) -> PluginSet:
    return enabled(off=names)


def only(*given: Any) -> PluginSet:
    """A multiPoint that has nothing but these and what no profile can do without."""
    return enabled(*ENDS, *given, off=("*",))


def lists(**given: PluginSet) -> Lists:
    return plugin_lists(completed_plugins(**given), known_points())


def completed_plugins(**given: PluginSet) -> Plugins:
    return completed_profile(ProfileConfig(plugins=Plugins(**given))).plugins


def at(point: str, **given: PluginSet) -> list[str]:
    return list(lists(**given).points[point])


def weights(**given: PluginSet) -> dict[str, int]:
    return dict(lists(**given).weights["score"])


FILTERS = at("filter")
SCORES = at("score")


def test_every_plugin_has_its_points() -> None:
    assert all(known_points()[name] for name in plugin_entries())
    points = completed_profile(ProfileConfig()).plugins.by_point().keys()
    assert set().union(*known_points().values()) == points - {"multiPoint", "postBind"}


@pytest.mark.parametrize(
    ("custom", "expected"),
    [
        (PluginSet(), enabled("a", ("b", 3), "c")),
        (enabled("x"), enabled("a", ("b", 3), "c", "x")),
        (enabled("x", off=("b",)), enabled("a", "c", "x", off=("b",))),
        (enabled("x", "a", "c", off=("*",)), enabled("x", "a", "c", off=("*",))),
        (enabled("c", "a", off=("c", "a")), enabled(("b", 3), "c", "a", off=("c", "a"))),
        (enabled("b"), enabled("a", "b", "c")),
        (enabled(("b", 7)), enabled("a", ("b", 7), "c")),
        (enabled("x", ("b", 7), "y"), enabled("a", ("b", 7), "c", "x", "y")),
        (enabled("x", "x"), enabled("a", ("b", 3), "c", "x", "x")),
        (enabled(("b", 7), ("b", 9)), enabled("a", ("b", 9), "c", ("b", 7))),
    ],
    ids=[
        "nothing",
        "one more",
        "one less, one more",
        "all anew",
        "two moved to the end",
        "a weight lost",
        "a weight replaced",
        "replaced between others",
        "repeated",
        "replaced and repeated",
    ],
)
def test_what_is_custom_goes_over_what_is_default(custom: PluginSet, expected: PluginSet) -> None:
    assert merged(enabled("a", ("b", 3), "c"), custom) == expected


def test_the_default_order_is_that_of_multi_point() -> None:
    order = [one.name for one in default_plugin_set().enabled]
    assert [*FILTERS, "SchedulingPolicy"][-1] == order[-1] == "SchedulingPolicy"
    assert [name for name in order if "filter" in known_points()[name]] == FILTERS
    assert [name for name in order if "score" in known_points()[name]] == SCORES


@pytest.mark.parametrize(
    ("own", "order"),
    [
        (enabled("NodeResourcesFit"), ["NodeResourcesFit", "NodeName", "TaintToleration"]),
        (
            enabled("TaintToleration", "NodeResourcesFit"),
            ["TaintToleration", "NodeResourcesFit", "NodeName"],
        ),
        (enabled("NodePorts", "TaintToleration"), ["TaintToleration", "NodeName", "NodeResourcesFit", "NodePorts"]),
        (disabled("NodeName"), ["TaintToleration", "NodeResourcesFit"]),
        (enabled("NodeName", off=("NodeName",)), ["TaintToleration", "NodeResourcesFit", "NodeName"]),
        (enabled("NodePorts", "NodeName", off=("*",)), ["NodePorts", "NodeName"]),
        (disabled("*"), []),
        (disabled("NotThere"), ["NodeName", "TaintToleration", "NodeResourcesFit"]),
    ],
)
def test_the_plugins_of_a_point_are_put_before_those_of_multi_point(own: PluginSet, order: list[str]) -> None:
    multi = only("NodeName", "TaintToleration", "NodeResourcesFit")
    assert at("filter", multi_point=multi, filter=own) == order


def test_a_plugin_acts_at_other_points_as_before() -> None:
    given = {"filter": disabled("TaintToleration"), "score": enabled("NodeAffinity")}
    assert "TaintToleration" not in at("filter", **given)
    assert "TaintToleration" in at("score", **given)
    assert at("filter", **given)[2] == "NodeAffinity"
    assert at("score", **given)[:2] == ["NodeAffinity", "TaintToleration"]


@pytest.mark.parametrize(
    ("given", "weight"),
    [
        ({}, 3),
        ({"multi_point": enabled("TaintToleration")}, 1),
        ({"multi_point": enabled(("TaintToleration", 5))}, 5),
        ({"score": enabled("TaintToleration")}, 1),
        ({"score": enabled(("TaintToleration", 5))}, 5),
        ({"score": enabled("TaintToleration", off=("TaintToleration",))}, 1),
        ({"multi_point": enabled(("TaintToleration", 5)), "score": enabled(("TaintToleration", 7))}, 7),
        ({"multi_point": enabled(("TaintToleration", 5)), "score": enabled("TaintToleration")}, 1),
        ({"filter": enabled(("TaintToleration", 9))}, 3),
        ({"pre_score": enabled(("TaintToleration", 9))}, 3),
        ({"score": enabled(("TaintToleration", 2**31 - 1))}, 2**31 - 1),
    ],
)
def test_a_plugin_that_is_enabled_again_has_the_weight_that_stands_there(
    given: dict[str, PluginSet], weight: int
) -> None:
    assert weights(**given) == {"NodeAffinity": 2, "NodeResourcesFit": 1, "VolumeBinding": 1} | {
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "TaintToleration": weight,
    }


def test_a_weight_below_0_counts_as_long_as_the_sum_before_the_next_plugin_does_not_fall_below_it() -> None:
    multi = only(("TaintToleration", 3))
    assert weights(multi_point=multi, score=enabled(("TaintToleration", 9), ("NodeAffinity", -9))) == {
        "TaintToleration": 9,
        "NodeAffinity": -9,
    }
    with pytest.raises(UsageError, match=r"score: sum of the weights before TaintToleration is less than 0"):
        lists(multi_point=multi, score=enabled(("NodeAffinity", -9)))
    with pytest.raises(UsageError, match=r"placementScore: sum of the weights before PodGroupPodsCount is less"):
        lists(placement_score=enabled(("NodeResourcesFit", -1), "PodGroupPodsCount"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"multi_point": disabled("*")}, "plugins.queueSort: exactly one queueSort plugin is required, got 0"),
        ({"queue_sort": disabled("PrioritySort")}, "plugins.queueSort: exactly one queueSort plugin"),
        ({"bind": disabled("*")}, "plugins.bind: at least one bind plugin is required"),
        (
            {"filter": enabled("NotThere")},
            'plugins.filter.enabled[0]: unknown plugin "NotThere"; run `policysched plugins`',
        ),
        ({"multi_point": enabled("NotThere")}, 'plugins.multiPoint.enabled[21]: unknown plugin "NotThere"'),
        ({"multi_point": enabled("*")}, 'plugins.multiPoint.enabled[21]: unknown plugin "*"'),
        ({"score": enabled("NodeName")}, "plugins.score.enabled[0]: NodeName does not implement score"),
        (
            {"pre_filter": enabled("ImageLocality")},
            "plugins.preFilter.enabled[0]: ImageLocality does not implement pre",
        ),
        ({"filter": enabled("NodeName", "NodeName")}, "plugins.filter.enabled[1]: NodeName is listed twice"),
        ({"multi_point": enabled("NodeName", "NodeName")}, "plugins.multiPoint.enabled: NodeName is listed twice"),
        ({"multi_point": enabled("GangScheduling", "GangScheduling")}, "GangScheduling is listed twice"),
        ({"score": enabled(("SchedulingPolicy", 2))}, "SchedulingPolicy has no weight; set spec.weight of each policy"),
        (
            {"pre_score": enabled("SchedulingPolicy")},
            "plugins.preScore.enabled[0]: SchedulingPolicy does not implement pre",
        ),
    ],
)
def test_what_cannot_work_is_refused(given: dict[str, PluginSet], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        lists(**given)
    assert message in str(refusal.value)


def test_second_plugin_that_sorts_the_queue_is_named() -> None:
    given = completed_plugins(multi_point=enabled("Mine"))
    with pytest.raises(UsageError, match=r"exactly one queueSort plugin is required, got 2: PrioritySort, Mine$"):
        plugin_lists(given, {**known_points(), "Mine": frozenset(("queueSort",))})


def test_a_plugin_that_is_twice_in_multi_point_does_no_harm_where_points_override_it() -> None:
    twice = enabled("ImageLocality", "ImageLocality")
    assert at("score", multi_point=twice, score=enabled("ImageLocality"))[0] == "ImageLocality"
    assert "ImageLocality" not in at("score", multi_point=twice, score=disabled("ImageLocality"))


def test_plugins_without_a_point_left_are_still_enabled() -> None:
    found = completed_plugins(score=disabled("*"), pre_score=disabled("*"), filter=disabled("NodeName"))
    assert {"ImageLocality", "NodeResourcesBalancedAllocation", "NodeName"} <= found.enabled_anywhere
    assert "NodeName" not in completed_plugins(multi_point=disabled("NodeName")).enabled_anywhere


@pytest.mark.parametrize(
    ("given", "filters", "scores"),
    [
        ({}, True, True),
        ({"multi_point": only()}, False, False),
        ({"multi_point": only("SchedulingPolicy")}, True, True),
        ({"multi_point": only(), "score": enabled("SchedulingPolicy")}, False, True),
        ({"filter": disabled("*")}, False, True),
        ({"filter": enabled("SchedulingPolicy", off=("*",))}, True, True),
        ({"score": disabled("SchedulingPolicy")}, True, False),
    ],
)
def test_all_policies_go_by_one_name(given: dict[str, PluginSet], filters: bool, scores: bool) -> None:
    points = lists(**given).points
    assert ("SchedulingPolicy" in points["filter"], "SchedulingPolicy" in points["score"]) == (filters, scores)
