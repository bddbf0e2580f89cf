"""Mistakes in the methods of a plugin are refused when the plugin is created: names, parameters, `async def`."""

# ruff: noqa: ARG002, ARG005 - the tests are about parameters
from __future__ import annotations

import re
from typing import Any

import pytest

from policysched.app.plugins.factories import CheckedFactory
from policysched.errors import UsageError
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.out_of_tree.methods import MAY_WAIT
from policysched.framework.out_of_tree.signatures import check_methods
from policysched.plugin import FilterMethods, PreBindMethods, ScoreMethods, Status


def refusal(plugin: Any) -> str:
    """Return why the class of a plugin and the plugin itself are refused, in the same words."""
    with pytest.raises(UsageError) as of_class:
        check_methods("X", plugin)
    with pytest.raises(UsageError) as of_object:
        OutOfTreePlugin("X", plugin(), PluginHandle())
    assert str(of_class.value) == str(of_object.value)
    return str(of_class.value)


def with_method(name: str, method: Any) -> type[Any]:
    """Return a plugin class with a method beside a correct `score`."""

    class Plugin:
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return 1

    setattr(Plugin, name, method)
    return Plugin


@pytest.mark.parametrize(
    ("name", "method", "meant"),
    [
        ("filtre", lambda self, state, pod, node: None, "filter"),
        ("filtre", lambda self, state, node: None, "filter"),
        ("Filter", lambda self, pod: None, "filter"),
        ("preBind", lambda self, state, pod, node_name: None, "pre_bind"),
        ("pre_enque", lambda self, pod: None, "pre_enqueue"),
        ("prefilter", lambda self, *_: None, "pre_filter"),
        ("filter_node", lambda self, state, pod, nodes: None, "filter_nodes"),
        ("event", lambda self: (), "events"),
        ("un_reserve", staticmethod(lambda state, pod, node_name: None), "unreserve"),
        ("postbind", classmethod(lambda cls, state, pod, node_name: None), "post_bind"),
    ],
)
def test_misspelt_method_beside_a_right_one_is_refused_with_the_nearest_name(
    name: str, method: Any, meant: str
) -> None:
    said = f'plugin X: unknown method "{name}"; did you mean "{meant}"? start the names of helper methods with "_"'
    assert refusal(with_method(name, method)) == said


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("find", lambda self, pod: None),
        ("score_of", lambda self, node: 1),
        ("score_node", lambda self, node: 1),
        ("filters", 5),
        ("filters", property(lambda self: 1 / 0)),
        ("_filtre", lambda self, state, pod, node: None),
        ("close", lambda self: None),
    ],
)
def test_helpers_are_accepted(name: str, method: Any) -> None:
    check_methods("X", with_method(name, method))
    check_methods("X", with_method(name, method)())


@pytest.mark.parametrize(
    ("name", "method", "wanted", "given"),
    [
        ("filter", lambda self, state, pod: None, "state, pod, node", "state, pod"),
        ("filter", lambda self, state, pod, node, more: None, "state, pod, node", "state, pod, node, more"),
        ("filter", lambda self, pod, state, node: None, "state, pod, node", "pod, state, node"),
        ("filter", lambda self, state, pod, nodes: None, "state, pod, node", "state, pod, nodes"),
        ("filter", lambda self, state, pod, *, node: None, "state, pod, node", "state, pod, node"),
        ("score", lambda self, state, pod, node_name: 1, "state, pod, node", "state, pod, node_name"),
        ("permit", lambda self, state, pod, node: None, "state, pod, node_name", "state, pod, node"),
        ("pre_bind", lambda self, state, **more: None, "state, pod, node_name", "state, **more"),
        ("less", lambda self, b, a: True, "a, b", "b, a"),
        ("events", lambda self, cluster: (), "", "cluster"),
        ("unreserve", staticmethod(lambda pod, node_name: None), "state, pod, node_name", "pod, node_name"),
    ],
)
def test_wrong_parameters_are_refused(name: str, method: Any, wanted: str, given: str) -> None:
    said = f"plugin X: {name} must have the parameters ({wanted}), not ({given})"
    assert refusal(with_method(name, method)) == said


@pytest.mark.parametrize(
    "method",
    [
        lambda self, *_: None,
        lambda self, _state, of, on: None,
        lambda self, state, pod, node, more=None: None,
        lambda *everything: None,
    ],
)
def test_parameters_of_other_names_are_accepted(method: Any) -> None:
    check_methods("X", with_method("filter", method))
    check_methods("X", with_method("filter", method)())


async def waits(self: Any, *_: Any) -> None:
    """A method that is `async def`."""


def test_async_methods_are_refused_where_the_scheduler_does_not_wait() -> None:
    for name in ("pre_enqueue", "filter", "score", "reserve", "unreserve", "permit", "events"):
        why = f"plugin X: {name} cannot be `async def`, because a scheduling cycle does not wait"
        assert refusal(with_method(name, waits)) == why
    for name in MAY_WAIT:
        check_methods("X", with_method(name, waits))


def test_all_mistakes_of_a_plugin_are_reported_at_once() -> None:
    plugin = with_method("filtre", lambda self, state, pod, node: None)
    plugin.score = waits
    assert "filtre" in refusal(plugin)
    assert "score cannot be `async def`" in refusal(plugin)


class Inheriting(FilterMethods, ScoreMethods):
    """A plugin that lacks the method of a base class."""

    def filtre(self, state: Any, pod: Any, node: Any) -> Status | None:
        return None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class Binding(PreBindMethods):
    """A plugin with one base class."""

    def pre_bind(self, state: Any, pod: Any, node_name: str) -> None:
        return None


def test_base_classes_require_their_methods_and_add_none() -> None:
    with pytest.raises(UsageError, match=re.escape('unknown method "filtre"; did you mean "filter"?')):
        CheckedFactory("X", Inheriting)(None, None)
    assert not OutOfTreePlugin("X", CheckedFactory("X", Binding)(None, None), PluginHandle()).has("pre_bind_pre_flight")


def test_plugin_with_a_misspelt_method_alone_is_refused_with_the_nearest_name() -> None:
    class Only:
        def filtre(self, state: Any, pod: Any, node: Any) -> None:
            return None

    for factory in (Only, lambda _args: Only()):
        with pytest.raises(UsageError, match='did you mean "filter"'):
            CheckedFactory("X", factory)(None, None)
