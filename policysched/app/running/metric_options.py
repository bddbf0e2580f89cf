"""Sources of node metrics according to flags, and the metrics that policies read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policysched.errors import UsageError
from policysched.framework import MetricKey, Wanted
from policysched.language.checking.compile import Want, compile_expression
from policysched.language.functions.signatures import Environment
from policysched.language.ir.types import DURATION
from policysched.metric_sources import INTERVAL
from policysched.rules.compile.policy import CompiledPolicy, MetricInput

log = logging.getLogger(__name__)
SHORTEST: Final = 1.0
"""Smallest refresh interval; a smaller interval is an error. Units: seconds."""


@dataclass(frozen=True, slots=True)
class MetricOptions:
    """Sources of metrics; at most one of URL and file."""

    url: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    file: Path | None = None
    interval: float = INTERVAL
    """Interval between refreshes. Units: seconds."""

    def check(self) -> None:
        """Check that the flags do not contradict each other.

        Raises:
            UsageError: they contradict each other.
        """
        if self.url is not None and self.file is not None:
            raise UsageError("--prometheus-url and --metrics-file cannot be used together")
        for name, given in (("--prometheus-token-file", self.token_file), ("--prometheus-ca-file", self.ca_file)):
            if given is not None and self.url is None:
                raise UsageError(f"{name} needs --prometheus-url")


NO_METRICS: Final = MetricOptions()


def read_interval(text: str) -> float:
    """Parse a `--metrics-interval` in the language's syntax of durations. Units: seconds.

    Raises:
        UsageError: the text is not a duration, or is too short.
    """
    program = compile_expression(text, Environment(), Want.ANY).program
    value = program.constant if program is not None and program.type.like(DURATION) else None
    if not isinstance(value, int | float):
        raise UsageError(f'--metrics-interval "{text}" is not a duration; write it as 15s or 1min')
    if value < SHORTEST:
        raise UsageError(f'--metrics-interval "{text}" is too short; the minimum is {SHORTEST:g}s')
    return float(value)


def metrics_read(policies: Iterable[CompiledPolicy]) -> Iterator[tuple[CompiledPolicy, MetricInput]]:
    """Yield each metric that a policy reads; skip metrics that are only declared."""
    for policy in policies:
        for item in policy.inputs:
            if isinstance(item, MetricInput):
                yield policy, item


def wanted_by(policies: Iterable[CompiledPolicy]) -> Wanted:
    """Return the metrics that policies read, with the names that policies give them."""
    wanted: dict[MetricKey, set[str]] = {}
    for policy, item in metrics_read(policies):
        name = item.path[0]
        wanted.setdefault(item.metric, set()).update((name, f"{policy.key}/{name}"))
    return {key: frozenset(names) for key, names in wanted.items()}
