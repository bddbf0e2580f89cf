"""Many cases asked at two versions, and their differences sorted by cause.

The most frequent difference among the unexplained cases becomes a class: its smallest case is the witness. The field
that causes it explains every case whose differences all end without that field. This repeats until every case is
explained or no class is left to make. A case that is left has several causes if all its differences end without the
causes of all of them.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

from tests.oracle.extremes import extremes
from tests.oracle.generate import sequences, singles, stories
from tests.oracle.ladder.answers import Case
from tests.oracle.ladder.causes import USUAL_CASES, Comparison, Field, fields, without
from tests.oracle.preempting import cases as preemptions
from tests.oracle.storage import storage
from tests.oracle.wild_configs import whole, wild

Generator: TypeAlias = Callable[[int, Iterable[int]], Iterator[Case]]
Usual: TypeAlias = dict[str, Counter[Field]]
"""By generator, how many of its first cases have each field."""
MOST_CLASSES: Final = 40
"""How many classes are made; what is left is reported as unexplained."""


def _volumes(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    for index in indices:
        yield storage(Random(f"{seed}/volumes/{index}"), f"{seed}-v{index}")


def _plugin_lists(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    for index in indices:
        yield {"id": f"{seed}-c{index}", "config": wild(Random(f"{seed}/lists/{index}")), "profiles": True}


def _completed(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    for index in indices:
        yield {"id": f"{seed}-w{index}", "config": whole(Random(f"{seed}/whole/{index}")), "completed": True}


GENERATORS: Final[dict[str, tuple[Generator, int]]] = {
    "pods on their own": (lambda seed, indices: singles(seed, indices, related=0.0), 1),
    "pods that depend on other pods": (lambda seed, indices: singles(seed, indices, related=1.0), 1),
    "extreme amounts": (extremes, 4),
    "volumes": (_volumes, 2),
    "preemption": (lambda seed, indices: preemptions(seed, indices, Random), 4),
    "plugins of configurations": (_plugin_lists, 2),
    "completed configurations": (_completed, 2),
    "sequences": (sequences, 100),
    "changing clusters": (stories, 200),
}
"""By name, a generator, and how many times fewer cases it makes than the first one."""


@dataclass
class Differing:
    """A case with different answers."""

    generator: str
    case: Case
    found: frozenset[str]


@dataclass
class DifferenceClass:
    """Differences with one cause."""

    difference: str
    """The difference by which the class was found."""
    witness: Case
    """The smallest case that shows it."""
    cause: Field | None
    """The field of cases that causes it; None where every case differs."""
    share: float
    """The share of tried cases in which the difference ends without the field."""
    explained: list[str] = field(default_factory=list)
    """The ids of the cases that differ for this cause alone."""


@dataclass
class Outcome:
    """What a comparison found."""

    asked: Counter[str]
    """By generator, how many cases were asked."""
    differing: list[Differing]
    classes: list[DifferenceClass]
    several: list[Differing]
    """The cases that differ for several causes at once."""
    unexplained: list[Differing]


def compare(comparison: Comparison, cases: Iterable[tuple[str, Case]], progress: Callable[[str], None]) -> Outcome:
    """Ask about cases and sort the differences.

    Args:
        comparison: The two oracles.
        cases: Cases with the names of their generators.
        progress: Gets a line now and then.
    """
    asked: Counter[str] = Counter()
    usual: Usual = defaultdict(Counter)
    differing = []
    for generator, case in cases:
        asked[generator] += 1
        found = comparison.differences(case)
        if found:
            differing.append(Differing(generator, case, found))
        if asked[generator] <= USUAL_CASES:
            usual[generator].update(set(fields(case)))
        if asked.total() % 1000 == 0:
            progress(f"{asked.total()} cases, {len(differing)} differ")
    progress(f"{asked.total()} cases, {len(differing)} differ; sorting by cause")
    classes, left, always = _classes(comparison, differing, usual, progress)
    several, unexplained = _split(comparison, left, classes, always)
    progress(f"{len(several)} cases have several causes, {len(unexplained)} are unexplained")
    return Outcome(asked, differing, classes, several, unexplained)


def generated(seed: int, count: int) -> Iterator[tuple[str, Case]]:
    """Generate cases of all generators; the first generator makes `count` of them."""
    for name, (generate, fewer) in GENERATORS.items():
        for case in generate(seed, range(max(1, count // fewer))):
            yield name, case


def _classes(
    comparison: Comparison, differing: list[Differing], usual: Usual, progress: Callable[[str], None]
) -> tuple[list[DifferenceClass], list[Differing], set[str]]:
    """Return the classes, the cases that are left, and the differences that nearly every case has."""
    classes: list[DifferenceClass] = []
    unexplained, always = differing, set[str]()
    while unexplained and len(classes) < MOST_CLASSES:
        counts = Counter(line for one in unexplained for line in one.found - always)
        if not counts:
            break
        [(difference, _)] = counts.most_common(1)
        made = _class(comparison, unexplained, difference, usual)
        classes.append(made)
        if made.cause is None:
            always.add(difference)
        unexplained = _explain(comparison, unexplained, made, always)
        progress(f"{len(classes)} classes, {len(unexplained)} cases unexplained")
        if not made.explained and made.cause is not None:
            always.add(difference)
    return classes, unexplained, always


def _split(
    comparison: Comparison, left: list[Differing], classes: list[DifferenceClass], always: set[str]
) -> tuple[list[Differing], list[Differing]]:
    """Return the cases whose differences end without the causes of all of them, and the other cases."""
    several: list[Differing] = []
    unexplained: list[Differing] = []
    for one in left:
        case = one.case
        for cause in {made.cause for made in classes if made.difference in one.found}:
            case = case if cause is None else without(case, cause)
        (unexplained if comparison.differences(case) - always else several).append(one)
    return several, unexplained


def _class(comparison: Comparison, differing: list[Differing], difference: str, usual: Usual) -> DifferenceClass:
    """Make the class of a difference from the case that has the fewest other ones."""
    having = sorted((one for one in differing if difference in one.found), key=_size)
    witness = comparison.witness(having[0].case, difference)
    cause = comparison.cause(witness, [one.case for one in having], difference, usual[having[0].generator])
    return DifferenceClass(difference, witness, *(cause or (None, 1.0)))


def _size(one: Differing) -> tuple[int, int]:
    return len(one.found), len(json.dumps(one.case))


def _explain(
    comparison: Comparison, differing: list[Differing], made: DifferenceClass, always: set[str]
) -> list[Differing]:
    """Note the cases that a class explains; return the others, with the differences that are left of them."""
    rest = []
    for one in differing:
        left = one.found - always
        if left and made.cause is not None and left & {made.difference}:
            left = comparison.differences(without(one.case, made.cause)) - always
        if left:
            rest.append(one)
        else:
            made.explained.append(one.case["id"])
    return rest
