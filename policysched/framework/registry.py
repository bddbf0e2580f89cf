"""The registry of plugins by name: what a configuration may enable, and who makes it.

Knows no plugin. The default plugins and those from elsewhere are merged into one before profiles are made of them; a
name belongs to one plugin, so merging takes all of another registry or nothing of it.

Source: pkg/scheduler/framework/runtime/registry.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from policysched.errors import UsageError
from policysched.late_dataclass import dataclass

PluginFactory: TypeAlias = Callable[[Any, Any], Any]
"""Makes a plugin, of its `args` in the configuration (None where it states none) and a handle."""


@dataclass(frozen=True, slots=True)
class RegisteredPlugin:
    """A plugin that a configuration may enable."""

    name: str
    factory: PluginFactory
    origin: str
    """Where it comes from, in words; empty where nobody said."""


class PluginRegistry:
    """Plugins by name, in the order in which they were registered."""

    def __init__(self) -> None:
        self._plugins: dict[str, RegisteredPlugin] = {}

    def register(self, name: str, factory: PluginFactory, *, origin: str = "") -> None:
        """Add a plugin.

        Raises:
            UsageError: there is one of that name.
        """
        if name in self._plugins:
            raise UsageError(f"a plugin named {name} already exists")
        self._plugins[name] = RegisteredPlugin(name, factory, origin)

    def merge(self, other: PluginRegistry) -> None:
        """Add all plugins of another registry, or none.

        Raises:
            UsageError: one of its names is there already; nothing was added then.
        """
        for name in other:
            if name in self._plugins:
                raise UsageError(f"a plugin named {name} already exists")
        self._plugins.update(other._plugins)

    def make(self, name: str, args: Any, handle: Any) -> Any:
        """Make a plugin.

        Raises:
            UsageError: there is none of that name, or its arguments are not valid.
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
