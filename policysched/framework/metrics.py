"""The seam to metrics: where values of nodes come from, and how they reach the scheduler.

A source runs beside the scheduler on its loop and hands over whole answers, one for each metric and refresh. It never
raises for what a server or a file does: trouble is a `problem` in the answer, and what was known before ages. Which
metrics it follows is told to it whenever the policies in force change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from policysched.model.policy import MetricAnswer, MetricKey

Wanted: TypeAlias = Mapping[MetricKey, frozenset[str]]
"""The metrics that policies in force read, each with the names that they give it: `load` and `cool-gpu-nodes/load`."""
MetricSink: TypeAlias = Callable[[MetricAnswer], None]
"""Takes an answer between two cycles, on the loop; only values that differ from the last ones move anything."""


class MetricSource(Protocol):
    """Where metrics come from."""

    def follow(self, wanted: Wanted) -> None:
        """Follow these metrics from now on and no others; new ones are asked at once."""

    async def settled(self) -> None:
        """Wait until everything that is followed was asked once, whatever came of it."""

    async def run(self, sink: MetricSink) -> None:
        """Refresh what is followed until cancelled, and hand each answer to the sink."""
