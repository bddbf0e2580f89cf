"""What rules make of the time and of a pod's age.

A pod class is the same for its pods only as long as this is, so it belongs to the class's key: when a clock strikes,
pods find another evaluation, and that of yesterday's night waits for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from policysched.language.ir.graph import AGGREGATES, TIME, Input, Typed
from policysched.rules.sources import plain_scalars
from policysched.rules.walk import parts, walk

POD_AGE = Input("pod", ("age",))


def moments_of(roots: Iterable[Typed]) -> tuple[Typed, ...]:
    """Find the largest parts of graphs that are made of the time and the pod alone, and read the time or its age."""
    found = (node for graph in _graphs(roots) for node in plain_scalars(graph, timed=False))
    return tuple(dict.fromkeys(node for node in found if TIME in node.inputs or POD_AGE in node.inputs))


def _graphs(roots: Iterable[Typed]) -> Iterator[Typed]:
    """Give graphs with those that their aggregates evaluate on all nodes, however deep."""
    graphs = list(roots)
    yield from graphs
    for node in walk(graphs, parts):
        if node.op in AGGREGATES:
            yield from node.inner
