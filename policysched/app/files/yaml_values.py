"""Fast YAML as plain values, without source positions: line by line as kubectl wrote it, else by parser events.

Nearly all lines of a saved cluster are a key with a short value in block style, nested by indentation alone. These are
read here (`read_blocks`), several times as fast as by libyaml's events. An entry that is more (a value over several
lines, in braces, with a comment behind it) is given to libyaml, with what is indented below it. `read_events` reads
what programs write: no anchors, no tags, no key twice. What a reader does not take the next one has to read, the last
of them `yaml_nodes`, which keeps places: with the same values where several can.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import yaml
from yaml.nodes import ScalarNode

from policysched.app.files.yaml_nodes import TYPED, PlainLoader
from policysched.bounded_yaml import MAX_DEPTH

SPECIAL: Final = frozenset("yYnNtTfFoO~-+0123456789.<")
"""What plain scalars begin with that may be more than texts."""
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\Z")
"""Numbers that are written alike everywhere."""
_LIST: Final = 1
"""How deep the lists of a document stand in it."""
Shrink: TypeAlias = Callable[[dict[str, Any]], Any]
TakeItem: TypeAlias = Callable[[str, int], Any]
"""Reads the text of an item whose dash stands in a column."""


class NotPlainError(Exception):
    """The text has something that only the reader with places takes or refuses."""


def read_events(text: str, shrink: Shrink) -> Iterator[Any]:
    """Return the values of the documents that are not empty.

    Args:
        text: The documents.
        shrink: Is given the items of a document's lists as they are read, and gives what stands for each.

    Raises:
        NotPlainError: the other reader has to be asked.
    """
    builder = _Builder(yaml.parse(text, Loader=PlainLoader), shrink)
    try:
        yield from (value for value in builder.documents() if value is not None)
    except (yaml.YAMLError, ValueError) as error:
        raise NotPlainError from error


def read_part(text: str, depth: int, shrink: Shrink) -> Any:
    """Return the value of a text that is a part of a document: keys, or items, that begin in the first column.

    Args:
        text: The part.
        depth: In how many containers it stands in its document.
        shrink: As of `read_events`.

    Raises:
        NotPlainError: another reader has to be asked.
    """
    builder = _Builder(yaml.parse(text, Loader=PlainLoader), shrink)
    try:
        [value] = builder.documents(depth)
    except (yaml.YAMLError, ValueError) as error:
        raise NotPlainError from error
    return value


class _Builder:
    def __init__(self, events: Iterator[Any], shrink: Shrink) -> None:
        self._events = events
        self._shrink = shrink

    def documents(self, depth: int = 0) -> Iterator[Any]:
        for event in self._events:
            if type(event) is yaml.DocumentStartEvent:
                yield self._value(next(self._events), depth, flow=False)

    def _value(self, event: Any, depth: int, *, flow: bool) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent or event.anchor is not None or event.tag is not None or depth > MAX_DEPTH - 2:
            raise NotPlainError
        if kind is yaml.ScalarEvent:
            return _scalar(event, flow=flow)
        if kind is yaml.SequenceStartEvent:
            return self._sequence(depth, flow=bool(event.flow_style))
        return self._mapping(depth, flow=bool(event.flow_style))

    def _mapping(self, depth: int, *, flow: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for event in self._events:
            if type(event) is yaml.MappingEndEvent:
                break
            key = _key(event, flow=flow)
            if key in made:
                raise NotPlainError
            made[key] = self._value(next(self._events), depth + 1, flow=flow)
        return made

    def _sequence(self, depth: int, *, flow: bool) -> list[Any]:
        made = []
        for event in self._events:
            if type(event) is yaml.SequenceEndEvent:
                break
            value = self._value(event, depth + 1, flow=flow)
            made.append(self._shrink(value) if depth == _LIST and type(value) is dict else value)
        return made


def _key(event: Any, *, flow: bool) -> str:
    plain = type(event) is yaml.ScalarEvent and event.anchor is None and event.tag is None
    if not plain or event.value == "<<" or (flow and not event.style and "?" in event.value):
        raise NotPlainError
    key: str = event.value
    return key


def _scalar(event: Any, *, flow: bool) -> Any:
    value: str = event.value
    if event.style:
        return value
    if flow and "?" in value:
        raise NotPlainError
    return resolved(value) if not value or value[0] in SPECIAL else value


def resolved(written: str) -> Any:
    """Return the value of a plain scalar.

    Raises:
        ValueError, yaml.YAMLError: it has none.
    """
    if _DECIMAL.match(written):
        return int(written)
    return _constructed(written) if TYPED.match(written) else written


@functools.lru_cache(maxsize=10_000)
def _constructed(written: str) -> Any:
    loader = PlainLoader("")
    try:
        tag = loader.resolve(ScalarNode, written, (True, False))  # type: ignore[no-untyped-call]
        made = loader.construct_object(ScalarNode(tag, written), deep=True)
    finally:
        loader.dispose()
    if made == written:
        raise ValueError("a number that is too large for one")
    return made


Line: TypeAlias = tuple[str, str, str, str, str]
"""Indentation, dashes, a key and its value, a value without a key; nothing where a line is more than that."""

_FIRST: Final = r"""[^ \n\-?:,\[\]{}#&*!|>'"%@`<]"""
"""What a plain text begins with that can be nothing else."""
KEY: Final = rf"{_FIRST}[^ \n:]{{0,300}}+(?::[^ \n:]{{1,300}}+){{0,2}}+"
"""A key; libyaml takes none that is longer than 1024 characters."""
PLAIN: Final = rf"(?:{_FIRST}|-(?=[^ \n]))[^ \n:]*+(?:(?::(?=[^ \n])| ++(?=[^ \n#]))[^ \n:]*+)*+"
QUOTED: Final = r"""'[^'\n]*+(?:''[^'\n]*+)*+'|"[^"\\\n]*+(?:\\["\\bfnrt][^"\\\n]*+)*+\""""
"""With no escapes but those that JSON has too."""
_INDENT: Final = " {0,60}+"
_DASHES: Final = "(?:- ){0,10}+"
LEAD: Final = _INDENT + _DASHES
"""No deeper than the other readers go."""
_LEADS: Final = rf"({_INDENT})({_DASHES})"
_WHOLE: Final = rf"({KEY}):(?: ({PLAIN}|{QUOTED}|\{{\}}|\[\]))?|({PLAIN}|{QUOTED})"
_LINE: Final = re.compile(rf"{_LEADS}(?:{_WHOLE})\n|.+\n?|\n")
_ENTRY: Final = re.compile(rf"""{_LEADS}((?:{KEY}|'[^'\n]*'|"[^"\n]*")\ *:(?:\ |$))?""")
_ITEMS: Final = re.compile(r"^items:\n( *- )", re.MULTILINE)
_OUTERMOST: Final = re.compile(r"\n(?=[^ \n])")
_STRANGE: Final = re.compile("[^\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ASCII: Final = bytes((0x0A, *range(0x20, 0x7F)))
_PIECE: Final = 1 << 13
_MARKED: Final = SPECIAL | frozenset("'\"{[")
_ITEM: Final = 3
"""How many containers are open around the fields of an item: the list, the document and what holds it."""


def read_blocks(text: str, shrink: Shrink, take: TakeItem = lambda _text, _column: None) -> Iterator[Any]:
    """Return the values of the documents that are not empty.

    Args:
        text: The documents; a line ends with a line feed.
        shrink: Is given the items of a document's lists as they are read, and gives what stands for each.
        take: Is given the text of such an item first, and gives what stands for it; None where it does not know.

    Raises:
        NotPlainError: another reader has to be asked.
    """
    if not text.endswith("\n"):
        raise NotPlainError
    reader = _Reader(shrink, take)
    try:
        for piece, column in _pieces(text):
            if _is_strange(piece):
                raise NotPlainError
            if column is None or not reader.take_item(piece, column):
                yield from (value for value in reader.take(piece) if value is not None)
        yield from (value for value in reader.end() if value is not None)
    except ValueError as error:
        raise NotPlainError from error


def _pieces(text: str) -> Iterator[tuple[str, int | None]]:
    """Cut a text before items and outermost keys, so that its lines are not all in memory at once.

    Each item of the first list called `items`, and of lists that are indented alike, is a piece with its column.
    """
    items = _ITEMS.search(text)
    dash = items[1] if items else ""
    start = searched = outermost = item = 0
    while start < len(text):
        column = len(dash) - len("- ") if dash and text.startswith(dash, start) else None
        least = start + (_PIECE if column is None else 1)
        if not searched <= least <= outermost:
            searched, border = least, _OUTERMOST.search(text, least)
            outermost = border.end() if border else len(text)
        if item <= start:
            found = text.find(f"\n{dash}", start) if dash else -1
            item = len(text) if found < 0 else found + 1
        end = min(outermost, item)
        yield text[start:end], column
        start = end


def _is_strange(piece: str) -> bool:
    """Return whether a text has what breaks lines to YAML alone, or what YAML refuses."""
    if piece.isascii():
        return bool(piece.encode().translate(None, _ASCII))
    return _STRANGE.search(piece) is not None


class _Reader:
    """What is open: containers and the columns of their keys or dashes, the innermost apart."""

    def __init__(self, shrink: Shrink, take: TakeItem) -> None:
        self._shrink = shrink
        self._take = take
        self._begin()

    def _begin(self) -> None:
        self._around: list[tuple[Any, int]] = []
        self._top: Any = {}
        self._at = -1
        self._waiting: str | None = ""
        """The key of the innermost container that has no value yet."""

    def end(self) -> Iterator[Any]:
        """End the document; give its value, if there is one."""
        yield from self._close(-1, within=False).values()
        self._begin()

    def take_item(self, piece: str, column: int) -> bool:
        """Put what stands for an item into the list that it belongs to; return False where nothing was done."""
        is_open = len(self._around) >= _ITEM
        around, at = self._around[_ITEM - 1] if is_open else (self._top, self._at)
        if len(self._around) < _ITEM - 1 or type(around) is not list or at != column:
            return False
        item = self._take(piece, column)
        if item is None:
            return False
        self._waiting = None
        self._top, self._at = self._close(column, within=True), column
        self._top.append(item)
        return True

    def take(self, piece: str) -> Iterator[Any]:
        """Read whole lines; give the value of each document that ends in them."""
        lines = _LINE.findall(piece)
        number = self._take_simple(lines, 0)
        texts = piece[:-1].split("\n") if number < len(lines) else []
        while number < len(lines):
            if texts[number] == "---":
                yield from self.end()
                while number < len(texts) and texts[number] == "---":  # documents between them are empty
                    number += 1
            else:
                number = self._take_other(texts, number)
            number = self._take_simple(lines, number)

    def _take_simple(self, lines: list[Line], first: int) -> int:
        """Read lines up to the first that is more than a key or a dash with a short value; give its number."""
        top, at = self._top, self._at
        for number in range(first, len(lines)):
            indent, dashes, key, value, item = lines[number]
            if not key and not (item and dashes):
                return number
            if dashes or len(indent) != at or self._waiting is not None or type(top) is list:
                if not self._place(len(indent), dashes, key):
                    return number
                top, at = self._top, self._at
            if not key:
                top.append(short_value(item) if item[0] in _MARKED else item)
            elif key in top:
                raise NotPlainError
            elif value:
                top[key] = short_value(value) if value[0] in _MARKED else value
            else:
                top[key] = None
                self._waiting = key
        return len(lines)

    def _place(self, column: int, dashes: str, key: str) -> bool:
        """Open and close containers, so that the innermost is the one that an entry belongs to.

        Returns:
            False where the line continues the one before, and nothing was done.
        """
        top, at, around = self._top, self._at, self._around
        waiting, self._waiting = self._waiting, None
        if waiting is not None and (column > at or (dashes and column == at)):
            around.append((top, at))
            top[waiting] = [] if dashes else {}
            top, at = top[waiting], column
        elif column > at:
            return False
        else:
            top = self._close(column, within=bool(dashes))
            at = column
        if dashes:
            for start in range(column + 2, column + len(dashes) + 2 * bool(key), 2):
                around.append((top, at))
                top.append({} if key and start == column + len(dashes) else [])
                top, at = top[-1], start
        self._top, self._at = top, at
        return True

    def _close(self, column: int, *, within: bool) -> Any:
        """Close the containers that a line at a column ends; give the one that it belongs to.

        Raises:
            NotPlainError: there is none.
        """
        top, at, around = self._top, self._at, self._around
        while at > column or (at == column and not within and type(top) is list):
            inner = top
            top, at = around.pop()
            if len(around) == _ITEM - 1 and type(inner) is dict and type(top) is list:
                top[-1] = self._shrink(inner)
        if at != column or (type(top) is list) != within:
            raise NotPlainError
        return top

    def _take_other(self, texts: list[str], number: int) -> int:
        """Have an entry read by libyaml, with what is indented below it; give the number of the line behind it."""
        column, dashes, key, rest = _parts(texts[number])
        if not (dashes or key) and rest[:1] in {"", "#"}:
            return number + 1
        continued = self._waiting is None and column > self._at
        if continued:
            number -= 1
            column, dashes, key, rest = _parts(texts[number]) if number >= 0 else (0, "", "", "")
        if not (key or dashes) or (continued and not rest):
            raise NotPlainError
        if not continued:
            self._place(column, dashes, key)
        column += len(dashes) if key else len(dashes) - 2
        end = _end(texts, number + 1, column)
        entry = "".join(f"{line[column:]}\n" for line in texts[number:end])
        self._put(read_part(entry, len(self._around) - 1, self._shrink), again=continued)
        return end

    def _put(self, part: Any, *, again: bool) -> None:
        """Put what was read of an entry into the innermost container, again where its first line was there before."""
        top = self._top
        if len(part) != 1 or type(part) is not type(top):
            raise NotPlainError
        if type(top) is list:
            top[len(top) - again :] = part
        elif again or not top.keys() & part.keys():
            top |= part
        else:
            raise NotPlainError


def _parts(text: str) -> tuple[int, str, str, str]:
    """Divide a line into the column where it begins, its dashes, its key and the rest."""
    found = _ENTRY.match(text)
    assert found is not None  # noqa: S101 - every part of it may be empty
    indent, dashes, key = found.groups("")
    return len(indent), dashes, key, text[found.end() :]


def _end(texts: list[str], first: int, column: int) -> int:
    """Find the end of the lines that are empty or begin behind a column."""
    while first < len(texts) and (texts[first].startswith(" " * (column + 1)) or not texts[first].strip(" ")):
        first += 1
    return first


def short_value(value: str) -> Any:
    """Read a value that is written in one line, `PLAIN`, `QUOTED`, `{}` or `[]`.

    Raises:
        ValueError: it is a number that cannot be read.
    """
    match value[0]:
        case "'":
            return value[1:-1].replace("''", "'")
        case '"':
            return json.loads(value) if "\\" in value else value[1:-1]
        case "{":
            return {}
        case "[":
            return []
    return resolved(value) if value[0] in SPECIAL else value
