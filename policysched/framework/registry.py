"""`PluginRegistry`: the names of plugins that a configuration may enable, with the factories of the plugins.

The registries of default plugins and out-of-tree plugins are merged before profiles are created. A name belongs to one
plugin, so a merge adds all plugins of the other registry or none.

Source: pkg/scheduler/framework/runtime/registry.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from policysched.errors import UsageError

PluginFactory: TypeAlias = Callable[[Any, Any], Any]
"""Function that creates a plugin from its `args` in the configuration (None without `args`) and a PluginHandle."""


@dataclass(frozen=True, slots=True)
class RegisteredPlugin:
    """A plugin that a configuration may enable."""

    name: str
    factory: PluginFactory
    origin: str
    """The package or file that defines the plugin, for messages; empty if unknown."""


class PluginRegistry:
    """The plugins that a configuration may enable, by name, in the order of registration."""

    def __init__(self) -> None:
        self._plugins: dict[str, RegisteredPlugin] = {}

    def register(self, name: str, factory: PluginFactory, *, origin: str = "") -> None:
        """Add a plugin to the registry under the plugin's name.

        Raises:
            UsageError: the name is already registered.
        """
        if name in self._plugins:
            raise UsageError(f'plugin "{name}" already exists')
        self._plugins[name] = RegisteredPlugin(name, factory, origin)

    def merge(self, other: PluginRegistry) -> None:
        """Add all plugins of another registry.

        Raises:
            UsageError: a name is already registered; no plugin is added.
        """
        for name in other:
            if name in self._plugins:
                raise UsageError(f'plugin "{name}" already exists')
        self._plugins.update(other._plugins)

    def make(self, name: str, args: Any, handle: Any) -> Any:
        """Create the plugin that is registered under a name.

        Raises:
            UsageError: the name is not registered, or the arguments are not valid.
        """
        return self[name].factory(args, handle)

    def __getitem__(self, name: str) -> RegisteredPlugin:
        if name not in self._plugins:
            raise UsageError(f"no plugin named {name} exists")
        return self._plugins[name]

    def __contains__(self, name: object) -> bool:
        return name in self._plugins

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)
