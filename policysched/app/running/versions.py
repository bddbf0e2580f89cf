"""The version of Kubernetes that decisions follow, and a warning about API servers of another version."""

from __future__ import annotations

import logging
import re
from typing import Final

import msgspec

from policysched.reading.lenient_json import UNREADABLE

log = logging.getLogger(__name__)
KUBERNETES: Final = "v1.36.2"
"""Version of kube-scheduler with which decisions, events and metrics are compared."""
_MINOR: Final = re.compile(r"v?(\d+)\.(\d+)")


class _Version(msgspec.Struct):
    gitVersion: str = ""  # noqa: N815 - the API's name


def log_skew(document: bytes) -> None:
    """Log a warning if an API server has another minor version than `KUBERNETES`.

    Args:
        document: The answer of the API server at /version; documents without a version are ignored.
    """
    try:
        version = msgspec.json.decode(document, type=_Version).gitVersion
    except UNREADABLE:
        return
    found = _MINOR.match(version)
    if found is not None and found[0].lstrip("v") != KUBERNETES.lstrip("v").rpartition(".")[0]:
        log.warning("the API server has version %s; policysched is tested with %s only", version, KUBERNETES)
