"""Prometheus collector of call counts and durations of out-of-tree plugins.

The plugins' adapters measure the calls; this collector only reads the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

from policysched.framework.out_of_tree.watch import PluginWatch

LABELS = ("profile", "plugin", "extension_point")


class PluginTimes(Collector):
    """Collector of out-of-tree plugins' calls and durations, by profile, plugin and extension point.

    Args:
        watches: Returns the measured times, by profile.
    """

    def __init__(self, watches: Callable[[], Mapping[str, PluginWatch]]) -> None:
        self._watches = watches

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Return the current counters of all plugins."""
        seconds = CounterMetricFamily("policysched_plugin_seconds", "Seconds spent in a Python plugin.", labels=LABELS)
        calls = CounterMetricFamily("policysched_plugin_calls", "Number of calls of a Python plugin.", labels=LABELS)
        slow = CounterMetricFamily(
            "policysched_plugin_slow_calls", "Calls of a Python plugin that took more than one second.", labels=LABELS
        )
        for profile, watch in self._watches().items():
            for (plugin, point), spent in sorted(watch.spent.items()):
                of = (profile, plugin, point)
                seconds.add_metric(of, spent.seconds)
                calls.add_metric(of, spent.calls)
                slow.add_metric(of, spent.long)
        yield from (seconds, calls, slow)
