"""The plugins of examples, as `--plugin` and a configuration enable them."""

from __future__ import annotations

from typing import Any

from policysched import dry_run
from policysched.app.plugins.discovery import find_plugins
from policysched.app.plugins.factories import CheckedFactory
from policysched.framework.registry import PluginRegistry
from tests.examples.playing import EXAMPLES, objects

CONFIG = "scheduler-config.yaml"


def flag(example: str, file: str, factory: str) -> str:
    """What --plugin is given."""
    return f"{EXAMPLES / example / file}:{factory}"


def registered(example: str, file: str, factory: str) -> PluginRegistry:
    """The registry with an example's plugin."""
    return find_plugins([flag(example, file, factory)]).registry


def example_plugin(example: str, file: str, factory: str) -> Any:
    """Import the class of an example's plugin."""
    found = registered(example, file, factory)
    [made] = [one.factory for one in map(found.__getitem__, found) if one.origin.startswith("--plugin")]
    assert isinstance(made, CheckedFactory)
    return made.factory


def decided(example: str, pod: dict[str, Any], file: str, factory: str) -> dict[str, Any]:
    """The record of a decision about a pod in an example's cluster, with its plugin and its configuration."""
    config = (EXAMPLES / example / CONFIG).read_text("utf-8")
    known = registered(example, file, factory)
    return dry_run(objects(example, "cluster.yaml"), pod, config=config, plugins=known).to_dict()
