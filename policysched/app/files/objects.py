"""Load objects from YAML or JSON files: many documents, lists and folders, each object with its source position.

It knows nothing of what the objects mean. Everything wrong with a file is a UsageError that names file, line and
column. Places are looked up only where something has to be said about a field, because a saved cluster may hold a
hundred thousand objects and nothing to complain about.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from yaml.nodes import Node

from policysched.app.files import positions
from policysched.app.files.positions import SourcePosition
from policysched.app.files.yaml_nodes import LINE_END, LONG_NUMBER, compose_json, read_yaml, repeated_key
from policysched.errors import UsageError

STDIN: Final = "-"
SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
TESTS: Final = re.compile(r"(?:.*[-_.])?tests\.ya?ml")
"""Names of files of tests (`policysched test`), which folders have beside the policies."""
_TEMPLATE: Final = re.compile(
    r"\{\{-?\s*(?:/\*|\$|\.[A-Z]|(?:if|else|end|with|range|include|define|template|toYaml)\b)"
)
"""An action of a template of Helm."""
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_FIRST: Final = 1 << 20
LARGEST: Final = 1 << 31
"""How large a file may be. Units: bytes."""
Object = Mapping[str, Any]


class EmptyFileError(UsageError):
    """A file holds nothing but comments."""


class ForeignFileError(UsageError):
    """A file holds values that are no Kubernetes objects."""


@dataclass(frozen=True)
class Source:
    """The text of a file, and one document's root node in it."""

    file: str
    read: Callable[[], str] = field(repr=False)
    compose: Callable[[], Node] = field(repr=False)

    @cached_property
    def text(self) -> str:
        """The text, as far as the document stands in it."""
        return self.read()

    @property
    def lines(self) -> list[str]:
        """The text's lines, ended by what ends a line in YAML."""
        return _lines(self.text)

    @property
    def starts(self) -> list[int]:
        """The offsets where the lines begin."""
        return _starts(self.text)

    @cached_property
    def root(self) -> Node:
        """The document's node."""
        return self.compose()


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    """Divide a text, once for all the documents in it."""
    return LINE_END.split(text)


@lru_cache(maxsize=1)
def _starts(text: str) -> list[int]:
    return [0, *(found.end() for found in LINE_END.finditer(text))]


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
        return f"{self.file}:{place.line}:{place.column}"

    def node(self, path: str) -> Node:
        """Find the node of a field, or of the nearest one around it that is there."""
        return positions.find(self.source.root, self.inside(path))[0]

    def exact(self, path: str) -> Node | None:
        """Find the node of a field, None where there is no such field."""
        node, found = positions.find(self.source.root, self.inside(path))
        return node if found else None

    def refusal(self, path: str, error: Exception | str, *, at_key: bool = False) -> UsageError:
        """Make an error about a field, or about its key, out of an error that does not know its place."""
        key = positions.key(self.source.root, self.inside(path)) if at_key else None
        place = self.place(path) if key is None else positions.start(key)
        return UsageError(f"{self.file}:{place.line}:{place.column}: {error}")

    def inside(self, path: str) -> str:
        """Return the path of a field inside the document."""
        return f"{self.path}.{path}" if self.path and path else self.path or path

    def place(self, path: str, line: int = 1, column: int = 1) -> SourcePosition:
        """Find a field's value in the file, or a line and column inside its text."""
        node = self.node(path)
        if (line, column) == (1, 1) and not path:
            return positions.start(node)
        return positions.inside(node, self.source.lines, line, column)


def read(text: str, file: str) -> list[Document]:
    """Read the objects of a text.

    Raises:
        UsageError: it is not made of Kubernetes objects.
    """
    try:
        documents = [item for value, source in _values(text, file) for item in objects_of(value, source)]
    except UsageError as error:
        template = _TEMPLATE.search(text)
        if template is None:
            raise
        line = text.count("\n", 0, template.start()) + 1
        help_text = "run `helm template` and use its output"
        raise UsageError(f"{file}:{line}: this is a Helm template that is not rendered; {help_text}") from error
    if not documents:
        raise EmptyFileError(f"{file}: no objects")
    return documents


def read_text(name: str) -> str:
    """Read a text file, or the standard input for `-`; its lines end with a line feed.

    Raises:
        UsageError: it cannot be read or is not text.
    """
    return as_text(read_bytes(name), shown(name)).replace("\r\n", "\n")


def read_bytes(name: str) -> bytes:
    """Read a file, or the standard input for `-`.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        if not name:
            raise FileNotFoundError
        if name == STDIN:
            return _standard_input(sys.stdin.buffer)
        with Path(name).open("rb") as file:
            return _bytes_of(file, name)
    except OSError as error:
        raise UsageError(f"{shown(name)}: {why(error)}") from error


@lru_cache(maxsize=1)
def _standard_input(file: BinaryIO) -> bytes:
    """Read the standard input once; several flags of a command can name it."""
    return _bytes_of(file, STDIN)


def _bytes_of(file: BinaryIO, name: str) -> bytes:
    """Read a file to its end; one that has none (a device, a pipe) is refused and not awaited."""
    first = file.read(_FIRST)
    if len(first) < _FIRST:
        return first
    if b"\0" in first:
        raise UsageError(f"{shown(name)}: not a text file")
    most = LARGEST + 1
    if file.seekable():
        # Put together, the two would be in memory twice.
        begin = file.tell() - len(first)
        most = max(len(first), min(most, file.seek(0, os.SEEK_END) - begin + 1))
        file.seek(begin)
        first = b""
    data = first + file.read(most - len(first))
    if len(data) > LARGEST:
        raise UsageError(f"{shown(name)}: larger than {LARGEST >> 30} GiB")
    return data


def as_text(data: bytes, file: str) -> str:
    """Decode a text file; a byte order mark at its beginning is left out.

    Raises:
        UsageError: it is not text.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 text") from error
    if "\0" in text:
        raise UsageError(f"{file}: not a text file")
    return text


