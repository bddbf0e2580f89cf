"""When objects were made: the API's times as seconds.

A time that cannot be read counts as absent: the API server never writes one, and a rule about ages should not keep a
whole object out.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/time.go (RFC 3339).
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=65536)
def seconds_of(timestamp: str | None) -> float | None:
    """Give a timestamp in seconds since 1970, None where there is none or it is malformed; without a zone it is UTC."""
    if not timestamp:
        return None
    try:
        read = datetime.fromisoformat(timestamp)
        return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
