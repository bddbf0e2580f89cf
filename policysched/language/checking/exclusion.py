"""Finds conditions that exclude each other, what conditions imply, and cases that are never reached.

Results are valid in every cluster, but not all implications are found. Each part of a graph is visited once, and only a
limited number of conditions is compared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias, cast

from policysched.language.ir.graph import Constant, Op, Typed, make, steps
from policysched.language.ir.types import Kind

Range: TypeAlias = tuple[float, float]
"""The smallest and the largest value that an expression can have."""
ANY: Final = (-math.inf, math.inf)
MOST_CONDITIONS: Final = 256
"""Maximum number of implications of one condition that are considered; the others are ignored."""
MOST_LOOKED_AT: Final = 20_000
"""Maximum number of conditions that are compared for the cases of a score; beyond it, the search ends."""
_LISTS: Final = frozenset({Op.IN, Op.NOT_IN})
_VALUES_A_CONDITION: Final = 16
_ABOVE: Final = frozenset({Op.GT, Op.GE})
_BELOW: Final = frozenset({Op.LT, Op.LE})
_OPPOSITE: Final[Mapping[str, Op]] = {
    Op.GT: Op.LE, Op.LE: Op.GT, Op.LT: Op.GE, Op.GE: Op.LT,
    Op.EQ: Op.NE, Op.NE: Op.EQ, Op.IN: Op.NOT_IN, Op.NOT_IN: Op.IN,
}  # fmt: skip


def excluded(conditions: Collection[Typed]) -> bool:
    """Return whether conditions cannot be true together: opposites, different values, or disjoint ranges."""
    if any(one.op == Op.NOT and one.args[0] in conditions for one in conditions):
        return True
    bounds: dict[Typed, Range] = {}
    for subject, (low, high) in chain.from_iterable(map(_between, conditions)):
        least, most = bounds.get(subject, ANY)
        bounds[subject] = max(low, least), min(high, most)
    allowed = _allowed(conditions)
    return any(low > high for low, high in bounds.values()) or not all(
        any(one is None or not isinstance(one, float) or low <= one <= high for one in values)
        for subject, values in allowed.items()
        for low, high in [bounds.get(subject, ANY)]
    )


def implied(root: Typed, *, truth: bool = True, known: Collection[Typed] = (), sure: bool = True) -> set[Typed]:
    """Return conditions that must be true if a condition is true, or with `truth=False` if it is not true.

    Args:
        root: The condition.
        truth: Whether the condition is true.
        known: Values known to be present: a comparison of them that is not true is false.
        sure: Whether "not true" means false, not unknown.
    """
    found: set[Typed] = set()
    waiting = [(root, truth, sure)]
    seen = set(waiting)
    while waiting and len(found) < MOST_CONDITIONS:
        node, true, certain = waiting.pop()
        new = [(arg, mode, certain and still) for arg, mode, still in _parts(node, true=true)]
        if not new or node.op == Op.DEFAULT:
            found.update(_as_true(node, true=true, known=None if certain else known))
        waiting.extend(one for one in reversed(new) if one not in seen)
        seen.update(new)
    return found


def _parts(node: Typed, *, true: bool) -> list[tuple[Typed, bool, bool]]:
    """Return the operands of a condition whose truth it decides, with their truth, and whether it means "is false"."""
    if node.op == Op.NOT:
        return [(node.args[0], not true, True)]
    if node.op == (Op.AND if true else Op.OR):
        return [(arg, true, True) for arg in node.args]
    default = node.args[1].data if node.op == Op.DEFAULT and node.args[1].op == Op.CONSTANT else None
    if default is False or (default is True and not true):
        # `x ?? false` is true if x is true, and not true if x is false or unknown.
        return [(node.args[0], true, true or default is True)]
    return []


def _as_true(node: Typed, *, true: bool, known: Collection[Typed] | None) -> Iterator[Typed]:
    """Yield a condition, or its opposite if `true` is false; nothing if the condition can be unknown."""
    if known is not None and node.type.optional and not _subjects((node,)) & set(known):
        return
    if true:
        yield node
    else:
        opposite = _OPPOSITE.get(node.op)
        yield make(Op.NOT, (node,), node.type) if opposite is None else make(opposite, node.args, node.type)


def _subjects(conditions: Collection[Typed]) -> set[Typed]:
    """Return the values that must be present for comparisons with constants to be true or false."""
    return {subject for one in conditions for subject, _ in _between(one)}


class _Above(NamedTuple):
    """The guard (condition) of an earlier case, with the conditions that hold where the guard is not true."""

    guard: Typed
    ways: list[set[Typed]]
    depends: bool


def taken_above(guards: Sequence[Typed | None]) -> Iterator[tuple[int, int | None]]:
    """Yield the cases that are never reached, because an earlier guard is true or unknown wherever they apply.

    Args:
        guards: The guards in order; None for a final `else`.

    Yields:
        The index of such a case, and the index of the single earlier guard that covers it, if there is one.
    """
    looked = 0
    certain: set[Typed] = set()
    above: list[_Above] = []
    for index, guard in enumerate(guards):
        own = set() if guard is None else implied(guard)
        weight = _weight(own)
        looked += _weight(certain) + sum(weight + _weight(way) for one in above for way in one.ways)
        if looked > MOST_LOOKED_AT:
            return
        if not excluded(own):
            taken, alone = _taken(own, certain, above)
            if taken:
                yield index, alone
        if excluded(certain):  # then all later cases are unreachable for the same reason
            return
        if guard is not None:
            depends = any(node.op == Op.DEFAULT for node in steps(guard))
            above.append(_Above(guard, _ways_to_fail(guard, ()), depends))
            certain |= _only(above[-1].ways)


def _weight(conditions: Collection[Typed]) -> int:
    """Return how many comparisons conditions count as; a list of many values counts as several."""
    lists = (arg.data for one in conditions for arg in one.args if one.op in _LISTS)
    return len(conditions) + sum(len(one) // _VALUES_A_CONDITION for one in lists if isinstance(one, tuple))


def _taken(own: set[Typed], certain: set[Typed], above: Sequence[_Above]) -> tuple[bool, int | None]:
    """Return whether earlier guards cover a case, and the index of a guard that covers it alone, or None."""
    known = _subjects(own)
    ways = [_ways_to_fail(one.guard, known) if one.depends and known else one.ways for one in above]
    alone = next((place for place, each in enumerate(ways) if _none_is_left(own, each)), None)
    if alone is not None:
        return True, alone
    together = own.union(certain, *(_only(each) for each, one in zip(ways, above, strict=True) if one.depends))
    return excluded(together) or any(len(each) > 1 and _none_is_left(together, each) for each in ways), None


def _only(ways: Sequence[set[Typed]]) -> set[Typed]:
    return ways[0] if len(ways) == 1 else set()


def _ways_to_fail(guard: Typed, known: Collection[Typed]) -> list[set[Typed]]:
    """Return the conditions that hold if a guard is not true, one set for each alternative."""
    default = guard.op == Op.DEFAULT and guard.args[1].op == Op.CONSTANT and guard.args[1].data is False
    inner = guard.args[0] if default else guard
    if inner.op != Op.AND:
        return [implied(guard, truth=False, known=known)]
    return [implied(arg, truth=False, known=known, sure=not default) for arg in inner.args]


def _none_is_left(conditions: set[Typed], ways: Sequence[set[Typed]]) -> bool:
    return all(excluded(conditions | way) for way in ways)


def _allowed(conditions: Collection[Typed]) -> dict[Typed, frozenset[Constant]]:
    """Return the possible values of each compared expression; None in a set means all values that are not listed."""
    allowed: dict[Typed, frozenset[Constant]] = {}
    for one in conditions:
        for subject, values in _listed(one, Op.EQ, Op.IN):
            allowed[subject] = allowed.get(subject, values) & values
    for one in conditions:
        for subject, values in _listed(one, Op.NE, Op.NOT_IN):
            allowed[subject] = allowed.get(subject, frozenset((None,))) - values
    return allowed


def _listed(node: Typed, *operators: Op) -> Iterator[tuple[Typed, frozenset[Constant]]]:
    """Yield the operand of a comparison with constants, and the constants, if its operator is in `operators`."""
    if node.op not in operators:
        return
    for subject, other in (node.args, node.args[::-1]):
        values: tuple[object, ...] = other.data if isinstance(other.data, tuple) else (other.data,)
        fits = subject.type.kind in {Kind.STRING, Kind.QUANTITY} and subject.op != Op.CONSTANT
        if fits and other.op == Op.CONSTANT and all(isinstance(one, str | float) for one in values):
            yield subject, frozenset(cast("tuple[str | float, ...]", values))
            return


def _between(node: Typed) -> Iterator[tuple[Typed, Range]]:
    """Yield the operand of a comparison with a number, and the range of values for which the comparison is true."""
    if node.op not in _ABOVE | _BELOW:
        return
    for subject, other in (node.args, node.args[::-1]):
        if other.op == Op.CONSTANT and subject.op != Op.CONSTANT and isinstance(other.data, float):
            above = (node.op in _ABOVE) is (subject is node.args[0])
            end = math.inf if above else -math.inf
            bound = math.nextafter(other.data, end) if node.op in {Op.LT, Op.GT} else other.data
            yield subject, ((bound, math.inf) if above else (-math.inf, bound))
            return
