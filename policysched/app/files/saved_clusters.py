"""Fast loading of a saved cluster (`kubectl get -o json` or YAML): source positions are found only when needed.

Lists in JSON, as `kubectl get -o json` prints them, are split without decoding them. Of nodes and pods, only fields
that scheduling reads become objects. Positions are determined when a message needs them. Other input, input that the
fast path cannot read, and input with duplicate keys, is read like any other file.
"""

from __future__ import annotations

import contextlib
import json
import re
import stat
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec
from yaml.nodes import Node as YamlNode

from policysched.errors import UsageError
from policysched.model.admission_kinds import admission_kind_of
from policysched.model.kinds import kind_of
from policysched.model.objects import Node, Pod
from policysched.model.policy import KIND
from policysched.reading.documents import Document, Object, Source, metadata_of, objects_of, read
from policysched.reading.files import STDIN, as_text, read_bytes, shown
from policysched.reading.json_values import compose_json, without_repeats
from policysched.reading.loading import load_each
from policysched.reading.yaml_nodes import read_yaml
from policysched.reading.yaml_values import NotPlainError, read_events

NO_NODES: Final = (
    "cluster has no nodes; --cluster needs objects such as the output of `kubectl get nodes,pods -A -o json`"
)
"""Message of commands if a cluster has no nodes."""
_TYPES: Final[dict[str, type[Any]]] = {"Node": Node, "Pod": Pod}
_SHAPES: Final = {kind: msgspec.json.Decoder[Any](shape) for kind, shape in _TYPES.items()}
_ENCODER: Final = msgspec.json.Encoder()
_BETWEEN: Final = re.compile(rb"[\s,]*")
"""Separators between the items of a list in JSON."""


class _List(msgspec.Struct, rename="camel", frozen=True):
    """A Kubernetes List in JSON whose items stay encoded."""

    kind: str = ""
    api_version: str = "v1"
    items: tuple[msgspec.Raw, ...] = ()


class _Head(msgspec.Struct, rename="camel", frozen=True):
    """The kind and apiVersion of an item."""

    kind: str = ""
    api_version: str = ""


class _Names(msgspec.Struct, frozen=True):
    """Name and namespace in the metadata of a list item."""

    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct, frozen=True):
    """A list item of which only the name and the namespace are decoded."""

    metadata: _Names = _Names()


_NAMED: Final = msgspec.json.Decoder(_Named)
_LISTS: Final = msgspec.json.Decoder(_List)
_HEADS: Final = msgspec.json.Decoder(_Head)


def load_cluster(names: Iterable[str], notes: list[str] | None = None) -> list[Document]:
    """Read the objects of files, folders and standard input (`-`).

    Args:
        names: The files and folders.
        notes: Receives a note about each ignored file.

    Raises:
        UsageError: a file cannot be read or contains no Kubernetes objects.
    """
    return load_each(names, _read, notes)


def refuse_twins(documents: Iterable[Document]) -> None:
    """Raise an error for two objects with the same name, except policies, whose names commands check themselves.

    Raises:
        UsageError: an object occurs twice.
    """
    first: dict[tuple[str, str, str], Document] = {}
    for one in documents:
        name = None if one.object["kind"] == KIND else identity(one.object)
        before = one if name is None else first.setdefault(name, one)
        if before is not one:
            kind, namespace, own = name or ("", "", "")
            key = "/".join(filter(None, (namespace, own)))
            raise UsageError(f'{one.where}: {kind.lower()} "{key}" is also defined at {before.where}')


def identity(one: Object) -> tuple[str, str, str] | None:
    """Return kind, namespace and name of an object; None for an object of a kind that scheduling does not read."""
    kind = kind_of(one) or admission_kind_of(one)
    metadata = one.name() if isinstance(one, SavedObject) else metadata_of(one)
    if kind is None or not metadata.get("name"):
        return None
    return kind.kind, str(metadata.get("namespace") or "default") if kind.namespaced else "", str(metadata["name"])


