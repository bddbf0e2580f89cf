"""The metric source of a process without a configured source."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from policysched.framework.client import MetricSink, Wanted
from policysched.model.policy import MetricAnswer

NO_SOURCE: Final = "this scheduler has no source of metrics; start it with --prometheus-url or --metrics-file"


class NoSource:
    """The `MetricSource` if none is configured: no metric has values, and statuses of policies show the reason."""

    def __init__(self) -> None:
        self._wanted: Wanted = {}
        self._followed = asyncio.Event()

    def follow(self, wanted: Wanted) -> None:
        """Set the metrics for which the missing source is reported."""
        self._wanted = dict(wanted)
        self._followed.set()

    async def settled(self) -> None:
        """Return at once, because there are no queries to wait for."""

    async def run(self, sink: MetricSink, _: Collection[str] = ()) -> None:
        """Pass to the sink, for each metric, an answer with the problem that no source is configured."""
        while True:
            self._followed.clear()
            for key in self._wanted:
                sink(MetricAnswer(key, None, NO_SOURCE))
            await self._followed.wait()
