"""Request and result types between the HTTPS thread and the scheduler's loop for a dry-run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from policysched.model.objects import Pod


@dataclass(frozen=True, slots=True)
class AskedPod:
    """A pod to decide about."""

    pod: Pod
    text: bytes
    """It as JSON, for extenders."""
    profile: str = ""
    """The scheduler name by which its profile is chosen; empty where the only one is meant."""
    seed: int | None = None
    """What draws among equally good nodes."""


@dataclass(frozen=True, slots=True)
class LiveDecision:
    """What the scheduler says of it."""

    record: dict[str, Any]
    leads: bool
    """Whether this process schedules, as opposed to one that stands by."""


Decide = Callable[[AskedPod], Awaitable[LiveDecision]]