def _read(name: str) -> list[Document]:
    kept = _Kept(name)
    data, file = kept.data(), shown(name)
    found = _listed(kept, data, file)
    if found is not None:
        kept.let_go()
        return found
    text = as_text(data, file).replace("\r\n", "\n")
    kept.let_go()
    del data
    if not text.lstrip().startswith(("{", "[")):
        with contextlib.suppress(NotPlainError):
            return _without_places(read_events(text, _shrunk), text, file)
    return read(text, file)


class _Kept:
    """The bytes of a file, which can be released and read again if the file has not changed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._state = _state(name)
        self._data: bytes | None = None

    def data(self) -> bytes:
        """Return the bytes of the file; read the file again if they were released.

        Raises:
            UsageError: the file cannot be read, or has changed since.
        """
        if self._data is None:
            self._data = read_bytes(self._name)
            if _state(self._name) != self._state:
                raise UsageError(f"{shown(self._name)}: file changed while it was read")
        return self._data

    def let_go(self) -> None:
        """Release the bytes, unless the input cannot be read again."""
        if self._state is not None:
            self._data = None


def _state(name: str) -> tuple[int, ...] | None:
    """Return a value that changes whenever a file changes; None if the input cannot be read twice."""
    try:
        found = None if name in ("", STDIN) else Path(name).stat()
    except OSError:
        return None
    if found is None or not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=16)
def _head(kind: str, version: str) -> Object:
    """Return a dict with a kind and an apiVersion; equal arguments return the same dict."""
    return {"apiVersion": version, "kind": kind} if version else {"kind": kind}


def _without_places(values: Iterator[Any], text: str, file: str) -> list[Document]:
    """Return YAML values as documents; a slower reader finds the position of a field when a message needs it."""
    found: list[Document] = []
    for index, value in enumerate(values):
        source = Source(file, lambda: text, partial(_root, text, file, index))
        found += objects_of(value, source)
    return found or read(text, file)


def _root(text: str, file: str, index: int) -> YamlNode:
    return read_yaml(text, file)[index][1]


def _shrunk(item: dict[str, Any]) -> Object:
    """Reduce a node or pod to JSON of the fields that scheduling reads; objects of other kinds stay unchanged."""
    shape = _TYPES.get(item.get("kind", "")) if isinstance(item.get("kind"), str) else None
    head = {key: item[key] for key in ("apiVersion", "kind") if isinstance(item.get(key), str)}
    if shape is None:
        return item
    try:
        written = _ENCODER.encode(msgspec.convert(item, shape))
    except (msgspec.ValidationError, OverflowError):
        return item
    # JSON writes an infinite number as null.
    return item if b"null" in written else SavedObject(head, msgspec.Raw(written), _SHAPES[head["kind"]])


def _listed(kept: _Kept, data: bytes, file: str) -> list[Document] | None:
    """Split a JSON List into documents; return None if the data is not a List or has an unusual item."""
    if not data.startswith(b"{") or b"\r" in data[:4096]:
        return None
    try:
        whole = _LISTS.decode(data)
        if not whole.kind.endswith("List") or not whole.items:
            return None
        kind = whole.kind.removesuffix("List")
        implied = _Head(kind=kind, api_version=whole.api_version) if kind else _Head()
        return list(_documents(whole.items, implied, kept, file))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def _documents(items: tuple[msgspec.Raw, ...], implied: _Head, kept: _Kept, file: str) -> Iterator[Document]:
    data = kept.data()
    begin = end = data.index(items[0])
    for item in items:
        start = _BETWEEN.match(data, end).end()  # type: ignore[union-attr]  # the pattern also matches the empty text
        end = start + len(memoryview(item))
        if data[start:end] != bytes(item):
            # The list's own text precedes the first item.
            raise ValueError
        yield Document(_object(item, implied), _source(kept, file, start, end))
    json.loads(data[:begin] + data[end:], object_pairs_hook=without_repeats)


class SavedObject(Mapping[str, Any]):
    """A node or pod in encoded form; its fields are decoded at each access and not cached.

    The cluster's columns hold what scheduling needs, and decoded fields of 50,000 pods use more memory than their text.
    """

    __slots__ = ("_head", "_item", "_shape")

    def __init__(self, head: Object, item: msgspec.Raw, shape: msgspec.json.Decoder[Any]) -> None:
        self._head, self._item, self._shape = head, item, shape

    def __getitem__(self, key: str) -> Any:
        return self._head[key] if key in self._head else self.whole()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole())

    def __len__(self) -> int:
        return len(self.whole())

    def items(self) -> ItemsView[str, Any]:
        """Return the fields with their values, decoding the object once."""
        return self.whole().items()

    def struct(self) -> Node | Pod | None:
        """Decode the fields that scheduling reads; return None if decoding fails, for example because of a null."""
        with contextlib.suppress(msgspec.ValidationError):
            found: Node | Pod = self._shape.decode(self._item)
            return found
        return None

    def name(self) -> Object:
        """Decode the name and the namespace; a malformed name or namespace is empty."""
        with contextlib.suppress(msgspec.MsgspecError):
            found: Object = msgspec.to_builtins(_NAMED.decode(self._item).metadata)
            return found
        return {}

    def whole(self) -> dict[str, Any]:
        """Decode all fields of the object, including fields that scheduling does not read."""
        found = self.struct()
        # An object that does not fit is decoded whole; the code that uses it reports the error.
        return {**self._head, **(msgspec.json.decode(self._item) if found is None else msgspec.to_builtins(found))}


def _object(item: msgspec.Raw, implied: _Head) -> Object:
    """Return the object of an encoded list item: nodes and pods stay encoded, other objects are decoded.

    Raises:
        ValueError: the item is a list, has no kind or a duplicate key; `reading.documents` handles these.
    """
    head = _HEADS.decode(item)
    kind, version = head.kind or implied.kind, head.api_version or implied.api_version
    if not kind or kind.endswith("List"):
        raise ValueError
    said = {"apiVersion": version, "kind": kind} if version else {"kind": kind}
    if kind in _SHAPES:
        _refuse_repeats(item)
        return SavedObject(_head(kind, version), _small(item, _SHAPES[kind]), _SHAPES[kind])
    read_whole: dict[str, Any] = json.loads(bytes(item), object_pairs_hook=without_repeats)
    return said | read_whole


def _small(item: msgspec.Raw, shape: msgspec.json.Decoder[Any]) -> msgspec.Raw:
    """Return an item's JSON reduced to the fields that scheduling reads, or whole if a field has a wrong type."""
    try:
        return msgspec.Raw(_ENCODER.encode(shape.decode(item)))
    except msgspec.ValidationError:
        return item.copy()


def _refuse_repeats(item: msgspec.Raw) -> None:
    """Raise ValueError if the JSON of an object has a duplicate key.

    Raises:
        ValueError: an object has a duplicate key.
    """
    if msgspec.json.format(bytes(item), indent=-1) != _ENCODER.encode(msgspec.json.decode(item)):
        json.loads(bytes(item), object_pairs_hook=without_repeats)


def _source(kept: _Kept, file: str, start: int, end: int) -> Source:
    text = partial(_item_text, kept, start, end)
    return Source(file, text, lambda: compose_json(text(), _before(kept.data(), start), len(text())))


def _item_text(kept: _Kept, start: int, end: int) -> str:
    """Return the text of a list item after as many empty lines and spaces as precede the item in the file."""
    data = kept.data()
    lines, column = _position(data, start)
    return "\n" * lines + " " * column + data[start:end].decode()


def _before(data: bytes, start: int) -> int:
    return sum(_position(data, start))


def _position(data: bytes, start: int) -> tuple[int, int]:
    """Return the number of line feeds before an offset, and the number of characters between line start and offset."""
    begin = data.rfind(b"\n", 0, start) + 1
    return data.count(b"\n", 0, start), len(data[begin:start].decode())
