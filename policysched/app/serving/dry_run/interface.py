"""Request and result types between the HTTPS thread and the scheduler's loop for a dry-run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from policysched.model.objects import Node, Pod, PodGroup


@dataclass(frozen=True, slots=True)
class DryRunPod:
    """A pod of a dry-run request."""

    pod: Pod
    text: bytes
    """The pod as JSON, for extenders."""
    profile: str = ""
    """Scheduler name that selects the profile; empty for the only profile."""
    seed: int | None = None
    """Seed of the draw among equally good nodes."""
    others: tuple[Pod, ...] = ()
    """Further pods of the pod's group, which are decided together."""
    group: PodGroup | None = None
    """The PodGroup of the pod, if the request contains the PodGroup."""
    templates: tuple[Node, ...] = ()
    """Nodes that do not exist, each of which is evaluated alone."""


@dataclass(frozen=True, slots=True)
class LiveDecision:
    """The scheduler's result for a dry-run."""

    record: dict[str, Any]
    leads: bool
    """Whether this process is the leader, not a standby."""


Decide = Callable[[DryRunPod], Awaitable[LiveDecision]]
