"""`Served`: what a process provides for its port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry

from policysched.app.serving.dry_run.interface import Decide
from policysched.app.serving.health import Health
from policysched.kube.connection import Connection
from policysched.model.objects import Pod
from policysched.model.release import Release

Connect: TypeAlias = Callable[[], Awaitable[Connection]]
"""Opens a connection to the API server."""


@dataclass(frozen=True, slots=True)
class Served:
    """State and functions of the process that its HTTP port serves."""

    health: Health
    registry: CollectorRegistry
    documents: Mapping[str, Callable[[], Any]]
    """JSON documents by path; called in the loop of the process."""
    decide: Decide
    """Decides about a pod; called in the loop of the process."""
    release: Callable[[], Release]
    """Returns the Kubernetes release that decisions follow; called in the port's thread."""
    pods: Callable[[], Iterable[Pod]]
    """Returns the unfinished pods; called in the port's thread."""
    set_verbosity: Callable[[int], None]
    """Changes the verbosity of logs; called in the port's thread."""
    is_busy: Callable[[], bool]
    """Returns whether the process is starting, or pods or events wait; called in the port's thread."""
