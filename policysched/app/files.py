"""Objects from files: YAML or JSON, many documents, lists and folders, each object with its place.

It knows nothing of what the objects mean. Everything wrong with a file is a UsageError that names file, line and
column. Places are looked up only where something has to be said about a field, because a saved cluster may hold a
hundred thousand objects and nothing to complain about.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from yaml.nodes import Node

from policysched.app import places
from policysched.app.places import Place
from policysched.app.yaml_nodes import read_yaml
from policysched.errors import UsageError

STDIN: Final = "-"
SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_LINE_END: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
Object = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """The text of a file, and one document's root node in it."""

    file: str
    text: str
    compose: Callable[[], Node | None]

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines, ended by what ends a line in YAML."""
        return _LINE_END.split(self.text)

    @cached_property
    def root(self) -> Node | None:
        """The document's node; None where the text is no YAML, as some JSON is not."""
        return self.compose()


@dataclass(frozen=True, slots=True)
class Document:
    """One object and where it came from."""

    object: Object
    source: Source
    path: str = field(default="")
    """The object's path inside its document, as `items[3]`."""

    @property
    def file(self) -> str:
        """The file's name as it was given."""
        return self.source.file

    @property
    def where(self) -> str:
        """File and line of the object, for messages."""
        place = self.place("")
        return f"{self.file}:{place.line}:{place.column}" if place else self.file

    def node(self, path: str) -> Node | None:
        """Find the node of a field, or of the nearest one around it that is there."""
        root = self.source.root
        if root is None:
            return None
        return places.find(root, f"{self.path}.{path}" if self.path and path else self.path or path)[0]

    def place(self, path: str, line: int = 1, column: int = 1) -> Place | None:
        """Find a field's value in the file, or a line and column inside its text."""
        node = self.node(path)
        if node is None:
            return None
        if (line, column) == (1, 1) and not path:
            return places.start(node)
        return places.inside(node, self.source.lines, line, column)


def load(names: Iterable[str]) -> list[Document]:
    """Read files, folders (`*.yaml`, `*.yml`, `*.json`, by name) and `-`, the standard input.

    Raises:
        UsageError: one cannot be read or is not made of Kubernetes objects.
    """
    return [document for name in names for document in _load(name)]


def read(text: str, file: str) -> list[Document]:
    """Read the objects of a text.

    Raises:
        UsageError: it is not made of Kubernetes objects.
    """
    documents = [item for value, source in _values(text, file) for item in _objects(value, source)]
    if not documents:
        raise UsageError(f"{file}: holds no object")
    return documents


def read_text(name: str) -> str:
    """Read a text file, or the standard input for `-`.

    Raises:
        UsageError: it cannot be read or is not text.
    """
    try:
        data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name}: {_why(error)}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{_shown(name)}: not a text file in UTF-8") from error
    if "\0" in text:
        raise UsageError(f"{_shown(name)}: not a text file")
    return text.replace("\r\n", "\n")


def _load(name: str) -> list[Document]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return read(read_text(name), _shown(name))
    found = sorted(one for one in path.iterdir() if one.suffix in SUFFIXES and one.is_file())
    if not found:
        raise UsageError(f"{name}: the folder has no .yaml, .yml or .json file")
    return [document for one in found for document in read(read_text(str(one)), str(one))]


def _values(text: str, file: str) -> Iterator[tuple[Any, Source]]:
    if text.lstrip()[:1] in ("{", "["):
        found = _json_values(text)
        if found is not None:
            for value, offset, end in found:
                yield value, Source(file, text, _composer(text, offset, end, file))
            return
        if file.endswith(".json"):
            _explain_json(text, file)
    for value, node in read_yaml(text, file):
        yield value, Source(file, text, lambda node=node: node)  # type: ignore[misc]


def _json_values(text: str) -> list[tuple[Any, int, int]] | None:
    """Read JSON values that follow each other; None where it is no JSON or YAML has to say what is wrong."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeats)
    found, offset = [], _skip(text, 0)
    try:
        while offset < len(text):
            value, end = decoder.raw_decode(text, offset)
            found.append((value, offset, end))
            offset = _skip(text, end)
    except (ValueError, RecursionError):
        return None
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> Object:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is there twice")
    return made


def _explain_json(text: str, file: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        raise UsageError(f"{file}:{error.lineno}:{error.colno}: not valid JSON: {problem}") from error
    except RecursionError as error:
        raise UsageError(f"{file}: nested too deep") from error


def _skip(text: str, offset: int) -> int:
    while offset < len(text) and text[offset].isspace():
        offset += 1
    return offset


def _composer(text: str, offset: int, end: int, file: str) -> Callable[[], Node | None]:
    def compose() -> Node | None:
        line_start = text.rfind("\n", 0, offset) + 1
        moved = "\n" * text.count("\n", 0, offset) + " " * (offset - line_start) + text[offset:end]
        try:
            return read_yaml(moved, file)[0][1]
        except UsageError:
            return None

    return compose


def _objects(value: Any, source: Source, path: str = "", implied: Object | None = None) -> Iterator[Document]:
    found = Document(value, source, path)
    if not isinstance(value, dict):
        raise UsageError(f"{found.where}: expected an object, got {_kind(value)}")
    whole = {**(implied or {}), **value}
    kind = whole.get("kind")
    if not isinstance(kind, str) or not kind:
        raise UsageError(f"{found.where}: the object has no kind")
    if not kind.endswith("List"):
        yield Document(whole, source, path)
        return
    items = whole.get("items") or []
    if not isinstance(items, list):
        raise UsageError(f"{found.where}: items: expected a list, got {_kind(items)}")
    inner = {"kind": kind.removesuffix("List"), "apiVersion": whole.get("apiVersion", "v1")}
    for index, item in enumerate(items):
        yield from _objects(item, source, f"{path}.items[{index}]".lstrip("."), inner if inner["kind"] else None)


def _kind(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
    return "nothing"


def _shown(name: str) -> str:
    return "<stdin>" if name == STDIN else name


def _why(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file"
        case PermissionError():
            return "no permission to read it"
    return (error.strerror or str(error)).lower()
