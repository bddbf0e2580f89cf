"""The registry: a name belongs to one plugin, and merging is all or nothing."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest

from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry


def _made(name: str, args: Any, handle: Any) -> tuple[str, Any, Any]:
    return name, args, handle


def registry(*names: str) -> PluginRegistry:
    made = PluginRegistry()
    for name in names:
        made.register(name, partial(_made, name), origin=f"of {name}")
    return made


def refused(text: str) -> AbstractContextManager[object]:
    return pytest.raises(UsageError, match=f"^{re.escape(text)}$")


def test_registered_plugin_is_made_of_its_arguments_and_the_handle() -> None:
    made = registry("a", "b")
    assert (list(made), len(made), "a" in made, "c" in made) == (["a", "b"], 2, True, False)
    assert made.make("b", {"x": 1}, "handle") == ("b", {"x": 1}, "handle")
    assert made["a"].origin == "of a"


def test_registering_a_name_twice_is_refused_and_changes_nothing() -> None:
    made = registry("a")
    with refused('plugin "a" already exists'):
        made.register("a", lambda *_: "another")
    assert made.make("a", None, None) == ("a", None, None)


def test_plugin_that_is_not_there_cannot_be_made() -> None:
    made = registry("b")
    with refused("no plugin named a exists"):
        made.make("a", None, None)


def test_merging_takes_all_of_another_registry() -> None:
    made = registry("a")
    made.merge(registry("b", "c"))
    assert list(made) == ["a", "b", "c"]
    assert made["c"].origin == "of c"


def test_merging_takes_nothing_where_one_name_is_taken() -> None:
    made, other = registry("c"), registry("a", "b", "c", "d")
    with refused('plugin "c" already exists'):
        made.merge(other)
    assert list(made) == ["c"]
    assert list(other) == ["a", "b", "c", "d"]
