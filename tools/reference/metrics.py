"""The reference of metrics: the metrics that a running scheduler registers, with their help texts."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from policysched.app.clock import LeaseClock, SystemClock
from policysched.app.configuration.model import KIND, LeaderElection
from policysched.app.configuration.profiles import NO_PLUGINS
from policysched.app.running.configuration_file import ConfigurationFile
from policysched.app.running.leadership import ElectionThread, Leadership
from policysched.app.running.process import Process
from policysched.app.running.run import competing_gauge
from policysched.app.running.run_options import RunOptions
from policysched.app.running.server_version import skew_gauge
from policysched.app.serving.metrics.pod_resources import HEADS
from policysched.kube.connection import Connection
from policysched.kube.transport import Pacing
from policysched.metric_sources.counters import SourceCounters
from policysched.metric_sources.no_source import NoSource
from policysched.model.release import DEFAULT, Release
from policysched.plugins.arguments import API_VERSION

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
OWN: Final = "policysched_"
HEAD: Final = """---
description: Every metric that policysched exports, with type, labels and meaning.
---

# Metrics

Look up a metric that the scheduler exports. [Observe](../run/observe.md) shows how to scrape the metrics, and which
dashboard and alerts exist. The scheduler serves them under `/metrics` of its [secure port](endpoints.md).

The level (STABLE, BETA, ALPHA) is kube-scheduler's. Metrics without a level have no such promise. No series of
`/metrics` is about one pod or one node. When a policy is deleted, its series are deleted. Only the first 1,000
policies by name have series. The flags `--disabled-metrics` and `--allow-metric-labels` of
[`policysched run`](commands.md) limit the output.
"""
KUBE: Final = """## Metrics of kube-scheduler

Names, help texts, labels and buckets are those of kube-scheduler v1.37.2, so existing dashboards work
(`tests/e2e/test_scheduler_metrics.py` compares them). Metrics marked *gated* exist with the feature gate
`GenericWorkload`, those about placements with `TopologyAwareWorkloadScheduling` too.
"""
DURATIONS: Final = """## How durations are measured

policysched evaluates a plugin for all nodes at once, and it reuses results for equal pods. So durations mean:

- **Extension points** are measured once per decision. Filter and Score include all nodes.
- **Plugins** are measured in one of ten decisions, and in every binding and PostFilter. Filter and Score are measured
  for all changed nodes together; kube-scheduler measures each node. The status of such a call is `Success`, whatever
  the plugin decides about the nodes. PreEnqueue is measured for one of ten pods.
- **Policies** of a profile are evaluated together. The first policy that is called carries the shared time.
- **`scheduler_plugin_evaluation_total`** counts decisions, not nodes.
"""
ABSENT: Final = """## Metrics of kube-scheduler that do not exist here

| metrics | reason |
|---|---|
| `scheduler_batch_attempts_total`, `scheduler_batch_cache_flushed_total`, `scheduler_batch_rescore_*`, \
`scheduler_get_node_hint_duration_seconds`, `scheduler_store_schedule_results_*` \
| policysched reuses results for equal pods in another way |
| `scheduler_async_api_call_execution_total`, `scheduler_async_api_call_execution_duration_seconds`, \
`scheduler_pending_async_api_calls` | the feature gate `SchedulerAsyncAPICalls` is off by default |
| `scheduler_generated_placements_total`, `scheduler_placement_evaluations_total`, \
`scheduler_placement_evaluation_duration_seconds` \
| they exist with the feature gate `TopologyAwareWorkloadScheduling` |
| `scheduler_pre_queueing_hint_evaluations_total` | indexes select the pods of a queueing hint |
| `scheduler_volume_binder_cache_requests_total` | assumed volumes have no separate cache |
| `go_*`, `workqueue_*`, `apiserver_*`, `kubernetes_feature_enabled` | they belong to the Go runtime and its libraries |
"""
OWN_HEAD: Final = "## Metrics of policysched\n"
DECISIVE: Final = """## When a policy is decisive

`policysched_policy_decisive_total` counts decisions that would be different without one policy.

- `by="filter"`: the pod got no node, and on at least one node this policy is the only obstacle. Without the policy the
  pod would have a node. Every decision is examined, except decisions that end at PreFilter.
- `by="score"`: the pod got a node, and without the scores of this policy it would have got another one. One of ten
  choices among several nodes is examined, for one scoring policy in turn.

The share of decisive choices is:

```promql
rate(policysched_policy_decisive_total{by="score"}[1h])
/ ignoring(by) rate(policysched_policy_examined_choices_total[1h])
```

A filter that rejects nodes with higher scores is not counted, because rejected nodes are not scored.
"""
RESOURCES: Final = """## Requests and limits of pods

