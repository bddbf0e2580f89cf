"""Load the objects of files and folders.

In a folder, files without objects are skipped, and so are Kustomizations and YAML files that are no Kubernetes objects,
such as the values of a chart; a note names them. A file that the user names has to hold objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path
from typing import Final

from policysched.app.files.objects import (
    Document,
    EmptyFileError,
    ForeignFileError,
    expand,
    read,
    read_text,
    shown,
)
from policysched.errors import UsageError
from policysched.late_dataclass import dataclass

KUSTOMIZATIONS: Final = frozenset(("kustomization.yaml", "kustomization.yml"))
_MOST_NAMED: Final = 3
"""How many ignored files a note names."""


@dataclass(slots=True)
class IgnoredFiles:
    """Files of folders that are no Kubernetes objects."""

    foreign: list[str] = field(default_factory=list)
    kustomizations: list[str] = field(default_factory=list)

    def read(self, file: str, read_file: Callable[[str], list[Document]]) -> list[Document]:
        """Read a file of a folder; return nothing for a file that holds no objects.

        Raises:
            UsageError: the file is malformed.
        """
        name = Path(file).name
        try:
            documents = read_file(file)
        except EmptyFileError:
            return []
        except ForeignFileError:
            (self.kustomizations if name in KUSTOMIZATIONS else self.foreign).append(file)
            return []
        if name in KUSTOMIZATIONS:
            self.kustomizations.append(file)
            return []
        return documents

    def notes(self) -> list[str]:
        """Return a note about each sort of ignored files."""
        made = []
        if self.foreign:
            made.append(f"ignored {_listed(self.foreign)}: no Kubernetes objects")
        if self.kustomizations:
            made.append(f"ignored {_listed(self.kustomizations)}: {_how_to_build(self.kustomizations[0])}")
        return made


def load(names: Iterable[str], notes: list[str] | None = None) -> list[Document]:
    """Read files, folders and `-`, the standard input.

    Args:
        names: The files and folders.
        notes: Receives a note about each ignored file.

    Raises:
        UsageError: one cannot be read or is not made of Kubernetes objects.
    """
    return load_each(names, lambda file: read(read_text(file), shown(file)), notes)


def load_each(
    names: Iterable[str], read_file: Callable[[str], list[Document]], notes: list[str] | None = None
) -> list[Document]:
    """Read files and folders with a given reader of files; see `load`.

    Raises:
        UsageError: one cannot be read or is not made of Kubernetes objects.
    """
    ignored = IgnoredFiles()
    found: list[Document] = []
    for name in names:
        files = expand(name)
        if files == [name]:
            found += read_file(name)
            continue
        inside = [document for file in files for document in ignored.read(file, read_file)]
        if not inside:
            build = [_how_to_build(file) for file in files if Path(file).name in KUSTOMIZATIONS][:1]
            raise UsageError("; ".join([f"{name}: no Kubernetes objects in the folder", *build]))
        found += inside
    if notes is not None:
        notes += ignored.notes()
    return found


def _how_to_build(kustomization: str) -> str:
    folder = Path(kustomization).parent
    return f"to use its output, run `kubectl kustomize {folder}` and pipe it into the command as file `-`"


def _listed(files: list[str]) -> str:
    more = len(files) - _MOST_NAMED
    return ", ".join(files[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def load_one(file: str, kind: str) -> Document:
    """Load a file that holds one object.

    Args:
        file: The file.
        kind: The kind that the error message names.

    Raises:
        UsageError: the file cannot be read, or does not hold one object.
    """
    found = load([file])
    if len(found) > 1:
        raise UsageError(f"{found[1].where}: expected one {kind}, got several objects")
    if not found:
        raise UsageError(f"{file}: expected one {kind}, got no object")
    return found[0]
