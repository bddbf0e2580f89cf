"""Problems of metric sources: logged when a problem begins and ends, and counted.

A problem is one line whose text stays the same while its cause does. A changing text would be logged, and written to
the status of policies, at each refresh.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable
from enum import StrEnum
from typing import Final

from policysched.errors import PolicyschedError
from policysched.visible import visible

log = logging.getLogger(__name__)
LONGEST: Final = 200
"""Longest text from a server in a message; the rest is cut. Units: characters."""
READ: Final = 4096
"""Length to which a server's text is cut before it is made one line. Units: characters."""

NONE_FINITE: Final = "no value is a finite number"
"""Message about a metric whose values are all NaN, infinite or not numbers."""

NO_NODE_HAS_VALUE: Final = "no node of this cluster has a value"


class QueryOutcome(StrEnum):
    """Outcome of one refresh of a query; a label value on /metrics."""

    ANSWERED = "answered"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    CREDENTIALS = "credentials"
    REFUSED = "refused"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    FAILED = "failed"
    """The refresh failed with an unexpected exception."""


class DropReason(StrEnum):
    """Reason why a Prometheus series is dropped and gives no node a value; a label value on /metrics."""

    DUPLICATE = "duplicate"
    NO_LABEL = "no_label"
    NOT_FINITE = "not_finite"
    NO_NODE = "no_node"
    """The series' label names no node of the cluster, and the answer has too many series for unknown nodes."""


class QueryError(PolicyschedError):
    """Error: a query has no usable answer; the text states the reason and what to check."""

    def __init__(self, outcome: QueryOutcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class ActiveProblems:
    """The current problems by subject (a metric or a query); equal problems of several subjects are logged once."""

    def __init__(self) -> None:
        self._now: dict[Hashable, str] = {}

    def set(self, subject: Hashable, problem: str, shown: str = "") -> None:
        """Set the problem of a subject, or remove it if `problem` is empty; log the change."""
        before = self._now.pop(subject, "")
        known = frozenset(self._now.values())
        if problem:
            self._now[subject] = problem
        if before and before != problem and before not in known:
            log.info("metrics: resolved: %s", before)
        if problem and problem != before and problem not in known:
            log.warning("metrics: %s (%s)", problem, one_line(shown or subject))

    def forget(self, subject: Hashable) -> None:
        """Stop tracking a subject."""
        self._now.pop(subject, None)


def values_of_others(samples: Collection[str], nodes: Collection[str]) -> str:
    """Return a message if the samples have values for other names only; empty if a node of the cluster has a value."""
    if not samples or not nodes or any(name in nodes for name in samples):
        return ""
    return f'{NO_NODE_HAS_VALUE}; the values are for names such as "{one_line(min(samples))}"'


def one_line(text: object) -> str:
    """Return a server's text as one line of printable characters of limited length, for logs and statuses."""
    line = visible(" ".join(str(text)[:READ].split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
