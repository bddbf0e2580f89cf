"""Fast reading of the nodes and pods of a list in YAML, as JSON of the fields that scheduling reads.

A saved cluster repeats itself: pods of one workload differ in values, hardly in lines. A text is divided into its
outline (indentation, dashes, keys) and the values at the ends of its lines. Where which value stands in the JSON is
found out once for an outline, part by part, so that one with new parts costs little more than these. What is not read
is in no JSON: its keys are looked at, for one that is there twice. An entry that is more than lines with short values
(a text over several lines, say) is read by libyaml each time. What is not taken here `yaml_values` reads.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from policysched.app.files.yaml_values import KEY, PLAIN, QUOTED, NotPlainError, read_part, short_value

_END: Final = " \0"
"""What stands in an outline for the end of a line with a value: the colon or dash before it, and itself.

No text has such a character, no key a space.
"""
_UNREADABLE: Final = r"[-+]?(?:0[box]_*|[0-9_]{400,})\n"
"""Numbers without a digit, or with too many."""
_LETTERS: Final = r"[A-Za-z/][^ \n:]*+(?=\n)"
"""Most texts, found first."""
_VALUE: Final = re.compile(
    rf"[:-] (?:(?<=[^ \n]: )|(?<=[ \n]- ))({QUOTED}|{_LETTERS}|(?!{_UNREADABLE}){PLAIN}|\{{\}}|\[\])(?=\n)"
)
_ENTRY: Final = re.compile(rf"( {{0,60}}+)({KEY})(?:(:\Z)|({_END}\Z)|: )")
"""A key with its value below it, or at the end of the line, or with something else."""
_HEADS: Final = frozenset(("apiVersion", "kind"))
"""What says of which kind an item is."""
_LONGEST: Final = 1 << 23
"""How long the outlines that are known may be together. Units: characters."""
_MOST_TEXTS: Final = 1 << 14
"""Of how many values the JSON is kept."""


class Item(NamedTuple):
    """What was read of an item."""

    kind: str
    version: str
    """Its `apiVersion`; empty where it says none."""
    json: bytes


class _Foreign(NamedTuple):
    """An entry that libyaml has to read."""

    line: int
    lines: int
    column: int
    key: str
    wanted: bool


_Plan: TypeAlias = list[str | int | _Foreign]
"""Pieces of JSON; a number is that of the line whose value stands there."""


class _Filled(NamedTuple):
    """A plan, ready to be filled with values."""

    pieces: list[str]
    """At odd places nothing: there a value comes in."""
    values: list[int]
    """Which value."""
    foreign: list[tuple[int, _Foreign]]
    """What comes in instead, by the place."""


class _Head(NamedTuple):
    """What an outline says about all items that have it."""

    kind: int
    """Which of the values it is."""
    version: int | None
    filled: dict[str, _Filled | None]
    """By the kind; None for one that cannot be read here."""


class _Written(dict[str, str]):
    """The JSON of values as they are written in YAML."""

    def __missing__(self, value: str) -> str:
        if len(self) >= _MOST_TEXTS:
            self.clear()
        made = self[value] = value if value[0] == '"' else _json(short_value(value))
        return made


class Items:
    """Reads items, one after another."""

    def __init__(self, shapes: Mapping[str, type[Any]]) -> None:
        self._shapes = shapes
        """The kinds that are read, each with the struct that has the fields."""
        self._heads: dict[str, _Head] = {}
        self._plans: dict[tuple[Any, str], _Plan] = {}
        self.known = 0
        """How long the outlines are together that are known. Units: characters."""
        self._written = _Written()

    def take(self, text: str, column: int) -> Item | None:
        """Read an item of a list whose dashes stand in a column; None where it has to be read otherwise."""
        parts = _VALUE.split(text)
        values = parts[1::2]
        outline = _END.join(parts[::2])[:-1]
        try:
            head = self._heads.get(outline) or self._head(outline, column)
            kind = short_value(values[head.kind])
            version = "" if head.version is None else short_value(values[head.version])
            if type(kind) is not str or kind not in self._shapes or type(version) is not str:
                return None
            if kind not in head.filled:
                head.filled[kind] = None
                plan = self._mapping(_without_dash(outline, column), column + 2, self._shapes[kind])
                head.filled[kind] = _filled(plan, outline)
            return Item(kind, version, self._fill(head.filled[kind], values, text))
        except (NotPlainError, ValueError, OverflowError):
            return None

    def _fill(self, filled: _Filled | None, values: list[str], text: str) -> bytes:
        if filled is None:
            raise NotPlainError
        pieces = filled.pieces.copy()
        written = self._written
        pieces[1::2] = [written[values[one]] for one in filled.values]
        if filled.foreign:
            lines = text.split("\n")
            for place, entry in filled.foreign:
                pieces[place] = _read_foreign(entry, lines)
        return "".join(pieces).encode()

    def _head(self, outline: str, column: int) -> _Head:
        values: dict[str, int] = {}
        count = 0
        for entry in _cut(_without_dash(outline, column), column + 2, _is_key):
            first, _, rest = entry.partition("\n")
            found = _ENTRY.match(first)
            if found is not None and found[2] in _HEADS:
                if rest or not found[4]:  # a text that goes on, has a comment behind it, or is no plain one
                    raise NotPlainError
                values[found[2]] = count
            count += entry.count(_END)
        if "kind" not in values:
            raise NotPlainError
        self._remember(outline)
        head = self._heads[outline] = _Head(values["kind"], values.get("apiVersion"), {})
        return head

    def _remember(self, outline: str) -> None:
        self.known += len(outline)
        if self.known > _LONGEST:
            self._heads.clear()
            self._plans.clear()
            self.known = len(outline)

    def _planned(self, outline: str, column: int, shape: Any, *, item: bool) -> _Plan:
        """Return what was found out about an outline before, or find it out."""
        key = shape, outline
        plan = self._plans.get(key)
        if plan is None:
            plan = self._item(outline, column, shape) if item else self._entry(outline, column, shape)
            self._remember(outline)
            self._plans[key] = plan
        return plan

    def _mapping(self, outline: str, column: int, shape: Any) -> _Plan:
        made: _Plan = []
        keys: set[str] = set()
        line, opening = 0, "{"
        for entry in _cut(outline, column, _is_key):
            found = _ENTRY.match(entry.partition("\n")[0])
            if found is None or len(found[1]) != column or found[2] in keys:
                raise NotPlainError
            keys.add(found[2])
            inner = _below(shape, found[2])
            if inner is not None:
                made.append(f"{opening}{json.dumps(found[2], ensure_ascii=False)}:")
                opening = ","
            made += _moved(self._planned(entry, column, inner, item=False), line)
            line += entry.count("\n") + 1
        if shape is not None:
            made.append("{}" if opening == "{" else "}")
        return made

    def _entry(self, outline: str, column: int, shape: Any) -> _Plan:
        first, _, rest = outline.partition("\n")
        found = _ENTRY.match(first)
        assert found is not None  # noqa: S101 - whoever asks has looked
        if not rest and (found[3] or found[4]):
            value: _Plan = ["null"] if found[3] else [0]
            return value if shape is not None else []
        if found[3]:
            with contextlib.suppress(NotPlainError):
                return _moved(self._inside(rest, column, shape), 1)
        return [_Foreign(0, outline.count("\n") + 1, column, found[2], shape is not None)]

    def _inside(self, outline: str, column: int, shape: Any) -> _Plan:
        """Plan what belongs to a key in a column."""
        inner = len(outline) - len(outline.lstrip(" "))
        inner -= outline.startswith(_END[1:], inner)
        if _is_item(outline, inner) and inner >= column:
            return self._sequence(outline, inner, shape)
        if inner <= column:
            raise NotPlainError
        return self._mapping(outline, inner, shape)

    def _sequence(self, outline: str, column: int, shape: Any) -> _Plan:
        made: _Plan = []
        inner = _items(shape)
        line, opening = 0, "["
        for item in _cut(outline, column, _is_item):
            if shape is not None:
                made.append(opening)
                opening = ","
            made += _moved(self._planned(item, column, inner, item=True), line)
            line += item.count("\n") + 1
        if shape is not None:
            made.append("]")
        return made

    def _item(self, outline: str, column: int, shape: Any) -> _Plan:
        if outline == " " * column + _END:
            return [] if shape is None else [0]
        body = _without_dash(outline, column)
        if _is_item(body, column + 2):
            return self._sequence(body, column + 2, shape)
        return self._mapping(body, column + 2, shape)


def _is_item(outline: str, column: int) -> bool:
    """Return whether a list's item begins in a column: one with a value has lost its dash."""
    return outline.startswith(("- ", _END), column)


