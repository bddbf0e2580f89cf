"""What all parts of the sandbox share: the store, the registry, the clock and the random source.

It knows how to make the parts of an object's metadata and has no rules. Clock and randomness come from
outside, so that a test can repeat a run exactly.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.resources import Registry
from policysched.sandbox.storage.store import ObjectStore

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from datetime import datetime

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(slots=True)
class Backend:
    """The state of one sandbox."""

    now: Callable[[], datetime]
    random: random.Random
    history: int = 20_000
    first_version: int = 1
    registry: Registry = field(default_factory=Registry)
    applied: dict[tuple[str, str], Json] = field(default_factory=dict)
    """What was applied last of an object, by its UID and the manager: no owners of fields are kept."""
    store: ObjectStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = ObjectStore(self.history, self.first_version)

    def timestamp(self, plus_seconds: float = 0) -> str:
        """Write the present time, or one later on, as metadata has it."""
        seconds = self.now().timestamp() + plus_seconds
        from_epoch = self.now().fromtimestamp(int(seconds), UTC)
        return from_epoch.strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_uid(self) -> str:
        """Draw a unique id."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """Draw the random end of a generated name."""
        return "".join(self.random.choices(_SUFFIX, k=length))
