"""Fast reading of YAML written by programs, without source positions; rejects anchors, tags and repeated keys.

`yaml_nodes` reads all other texts. Both readers return the same values.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import yaml
from yaml.nodes import ScalarNode

from policysched.reading.bounded_yaml import MAX_DEPTH
from policysched.reading.yaml_nodes import TYPED, PlainLoader

_SPECIAL: Final = frozenset("yYnNtTfFoO~-+0123456789.<")
"""First characters of unquoted YAML scalars that may not be text."""
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\Z")
"""Pattern of whole numbers that YAML and Python read in the same way."""
_LIST: Final = 1
"""Nesting depth of the lists in a YAML document whose items `shrink` replaces while the document is read."""
Shrink: TypeAlias = Callable[[dict[str, Any]], Any]


class NotPlainError(Exception):
    """Error: the YAML has anchors, tags or other features that this module does not read; use `yaml_nodes` instead."""


def read_events(text: str, shrink: Shrink) -> Iterator[Any]:
    """Yield the values of the documents in a YAML text; skip empty documents.

    Args:
        text: The documents.
        shrink: Is called with each object in a list of a document and returns its replacement.

    Raises:
        NotPlainError: only `yaml_nodes` can read or reject the text.
    """
    builder = _Builder(yaml.parse(text, Loader=PlainLoader), shrink)
    try:
        yield from (value for value in builder.documents() if value is not None)
    except (yaml.YAMLError, ValueError) as error:
        raise NotPlainError from error


class _Builder:
    def __init__(self, events: Iterator[Any], shrink: Shrink) -> None:
        self._events = events
        self._shrink = shrink

    def documents(self) -> Iterator[Any]:
        for event in self._events:
            if type(event) is yaml.DocumentStartEvent:
                yield self._value(next(self._events), 0, flow=False)

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
    return _resolved(value) if not value or value[0] in _SPECIAL else value


def _resolved(written: str) -> Any:
    """Return the value of an unquoted YAML scalar.

    Raises:
        ValueError, yaml.YAMLError: the scalar is invalid.
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
