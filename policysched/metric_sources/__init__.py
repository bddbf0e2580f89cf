"""Node metrics from a Prometheus server or a file.

Input: metrics with their queries. Output: for each metric and refresh, a value per node or a problem. `prometheus`
polls a server with `prometheus_http` and decodes answers with `vector`; `file` reads a file; `problems` logs and counts
errors. Only `app` and upper packages import this one.
"""

from typing import Final

INTERVAL: Final = 15.0
"""How often a query is asked where nothing else is said. Units: seconds."""
