"""The source of metrics of a process that was given none."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from policysched.framework.client import MetricSink, Wanted
from policysched.model.policy import MetricAnswer

NO_SOURCE: Final = "this scheduler has no source of metrics; start it with --prometheus-url or --metrics-file"


class NoSource:
    """The `MetricSource` of a process that was given none: every metric is missing, and policies' status says why."""

    def __init__(self) -> None:
        self._wanted: Wanted = {}
        self._followed = asyncio.Event()

    def follow(self, wanted: Wanted) -> None:
        """Record what has no value."""
        self._wanted = dict(wanted)
        self._followed.set()

    async def settled(self) -> None:
        """Wait for nothing: nothing will come."""

    async def run(self, sink: MetricSink, _: Collection[str] = ()) -> None:
        """Say of each metric that it has no source."""
        while True:
            self._followed.clear()
            for key in self._wanted:
                sink(MetricAnswer(key, None, NO_SOURCE))
            await self._followed.wait()
