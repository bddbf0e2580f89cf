"""Read the objects that a Python program passes: dicts, YAML or JSON texts, paths of files and folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from policysched.app.files.saved_clusters import load_cluster, refuse_twins
from policysched.errors import UsageError
from policysched.reading.documents import Document, read
from policysched.reading.folders import empty

Object = Mapping[str, Any]
OneObject: TypeAlias = "Object | str | os.PathLike[str]"
"""An object as kubectl prints it, its YAML or JSON text, or the path of its file."""
Objects: TypeAlias = "OneObject | Iterable[OneObject]"
"""Objects, texts or paths of files and folders, each alone or in a list."""
TEXT: Final = "<text>"
"""Name that messages use for a YAML or JSON text, which has no file name."""


def is_text(given: str) -> bool:
    """Return whether a string is a YAML or JSON text; any other string is a path."""
    return "\n" in given or ": " in given or given.lstrip().startswith(("{", "["))


def cluster_objects(given: Objects) -> list[Object]:
    """Return the objects of a cluster that the argument `objects` contains; Lists are split into their items.

    Raises:
        UsageError: a file cannot be read, or a value is not an object or has no kind.
    """
    return list(unlisted(given_objects(given, "objects")))


def unlisted(objects: Iterable[Object], kind: str = "") -> Iterator[Object]:
    """Yield the objects that are not Lists, and the items of Lists.

    Raises:
        UsageError: a value is not an object or has no kind.
    """
    for raw in objects:
        if not isinstance(raw, Mapping) or not isinstance(raw.get("kind", kind or None), str):
            raise UsageError(f"expected an object with a kind, got {raw!r:.80}")
        whole = raw if "kind" in raw else {"kind": kind, **raw}
        if whole["kind"].endswith("List"):
            yield from unlisted(whole.get("items") or (), whole["kind"].removesuffix("List"))
        else:
            yield whole


def given_objects(given: Objects, name: str, kind: str = "") -> Iterator[Object]:
    """Yield the objects that an argument contains as dicts, texts or paths of files."""
    for one in given_documents(given, name, kind):
        yield one.object if isinstance(one, Document) else one


def given_documents(given: Objects, name: str, kind: str = "") -> Iterator[Object | Document]:
    """Yield the objects of an argument; objects from texts and files have their positions.

    Args:
        given: The argument.
        name: Its name, for messages.
        kind: The only kind that is read from a folder, text or file that has this kind; empty: all kinds.

    Raises:
        UsageError: a file cannot be read, a text or file has no objects, or the argument has another type.
    """
    if isinstance(given, str | os.PathLike):
        yield from _loaded(given, kind)
    elif isinstance(given, Mapping):
        yield given
    elif isinstance(given, Iterable):
        for one in given:
            yield from _loaded(one, kind) if isinstance(one, str | os.PathLike) else (one,)
    else:
        raise UsageError(f"{name} must be an object, a path, or a list of them, got {type(given).__name__}")


def one_object(given: OneObject, name: str) -> Object:
    """Return the only object that an argument contains; raise an error if there are several.

    Raises:
        UsageError: a file cannot be read, or there are several objects.
    """
    if not isinstance(given, str | os.PathLike):
        return given
    found = _loaded(given)
    if len(found) > 1:
        raise UsageError(f"{name} must be one object, got {len(found)}")
    return found[0].object


def _loaded(given: str | os.PathLike[str], kind: str = "") -> list[Document]:
    if isinstance(given, str) and is_text(given):
        found = read(given, TEXT)
    else:
        found = load_cluster([os.fspath(given)])
        if kind and Path(given).is_dir():
            found = [one for one in found if one.object["kind"] == kind]
    found = [one for one in found if one.object["kind"] == kind] or found
    if not found:
        raise empty(os.fspath(given), f"no {kind} in the folder")
    refuse_twins(found)
    return found
