"""Problems of metric sources: logged when they begin and end, counted each time.

Problems are one line each and stay the same while their cause does, because they are compared: a text that moves would
be logged, and written to the status of policies, with every refresh.
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
"""How much of a foreign text is told. Units: characters."""
READ: Final = 4096
"""How much of it is looked at. Units: characters."""

NONE_FINITE: Final = "no value is a finite number"
"""The problem of a metric whose values are all NaN, infinite or no numbers."""

NO_NODE_HAS_VALUE: Final = "no node of this cluster has a value"


class QueryOutcome(StrEnum):
    """How a refresh of one query ended, as the counter names it."""

    ANSWERED = "answered"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    CREDENTIALS = "credentials"
    REFUSED = "refused"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    FAILED = "failed"
    """An exception that nobody foresaw."""


class DropReason(StrEnum):
    """Why a series of an answer gives no value, as the counter names it."""

    DUPLICATE = "duplicate"
    NO_LABEL = "no_label"
    NOT_FINITE = "not_finite"
    NO_NODE = "no_node"
    """Its label names no node of the cluster, and many of the answer do."""


class QueryError(PolicyschedError):
    """A query has no answer; the text says why and what to look at."""

    def __init__(self, outcome: QueryOutcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class ActiveProblems:
    """The problems there are at the moment, by what they are about; an equal problem of many is logged once."""

    def __init__(self) -> None:
        self._now: dict[Hashable, str] = {}

    def tell(self, about: Hashable, problem: str, shown: str = "") -> None:
        """Set or, if empty, remove the problem of something; log the change under its shown name."""
        before = self._now.pop(about, "")
        known = frozenset(self._now.values())
        if problem:
            self._now[about] = problem
        if before and before != problem and before not in known:
            log.info("metrics: resolved: %s", before)
        if problem and problem != before and problem not in known:
            log.warning("metrics: %s (%s)", problem, one_line(shown or about))

    def forget(self, about: Hashable) -> None:
        """Stop watching something."""
        self._now.pop(about, None)


def values_of_others(samples: Collection[str], nodes: Collection[str]) -> str:
    """Return the problem of values of which none is for a node of the cluster; empty if there is no such problem."""
    if not samples or not nodes or any(name in nodes for name in samples):
        return ""
    return f'{NO_NODE_HAS_VALUE}; the values are for names such as "{one_line(min(samples))}"'


def one_line(text: object) -> str:
    """Make foreign text fit for a log and a status: one line of printable characters, cut where it is long."""
    line = visible(" ".join(str(text)[:READ].split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
