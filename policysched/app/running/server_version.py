"""The version of the API server: the Kubernetes release that a process follows, and warnings about the version skew.

The release is chosen once, at the start. A server that changes its minor later is reported; a restart follows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from policysched.errors import ConnectionProblemError
from policysched.kube.transport import Pacing, Retry, Transport
from policysched.model.release import Release
from policysched.model.release_choice import AUTO, release_named, release_of_server, skew_warning

log = logging.getLogger(__name__)
CHECK_EVERY: Final = 300.0
"""Interval between two reads of the server's version. Units: seconds."""


async def wait_for_version(transport: Transport, pacing: Pacing) -> str:
    """Wait until the server answers and accepts the credentials; log each problem once.

    Returns:
        The server's version; empty if it reports none.
    """
    retry, logged = Retry(pacing), ""
    while True:
        try:
            return await transport.server_version()
        except ConnectionProblemError as error:
            if str(error) != logged:
                log.warning("%s; check the kubeconfig and the API server; retrying until it answers", error)
            logged = str(error)
            await retry.pause()


def release_to_follow(kube_version: str, version: str) -> Release:
    """Return the release that a process follows; log the release, and a warning if the server's release differs.

    Args:
        kube_version: The value of `--kube-version`.
        version: The server's version; empty if it reports none.

    Raises:
        UsageError: the value is not a known minor.
    """
    if kube_version == AUTO:
        release, warning = release_of_server(version)
    else:
        release = release_named(kube_version)
        warning = skew_warning(release, version)
    kind = " (preview)" if release.is_preview else ""
    server = f"has version {version}" if version else "reports no version"
    log.info("decisions follow Kubernetes %s%s; the API server %s", release.version, kind, server)
    if warning:
        log.warning("%s", warning)
    return release


class SkewWatch:
    """Reads the server's version periodically; warns once per minor, and provides the skew as a metric.

    Args:
        transport: Requests to the server.
        kube_version: The value of `--kube-version`.
        release: The release that the process follows.
        version: The server's version at the start.
        registry: Registry of the metric.
    """

    def __init__(
        self, transport: Transport, kube_version: str, release: Release, version: str, registry: CollectorRegistry
    ) -> None:
        self._transport, self._kube_version, self._release = transport, kube_version, release
        self._gauge = skew_gauge(registry)
        self._gauge.set(release.skew(version))
        self._logged = {release.skew(version)}

    @asynccontextmanager
    async def active(self) -> AsyncIterator[None]:
        """Read the version periodically inside this context."""
        reading = asyncio.create_task(self._run())
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY)
            with suppress(ConnectionProblemError):  # the watches report a server that does not answer
                self.see(await self._transport.server_version())

    def see(self, version: str) -> None:
        """Set the metric, and warn if the process would follow another release after a restart, or the skew is large.

        Args:
            version: The server's version; empty if it reports none.
        """
        skew = self._release.skew(version)
        self._gauge.set(skew)
        if not version or skew in self._logged:
            return
        self._logged.add(skew)
        if self._kube_version == AUTO and release_of_server(version)[0].minor != self._release.minor:
            text = "the API server has version %s now; decisions follow Kubernetes %s until this process restarts"
            log.warning(text, version, self._release.minor)
        elif warning := skew_warning(self._release, version):
            log.warning("%s", warning)


def skew_gauge(registry: CollectorRegistry) -> Gauge:
    """Register the gauge of the version skew."""
    text = (
        "Minors by which the API server is newer than the kube-scheduler that decisions follow; 0 and 1 are supported."
    )
    return Gauge("policysched_kubernetes_skew", text, registry=registry)
