"""Analysis of expression graphs (compiled expressions): which inputs they read, which parts many nodes share.

An expression is compiled to a graph. A graph node may be an argument of several others, and every graph node is the
root of a graph. A graph is row-independent if it consists of aggregates and scalars. A scalar has one value for all
rows, and a plain scalar depends on the pod alone. A time key is a value that a rule computes from the time or the
pod's age. Time keys belong to the key of a pod class, because pods share an evaluation only while these values are
equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from policysched.language.ir.graph import AGGREGATES, POD_AGGREGATES, TIME, Input, Op, Typed, per_graph, steps
from policysched.language.ir.types import Shape
from policysched.rules.compile.policy import MetricInput

VOLATILE: Final = frozenset(
    (
        *(("cluster", "nodes"), ("cluster", "pods"), ("pod", "image_bytes")),
        *(("group", "placed"), ("group", "requests")),
    )
)
"""The inputs with one value for all nodes that depend on the cluster, so that they change although the pod does not.

Other inputs of a pod's group are part of the key of the pod's class.
"""
POD_AGE: Final = Input("pod", ("age",))


def walk(roots: Iterable[Typed], onward: Callable[[Typed], Iterable[Typed]]) -> Iterator[Typed]:
    """Yield all parts of expression graphs that can be reached from the given parts, without repeats.

    Args:
        roots: The graph nodes to begin with.
        onward: Returns the successors of a graph node; called when the caller requests the next graph node.
    """
    waiting, seen = list(roots), set[Typed]()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            yield node
            waiting.extend(onward(node))


def parts(node: Typed) -> tuple[Typed, ...]:
    """Return the direct parts of an operation in an expression graph: its arguments and its inner graphs."""
    return (*node.args, *node.inner)


def _row_parts(node: Typed) -> tuple[Typed, ...]:
    """Return the direct parts of an operation in an expression graph, except inner graphs of aggregates over nodes."""
    return parts(node) if node.op in POD_AGGREGATES else node.args


def row_independent(root: Typed) -> dict[Typed, bool]:
    """Return for each part of an expression graph whether it only depends on values that many nodes share."""
    found: dict[Typed, bool] = {}
    for node in steps(root):
        if node.type.shape is Shape.SCALAR or node.op in AGGREGATES:
            found[node] = True
        else:
            reads = not node.args or node.op is Op.KEYED or node.op in POD_AGGREGATES
            found[node] = not reads and all(found[arg] for arg in node.args)
    return found


def key_of(root: Typed) -> Typed | None:
    """Return the `by` key of the aggregates in an expression graph; None if there is no key, or several keys."""
    found = walk([root], lambda node: () if node.op in AGGREGATES else node.args)
    keys = {key for node in found if node.op in AGGREGATES for key in node.args}
    return keys.pop() if len(keys) == 1 else None


def shared_parts(roots: Iterable[Typed], *, timed: bool) -> Iterable[Typed]:
    """Return the largest parts of expressions whose values many nodes share, except values that only the pod decides.

    Args:
        roots: The graphs of rules.
        timed: Whether the parts may change with the time. False for a pod class: its key contains the time keys.
    """
    return dict.fromkeys(node for root in roots for node in _SHARED[timed](root))


def _find_shared(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    found: dict[Typed, None] = {}
    known = row_independent(root)
    for node in walk([root], lambda node: () if known[node] else _row_parts(node)):
        if node not in known:
            known.update(row_independent(node))
        if known[node] and (node.type.shape is not Shape.SCALAR or is_volatile(node, timed=timed)):
            found[node] = None
    return tuple(found)


def plain_scalars(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    """Return the largest parts of an expression that have one value for all nodes and change only with the pod."""
    return _SCALARS[timed](root)


def _find_scalars(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    beside = walk([root], lambda node: () if _is_scalar(node) else _row_parts(node))
    scalars = [node for node in beside if _is_scalar(node)]
    found = walk(scalars, lambda node: node.args if is_volatile(node, timed=timed) else ())
    return tuple(node for node in found if not is_volatile(node, timed=timed))


def _is_scalar(node: Typed) -> bool:
    return node.type.shape is Shape.SCALAR


def is_volatile(node: Typed, *, timed: bool) -> bool:
    """Return whether a value that all nodes share may change although the pod does not."""
    if not node.local:
        return True
    return any((item.root, item.path[0]) in VOLATILE or (timed and item == TIME) for item in node.inputs)


_SHARED: Final = tuple(per_graph(partial(_find_shared, timed=timed)) for timed in (False, True))
_SCALARS: Final = tuple(per_graph(partial(_find_scalars, timed=timed)) for timed in (False, True))


def reads_pod(item: Input) -> bool:
    """Return whether an input depends on the scheduled pod or its group."""
    return item.root in {"pod", "group"} or item.path[0] in {"cached_image_bytes", "group_members"}


def reads_group(item: Input) -> bool:
    """Return whether an input depends on the group of the scheduled pod."""
    return item.root == "group" or item.path[0] == "group_members"


@per_graph
def is_pod_independent(root: Typed) -> bool:
    """Return whether an expression's values are the same for all pods and for all sets of feasible nodes."""
    return not any(map(reads_pod, root.inputs)) and not root.normalizes


@per_graph
def reads_namespaces(root: Typed) -> bool:
    """Return whether an expression reads labels of the pod's namespace or of namespaces of placed pods."""
    return any(item.path[0] == "namespace_labels" for item in root.inputs)


def reads_image_sizes(roots: Iterable[Typed]) -> bool:
    """Return whether expressions read the image sizes of placed pods."""
    return any(item.root == "peer" and item.path[0] == "image_bytes" for root in roots for item in root.inputs)


def reads_time(root: Typed) -> bool:
    """Return whether elapsed time alone can change the value of an expression."""
    return any(item == TIME or item.path == ("age",) or item.root == "metrics" for item in root.inputs)


def time_keys(roots: Iterable[Typed]) -> tuple[Typed, ...]:
    """Return the parts of expressions that read the time or the pod's age and have one value for all nodes."""
    found = (node for graph in _graphs(roots) for node in plain_scalars(graph, timed=False))
    return tuple(dict.fromkeys(node for node in found if TIME in node.inputs or POD_AGE in node.inputs))


def _graphs(roots: Iterable[Typed]) -> Iterator[Typed]:
    """Yield expression graphs and all inner graphs of their aggregates over nodes, however deep."""
    graphs = list(roots)
    yield from graphs
    for node in walk(graphs, parts):
        if node.op in AGGREGATES:
            yield from node.inner


@per_graph
def cached_parts(root: Typed) -> tuple[tuple[Typed, ...], tuple[Input, ...]]:
    """Return the aggregates of an expression, and the inputs whose columns exist only while they are referenced.

    The result covers the inner graphs of aggregates over pods. It does not cover the inner graphs of aggregates over
    nodes, because each of these holds references to its own cached parts.
    """
    seen = list(walk([root], _row_parts))
    read = dict.fromkeys(item for node in seen for item in node.inputs)
    return (
        tuple(node for node in seen if node.op in POD_AGGREGATES or node.op in AGGREGATES),
        tuple(
            item
            for item in read
            if isinstance(item, MetricInput) or (item.path == ("age",) and item.root in {"node", "peer"})
        ),
    )
