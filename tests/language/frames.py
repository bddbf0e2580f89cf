"""Frames for tests: rows and pod values written down as dictionaries, keyed by an input's text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policysched.language import FIELDS, Gap, Input, Kind, Program, Shape, Type, Typed, Unit
from policysched.language.evaluation.columns import aggregate_over, missing_inputs, pod_aggregate_over
from policysched.language.evaluation.frames import FrameStrings

METRIC = Type(Kind.QUANTITY, Unit.NUMBER, Shape.NODES, Gap.INPUT)
DEFAULTS = {Kind.STRING: "", Kind.QUANTITY: 0.0, Kind.BOOL: False, Kind.LIST: ()}


class Interner:
    """Strings by code."""

    stamp = 0

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []

    def code(self, text: str) -> int:
        if text not in self._codes:
            self._codes[text] = len(self._texts)
            self._texts.append(text)
        return self._codes[text]

    def find(self, text: str) -> int:
        return self._codes.get(text, -1)

    def text(self, code: int) -> str:
        assert code >= 0
        return self._texts[code]

    def __len__(self) -> int:
        return len(self._texts)


def type_of(item: Input) -> Type:
    if item.root == "metrics":
        return METRIC
    return FIELDS[item.root, *item.path].type


def value_of(values: Mapping[str, Any], item: Input) -> Any:
    """Return an input's value: absent is missing where it can be, else empty or 0."""
    assert item.key != "*"
    declared = type_of(item)
    value = values.get(item.text)
    if value is None:
        return None if declared.optional else DEFAULTS[declared.kind]
    if declared.kind is Kind.LIST:
        return tuple(value)
    return float(value) if declared.kind is Kind.QUANTITY else value


def column_of(table: Sequence[Mapping[str, Any]], item: Input, strings: Any) -> Any:
    values = [value_of(row, item) for row in table]
    match type_of(item).kind:
        case Kind.STRING:
            return np.array([-1 if v is None else strings.code(v) for v in values], np.int32)
        case Kind.BOOL:
            return np.array(values, np.bool_)
        case _:
            return np.array(values, np.float64)


@dataclass
class TableFrame:
    """Rows of a cluster (or victims, each with its node), one pod, and placed pods: each a dictionary with the place of
    its node under `row`.

    A frame of some rows of another one knows that as `whole`, and which rows as `picked`.
    """

    table: Sequence[Mapping[str, Any]]
    scalars: Mapping[str, Any] = field(default_factory=dict)
    strings: FrameStrings = field(default_factory=lambda: FrameStrings(Interner()))
    feasible: Any = None
    memo: dict[Any, Any] = field(default_factory=dict)
    reads: list[Input] = field(default_factory=list)
    peers: Sequence[Mapping[str, Any]] = ()
    now: float = 0.0
    whole: TableFrame | None = None
    picked: Sequence[int] = ()

    @property
    def rows(self) -> int:
        return len(self.table)

    def column(self, item: Input) -> Any:
        assert item.root in {"node", "victim", "metrics"}
        self.reads.append(item)
        return column_of(self.table, item, self.strings.base)

    def scalar(self, item: Input) -> Any:
        assert item.root in {"pod", "group", "placement", "cluster"}
        return value_of(self.scalars, item)

    def aggregate(self, node: Typed) -> Any:
        if self.whole is None:
            return aggregate_over(node, dataclasses.replace(self, memo={}, feasible=None))
        value = self.whole.aggregate(node)
        return value[np.array(self.picked, np.intp)] if isinstance(value, np.ndarray) else value

    def pod_aggregate(self, node: Typed) -> Any:
        if self.whole is not None:
            return self.whole.pod_aggregate(node)[np.array(self.picked, np.intp)]
        places = np.array([peer["row"] for peer in self.peers], np.int32)
        return pod_aggregate_over(node, PeersFrame(self), places, self.rows)

    def at(self, row: int) -> RowFrame:
        return RowFrame(self, row)

    def pick(self, rows: Sequence[int]) -> TableFrame:
        """Return a frame of some rows."""
        picked = dataclasses.replace(self, table=[self.table[row] for row in rows], memo={}, whole=self, picked=rows)
        picked.feasible = None if self.feasible is None else self.feasible[np.array(rows, np.intp)]
        return picked


NOTHING = {"i": -1, "f": np.nan, "b": False}


@dataclass
class PeersFrame:
    """The placed pods of a table, those without a node too."""

    around: TableFrame
    memo: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.strings = self.around.strings
        self.rows = len(self.around.peers)
        self.feasible = None
        self.now = self.around.now
        self.scalar = self.around.scalar

    def column(self, item: Input) -> Any:
        if item.root == "peer":
            return column_of(self.around.peers, item, self.strings)
        return self._of_their_nodes(self.around.column(item))

    def aggregate(self, node: Typed) -> Any:
        value = self.around.aggregate(node)
        return self._of_their_nodes(value) if isinstance(value, np.ndarray) else value

    def pod_aggregate(self, node: Typed) -> Any:
        raise AssertionError(f"{node} of a placed pod")

    def _of_their_nodes(self, column: Any) -> Any:
        places = np.array([peer["row"] for peer in self.around.peers], np.intp)
        # A pod without a node gets whatever the last row has: it must not matter.
        return column[places] if column.size else np.full(places.size, NOTHING[column.dtype.kind], column.dtype)


@dataclass
class RowFrame:
    """One row of a table, for the interpreter; of a placed pod with its place among them."""

    whole: TableFrame
    row: int
    peer: int | None = None

    @property
    def feasible(self) -> Sequence[RowFrame]:
        mask = self.whole.feasible
        return [RowFrame(self.whole, row) for row in range(self.whole.rows) if mask is None or mask[row]]

    @property
    def now(self) -> float:
        return self.whole.now

    @property
    def nodes(self) -> Sequence[RowFrame]:
        return [RowFrame(self.whole, row) for row in range(self.whole.rows)]

    @property
    def placement(self) -> Sequence[RowFrame]:
        """All nodes: the table is the placement."""
        return self.nodes

    @property
    def pods(self) -> Sequence[RowFrame]:
        peers = self.whole.peers
        return [RowFrame(self.whole, self.row, i) for i, peer in enumerate(peers) if peer["row"] == self.row]

    def value(self, item: Input) -> Any:
        if item.root == "peer":
            assert self.peer is not None
            return value_of(self.whole.peers[self.peer], item)
        return value_of(
            self.whole.table[self.row] if item.root in {"node", "victim", "metrics"} else self.whole.scalars, item
        )


def at_row(program: Any, value: Any, frame: TableFrame, row: int) -> Any:
    """Return an array result as the interpreter would give it, unknown conditions as "unknown"."""

    def pick(found: Any) -> Any:
        return found[row].item() if isinstance(found, np.ndarray) else found

    if program.type.kind is Kind.BOOL:
        true, unknown = pick(value.true), pick(value.unknown)
        assert not (true and unknown)
        return "unknown" if unknown else true
    found = pick(value)
    if program.type.kind is Kind.QUANTITY:
        return None if found != found else found  # noqa: PLR0124 only NaN differs from itself
    if isinstance(value, np.ndarray):
        return None if found < 0 else frame.strings.text(found)
    return found


def missing_input(program: Program, frame: TableFrame, row: int) -> Any:
    """Return the input that is missing at one row, None where none is."""
    among = np.zeros(frame.rows, np.bool_)
    among[row] = True
    return next((item for item, _ in missing_inputs(program, frame, among)), None)
