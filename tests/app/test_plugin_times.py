from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from policysched.app.running.metrics.plugin_times import PluginTimes
from policysched.framework.out_of_tree.watch import PluginWatch


def test_metrics_say_what_each_plugin_took_at_each_point() -> None:
    at = [0.0]
    watch = PluginWatch(lambda: at[0])
    registry = CollectorRegistry()
    registry.register(PluginTimes(lambda: {"mine": watch, "other": PluginWatch()}))
    for seconds in (0.25, 1.5):
        watch.begin("Disk", "Filter")
        at[0] += seconds
        watch.end()
    said = generate_latest(registry).decode()
    of = 'extension_point="Filter",plugin="Disk",profile="mine"'
    assert [line for line in said.splitlines() if not line.startswith("#")] == [
        f"policysched_plugin_seconds_total{{{of}}} 1.75",
        f"policysched_plugin_calls_total{{{of}}} 2.0",
        f"policysched_plugin_slow_calls_total{{{of}}} 1.0",
    ]