def _without_dash(outline: str, column: int) -> str:
    """Return an item's outline with spaces for its dash."""
    if not outline.startswith("- ", column):
        raise NotPlainError
    return f"{' ' * (column + 2)}{outline[column + 2 :]}"


def _is_key(outline: str, column: int) -> bool:
    """Return whether a key begins in a column, or something else that is no part of what begins before it."""
    return outline[column : column + 1] not in {" ", "-", "\n", ""}


def _cut(outline: str, column: int, begins: Callable[[str, int], bool]) -> Iterator[str]:
    """Cut an outline before the lines that begin something in a column."""
    border = "\n" + " " * column
    start, found = 0, outline.find(border)
    while found >= 0:
        behind = found + len(border)
        if begins(outline, behind):
            yield outline[start:found]
            start = found + 1
        found = outline.find(border, behind)
    yield outline[start:]


def _moved(plan: _Plan, by: int) -> _Plan:
    """Return a plan for values that begin some lines later."""
    return [one if isinstance(one, str) else _moved_piece(one, by) for one in plan]


def _moved_piece(one: int | _Foreign, by: int) -> int | _Foreign:
    return one + by if isinstance(one, int) else one._replace(line=one.line + by)


def _filled(plan: _Plan, outline: str) -> _Filled:
    has_value = [line.endswith(_END) for line in outline.split("\n")]
    values = list(accumulate(has_value, initial=0))
    made = _Filled([""], [], [])
    for one in plan:
        if isinstance(one, str):
            made.pieces[-1] += one
            continue
        if isinstance(one, _Foreign):
            made.foreign.append((len(made.pieces), one))
        made.values.append(values[one] if isinstance(one, int) else 0)
        made.pieces.extend(("", ""))
    return made


