"""The version of Kubernetes that decisions follow, and a warning about API servers of another version."""

from __future__ import annotations

import logging
import re
from typing import Final

log = logging.getLogger(__name__)
KUBERNETES: Final = "v1.36.5"
"""Version of kube-scheduler with which decisions, events and metrics are compared."""
_MINOR: Final = re.compile(r"v?(\d+)\.(\d+)")


def log_skew(version: str) -> None:
    """Log a warning if an API server has another minor version than `KUBERNETES`.

    Args:
        version: The version that the API server reports; empty if it reports none.
    """
    found = _MINOR.match(version)
    if found is not None and found[0].lstrip("v") != KUBERNETES.lstrip("v").rpartition(".")[0]:
        log.warning("the API server has version %s; policysched is tested with %s only", version, KUBERNETES)
