"""Frames for tests: rows and pod values written down as dictionaries, keyed by an input's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policysched.language import FIELDS, Input, Kind, Type

DEFAULTS = {Kind.STRING: "", Kind.QUANTITY: 0.0, Kind.BOOL: False}


class Interner:
    """Strings by code."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []

    def code(self, text: str) -> int:
        if text not in self._codes:
            self._codes[text] = len(self._texts)
            self._texts.append(text)
        return self._codes[text]

    def text(self, code: int) -> str:
        assert code >= 0
        return self._texts[code]

    def __len__(self) -> int:
        return len(self._texts)


def type_of(item: Input) -> Type:
    return FIELDS[item.root, *item.path].type


def value_of(values: Mapping[str, Any], item: Input) -> Any:
    """Return an input's value: absent is missing where it can be, else empty or 0."""
    assert item.key != "*"
    declared = type_of(item)
    value = values.get(item.text)
    if value is None:
        return None if declared.optional else DEFAULTS[declared.kind]
    return float(value) if declared.kind is Kind.QUANTITY else value


@dataclass
class TableFrame:
    """Rows of a cluster and one pod."""

    table: Sequence[Mapping[str, Any]]
    scalars: Mapping[str, Any] = field(default_factory=dict)
    strings: Interner = field(default_factory=Interner)
    feasible: Any = None
    memo: dict[Any, Any] = field(default_factory=dict)
    reads: list[Input] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return len(self.table)

    def column(self, item: Input) -> Any:
        self.reads.append(item)
        values = [value_of(row, item) for row in self.table]
        match type_of(item).kind:
            case Kind.STRING:
                return np.array([-1 if v is None else self.strings.code(v) for v in values], np.int32)
            case Kind.BOOL:
                return np.array(values, np.bool_)
            case _:
                return np.array(values, np.float64)

    def scalar(self, item: Input) -> Any:
        return value_of(self.scalars, item)

    def at(self, row: int) -> RowFrame:
        return RowFrame(self, row)


@dataclass
class RowFrame:
    """One row of a table, for the interpreter."""

    whole: TableFrame
    row: int

    @property
    def feasible(self) -> Sequence[RowFrame]:
        mask = self.whole.feasible
        return [RowFrame(self.whole, row) for row in range(self.whole.rows) if mask is None or mask[row]]

    def value(self, item: Input) -> Any:
        return value_of(self.whole.table[self.row] if item.root == "node" else self.whole.scalars, item)


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
