"""Where metrics of nodes come from: a Prometheus server or a file. It knows nothing of decisions.

Comes in: the metrics that policies read, each with its query. Goes out: for each metric and refresh one answer, a value
for each node and perhaps a problem. `prometheus` polls a server: `prometheus_http` sends a query, `vector` makes values
of its answer. `file` reads a file instead; `problems` logs and counts what goes wrong. What becomes of answers is said
in `policysched.app.running.metric_options`.
"""

from typing import Final

INTERVAL: Final = 15.0
"""How often a query is asked where nothing else is said. Units: seconds."""
