"""What is left out because it cannot be used: said in the log, counted, and nothing more.

Each object is told once a version by whoever finds it; how many lines that may become is limited here, because nobody
who may create objects should be able to flood the log. What was not said is counted all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter

from policysched.kube.items import HasMetadata
from policysched.model.decode import ObjectError

log = logging.getLogger(__name__)
BURST = 100
"""How many lines may follow each other."""
PER_SECOND = 1.0
"""How many lines a second may follow those."""


class Reason(StrEnum):
    """Why an object is left out, as the counter names it."""

    MALFORMED = "malformed"
    FAILED = "failed"
    """It can be read, and taking it in failed."""


class LeftOut:
    """Says and counts objects that are left out.

    Args:
        monotonic: gives seconds that never go back.
        registry: where the counter is registered.
    """

    def __init__(self, monotonic: Callable[[], float], registry: CollectorRegistry | None = None) -> None:
        self._counter = Counter(
            "policysched_objects_left_out",
            "Versions of objects that were left out because they cannot be used, by kind and reason.",
            ["kind", "reason"],
            registry=registry,
        )
        self._monotonic = monotonic
        self._lines, self._filled_at, self._unsaid = float(BURST), monotonic(), 0

    def malformed(self, error: ObjectError, _: bytes = b"") -> None:
        """Take note of an object that cannot be read."""
        self._counter.labels(error.kind, Reason.MALFORMED.value).inc()
        self._say(f"left out, because it cannot be used: {error}")

    def failed(self, kind: str, obj: HasMetadata, error: Exception) -> None:
        """Take note of an object that could not be taken in, or out."""
        self._counter.labels(kind, Reason.FAILED.value).inc()
        namespace, name = obj.metadata.namespace, obj.metadata.name
        key = f"{namespace}/{name}" if namespace else name
        self._say(str(ObjectError(kind, key, f"left out, because taking it in failed: {error!r}")), error)

    def _say(self, text: str, error: Exception | None = None) -> None:
        now = self._monotonic()
        self._lines = min(BURST, self._lines + (now - self._filled_at) * PER_SECOND)
        self._filled_at = now
        if self._lines < 1:
            self._unsaid += 1
            return
        self._lines -= 1
        if self._unsaid:
            log.error("more objects were left out, without a line each: count=%d", self._unsaid)
            self._unsaid = 0
        log.error("%s", text, exc_info=error)
