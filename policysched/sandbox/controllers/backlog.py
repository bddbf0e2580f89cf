"""What an actor still has to look at: names of objects, each once, in the order they came.

It knows no objects. An actor reads the present state when it works, so that several changes of one object are
looked at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Name = tuple[str, str]


class Backlog:
    """Names to look at."""

    def __init__(self) -> None:
        self._names: dict[Name, None] = {}

    def add(self, name: Name) -> bool:
        """Remember a name; always true, for use in `hear`."""
        self._names[name] = None
        return True

    def work(self, most: int, look: Callable[[Name], None]) -> bool:
        """Look at up to so many names; tells whether some are left."""
        for name in list(self._names)[:most]:
            del self._names[name]
            look(name)
        return bool(self._names)
