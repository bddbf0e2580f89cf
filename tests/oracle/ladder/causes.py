"""The smallest case that shows a difference, and the field of a case without which the difference goes.

A field is named by its kind and path, without list indices: `Pod.spec.volumes.image`. Lists of resources are one field.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from tests.oracle.ladder.answers import RESOURCE_LISTS, Ask, Case, differences
from tests.oracle.shrink import shrink

Field: TypeAlias = tuple[str, ...]
"""The kind of an object (`config` for the configuration), and the keys of a path in it."""
NEVER_CAUSES = {"apiVersion", "kind", "metadata", "name", "namespace", "spec", "status", "containers"}
"""Keys that every object has."""
TRIED = 25
"""How many cases a field is removed from to see whether it is the cause."""
LIKELY = 0.9
"""A field is as likely a cause as another one if its removal helps in at least this share as many cases."""
USUAL_CASES = 100
USUAL = 0.6
"""A field is usual if more than this share of USUAL_CASES cases have it."""
Cause: TypeAlias = tuple[Field, float]
"""A field, and in which share of the tried cases the difference ends without it."""


class Comparison:
    """Two oracles that are asked about the same cases.

    Args:
        old: Asks the oracle of the version that is known.
        new: Asks the oracle of the version that is compared.
    """

    def __init__(self, old: Ask, new: Ask) -> None:
        self._old, self._new = old, new

    def differences(self, case: Case) -> frozenset[str]:
        """Return how the answers to a case differ."""
        return differences(case, self._old(case), self._new(case))

    def witness(self, case: Case, difference: str) -> Case:
        """Return the smallest case made from a case that still shows a difference."""
        return shrink(case, lambda smaller: difference in self.differences(smaller))

    def cause(self, witness: Case, cases: Sequence[Case], difference: str, usual: Counter[Field]) -> Cause | None:
        """Return the field that causes a difference.

        Of the fields whose removal ends the difference in most cases, it is the field that the fewest cases have.

        Args:
            witness: The smallest case with the difference: only its fields can be the cause.
            cases: Cases with the difference.
            difference: The difference.
            usual: How many of USUAL_CASES cases of the generator have each field.

        Missing: None where all such fields are usual, so that nearly every case differs.
        """
        tried = cases[:TRIED]
        shares: dict[Field, float] = {}
        for field in set(fields(witness)):
            if usual[field] <= USUAL * USUAL_CASES:
                ended = sum(difference not in self.differences(without(case, field)) for case in tried)
                shares[field] = ended / len(tried)
        if not shares:
            return None
        most = max(shares.values())
        likely = [field for field, share in shares.items() if share >= LIKELY * most]
        best = min(likely, key=lambda field: (usual[field], -len(field), field))
        return (best, shares[best]) if most else None


def fields(case: Case) -> Iterator[Field]:
    """Yield the fields of a case that can be left out."""
    for kind, thing in _things(case):
        yield from ((kind, *path) for path in _paths(thing))


def without(case: Case, field: Field) -> Case:
    """Return a copy of a case without a field, wherever the case has it."""
    made = copy.deepcopy(case)
    for kind, thing in _things(made):
        if kind == field[0]:
            _remove(thing, field[1:])
    return made


def _things(case: Case) -> Iterator[tuple[str, Any]]:
    if case.get("config"):
        yield "config", case["config"]
    for thing in case.get("objects", ()):
        placed = thing.get("kind") == "Pod" and thing.get("spec", {}).get("nodeName")
        yield ("placed Pod" if placed else str(thing.get("kind", "object"))), thing
    for pod in (*case.get("sequence", ()), case.get("pod")):
        if isinstance(pod, dict):
            yield "Pod", pod


def _paths(value: Any, path: Field = ()) -> Iterator[Field]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in NEVER_CAUSES:
                yield (*path, key)
            if key not in RESOURCE_LISTS:
                yield from _paths(part, (*path, key))
    elif isinstance(value, list):
        for part in value:
            yield from _paths(part, path)


def _remove(value: Any, path: Field) -> None:
    if isinstance(value, list):
        for part in value:
            _remove(part, path)
    elif isinstance(value, dict) and len(path) == 1:
        value.pop(path[0], None)
    elif isinstance(value, dict) and path[0] in value:
        _remove(value[path[0]], path[1:])
