"""`RequestMetrics`: requests to the API server, with client-go's names, labels and buckets.

Connections belong to different threads and are replaced over time. Their counts remain, and no connection is kept
alive.

Source: k8s.io/component-base/metrics/prometheus/restclient/metrics.go.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector
from yarl import URL

from policysched.app.running.metrics.series import Histogram, Labels, make_counters
from policysched.kube.connection import Connection

BOUNDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
FAILED: Final = "<error>"
"""Value of the label `code` for a request without an answer."""


class RequestMetrics(Collector):
    """Counts the requests of connections to the API server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[Labels] = Counter()
        self._seconds = _seconds()

    def count(self, connection: Connection) -> Connection:
        """Count the requests of a connection from now on; return the connection."""
        host = URL(connection.url).authority

        def note(method: str, code: int, seconds: float) -> None:
            with self._lock:
                self._answers[str(code) if code else FAILED, method, host] += 1
                self._seconds.observe((method, host), seconds)

        connection.on_answer = note
        return connection

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        with self._lock:
            answers, seconds = self._answers.copy(), self._seconds.copy()
        text = "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host."
        yield make_counters("rest_client_requests", text, ("code", "method", "host"), answers)
        yield seconds.collect()


def _seconds() -> Histogram:
    text = "[ALPHA] Request latency in seconds. Broken down by verb, and host."
    return Histogram("rest_client_request_duration_seconds", text, ("verb", "host"), BOUNDS)
