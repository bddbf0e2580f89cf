"""The in-tree plugins under kube-scheduler's names, one module or folder each.

`registry` is the table of them: their order, extension points, weights and arguments. `arguments` says how an entry of
`pluginConfig` becomes a plugin's arguments. Plugins of one subject share a folder; `bases`, `hint_parts` and
`columns` know no plugin, so that a plugin states only what is its own.
"""

from policysched.plugins.registry import (
    Enabled,
    EnginePart,
    default_plugins,
    default_registry,
    plugin_named,
)

__all__ = [
    "Enabled",
    "EnginePart",
    "default_plugins",
    "default_registry",
    "plugin_named",
]
