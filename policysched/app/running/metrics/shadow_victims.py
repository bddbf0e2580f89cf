"""Prometheus collector of victims that policies in Shadow mode would have protected."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

from policysched.framework.plugin import PREFIX
from policysched.schedule.shadow_guards import ShadowGuards


class ShadowVictims(Collector):
    """A counter of victims by policy.

    Args:
        shadows: Source of the counts.
    """

    def __init__(self, shadows: ShadowGuards) -> None:
        self._shadows = shadows

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Return the current counter."""
        text = "Preemption victims that a policy in Shadow mode would have protected."
        found = CounterMetricFamily("policysched_shadow_kept_victims", text, labels=["policy"])
        for policy, count in sorted(self._shadows.kept.items()):
            found.add_metric([policy.removeprefix(PREFIX)], count)
        yield found
