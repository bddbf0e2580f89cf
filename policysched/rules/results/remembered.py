"""Answers of policies by what their rules read of a row: rows and pod classes that agree in that are evaluated once.

Most rows that change are like one that was seen before: pods of one Deployment come to nodes of one shape, and each
class of pods asks about the same rows. Where what rules say of a row is made of few numbers of that row alone, what
they said is found by these numbers. Rules that read texts of nodes, time, metrics, images or other rows are evaluated
each time, unless their results are kept by row anyway: then those are among the numbers.

Shapes: P policies, R rows asked for, L numbers of a row, K kept results, E entries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.language.evaluation.columns import Batch
from policysched.language.evaluation.kernels import ARITHMETIC
from policysched.language.ir.graph import POD_AGGREGATES, Input, Op, Typed, per_graph, steps
from policysched.language.ir.types import Kind, Shape
from policysched.rules.inputs import PodInputs
from policysched.rules.shared_values.context import RuleFrame

MOST_BYTES: Final = 2 * 1024 * 1024
"""What the entries of some policies may take. Units: bytes."""
BYTES_PER_ENTRY: Final = 192
"""What an entry takes beside its numbers and answers. Units: bytes."""
MOST_NUMBERS: Final = 8
"""Of more numbers of a row evaluating them is about as quick as looking for them."""
CREDIT: Final = 1024
"""How much looking in vain there may be: each such row counts twice, each that was known makes up for one."""
REST: Final = 1024
"""How often is not looked after that."""
_MADE_OF: Final = frozenset(
    (
        *(Op.CONSTANT, Op.AND, Op.OR, Op.NOT, Op.EQ, Op.NE, Op.IN, Op.NOT_IN, Op.DEFAULT, Op.HAS, Op.IF, Op.ONLY),
        *(Op.LT, Op.LE, Op.GT, Op.GE),
        *(op for op in ARITHMETIC if op != Op.NORMALIZE),
    )
)
_OF_NODE: Final = frozenset(("allocatable", "requested", "free", "ready", "cordoned"))
_OF_POD: Final = frozenset(("requests", "labels", "priority", "namespace", "priority_class", "qos"))


class Numbers(NamedTuple):
    """What a graph reads: graphs of numbers of the row, and inputs of the pod."""

    of_row: tuple[Typed, ...]
    of_pod: tuple[Input, ...]


@per_graph
def numbers_read(root: Typed) -> Numbers | None:
    """Return what a graph reads, None where it reads more than a few numbers of a row and what a pod states."""
    rows, pods = dict[Typed, None](), dict[Input, None]()
    for node in steps(root):
        if node.op in _MADE_OF:
            continue
        if node.type.shape is Shape.SCALAR:
            item = node.data
            if node.op != Op.INPUT or not isinstance(item, Input) or item.root != "pod" or item.path[0] not in _OF_POD:
                return None
            pods[item] = None
        elif not _is_number(node):
            return None
        else:
            rows[node] = None
    return Numbers(tuple(rows), tuple(pods))


def _is_number(node: Typed) -> bool:
    """Return whether a node of a graph is a number or truth of the row alone, never missing."""
    if node.op in POD_AGGREGATES:
        return node.type.kind is Kind.QUANTITY and not node.type.optional
    item = node.data
    known = isinstance(item, Input) and item.root == "node" and item.key is None and item.path[0] in _OF_NODE
    return node.op == Op.INPUT and known and node.type.kind in {Kind.QUANTITY, Kind.BOOL}


class RememberedAnswers:
    """What some rules of policies said, for all pod classes for which these rules speak.

    Args:
        numbers: What the rules read that are evaluated.
        policies: How many answers a row has.
        kept: How many results of other rules are kept by row, K.
        dtype: What holds an answer.
    """

    __slots__ = ("_answers", "_batch", "_credit", "_numbers", "_of_pod", "_places", "_rest", "_width")

    def __init__(self, numbers: Numbers, policies: int, kept: int, dtype: type[np.signedinteger]) -> None:
        self._numbers, self._of_pod = numbers
        self._batch = Batch(self._numbers)
        self._width = kept + len(self._numbers)
        entries = max(1, MOST_BYTES // (BYTES_PER_ENTRY + 8 * (self._width + policies)))
        self._answers: NDArray[np.signedinteger] = np.zeros((policies, entries), dtype)
        """Shapes: (P, E)."""
        self._places: dict[Hashable, int] = {}
        self._credit, self._rest = CREDIT, 0

    @classmethod
    def of(
        cls, roots: Iterable[Typed], policies: int, kept: int, dtype: type[np.signedinteger]
    ) -> RememberedAnswers | None:
        """Return one for rules with these graphs, None where they read something else than a few numbers."""
        rows, pods = dict[Typed, None](), dict[Input, None]()
        for root in roots:
            if (read := numbers_read(root)) is None:
                return None
            rows |= dict.fromkeys(read.of_row)
            pods |= dict.fromkeys(read.of_pod)
        read_of_all = Numbers(tuple(rows), tuple(pods))
        return cls(read_of_all, policies, kept, dtype) if len(rows) <= MOST_NUMBERS else None

    def part_of(self, pod: PodInputs) -> Hashable:
        """Return what the rules read of a pod."""
        return pod.key(self._of_pod)

    def answers(
        self, of_pod: Hashable, frame: RuleFrame, kept: NDArray[Any], work_out: Callable[[], NDArray[Any]]
    ) -> NDArray[Any]:
        """Return what policies say of rows.

        Args:
            of_pod: What the rules read of the pod.
            frame: The rows.
            kept: Results of other rules on these. Shapes: (K, R).
            work_out: Gives the answers for all rows. Shapes: (P, R).

        Shapes: (P, R).
        """
        if self._rest:
            self._rest -= 1
            return work_out()
        keys = self._keys(of_pod, frame, kept)
        places = [self._places.get(key, -1) for key in keys]
        vain = places.count(-1)
        self._credit = min(CREDIT, self._credit + len(places) - 3 * vain)
        if self._credit < 0:
            self._credit, self._rest = CREDIT, REST
        if not vain:
            return self._answers.take(places, 1)
        found = work_out()
        for place, (key, known) in enumerate(zip(keys, places, strict=True)):
            if known < 0:
                self._note(key, found[:, place])
        return found

    def _keys(self, of_pod: Hashable, frame: RuleFrame, kept: NDArray[Any]) -> list[Hashable]:
        """Return what answers are found by, row by row."""
        if not self._width:
            return [(of_pod, b"")] * frame.rows
        self._batch.evaluate(frame)
        told = np.empty((frame.rows, self._width))
        told[:, : len(kept)] = kept.T
        for place, node in enumerate(self._numbers, len(kept)):
            value = frame.memo[node]
            told[:, place] = value[0] if node.type.kind is Kind.BOOL else value
        whole, size = told.tobytes(), 8 * self._width
        return [(of_pod, whole[begin : begin + size]) for begin in range(0, len(whole), size)]

    def _note(self, key: Hashable, answers: NDArray[Any]) -> None:
        """Keep what was said of a row; where there is no room left, begin anew."""
        if len(self._places) == self._answers.shape[1]:
            self._places.clear()
        place = self._places.setdefault(key, len(self._places))
        self._answers[:, place] = answers