def shown(name: str) -> str:
    """Return a file's name for messages."""
    return {STDIN: "<stdin>", "": '""'}.get(name, name)


def metadata_of(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of an object as it is written, none where that is no mapping: who decodes it says so."""
    found = one.get("metadata")
    return found if isinstance(found, Mapping) else {}


def exists(file: Path) -> bool:
    """Return whether there is a file; there is none whose name is longer than names can be."""
    try:
        return file.exists()
    except OSError:
        return False


def why(error: OSError) -> str:
    """Say why a file cannot be read."""
    match error:
        case FileNotFoundError():
            return "no such file"
        case PermissionError():
            return "permission denied"
    return (error.strerror or str(error)).lower()


def _values(text: str, file: str) -> Iterator[tuple[Any, Source]]:
    if text.lstrip()[:1] in ("{", "["):
        found = _json_values(text, file)
        if found is not None:
            _refuse_half_characters(found, text, file)
            for value, offset, end in found:
                yield value, Source(file, lambda: text, partial(compose_json, text, offset, end))
            return
        if file.endswith(".json"):
            _explain_json(text, file)
    for value, node in read_yaml(text, file):
        yield value, Source(file, lambda: text, lambda node=node: node)  # type: ignore[misc]


def _json_values(text: str, file: str) -> list[tuple[Any, int, int]] | None:
    """Read JSON values that follow each other; None where it is no JSON or YAML has to say what is wrong.

    Raises:
        UsageError: a key is in one object twice.
    """
    decoder = json.JSONDecoder(object_pairs_hook=without_repeats)
    found, offset = [], _skip(text, 0)
    try:
        while offset < len(text):
            value, end = decoder.raw_decode(text, offset)
            found.append((value, offset, end))
            offset = _skip(text, end)
    except RepeatedKeyError:
        _refuse_repeated_key(text, file, offset)
        return None
    except (ValueError, RecursionError):
        return None
    return found


def _refuse_repeated_key(text: str, file: str, offset: int) -> None:
    """Say which key of the JSON value at an offset is there twice, if it is JSON to its end."""
    try:
        _, end = json.JSONDecoder().raw_decode(text, offset)
    except (ValueError, RecursionError):
        return
    key = repeated_key(compose_json(text, offset, end))
    if key is not None:
        place = positions.start(key)
        raise UsageError(f'{file}:{place.line}:{place.column}: duplicate key "{key.value}"')


def _refuse_half_characters(found: list[tuple[Any, int, int]], text: str, file: str) -> None:
    """Refuse escapes that are one half of a pair: no text of a cluster holds them, and none can be printed."""
    if not _HALF.search(text):
        return
    try:
        json.dumps([value for value, _, _ in found], ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise UsageError(f"{file}: not valid JSON: {half} is an incomplete surrogate pair") from error


class RepeatedKeyError(ValueError):
    """A key is in one object twice: which of the two counts, readers of JSON do not agree on."""


def without_repeats(pairs: list[tuple[str, Any]]) -> Object:
    """Make an object of its keys and values.

    Raises:
        RepeatedKeyError: a key is there twice.
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        raise RepeatedKeyError
    return made


def _explain_json(text: str, file: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        raise UsageError(f"{file}:{error.lineno}:{error.colno}: not valid JSON: {problem}") from error
    except RecursionError as error:
        raise UsageError(f"{file}: nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"{file}: not valid JSON: {LONG_NUMBER}") from error


def _skip(text: str, offset: int) -> int:
    while offset < len(text) and text[offset].isspace():
        offset += 1
    return offset


def is_tests(value: Any) -> bool:
    """Whether a value looks like a file of tests of policies, and not like an object."""
    tests = value.get("tests") if isinstance(value, Mapping) and "kind" not in value else value
    return isinstance(tests, list) and any(isinstance(one, Mapping) and "given" in one for one in tests)


def objects_of(value: Any, source: Source, path: str = "", implied: Object | None = None) -> Iterator[Document]:
    """Return the objects of a document: itself, or the items of a list.

    Raises:
        UsageError: it is no Kubernetes object.
    """
    found = Document(value, source, path)
    if not path and is_tests(value):
        raise UsageError(f"{found.where}: this is a test file; run `policysched test {source.file}`")
    if not isinstance(value, Mapping):
        raise ForeignFileError(f"{found.where}: expected an object, got {_kind(value)}")
    whole = {**implied, **value} if implied else value
    kind = whole.get("kind")
    if not isinstance(kind, str) or not kind:
        is_meant = path or "apiVersion" in whole or {"metadata", "spec"} <= whole.keys()
        raise (UsageError if is_meant else ForeignFileError)(f"{found.where}: object has no kind")
    if not kind.endswith("List"):
        yield Document(whole, source, path)
        return
    items = whole.get("items") or []
    if not isinstance(items, list):
        raise UsageError(f"{found.where}: items: expected a list, got {_kind(items)}")
    inner = {"kind": kind.removesuffix("List"), "apiVersion": whole.get("apiVersion", "v1")}
    for index, item in enumerate(items):
        yield from objects_of(item, source, f"{path}.items[{index}]".lstrip("."), inner if inner["kind"] else None)


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


def of_kind(raw: Object, kind: str) -> Object:
    """Return an object that may leave its kind open.

    Raises:
        UsageError: it is of another kind.
    """
    if not isinstance(raw, Mapping):
        raise UsageError(f"expected a {kind}, got {raw!r:.80}")
    if raw.get("kind", kind) != kind:
        raise UsageError(f"expected a {kind}, got a {raw['kind']}")
    return raw
