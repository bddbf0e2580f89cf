"""`CycleState`: what plugins keep for one scheduling attempt, from PreFilter to PostBind.

There is one per attempt. What-ifs get a clone of it, so that what a plugin writes there is gone when they end.

Source: pkg/scheduler/framework/cycle_state.go, v1.36.
"""

from __future__ import annotations

import copy
from typing import Any


class CycleState:
    """Values by key; plugins choose their keys so that others do not have the same by chance."""

    __slots__ = (
        "_values",
        "parallel_pre_bind_plugins",
        "skip_filter_plugins",
        "skip_pre_bind_plugins",
        "skip_score_plugins",
    )

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.skip_filter_plugins: frozenset[str] = frozenset()
        """The plugins that PreFilter said Skip of: Filter, AddPod and RemovePod leave them out."""
        self.skip_score_plugins: frozenset[str] = frozenset()
        """The plugins that PreScore said Skip of: Score leaves them out."""
        self.skip_pre_bind_plugins: frozenset[str] = frozenset()
        """The plugins that PreBindPreFlight said Skip of: PreBind leaves them out."""
        self.parallel_pre_bind_plugins: frozenset[str] = frozenset()
        """The plugins that PreBindPreFlight said AllowParallel of: PreBind runs those that stand together together."""

    def read(self, key: str) -> Any:
        """Return the value of a key.

        Raises:
            KeyError: nobody wrote one.
        """
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or another one where nobody wrote any."""
        return self._values.get(key, default)

    def write(self, key: str, value: Any) -> None:
        """Keep a value; one that has a method `clone` is cloned by it, any other by `copy.copy`."""
        self._values[key] = value

    def delete(self, key: str) -> None:
        """Drop the value of a key, if there is one."""
        self._values.pop(key, None)

    def clone(self) -> CycleState:
        """Return another state with clones of the values, which may be changed without a trace in this one."""
        made = CycleState()
        made._values = {key: _cloned(value) for key, value in self._values.items()}
        made.skip_filter_plugins = self.skip_filter_plugins
        made.skip_score_plugins = self.skip_score_plugins
        made.skip_pre_bind_plugins = self.skip_pre_bind_plugins
        made.parallel_pre_bind_plugins = self.parallel_pre_bind_plugins
        return made

    def __contains__(self, key: object) -> bool:
        return key in self._values


def _cloned(value: Any) -> Any:
    clone = getattr(value, "clone", None)
    return clone() if callable(clone) else copy.copy(value)
