"""Node metrics from a Prometheus server or a file.

Input: metrics with their queries. Output: for each metric and refresh, a value per node or a problem. `prometheus`
polls a server with `prometheus_http` and decodes answers with `vector`; `file` reads a file; `problems` logs and counts
errors. Only `app` and the packages above it import this package.
"""

from typing import Final

INTERVAL: Final = 15.0
"""Default interval between two runs of a query. Units: seconds."""