`/metrics/resources` exports kube-scheduler's metrics of all unfinished pods of the cluster, whichever scheduler placed
them. Scrape it as a separate job with a longer interval, because it has several series per pod. RBAC treats it as a
separate path: a role for `/metrics` does not include it.

"""
LIMITS: Final = """
A pod that states more than 1,024 requests and limits has no series. If all series together exceed 256 MiB, the
response is 503.
"""
NOTES: Final[Mapping[str, str]] = {
    "scheduler_goroutines": "Only `binding`: bindings in progress.",
    "scheduler_plugin_evaluation_total": "Decisions, see [durations](#how-durations-are-measured).",
    "scheduler_plugin_execution_duration_seconds": "A sample, see [durations](#how-durations-are-measured).",
    "leader_election_master_status": "Absent without leader election.",
    "rest_client_request_duration_seconds": "Watches: until the response begins.",
    "rest_client_requests_total": "Without requests of the leader election and of the secure port.",
    "policysched_policy_decisive_total": "See [decisive](#when-a-policy-is-decisive).",
    "policysched_metric_refreshes_total": "Outcomes: `answered`, `unreachable`, `timeout`, `tls`, `credentials`, "
    "`refused`, `malformed`, `too_large`, `failed`.",
    "policysched_metric_series_dropped_total": "Reasons: `duplicate`, `no_label`, `not_finite`, `no_node`.",
    "policysched_configuration_reloads_total": "Results: `used`, `invalid`, `needs_restart`, `failed`. Absent without "
    "`--config`.",
    "policysched_policy_state": "States: `Active`, `Shadow`, `Disabled`, `Rejected`.",
}
"""Text for operators beside the help text, by metric."""
RESOURCE_LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_LEVEL: Final = re.compile(r"\[(STABLE|BETA|ALPHA)\] ")


@dataclass(frozen=True)
class Metric:
    """A registered metric."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str

    def row(self, *, is_gated: bool) -> str:
        """Return the metric's row in the table of the page."""
        found = _LEVEL.match(self.text)
        labels = ", ".join(f"`{label}`" for label in self.labels)
        gated = ("*Gated.*",) if is_gated else ()
        text = " ".join((*gated, _LEVEL.sub("", self.text), NOTES.get(self.name, ""))).strip()
        return f"| `{self.name}` | {self.kind} | {labels} | {found[1] if found else ''} | {text.replace('|', ' ')} |"


def page() -> str:
    """Return the text of the reference page about metrics."""
    plain = {one.name for one in asyncio.run(_registered(DEFAULT))}
    gates = replace(DEFAULT, generic_workload=True, topology_aware=True)
    metrics = sorted(asyncio.run(_registered(gates)), key=lambda one: one.name)
    resources = [Metric(name, "gauge", RESOURCE_LABELS, text) for name, text in HEADS.items()]
    gated = frozenset(one.name for one in metrics if one.name not in plain)
    kube = _table((one for one in metrics if not one.name.startswith(OWN)), gated)
    own = _table(one for one in metrics if one.name.startswith(OWN))
    parts = [HEAD, KUBE, kube, OWN_HEAD, own, DECISIVE, DURATIONS, RESOURCES + _table(resources) + LIMITS, ABSENT]
    return "\n".join(parts)


def _table(metrics: Iterable[Metric], gated: Collection[str] = ()) -> str:
    head = ["| metric | type | labels | level | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(one.row(is_gated=one.name in gated) for one in metrics)]) + "\n"


async def _registered(release: Release) -> list[Metric]:
    """Return the metrics of a scheduler with a configuration file, leader election and a metric source."""
    registry = CollectorRegistry()
    data = f"apiVersion: {API_VERSION}\nkind: {KIND}\n".encode()
    configuration = ConfigurationFile(Path("scheduler.yaml"), NO_PLUGINS, registry, data=data)
    configuration.follow(release)
    SourceCounters(registry)
    Process(RunOptions(), await _connect(), NoSource(), registry, configuration, release)
    competing_gauge(registry)
    skew_gauge(registry)
    pacing = Pacing(random.Random().random)  # noqa: S311 - no election takes place
    Leadership(LeaderElection(), ElectionThread(_connect, LeaseClock(), pacing, ""), registry)
    return list(_metrics(registry))


async def _connect() -> Connection:
    return Connection("http://localhost", SystemClock())


def _metrics(registry: CollectorRegistry) -> Iterator[Metric]:
    for collector in registry._collector_to_names:
        for family in collector.collect():
            labels = getattr(family, "_labelnames", ()) or getattr(collector, "_labelnames", ())
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield Metric(name, family.type, tuple(labels), family.documentation)
