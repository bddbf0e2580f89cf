"""`CycleState`: the data that plugins store for one scheduling attempt, from PreFilter to PostBind.

Each attempt has its own state. A simulation, such as a preemption dry run, works on a clone.

Source: pkg/scheduler/framework/cycle_state.go, v1.36.
"""

from __future__ import annotations

import copy
from typing import Any


class CycleState:
    """Values of one scheduling attempt by key; a plugin should prefix its keys with its name."""

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
        """The plugins whose PreFilter returned Skip: Filter, AddPod and RemovePod of these plugins are not called."""
        self.skip_score_plugins: frozenset[str] = frozenset()
        """The plugins whose PreScore returned Skip: Score of these plugins is not called."""
        self.skip_pre_bind_plugins: frozenset[str] = frozenset()
        """The plugins whose PreBindPreFlight returned Skip: PreBind of these plugins is not called."""
        self.parallel_pre_bind_plugins: frozenset[str] = frozenset()
        """The plugins whose PreBind may run in parallel with neighbours that may, too, as PreBindPreFlight stated."""

    def read(self, key: str) -> Any:
        """Return the value that is stored under a key.

        Raises:
            KeyError: the key has no value.
        """
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default` if the key has no value."""
        return self._values.get(key, default)

    def write(self, key: str, value: Any) -> None:
        """Store a value under a key; simulations copy the value with its method `clone`, or else with `copy.copy`."""
        self._values[key] = value

    def delete(self, key: str) -> None:
        """Delete the value of a key, if the key has a value."""
        self._values.pop(key, None)

    def clone(self) -> CycleState:
        """Return a copy in which the values are copied too; changing the copy does not change this state."""
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
