"""`ServedProcess`: health, documents and decisions for the HTTPS port, which opens before the process exists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from prometheus_client import CollectorRegistry

from policysched.app.running.port_dry_runs import AGAIN
from policysched.app.running.process import COMPILED, DOCUMENTS, LISTED, Process
from policysched.app.serving.dry_run.interface import DryRunPod, LiveDecision
from policysched.app.serving.health import READYZ, Health
from policysched.app.serving.refused import RefusedError
from policysched.app.serving.served import Served
from policysched.model.objects import Pod
from policysched.model.release import Release

NO_ANSWER: Final = "the API server has not answered yet"


class ServedProcess:
    """The state and functions of a process for the HTTPS port; before the process exists, only health checks.

    Args:
        stop: Set when the process ends.
    """

    def __init__(self, stop: asyncio.Event) -> None:
        self.health = Health()
        for name in (LISTED, COMPILED):
            self.health.add(name, lambda: NO_ANSWER, READYZ)
        self.health.add("shutdown", lambda: "process is shutting down" if stop.is_set() else "", READYZ)
        self._process: Process | None = None

    def served(self, registry: CollectorRegistry, set_verbosity: Callable[[int], None]) -> Served:
        """Return the health checks, metrics, documents and functions that the port serves.

        Args:
            registry: Registry of the metrics.
            set_verbosity: Changes the verbosity of logs.
        """
        documents = {path: partial(self._document, path) for path in DOCUMENTS}
        return Served(
            self.health, registry, documents, self._decide, self._release, self._pods, set_verbosity, self._is_busy
        )

    def show(self, process: Process) -> None:
        """Serve a process and its health checks from now on."""
        process.add_checks(self.health)
        self._process = process

    @property
    def _required(self) -> Process:
        """The process; raises an error if the process does not exist yet.

        Raises:
            RefusedError: 503, the process does not exist yet.
        """
        if self._process is None:
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, NO_ANSWER, AGAIN)
        return self._process

    def _document(self, path: str) -> Any:
        return self._required.document(path)

    async def _decide(self, dry_run: DryRunPod) -> LiveDecision:
        return await self._required.dry_runs.decide(dry_run)

    def _release(self) -> Release:
        return self._required.scheduler.cluster.release

    def _pods(self) -> Iterable[Pod]:
        return () if self._process is None else self._process.pods()

    def _is_busy(self) -> bool:
        return self._process is None or self._process.is_busy()
