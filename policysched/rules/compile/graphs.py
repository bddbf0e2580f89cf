"""Analysis of compiled expressions: what they read, and which parts have one value for many nodes.

A node of a graph may be an argument of many. A part is row-independent where it is made of aggregates and of values
for all rows alone; plain where the pod alone decides it. What rules make of the time and of a pod's age is a time key:
a pod class is the same for its pods only as long as this is, so it belongs to the class's key. When a clock strikes,
pods find another evaluation, and that of yesterday's night waits for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from policysched.language.ir.graph import AGGREGATES, POD_AGGREGATES, TIME, Input, Op, Typed, per_graph, steps
from policysched.language.ir.types import Shape
from policysched.rules.compile.policy import MetricInput

VOLATILE: Final = frozenset((("cluster", "nodes"), ("cluster", "pods"), ("pod", "image_bytes")))
"""What is read of the cluster and not of the pod, though it is one value for all nodes."""
POD_AGE: Final = Input("pod", ("age",))


def walk(roots: Iterable[Typed], onward: Callable[[Typed], Iterable[Typed]]) -> Iterator[Typed]:
    """Return nodes that are reached from some, each once.

    Args:
        roots: Where to begin.
        onward: Names the nodes to go on with behind one. It is asked when the next one is wanted.
    """
    waiting, seen = list(roots), set[Typed]()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            yield node
            waiting.extend(onward(node))


def parts(node: Typed) -> tuple[Typed, ...]:
    """Return what a node is made of, on whatever rows it is evaluated."""
    return (*node.args, *node.inner)


def _own_parts(node: Typed) -> tuple[Typed, ...]:
    """Return what a node is made of, but for what is evaluated on all nodes."""
    return parts(node) if node.op in POD_AGGREGATES else node.args


def row_independent(root: Typed) -> dict[Typed, bool]:
    """Tell of each node of a graph whether it is made of aggregates and of values for all rows alone."""
    found: dict[Typed, bool] = {}
    for node in steps(root):
        if node.type.shape is Shape.SCALAR or node.op in AGGREGATES:
            found[node] = True
        else:
            reads = not node.args or node.op is Op.KEYED or node.op in POD_AGGREGATES
            found[node] = not reads and all(found[arg] for arg in node.args)
    return found


def key_of(root: Typed) -> Typed | None:
    """Return the key that all aggregates of a row-independent graph go by, None where they go by several."""
    found = walk([root], lambda node: () if node.op in AGGREGATES else node.args)
    keys = {key for node in found if node.op in AGGREGATES for key in node.args}
    return keys.pop() if len(keys) == 1 else None


def shared_parts(roots: Iterable[Typed], *, timed: bool) -> Iterable[Typed]:
    """Find the parts of graphs that many rows look at together: the largest that read no row of their own.

    Args:
        roots: Graphs over nodes.
        timed: Whether time moves them; for a pod class its key holds what it makes of the time.
    """
    return dict.fromkeys(node for root in roots for node in _SHARED[timed](root))


def _find_shared(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    found: dict[Typed, None] = {}
    known = row_independent(root)
    for node in walk([root], lambda node: () if known[node] else _own_parts(node)):
        if node not in known:
            known.update(row_independent(node))
        if known[node] and (node.type.shape is not Shape.SCALAR or is_volatile(node, timed=timed)):
            found[node] = None
    return tuple(found)


def plain_scalars(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    """Find the largest parts of a graph that are one value for all rows, which the pod alone decides."""
    return _SCALARS[timed](root)


def _find_scalars(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    beside = walk([root], lambda node: () if _is_scalar(node) else _own_parts(node))
    scalars = [node for node in beside if _is_scalar(node)]
    found = walk(scalars, lambda node: node.args if is_volatile(node, timed=timed) else ())
    return tuple(node for node in found if not is_volatile(node, timed=timed))


def _is_scalar(node: Typed) -> bool:
    return node.type.shape is Shape.SCALAR


def is_volatile(node: Typed, *, timed: bool) -> bool:
    """Return whether a value for all rows may change while the pod stays the same."""
    if not node.local:
        return True
    return any((item.root, item.path[0]) in VOLATILE or (timed and item == TIME) for item in node.inputs)


_SHARED: Final = tuple(per_graph(partial(_find_shared, timed=timed)) for timed in (False, True))
_SCALARS: Final = tuple(per_graph(partial(_find_scalars, timed=timed)) for timed in (False, True))


@per_graph
def is_pod_independent(root: Typed) -> bool:
    """Return whether a graph says the same for all pod classes, whichever nodes are feasible."""
    read = any(item.root == "pod" or item.path[0] == "cached_image_bytes" for item in root.inputs)
    return not read and not root.normalizes


@per_graph
def reads_namespaces(root: Typed) -> bool:
    """Return whether a graph reads labels of namespaces, those of placed pods included."""
    return any(item.path[0] == "namespace_labels" for item in root.inputs)


def reads_image_sizes(roots: Iterable[Typed]) -> bool:
    """Return whether graphs read how large the images of placed pods are."""
    return any(item.root == "peer" and item.path[0] == "image_bytes" for root in roots for item in root.inputs)


def reads_time(root: Typed) -> bool:
    """Return whether time alone can change what a graph says."""
    return any(item == TIME or item.path == ("age",) or item.root == "metrics" for item in root.inputs)


def time_keys(roots: Iterable[Typed]) -> tuple[Typed, ...]:
    """Find the largest parts of graphs that are made of the time and the pod alone, and read the time or its age."""
    found = (node for graph in _graphs(roots) for node in plain_scalars(graph, timed=False))
    return tuple(dict.fromkeys(node for node in found if TIME in node.inputs or POD_AGE in node.inputs))


def _graphs(roots: Iterable[Typed]) -> Iterator[Typed]:
    """Return graphs with those that their aggregates evaluate on all nodes, however deep."""
    graphs = list(roots)
    yield from graphs
    for node in walk(graphs, parts):
        if node.op in AGGREGATES:
            yield from node.inner


@per_graph
def to_hold(root: Typed) -> tuple[tuple[Typed, ...], tuple[Input, ...]]:
    """Return the pod counters and aggregates of a graph, and what it reads that is kept while it is held.

    What stands in counters belongs to it; aggregates hold their own.
    """
    seen = list(walk([root], _own_parts))
    read = dict.fromkeys(item for node in seen for item in node.inputs)
    return (
        tuple(node for node in seen if node.op in POD_AGGREGATES or node.op in AGGREGATES),
        tuple(
            item
            for item in read
            if isinstance(item, MetricInput) or (item.path == ("age",) and item.root in {"node", "peer"})
        ),
    )
