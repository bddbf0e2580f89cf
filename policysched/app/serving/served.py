"""`Served`: the state and functions that a process provides for its HTTPS port."""

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
"""Function that opens a connection to the API server."""


@dataclass(frozen=True, slots=True)
class Served:
    """State and functions of the process that its HTTP port serves."""

    health: Health
    registry: CollectorRegistry
    documents: Mapping[str, Callable[[], Any]]
    """Functions that return JSON documents, by path; called in the event loop of the process."""
    decide: Decide
    """Function that decides about the pods of a dry-run; called in the event loop of the process."""
    release: Callable[[], Release]
    """Function that returns the Kubernetes release that decisions follow; called in the port's thread."""
    pods: Callable[[], Iterable[Pod]]
    """Function that returns the unfinished pods; called in the port's thread."""
    set_verbosity: Callable[[int], None]
    """Function that changes the verbosity of logs; called in the port's thread."""
    is_busy: Callable[[], bool]
    """Function that returns whether the process is starting, or pods or events wait; called in the port's thread."""