def _options(shape: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Return the types that a field's type allows, each with what it holds."""
    union = typing.get_origin(shape) in (typing.Union, types.UnionType)
    for one in typing.get_args(shape) if union else (shape,):
        yield typing.get_origin(one) or one, typing.get_args(one)


@functools.lru_cache(maxsize=256)
def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(struct)}


def _below(shape: Any, key: str) -> Any:
    """Return the type of what stands under a key; Any where all of it is wanted, None where nothing is."""
    for one, holds in _options(shape):
        if one is dict:
            return holds[1]
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            return _fields(one).get(key)
    return None if shape is None else Any


def _items(shape: Any) -> Any:
    """Return the type of a list's items, as `_below`."""
    return next((holds[0] for one, holds in _options(shape) if one in (list, tuple)), None if shape is None else Any)


def _json(value: Any) -> str:
    """Write a value.

    Raises:
        NotPlainError: JSON has none like it.
    """
    written = msgspec.json.encode(value).decode()
    if "null" in written and value is not None and not isinstance(value, str):
        # An infinite number, or something that is not there deep inside.
        raise NotPlainError
    return written


def _read_foreign(entry: _Foreign, lines: list[str]) -> str:
    column = entry.column
    first, *others = lines[entry.line : entry.line + entry.lines]
    behind = " " * (column + 1)
    if not all(line.startswith(behind) or not line.strip(" ") for line in others):
        raise NotPlainError
    # No key is in fewer containers than columns, but for those around it.
    read = read_part("".join(f"{line[column:]}\n" for line in (first, *others)), column + 3, _as_it_is)
    if type(read) is not dict or read.keys() != {entry.key}:
        raise NotPlainError
    return _json(read[entry.key]) if entry.wanted else ""


def _as_it_is(item: dict[str, Any]) -> Any:
    return item
