"""The default plugins: one module each, under kube-scheduler's names. They know the framework, not each other."""

from policysched.plugins.registry import (
    DEFAULT_BINDER,
    DEFAULT_PREEMPTION,
    Enabled,
    EnginePart,
    check_arguments,
    default_plugins,
    plugin_named,
)

__all__ = [
    "DEFAULT_BINDER",
    "DEFAULT_PREEMPTION",
    "Enabled",
    "EnginePart",
    "check_arguments",
    "default_plugins",
    "plugin_named",
]
