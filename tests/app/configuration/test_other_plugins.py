"""Profiles with plugins that are not kube-scheduler's: registered, enabled by name, at the points of their methods."""

from __future__ import annotations

import re
from typing import Any

import pytest

from policysched.app.configuration.profiles import configured_profiles, points_of
from policysched.errors import UsageError
from policysched.framework import AssumedPod, ReservePlugin
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.plugins.nodes.node_filters import NodeUnschedulable
from tests.app.configuration.test_reading import HEAD


class Closed(NodeUnschedulable, ReservePlugin):
    """A filter that reserves, too, and keeps what it was made of."""

    name = "Closed"

    def __init__(self, args: Any, handle: Any) -> None:
        self.made_of = args, handle

    def reserve(self, assumed: AssumedPod) -> None:
        self.reserved = assumed

    def unreserve(self, assumed: AssumedPod) -> None:
        self.unreserved = assumed


class Idle:
    """A plugin of no point."""

    name = "Idle"


OTHERS = PluginRegistry()
OTHERS.register("Closed", Closed)
OTHERS.register("Idle", lambda _args, _handle: Idle())


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


def profile(plugins: dict[str, Any], *entries: dict[str, Any]) -> Profile:
    config = {**HEAD, "profiles": [{"plugins": plugins, "pluginConfig": list(entries)}]}
    [made] = configured_profiles(config, OTHERS).values()
    return made


def test_other_plugin_is_enabled_at_all_its_points_behind_the_default_ones() -> None:
    made = profile({"multiPoint": enabled("Closed")})
    assert made.filters[-1].name == made.reserves[-1].name == "Closed"
    reserves: Any = made.reserves[-1]
    assert made.filters[-1] is reserves
    assert "Closed" not in {one.name for one in made.permits}


def test_other_plugin_is_enabled_at_one_point() -> None:
    made = profile({"reserve": enabled("Closed")})
    assert made.reserves[-1].name == "Closed"
    assert "Closed" not in {one.name for one in made.filters}


def test_other_plugin_that_nobody_enables_is_not_made() -> None:
    assert "Closed" not in profile({}).plugin_names


def test_other_plugin_is_made_of_its_arguments_and_the_handle() -> None:
    made = profile({"reserve": enabled("Closed")}, {"name": "Closed", "args": {"a": 1}})
    closed: Any = made.reserves[-1]
    assert made.handle is not None
    assert closed.made_of == ({"a": 1}, made.handle)


@pytest.mark.parametrize(
    ("plugins", "error"),
    [
        ({"permit": enabled("Closed")}, "plugins.permit.enabled[0]: Closed does not implement permit"),
        ({"filter": enabled("Opened")}, 'plugins.filter.enabled[0]: unknown plugin "Opened"; run `policysched'),
        (
            {"multiPoint": enabled("Opened")},
            'plugins.multiPoint.enabled[0]: unknown plugin "Opened"; run `policysched',
        ),
        ({"filter": enabled("Closed", "Closed")}, "plugins.filter.enabled[1]: Closed is listed twice"),
    ],
)
def test_names_and_points_that_are_not_there_are_refused(plugins: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=re.escape(error)):
        profile(plugins)


@pytest.mark.parametrize("name", ["NodeName", "SchedulingPolicy"])
def test_name_of_a_default_plugin_is_taken(name: str) -> None:
    others = PluginRegistry()
    others.register(name, lambda _args, _handle: Idle())
    with pytest.raises(UsageError, match=f'^plugin "{name}" already exists$'):
        configured_profiles(None, others)


def test_plugin_acts_at_the_points_whose_methods_it_has() -> None:
    assert points_of(Closed(None, None)) == {"preFilter", "filter", "reserve"}
    assert points_of(Idle()) == frozenset()


def test_plugin_without_a_point_may_be_enabled_at_all_its_points() -> None:
    assert "Idle" not in profile({"multiPoint": enabled("Idle")}).plugin_names
