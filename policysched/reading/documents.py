"""Read the objects of YAML and JSON texts (several documents, lists), each with its source position.

This module does not interpret the objects. An error names file, line and column. A position is computed only when it is
used, because a saved cluster may have a hundred thousand objects without errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, Final

from yaml.nodes import Node

from policysched.errors import UsageError
from policysched.reading import positions
from policysched.reading.json_values import compose_json, explain_json, json_values
from policysched.reading.positions import SourcePosition
from policysched.reading.yaml_nodes import LINE_END, read_yaml

_TEMPLATE: Final = re.compile(
    r"\{\{-?\s*(?:/\*|\$|\.[A-Z]|(?:if|else|end|with|range|include|define|template|toYaml)\b)"
)
"""Pattern of an action in a Helm template."""
Object = Mapping[str, Any]


class EmptyFileError(UsageError):
    """Error: a file contains no objects, only comments."""


class ForeignFileError(UsageError):
    """Error: a file contains values that are not Kubernetes objects."""


@dataclass(frozen=True)
class Source:
    """Where a YAML document comes from: the text of its file, and the document's root node."""

    file: str
    read: Callable[[], str] = field(repr=False)
    compose: Callable[[], Node] = field(repr=False)

    @cached_property
    def text(self) -> str:
        """The text of the file, at least up to the end of the document."""
        return self.read()

    @property
    def lines(self) -> list[str]:
        """The lines of the text, divided at the line ends of YAML."""
        return _lines(self.text)

    @property
    def starts(self) -> list[int]:
        """The offset in the file's text at which each line starts."""
        return _starts(self.text)

    @cached_property
    def root(self) -> Node:
        """The root node of the document."""
        return self.compose()


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    """Divide the text of a file into lines; cached, so that the documents of one file share the lines."""
    return LINE_END.split(text)


@lru_cache(maxsize=1)
def _starts(text: str) -> list[int]:
    return [0, *(found.end() for found in LINE_END.finditer(text))]


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file, with its source."""

    object: Object
    source: Source
    path: str = field(default="")
    """Path of the object in its document, such as `items[3]`."""

    @property
    def file(self) -> str:
        """The name of the file, as the user wrote it."""
        return self.source.file

    @property
    def where(self) -> str:
        """File, line and column of the object, for messages."""
        place = self.place("")
        return f"{self.file}:{place.line}:{place.column}"

    def node(self, path: str) -> Node:
        """Return the YAML node of a field; if the field is missing, the node of its nearest existing parent."""
        return positions.find(self.source.root, self.inside(path))[0]

    def exact(self, path: str) -> Node | None:
        """Return the YAML node of a field; None if the field is missing."""
        node, found = positions.find(self.source.root, self.inside(path))
        return node if found else None

    def refusal(self, path: str, error: Exception | str, *, at_key: bool = False) -> UsageError:
        """Return a UsageError with the given message and the position of a field, or of the field's key."""
        key = positions.key(self.source.root, self.inside(path)) if at_key else None
        place = self.place(path) if key is None else positions.start(key)
        return UsageError(f"{self.file}:{place.line}:{place.column}: {error}")

    def inside(self, path: str) -> str:
        """Return the path of a field from the root of the YAML document, given its path in the object."""
        return f"{self.path}.{path}" if self.path and path else self.path or path

    def place(self, path: str, line: int = 1, column: int = 1) -> SourcePosition:
        """Return the position of a field in its file, or of a line and column within the field's text."""
        node = self.node(path)
        if (line, column) == (1, 1) and not path:
            return positions.start(node)
        return positions.inside(node, self.source.lines, line, column)


def read(text: str, file: str) -> list[Document]:
    """Return the objects in the text of a file, each with its source.

    Raises:
        UsageError: the text is not made of Kubernetes objects.
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


def metadata_of(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of an object as written; empty if the metadata is not a mapping."""
    found = one.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _values(text: str, file: str) -> Iterator[tuple[Any, Source]]:
    if text.lstrip()[:1] in ("{", "["):
        found = json_values(text, file)
        if found is not None:
            for value, offset, end in found:
                yield value, Source(file, lambda: text, partial(compose_json, text, offset, end))
            return
        if file.endswith(".json"):
            explain_json(text, file)
    for value, node in read_yaml(text, file):
        yield value, Source(file, lambda: text, lambda node=node: node)  # type: ignore[misc]


def is_tests(value: Any) -> bool:
    """Return whether the value of a YAML document is a policy test file, not a Kubernetes object."""
    tests = value.get("tests") if isinstance(value, Mapping) and "kind" not in value else value
    return isinstance(tests, list) and any(isinstance(one, Mapping) and "given" in one for one in tests)


def objects_of(value: Any, source: Source, path: str = "", implied: Object | None = None) -> Iterator[Document]:
    """Return the objects of a document: the document itself, or the items of a list.

    Raises:
        UsageError: the document is not a Kubernetes object.
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
    """Return an object if it has the given kind or no kind; raise an error if it has another kind.

    Raises:
        UsageError: the object has another kind.
    """
    if not isinstance(raw, Mapping):
        raise UsageError(f"expected a {kind}, got {raw!r:.80}")
    if raw.get("kind", kind) != kind:
        raise UsageError(f"expected a {kind}, got a {raw['kind']}")
    return raw
