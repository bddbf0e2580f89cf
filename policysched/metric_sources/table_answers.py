"""`answers`: looks up metrics in a table of numbers per metric and node."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice

from policysched.framework.client import Wanted, most_unknown
from policysched.metric_sources.problems import NONE_FINITE, values_of_others
from policysched.metric_sources.table import Table
from policysched.model.policy import MetricAnswer, Sample


def answers(
    table: Table, wanted: Wanted, at: float, file: str, nodes: Collection[str] | None = None
) -> Iterator[MetricAnswer]:
    """Yield an answer for each metric: its values by node, and a message if no node has a value.

    Args:
        table: Numbers by metric and node.
        wanted: Metrics with the names that policies give them.
        at: Time of the numbers: now.
        file: Name of the file, for the problem of a missing metric.
        nodes: Names of the cluster's nodes; for other names only a limited number is returned. None: all are returned.
    """
    for key, names in wanted.items():
        # Entries are keyed by `policy/name`, by name, or by query, in this order.
        ordered = (*sorted(names, key=lambda name: (-name.count("/"), name)), key.query)
        found = next((table[name] for name in ordered if name in table), None)
        shown = min(names, key=lambda name: (name.count("/"), name), default=key.query)
        if found is None:
            yield MetricAnswer(key, {}, f'{file} has no values for "{shown}"{_instead(shown, table)}')
            continue
        given = found if nodes is None else list(_known(found, nodes))
        samples = {node: Sample(found[node], at) for node in given if math.isfinite(found[node])}
        fault = NONE_FINITE if given and not samples else values_of_others(samples, nodes or ())
        problem = f"{file}: {shown}: {fault}" if fault else ""
        yield MetricAnswer(key, samples, problem)


def _known(numbers: Mapping[str, float], nodes: Collection[str]) -> Iterator[str]:
    """Return the nodes that have a number, and a limited number of other names from the table."""
    others = (name for name in numbers if name not in nodes)
    return chain((name for name in nodes if name in numbers), islice(others, most_unknown(nodes)))


def _instead(name: str, table: Table) -> str:
    """Return the end of a message that suggests a metric with a similar name; empty if the table has none."""
    close = difflib.get_close_matches(name.rpartition("/")[2], table, 1)
    return f'; "{close[0]}" has values; did you mean "{name}"?' if close else ""
