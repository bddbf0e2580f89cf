"""Going through graphs, in which one node may be an argument of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from policysched.language.ir.graph import TALLIES, Typed

Onward = Callable[[Typed], Iterable[Typed]]


def walk(roots: Iterable[Typed], onward: Onward) -> Iterator[Typed]:
    """Give nodes that are reached from some, each once.

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
    """Give what a node is made of, on whatever rows it is evaluated."""
    return (*node.args, *node.inner)


def own_parts(node: Typed) -> tuple[Typed, ...]:
    """Give what a node is made of, but for what is evaluated on all nodes."""
    return parts(node) if node.op in TALLIES else node.args
