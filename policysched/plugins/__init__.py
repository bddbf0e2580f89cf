"""The default plugins under kube-scheduler's names.

`registry` lists them with order, extension points, weights and arguments. `arguments` decodes `pluginConfig`. `bases`,
`hint_parts` and `columns` are shared parts. Plugins do not import each other. `schedule` and upper packages import this
one.
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
